// Regions of images, brought to one size.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "oar/backend/cpu/loops/compact.h"

namespace oar::cpu {
namespace {

// The sizes of a call, and the image that each box belongs to.
struct Regions {
  int64_t images, channels, height, width, boxes, rows, columns;
  std::vector<int64_t> image;

  // x: the images, or the gradient of them. boxes is operand 1, boxes_num operand 2.
  Regions(const KernelCall& call, const oar_tensor& x, Ints size)
      : images(x.shape[0]),
        channels(x.shape[1]),
        height(x.shape[2]),
        width(x.shape[3]),
        boxes(call.in(1).shape[0]),
        rows(size.front()),
        columns(size.back()) {
    const Copied<int64_t> counts(call.in(2));
    int64_t left = boxes;
    for (int64_t i = 0; i < images; ++i) {
      const int64_t count = counts.data()[i];
      user_check(count >= 0 && count <= left, ErrorKind::InvalidArgument,
                 "boxes_num of image {} is {}, but {} of the {} boxes are left.", i, count, left,
                 boxes);
      left -= count;
    }
    user_check(left == 0, ErrorKind::InvalidArgument,
               "boxes_num counts {} boxes, but there are {}.", boxes - left, boxes);
    for (int64_t i = 0; i < images; ++i)
      image.insert(image.end(), static_cast<size_t>(counts.data()[i]), i);
  }
  int64_t plane() const { return height * width; }
  int64_t bins() const { return rows * columns; }
  // The first box of an image, and of the one after it.
  std::pair<int64_t, int64_t> boxes_of(int64_t i) const {
    const auto [first, last] = std::equal_range(image.begin(), image.end(), i);
    return {first - image.begin(), last - image.begin()};
  }
};

// Pixels [begin, end) along one axis.
struct Span {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// To an integer within [low, high], which also holds for NaN and numbers that no integer has.
template <class C>
int64_t clamped(C v, int64_t low, int64_t high) {
  if (!(v > static_cast<C>(low))) return low;
  return v < static_cast<C>(high) ? static_cast<int64_t>(v) : high;
}

// roi_align is separable: along each axis a bin is a weighted sum of adjacent pixels.
template <class C>
struct AxisWeights {
  struct Bin {
    Span pixels;
    size_t weights;  // where they begin
  };
  std::vector<Bin> bins;
  std::vector<C> weights;
  Span all{std::numeric_limits<int64_t>::max(), 0};  // what any bin reads

  AxisWeights(C low, C length, int64_t count, int64_t size, int64_t sampling_ratio) {
    const C each = length / static_cast<C>(count);
    const C wanted = sampling_ratio > 0 ? static_cast<C>(sampling_ratio) : std::ceil(each);
    for (int64_t b = 0; b < count; ++b) add(low, each, b, size, wanted);
  }

