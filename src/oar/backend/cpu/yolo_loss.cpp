// What a YOLO network should predict.
#include <cmath>

#include "oar/backend/cpu/loops/axis.h"

namespace oar::cpu {
namespace {

// Centre and size, in parts of the image.
template <class C>
struct CentredBox {
  C x, y, width, height;
};

template <class C>
C shared_length(C a, C a_length, C b, C b_length) {
  return std::min(a + a_length / 2, b + b_length / 2) -
         std::max(a - a_length / 2, b - b_length / 2);
}

template <class C>
C overlap(const CentredBox<C>& a, const CentredBox<C>& b) {
  const C width = shared_length(a.x, a.width, b.x, b.width),
          height = shared_length(a.y, a.height, b.y, b.height);
  const C both = width < 0 || height < 0 ? C(0) : width * height;
  return both / (a.width * a.height + b.width * b.height - both);
}

template <class C>
struct YoloCall {
  int64_t images, height, width, objects, classes, ratio;
  Ints anchors, mask;
  C ignored, scale;
  bool smooth;

  explicit YoloCall(const KernelCall& call)
      : images(call.in(0).shape[0]),
        height(call.in(0).shape[2]),
        width(call.in(0).shape[3]),
        objects(call.in(1).shape[1]),
        classes(call.arg(5).as_int()),
        ratio(call.arg(7).as_int()),
        anchors(call.arg(3).as_ints()),
        mask(call.arg(4).as_ints()),
        ignored(static_cast<C>(static_cast<float>(call.arg(6).as_double()))),
        scale(static_cast<C>(call.arg(10).as_double())),
        smooth(call.arg(9).as_bool()) {}

  int64_t cells() const { return height * width; }
  int64_t predictions() const { return static_cast<int64_t>(mask.size()) * cells(); }
  C anchor(int64_t k, int side) const {
    const auto pixels = static_cast<C>(anchors[static_cast<size_t>(2 * k + side)]);
    return pixels / static_cast<C>(ratio * height);
  }
  // The box that is predicted; both axes are in cells of the height, as in Paddle.
  CentredBox<C> predicted(const C* entries, int64_t cell, int64_t k) const {
    const auto logistic = [](C v) { return 1 / (1 + std::exp(-v)); };
    const C bias = C(-0.5) * (scale - 1), size = static_cast<C>(height);
    const C* e = entries + cell;
    const int64_t row = cell / width;
    return {(static_cast<C>(cell % width) + logistic(e[0]) * scale + bias) / size,
            (static_cast<C>(row) + logistic(e[cells()]) * scale + bias) / size,
            std::exp(e[2 * cells()]) * anchor(k, 0), std::exp(e[3 * cells()]) * anchor(k, 1)};
  }
  int64_t best_anchor(const CentredBox<C>& object) const {
    C most = 0;
    int64_t best = 0;
    for (int64_t k = 0; k < static_cast<int64_t>(anchors.size() / 2); ++k) {
      const C share =
          overlap<C>({0, 0, anchor(k, 0), anchor(k, 1)}, {0, 0, object.width, object.height});
      if (share > most) most = share, best = k;
    }
    return best;
  }
};

template <class C>
bool is_object(const CentredBox<C>& box) {
  return box.width >= C(1e-6) && box.height >= C(1e-6);
}

// -1 where a prediction overlaps an object by more than `ignored`, else 0.
template <class C>
void mark_ignored(const YoloCall<C>& y, const C* x, const std::vector<CentredBox<C>>& objects,
                  C* objectness) {
  for (size_t m = 0; m < y.mask.size(); ++m, x += (5 + y.classes) * y.cells())
    for (int64_t cell = 0; cell < y.cells(); ++cell) {
      const CentredBox<C> box = y.predicted(x, cell, y.mask[m]);
      C most = 0;
      for (const CentredBox<C>& object : objects)
        if (is_object(object)) most = std::max(most, overlap(box, object));
      *objectness++ = most > y.ignored ? C(-1) : C(0);
    }
}

// The cell of a coordinate; 1 itself belongs to the last one.
template <class C>
int64_t cell_of(C at, int64_t cells) {
  user_check(at >= 0 && at <= 1, ErrorKind::InvalidArgument,
             "gt_box has a centre at {}; it must be between 0 and 1, in parts of the image.",
             static_cast<double>(at));
  return std::min(static_cast<int64_t>(at * static_cast<C>(cells)), cells - 1);
}

void yolo_targets(KernelCall& call) {
  if (call.out().numel == 0 && call.out(1).numel == 0) return;
  const Copied<int64_t> labels(call.in(2));
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const YoloCall<C> y(call);
    const oar_tensor* given = optional_in(call, 8);
    const Compact<C> x(call.in(0)), truth(call.in(1)), scores(given ? *given : call.in(1));
    const Result<C> objectness(call.out(0)), boxes(call.out(2)), weights(call.out(3)),
        classes(call.out(4));
    auto* places = static_cast<int64_t*>(call.out(1).data);
    const C off = y.smooth ? std::min(1 / static_cast<C>(y.classes), C(1) / C(40)) : C(0);
    parallel_for(0, y.images, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        std::vector<CentredBox<C>> objects;
        for (int64_t t = 0; t < y.objects; ++t) {
          const C* g = truth.data() + (i * y.objects + t) * 4;
          objects.push_back({g[0], g[1], g[2], g[3]});
        }
        C* own = objectness.data() + i * y.predictions();
        mark_ignored(y, x.data() + i * y.predictions() * (5 + y.classes), objects, own);
        for (int64_t t = 0; t < y.objects; ++t) {
          const int64_t at = i * y.objects + t;
          const CentredBox<C>& object = objects[static_cast<size_t>(t)];
          C *box = boxes.data() + 4 * at, *weight = weights.data() + 2 * at,
            *label = classes.data() + at * y.classes;
          std::fill(box, box + 4, C(0));
          weight[0] = weight[1] = 0;
          places[at] = -1;
          for (int64_t c = 0; c < y.classes; ++c) label[c] = c == labels.data()[at] ? 1 - off : off;
          if (!is_object(object)) continue;
          const int64_t column = cell_of(object.x, y.width), row = cell_of(object.y, y.height),
                        anchor = y.best_anchor(object);
          const auto masked = std::ranges::find(y.mask, anchor);
          if (masked == y.mask.end()) continue;
          places[at] = (masked - y.mask.begin()) * y.cells() + row * y.width + column;
          const auto size = static_cast<C>(y.height);
          box[0] = object.x * size - static_cast<C>(column);
          box[1] = object.y * size - static_cast<C>(row);
          box[2] = std::log(object.width / y.anchor(anchor, 0));
          box[3] = std::log(object.height / y.anchor(anchor, 1));
          weight[1] = given ? scores.data()[at] : C(1);
          weight[0] = (2 - object.width * object.height) * weight[1];
          own[places[at]] = weight[1];
        }
      }
    });
    for (const Result<C>* result : {&objectness, &boxes, &weights, &classes}) result->finish();
  });
}

}  // namespace

KernelList yolo_loss_kernels() {
  static const oar_kernel list[] = {
      {"yolo_targets", 1, "cpu:generic", nullptr, training_entry<yolo_targets>},
  };
  return list;
}

}  // namespace oar::cpu
