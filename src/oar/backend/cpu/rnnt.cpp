// The transducer's loss by dynamic programming on logarithms, one sequence after the other.
#include <cmath>

#include "oar/backend/cpu/loops/axis.h"

namespace oar::cpu {
namespace {

// log(exp(a) + exp(b)).
template <class C>
C log_add(C a, C b) {
  const C high = std::max(a, b);
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp(-std::abs(a - b)));
}

// One sequence: cells (t, u), in which u labels have been emitted at step t.
template <class C>
struct Grid {
  const C* log_probs;  // [longest steps, columns, classes]
  int64_t columns, classes;
  const int64_t* label;
  int64_t steps, labels, blank;

  int64_t cell(int64_t t, int64_t u) const { return t * (labels + 1) + u; }
  int64_t cells() const { return steps * (labels + 1); }
  const C* at(int64_t t, int64_t u) const { return log_probs + (t * columns + u) * classes; }
  C pause(int64_t t, int64_t u) const { return at(t, u)[blank]; }
  C emit(int64_t t, int64_t u) const { return at(t, u)[label[u]]; }

  // Logarithms of the path sums from the start to each cell; returns that of the whole.
  C forward(C* to) const {
    constexpr C kNever = -std::numeric_limits<C>::infinity();
    for (int64_t t = 0; t < steps; ++t)
      for (int64_t u = 0; u <= labels; ++u) {
        const C below = t > 0 ? to[cell(t - 1, u)] + pause(t - 1, u) : kNever;
        const C left = u > 0 ? to[cell(t, u - 1)] + emit(t, u - 1) : kNever;
        to[cell(t, u)] = t == 0 && u == 0 ? C(0) : log_add(below, left);
      }
    return to[cell(steps - 1, labels)] + pause(steps - 1, labels);
  }
  // … and from each cell to the end.
  void backward(C* to) const {
    constexpr C kNever = -std::numeric_limits<C>::infinity();
    for (int64_t t = steps - 1; t >= 0; --t)
      for (int64_t u = labels; u >= 0; --u) {
        const C above = t + 1 < steps ? to[cell(t + 1, u)] + pause(t, u)
                        : u == labels ? pause(t, u)
                                      : kNever;
        const C right = u < labels ? to[cell(t, u + 1)] + emit(t, u) : kNever;
        to[cell(t, u)] = log_add(above, right);
      }
  }
};

template <class C>
class Batch {
 public:
  explicit Batch(KernelCall& call)
      : log_probs_(&call.in(0)),
        labels_(&call.in(1)),
        input_lengths_(&call.in(2)),
        label_lengths_(&call.in(3)),
        size_(call.in(0).shape[0]),
        steps_(call.in(0).shape[1]),
        columns_(call.in(0).shape[2]),
        classes_(call.in(0).shape[3]) {}
  template <class Body>
  void each(int64_t blank, Body&& body) const {
    parallel_for(0, size_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const int64_t* label = labels_.data() + b * (columns_ - 1);
        check(b, label);
        body(b, Grid<C>{log_probs_.data() + b * sample(), columns_, classes_, label,
                        input_lengths_[b], label_lengths_[b], blank});
      }
    });
  }
  int64_t sample() const { return steps_ * columns_ * classes_; }

 private:
  void check(int64_t b, const int64_t* label) const {
    user_check(input_lengths_[b] >= 1 && input_lengths_[b] <= steps_, ErrorKind::InvalidArgument,
               "input_lengths[{}] is {}; of {} steps it can be 1 to {}.", b, input_lengths_[b],
               steps_, steps_);
    user_check(label_lengths_[b] >= 0 && label_lengths_[b] < columns_, ErrorKind::InvalidArgument,
               "label_lengths[{}] is {}, but labels are {} long.", b, label_lengths_[b],
               columns_ - 1);
    for (int64_t i = 0; i < label_lengths_[b]; ++i)
      user_check(label[i] >= 0 && label[i] < classes_, ErrorKind::OutOfRange,
                 "label[{}, {}] is {}, but there are {} classes.", b, i, label[i], classes_);
  }

  Converted<C> log_probs_;
  Converted<int64_t> labels_, input_lengths_, label_lengths_;
  int64_t size_, steps_, columns_, classes_;
};

void rnnt(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    auto* out = static_cast<T*>(call.out().data);
    Batch<C>(call).each(call.arg(4).as_int(), [&](int64_t b, const Grid<C>& grid) {
      const Scratch<C> ways(grid.cells());
      out[b] = static_cast<T>(-grid.forward(ways.data()));
    });
  });
}

void rnnt_grad(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Batch<C> batch(call);
    const Converted<C> grad(&call.in(4));
    const C eager = static_cast<C>(1 + call.arg(6).as_double());
    auto* out = static_cast<T*>(call.out().data);
    std::fill_n(out, call.out().numel, T(C(0)));
    batch.each(call.arg(5).as_int(), [&](int64_t b, const Grid<C>& g) {
      const Scratch<C> ahead(g.cells()), back(g.cells());
      const C all = g.forward(ahead.data());
      if (std::isinf(all)) return;
      g.backward(back.data());
      T* sample = out + b * batch.sample();
      for (int64_t t = 0; t < g.steps; ++t)
        for (int64_t u = 0; u <= g.labels; ++u) {
          T* line = sample + (t * g.columns + u) * g.classes;
          const C here = ahead[g.cell(t, u)] - all;
          if (t + 1 < g.steps || u == g.labels) {
            const C rest = t + 1 < g.steps ? back[g.cell(t + 1, u)] : C(0);
            line[g.blank] = static_cast<T>(-grad[b] * std::exp(here + g.pause(t, u) + rest));
          }
          if (u < g.labels) {
            const C share = std::exp(here + g.emit(t, u) + back[g.cell(t, u + 1)]);
            const C before = static_cast<C>(line[g.label[u]]);
            line[g.label[u]] = static_cast<T>(before - grad[b] * eager * share);
          }
        }
    });
  });
}

}  // namespace

KernelList rnnt_kernels() {
  static const oar_kernel list[] = {
      {"rnnt", 1, "cpu:generic", nullptr, kernel_entry<rnnt>},
      {"rnnt_grad", 1, "cpu:generic", nullptr, training_entry<rnnt_grad>},
  };
  return list;
}

}  // namespace oar::cpu