 private:
  void add(C low, C each, int64_t bin, int64_t size, C samples) {
    const C step = each / samples, first = low + each * static_cast<C>(bin);
    Bin made{{0, 0}, weights.size()};
    // A sample s is at first + step * (s + 0.5); only those between -1 and size count.
    const auto sample_at = [&](C place) { return (place - first) / step; };
    const C from = std::min(sample_at(-1), sample_at(static_cast<C>(size))),
            to = std::max(sample_at(-1), sample_at(static_cast<C>(size)));
    const bool flat = step == 0;
    const int64_t begin = flat ? 0 : sample_number(std::max(C(0), std::floor(from) - 1)),
                  end = flat ? sample_number(samples)
                             : sample_number(std::min(std::ceil(to) + 1, samples));
    for (int64_t s = begin; s < end; ++s) {
      const C at = low + each * (static_cast<C>(bin) + (static_cast<C>(s) + C(0.5)) / samples);
      if (!(at >= -1 && at <= static_cast<C>(size))) continue;
      const C inside = std::clamp(at, C(0), static_cast<C>(size - 1));
      const auto below = static_cast<int64_t>(inside);
      const int64_t above = std::min(below + 1, size - 1);
      const C part = inside - static_cast<C>(below);
      grow(made, below, above);
      weight(made, below) += (1 - part) / samples;
      weight(made, above) += part / samples;
    }
    bins.push_back(made);
    if (made.pixels.size() == 0) return;
    all.begin = std::min(all.begin, made.pixels.begin);
    all.end = std::max(all.end, made.pixels.end);
  }
  // Boxes that are not finite, or larger than any image, have no samples inside it.
  static int64_t sample_number(C number) {
    return number < C(1e15) ? static_cast<int64_t>(number) : 0;
  }
  C& weight(const Bin& bin, int64_t pixel) {
    return weights[bin.weights + static_cast<size_t>(pixel - bin.pixels.begin)];
  }
  // Makes room for both pixels in the bin, which is the last one.
  void grow(Bin& bin, int64_t low, int64_t high) {
    Span& p = bin.pixels;
    if (p.size() == 0) p = {low, low};
    if (low < p.begin) {
      weights.insert(weights.begin() + static_cast<std::ptrdiff_t>(bin.weights),
                     static_cast<size_t>(p.begin - low), C(0));
      p.begin = low;
    }
    if (high >= p.end) {
      weights.resize(weights.size() + static_cast<size_t>(high + 1 - p.end), C(0));
      p.end = high + 1;
    }
  }
};

template <class C>
struct BoxWeights {
  AxisWeights<C> rows, columns;
};

template <class C>
std::vector<BoxWeights<C>> box_weights(const KernelCall& call, const Regions& r, int scale_at) {
  const Compact<C> boxes(call.in(1));
  const auto scale = static_cast<C>(static_cast<float>(call.arg(scale_at).as_double()));
  const int64_t ratio = call.arg(scale_at + 1).as_int();
  const bool aligned = call.arg(scale_at + 2).as_bool();
  const C offset = aligned ? C(0.5) : C(0);
  const auto axis = [&](C low, C high, int64_t bins, int64_t size) {
    const C begin = low * scale - offset, length = (high * scale - offset) - begin;
    return AxisWeights<C>(begin, aligned ? length : std::max(length, C(1)), bins, size, ratio);
  };
  std::vector<BoxWeights<C>> all;
  all.reserve(static_cast<size_t>(r.boxes));
  for (int64_t k = 0; k < r.boxes; ++k) {
    const C* box = boxes.data() + 4 * k;
    all.push_back(
        {axis(box[1], box[3], r.rows, r.height), axis(box[0], box[2], r.columns, r.width)});
  }
  return all;
}

// One channel of one box: columns first, into a row of bins for each row of pixels, then rows.
template <class C>
void align_plane(const BoxWeights<C>& w, int64_t width, const C* x, C* narrow, C* out) {
  const auto columns = static_cast<int64_t>(w.columns.bins.size());
  for (int64_t y = w.rows.all.begin; y < w.rows.all.end; ++y) {
    C* line = narrow + (y - w.rows.all.begin) * columns;
    for (int64_t q = 0; q < columns; ++q) {
      const auto& bin = w.columns.bins[static_cast<size_t>(q)];
      const C *pixels = x + y * width + bin.pixels.begin,
              *weights = w.columns.weights.data() + bin.weights;
      C sum = 0;
      for (int64_t i = 0; i < bin.pixels.size(); ++i) sum += pixels[i] * weights[i];
      line[q] = sum;
    }
  }
  for (size_t p = 0; p < w.rows.bins.size(); ++p, out += columns) {
    const auto& bin = w.rows.bins[p];
    std::fill(out, out + columns, C(0));
    for (int64_t y = bin.pixels.begin; y < bin.pixels.end; ++y) {
      const C weight = w.rows.weights[bin.weights + static_cast<size_t>(y - bin.pixels.begin)];
      const C* line = narrow + (y - w.rows.all.begin) * columns;
      for (int64_t q = 0; q < columns; ++q) out[q] += weight * line[q];
    }
  }
}

// Its transpose.
template <class C>
void spread_plane(const BoxWeights<C>& w, int64_t width, const C* grad, C* narrow, C* x) {
  const auto columns = static_cast<int64_t>(w.columns.bins.size());
  if (w.rows.all.size() <= 0) return;
  std::fill(narrow, narrow + w.rows.all.size() * columns, C(0));
  for (size_t p = 0; p < w.rows.bins.size(); ++p, grad += columns) {
    const auto& bin = w.rows.bins[p];
    for (int64_t y = bin.pixels.begin; y < bin.pixels.end; ++y) {
      const C weight = w.rows.weights[bin.weights + static_cast<size_t>(y - bin.pixels.begin)];
      C* line = narrow + (y - w.rows.all.begin) * columns;
      for (int64_t q = 0; q < columns; ++q) line[q] += weight * grad[q];
    }
  }
  for (int64_t y = w.rows.all.begin; y < w.rows.all.end; ++y) {
    const C* line = narrow + (y - w.rows.all.begin) * columns;
    for (int64_t q = 0; q < columns; ++q) {
      const auto& bin = w.columns.bins[static_cast<size_t>(q)];
      C* pixels = x + y * width + bin.pixels.begin;
      const C* weights = w.columns.weights.data() + bin.weights;
      for (int64_t i = 0; i < bin.pixels.size(); ++i) pixels[i] += line[q] * weights[i];
    }
  }
}

constexpr int64_t kChannels = 16;  // of one box or image, that one thread takes at a time

void roi_align(KernelCall& call) {
  const Regions r(call, call.in(0), call.arg(3).as_ints());
  if (call.out().numel == 0) return;
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> x(call.in(0));
    const Result<C> out(call.out());
    const auto weights = box_weights<C>(call, r, 4);
    const int64_t groups = (r.channels + kChannels - 1) / kChannels;
    parallel_for(0, r.boxes * groups, 4, [&](int64_t begin, int64_t end) {
      const Scratch<C, 4096> narrow(r.height * r.columns);
      for (int64_t g = begin; g < end; ++g) {
        const int64_t box = g / groups, from = g % groups * kChannels;
        const int64_t image = r.image[static_cast<size_t>(box)];
        for (int64_t c = from; c < std::min(r.channels, from + kChannels); ++c)
          align_plane(weights[static_cast<size_t>(box)], r.width,
                      x.data() + (image * r.channels + c) * r.plane(), narrow.data(),
                      out.data() + (box * r.channels + c) * r.bins());
      }
    });
    out.finish();
  });
}

// Calls body(image, first channel, last channel) for groups of planes that no other thread writes.
template <class Body>
void each_group(const Regions& r, Body&& body) {
  const int64_t groups = (r.channels + kChannels - 1) / kChannels;
  parallel_for(0, r.images * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t from = g % groups * kChannels;
      body(g / groups, from, std::min(r.channels, from + kChannels));
    }
  });
}

