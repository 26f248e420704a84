// Boxes around objects: as differences from given ones, on a grid, and from the output of a YOLO network.
#include <cmath>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/ops/families/prior_boxes.h"

namespace oar::cpu {
namespace {

constexpr int64_t kBoxGrain = 1024;

template <class C>
struct CentreSize {
  C x, y, width, height;

  // one: 1 if the box is given by its outermost pixels, else 0.
  CentreSize(const C* box, C one) : width(box[2] - box[0] + one), height(box[3] - box[1] + one) {
    x = box[0] + width / 2;
    y = box[1] + height / 2;
  }
};

template <class C>
void encode(const C* target, const C* prior, C one, C* out) {
  const CentreSize<C> p(prior, one), t(target, one);
  out[0] = ((target[2] + target[0]) / 2 - p.x) / p.width;
  out[1] = ((target[3] + target[1]) / 2 - p.y) / p.height;
  out[2] = std::log(std::abs(t.width / p.width));
  out[3] = std::log(std::abs(t.height / p.height));
}

template <class C>
void decode(const C* target, const C* prior, const C* variance, C one, C* out) {
  const CentreSize<C> p(prior, one);
  const C x = variance[0] * target[0] * p.width + p.x, y = variance[1] * target[1] * p.height + p.y,
          width = std::exp(variance[2] * target[2]) * p.width,
          height = std::exp(variance[3] * target[3]) * p.height;
  out[0] = x - width / 2;
  out[1] = y - height / 2;
  out[2] = x + width / 2 - one;
  out[3] = y + height / 2 - one;
}

void box_coder(KernelCall& call) {
  const oar_tensor& out = call.out();
  if (out.numel == 0) return;
  const bool encodes = call.arg(3).as_string() == "encode_center_size",
             by_row = !encodes && call.arg(5).as_int() == 1;
  const int64_t columns = out.shape[1];
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> priors(call.in(0)), targets(call.in(2));
    const oar_tensor* given = optional_in(call, 1);
    const C ones[] = {1, 1, 1, 1};
    const Compact<C> variances(given ? *given : call.in(0));
    const bool each = given && given->ndim == 2;
    const C one = call.arg(4).as_bool() ? C(0) : C(1);
    const Result<C> result(out);
    parallel_for(0, out.numel / 4, kBoxGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / columns, column = i % columns, prior = by_row ? row : column;
        const C* variance = given ? variances.data() + (each ? 4 * prior : 0) : ones;
        C* to = result.data() + 4 * i;
        if (!encodes) {
          decode(targets.data() + 4 * i, priors.data() + 4 * prior, variance, one, to);
          continue;
        }
        encode(targets.data() + 4 * row, priors.data() + 4 * prior, one, to);
        for (int k = 0; k < 4; ++k) to[k] /= variance[k];
      }
    });
    result.finish();
  });
}

std::optional<std::span<const double>> numbers(const KernelCall& call, int i) {
  if (!call.has(i)) return std::nullopt;
  return call.arg(i).as_doubles();
}

// Half the width and height of each box around a pixel.
template <class C>
std::vector<std::array<C, 2>> half_sizes(const KernelCall& call) {
  const auto smallest = call.arg(2).as_doubles();
  const auto largest = numbers(call, 3).value_or(std::span<const double>());
  const std::vector<double> ratios = all_ratios(numbers(call, 4), call.arg(6).as_bool());
  std::vector<std::array<C, 2>> halves;
  const auto square = [&](double size) {
    halves.push_back({static_cast<C>(size / 2), static_cast<C>(size / 2)});
  };
  for (size_t s = 0; s < smallest.size(); ++s) {
    const double size = smallest[s];
    const auto between = [&] {
      if (!largest.empty()) square(std::sqrt(size * largest[s]));
    };
    const auto with_ratio = [&](double ratio) {
      const double root = std::sqrt(ratio);
      halves.push_back({static_cast<C>(size * root / 2), static_cast<C>(size / root / 2)});
    };
    if (call.arg(10).as_bool()) {
      square(size);
      between();
      for (size_t i = 1; i < ratios.size(); ++i) with_ratio(ratios[i]);
    } else {
      for (const double ratio : ratios) with_ratio(ratio);
      between();
    }
  }
  return halves;
}

void prior_box(KernelCall& call) {
  const oar_tensor &out = call.out(), &image = call.in(1);
  if (out.numel == 0) return;
  const int64_t height = out.shape[0], width = out.shape[1];
  const bool clip = call.arg(7).as_bool();
  const auto variance = numbers(call, 5), steps = numbers(call, 8);
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const auto image_width = static_cast<C>(image.shape[3]),
               image_height = static_cast<C>(image.shape[2]);
    const bool stepped = steps && (*steps)[0] != 0 && (*steps)[1] != 0;
    const C step_x = stepped ? static_cast<C>((*steps)[0]) : image_width / static_cast<C>(width),
            step_y = stepped ? static_cast<C>((*steps)[1]) : image_height / static_cast<C>(height);
    const auto offset = static_cast<C>(call.arg(9).as_double());
    const auto halves = half_sizes<C>(call);
    const Result<C> boxes(out), variances(call.out(1));
    const auto bound = [clip](C v) { return clip ? std::min(std::max(v, C(0)), C(1)) : v; };
    C* to = boxes.data();
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        const C middle_x = (static_cast<C>(x) + offset) * step_x,
                middle_y = (static_cast<C>(y) + offset) * step_y;
        for (const auto& half : halves) {
          *to++ = bound((middle_x - half[0]) / image_width);
          *to++ = bound((middle_y - half[1]) / image_height);
          *to++ = bound((middle_x + half[0]) / image_width);
          *to++ = bound((middle_y + half[1]) / image_height);
        }
      }
    const double usual[] = {0.1, 0.1, 0.2, 0.2};
    for (int64_t i = 0; i < out.numel; ++i)
      variances.data()[i] =
          static_cast<C>((variance ? *variance : std::span<const double>(usual))[i % 4]);
    boxes.finish();
    variances.finish();
  });
}