void roi_align_grad(KernelCall& call) {
  const Regions r(call, call.out(), call.arg(4).as_ints());
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> grad(call.in(0));
    const Result<C> out(call.out());
    std::fill(out.data(), out.data() + call.out().numel, C(0));
    const auto weights = box_weights<C>(call, r, 5);
    each_group(r, [&](int64_t image, int64_t from, int64_t to) {
      const Scratch<C, 4096> narrow(r.height * r.columns);
      const auto [first, last] = r.boxes_of(image);
      for (int64_t box = first; box < last; ++box)
        for (int64_t c = from; c < to; ++c)
          spread_plane(weights[static_cast<size_t>(box)], r.width,
                       grad.data() + (box * r.channels + c) * r.bins(), narrow.data(),
                       out.data() + (image * r.channels + c) * r.plane());
    });
    out.finish();
  });
}

// A product that is rounded before a sum: fused with it, the edge of the last bin would not be that of the box.
template <class C>
C rounded_product(int64_t count, C each) {
  using Wide = std::conditional_t<std::is_same_v<C, float>, double, long double>;
  return static_cast<C>(static_cast<Wide>(count) * static_cast<Wide>(each));
}

// Which pixels each bin of psroi_pool averages.
template <class C>
struct MeanBins {
  std::vector<Span> rows, columns;

  MeanBins(const Regions& r, const C* box, C scale) {
    const auto spans = [scale](C low, C high, int64_t bins, int64_t size) {
      std::vector<Span> made;
      const C start = std::round(low) * scale, end = (std::round(high) + 1) * scale;
      const C each = std::max(end - start, C(0.1)) / static_cast<C>(bins);
      for (int64_t b = 0; b < bins; ++b)
        made.push_back({clamped(std::floor(rounded_product(b, each) + start), 0, size),
                        clamped(std::ceil(rounded_product(b + 1, each) + start), 0, size)});
      return made;
    };
    rows = spans(box[1], box[3], r.rows, r.height);
    columns = spans(box[0], box[2], r.columns, r.width);
  }
};

template <class C>
std::vector<MeanBins<C>> mean_bins(const KernelCall& call, const Regions& r, int scale_at) {
  const Compact<C> boxes(call.in(1));
  const auto scale = static_cast<C>(static_cast<float>(call.arg(scale_at).as_double()));
  std::vector<MeanBins<C>> all;
  for (int64_t k = 0; k < r.boxes; ++k) all.emplace_back(r, boxes.data() + 4 * k, scale);
  return all;
}

// body(first pixel, count, pixels in the bin) for each row of the bin that channel c belongs to.
template <class C, class Body>
void each_pixel_row(const Regions& r, const MeanBins<C>& bins, int64_t c, Body&& body) {
  const Span rows = bins.rows[static_cast<size_t>(c / r.columns % r.rows)],
             columns = bins.columns[static_cast<size_t>(c % r.columns)];
  if (rows.size() <= 0 || columns.size() <= 0) return;
  for (int64_t y = rows.begin; y < rows.end; ++y)
    body(y * r.width + columns.begin, columns.size(), static_cast<C>(rows.size() * columns.size()));
}

void psroi_pool(KernelCall& call) {
  const Regions r(call, call.in(0), call.arg(3).as_ints());
  if (call.out().numel == 0) return;
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> x(call.in(0));
    const Result<C> out(call.out());
    const auto bins = mean_bins<C>(call, r, 4);
    parallel_for(0, r.boxes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t box = begin; box < end; ++box)
        for (int64_t c = 0; c < r.channels; ++c) {
          const C* plane =
              x.data() + (r.image[static_cast<size_t>(box)] * r.channels + c) * r.plane();
          C sum = 0, area = 1;
          each_pixel_row(r, bins[static_cast<size_t>(box)], c, [&](int64_t at, int64_t n, C many) {
            for (int64_t i = 0; i < n; ++i) sum += plane[at + i];
            area = many;
          });
          out.data()[box * r.channels + c] = sum / area;
        }
    });
    out.finish();
  });
}

void psroi_pool_grad(KernelCall& call) {
  const Regions r(call, call.out(), call.arg(4).as_ints());
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> grad(call.in(0));
    const Result<C> out(call.out());
    std::fill(out.data(), out.data() + call.out().numel, C(0));
    const auto bins = mean_bins<C>(call, r, 5);
    each_group(r, [&](int64_t image, int64_t from, int64_t to) {
      const auto [first, last] = r.boxes_of(image);
      for (int64_t box = first; box < last; ++box)
        for (int64_t c = from; c < to; ++c) {
          C* plane = out.data() + (image * r.channels + c) * r.plane();
          const C arrived = grad.data()[box * r.channels + c];
          each_pixel_row(r, bins[static_cast<size_t>(box)], c, [&](int64_t at, int64_t n, C many) {
            for (int64_t i = 0; i < n; ++i) plane[at + i] += arrived / many;
          });
        }
    });
    out.finish();
  });
}

// The bins of roi_pool along one axis: whole pixels, counted from the box's rounded corner.
template <class C>
std::vector<Span> largest_bins(C low, C high, C scale, int64_t bins, int64_t size) {
  constexpr int64_t kFar = int64_t{1} << 40;
  const int64_t start = clamped(std::round(low * scale), -kFar, kFar),
                end = clamped(std::round(high * scale), -kFar, kFar);
  const float each =
      static_cast<float>(std::max<int64_t>(end - start + 1, 1)) / static_cast<float>(bins);
  std::vector<Span> made;
  for (int64_t b = 0; b < bins; ++b) {
    const auto edge = [&](float v) {
      return std::clamp(clamped(v, -kFar, 2 * kFar) + start, int64_t{0}, size);
    };
    made.push_back({edge(std::floor(static_cast<float>(b) * each)),
                    edge(std::ceil(static_cast<float>(b + 1) * each))});
  }
  return made;
}

template <class C>
void largest_of_bin(const C* plane, int64_t width, Span rows, Span columns, C& out, int64_t& at) {
  out = 0;
  at = -1;
  // NaN is the largest; the first one stays.
  for (int64_t y = rows.begin; y < rows.end; ++y)
    for (int64_t i = y * width + columns.begin; i < y * width + columns.end; ++i)
      if (at < 0 || (!(plane[i] <= out) && out == out)) out = plane[i], at = i;
}

void roi_largest(KernelCall& call) {
  const Regions r(call, call.in(0), call.arg(3).as_ints());
  if (call.out().numel == 0) return;
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const Compact<C> x(call.in(0)), boxes(call.in(1));
    const Result<C> out(call.out());
    auto* places = static_cast<int64_t*>(call.out(1).data);
    const auto scale = static_cast<C>(static_cast<float>(call.arg(4).as_double()));
    parallel_for(0, r.boxes, 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const C* box = boxes.data() + 4 * k;
        const auto rows = largest_bins(box[1], box[3], scale, r.rows, r.height),
                   columns = largest_bins(box[0], box[2], scale, r.columns, r.width);
        for (int64_t c = 0; c < r.channels; ++c) {
          const int64_t plane = (r.image[static_cast<size_t>(k)] * r.channels + c) * r.plane();
          int64_t to = (k * r.channels + c) * r.bins();
          for (const Span& row : rows)
            for (const Span& column : columns) {
              largest_of_bin(x.data() + plane, r.width, row, column, out.data()[to], places[to]);
              if (places[to] >= 0) places[to] += plane;
              ++to;
            }
        }
      }
    });
    out.finish();
  });
}

}  // namespace

KernelList roi_kernels() {
  static const oar_kernel list[] = {
      {"roi_align", 1, "cpu:generic", nullptr, kernel_entry<roi_align>},
      {"roi_align_grad", 1, "cpu:generic", nullptr, training_entry<roi_align_grad>},
      {"psroi_pool", 1, "cpu:generic", nullptr, kernel_entry<psroi_pool>},
      {"psroi_pool_grad", 1, "cpu:generic", nullptr, training_entry<psroi_pool_grad>},
      {"roi_largest", 1, "cpu:generic", nullptr, kernel_entry<roi_largest>},
  };
  return list;
}

}  // namespace oar::cpu