template <class C>
C logistic(C v) {
  return 1 / (1 + std::exp(-v));
}

// The output of a YOLO network for one anchor of one image: planes of height * width numbers.
template <class C>
struct YoloPlanes {
  const C* entries;  // x, y, width, height, confidence, classes
  const C* overlap;  // or null
  int64_t height, width;
  C confidence(int64_t at, C factor) const {
    const C own = logistic(entries[4 * height * width + at]);
    if (!overlap) return own;
    return std::pow(own, 1 - factor) * std::pow(logistic(overlap[at]), factor);
  }
};

struct YoloImage {
  double height, width;  // of the image
  double anchor_width, anchor_height, ratio;
  double scale;
  bool clip;
};

template <class C>
void yolo_corners(const YoloPlanes<C>& p, const YoloImage& image, int64_t at, C* out) {
  const int64_t plane = p.height * p.width, row = at / p.width, column = at % p.width;
  const auto scale = static_cast<C>(image.scale), bias = C(-0.5) * (scale - 1);
  const auto w = static_cast<C>(image.width), h = static_cast<C>(image.height);
  const C* e = p.entries + at;
  const C x = (static_cast<C>(column) + logistic(e[0]) * scale + bias) * w /
              static_cast<C>(p.width),
          y = (static_cast<C>(row) + logistic(e[plane]) * scale + bias) * h /
              static_cast<C>(p.height);
  const C width = std::exp(e[2 * plane]) * static_cast<C>(image.anchor_width) * w /
                  static_cast<C>(image.ratio * static_cast<double>(p.width)),
          height = std::exp(e[3 * plane]) * static_cast<C>(image.anchor_height) * h /
                   static_cast<C>(image.ratio * static_cast<double>(p.height));
  out[0] = x - width / 2;
  out[1] = y - height / 2;
  out[2] = x + width / 2;
  out[3] = y + height / 2;
  if (!image.clip) return;
  out[0] = out[0] > 0 ? out[0] : C(0);
  out[1] = out[1] > 0 ? out[1] : C(0);
  out[2] = out[2] < w - 1 ? out[2] : w - 1;
  out[3] = out[3] < h - 1 ? out[3] : h - 1;
}

void yolo_box(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  if (call.out().numel == 0) return;
  const Ints anchors = call.arg(2).as_ints();
  const auto count = static_cast<int64_t>(anchors.size() / 2);
  const int64_t classes = call.arg(3).as_int(), height = x.shape[2], width = x.shape[3],
                plane = height * width;
  const bool aware = call.arg(8).as_bool();
  const Copied<int64_t> sizes(call.in(1));
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> from(x);
    const Result<C> boxes(call.out(0)), scores(call.out(1));
    const auto least = static_cast<C>(static_cast<float>(call.arg(4).as_double())),
               factor = static_cast<C>(call.arg(9).as_double());
    parallel_for(0, x.shape[0] * count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t n = k / count, anchor = k % count;
        const C* image = from.data() + n * x.shape[1] * plane;
        const YoloPlanes<C> planes{image + ((aware ? count : 0) + anchor * (5 + classes)) * plane,
                                   aware ? image + anchor * plane : nullptr, height, width};
        const YoloImage about{static_cast<double>(sizes.data()[2 * n]),
                              static_cast<double>(sizes.data()[2 * n + 1]),
                              static_cast<double>(anchors[static_cast<size_t>(2 * anchor)]),
                              static_cast<double>(anchors[static_cast<size_t>(2 * anchor + 1)]),
                              static_cast<double>(call.arg(5).as_int()),
                              call.arg(7).as_double(),
                              call.arg(6).as_bool()};
        for (int64_t at = 0; at < plane; ++at) {
          C *box = boxes.data() + (k * plane + at) * 4,
            *score = scores.data() + (k * plane + at) * classes;
          const C confidence = planes.confidence(at, factor);
          if (confidence < least) {
            std::fill(box, box + 4, C(0));
            std::fill(score, score + classes, C(0));
            continue;
          }
          yolo_corners(planes, about, at, box);
          for (int64_t c = 0; c < classes; ++c)
            score[c] = confidence * logistic(planes.entries[(5 + c) * plane + at]);
        }
      }
    });
    boxes.finish();
    scores.finish();
  });
}

}  // namespace

KernelList boxes_kernels() {
  static const oar_kernel list[] = {
      {"box_coder", 1, "cpu:generic", nullptr, kernel_entry<box_coder>},
      {"prior_box", 1, "cpu:generic", nullptr, kernel_entry<prior_box>},
      {"yolo_box", 1, "cpu:generic", nullptr, kernel_entry<yolo_box>},
  };
  return list;
}

}  // namespace oar::cpu
