// CTC by dynamic programming on logarithms: a row of states per step, one sequence after the other.
#include <algorithm>
#include <numeric>

#include "oar/backend/cpu/loops/axis.h"
#include "oar/backend/cpu/simd/logarithms.h"

namespace oar::cpu {
namespace {

// The logarithm of probability 0. Finite, so that differences of two are not NaN.
template <class C>
constexpr C kNever = C(-1e30);
constexpr int64_t kLane = 8;

// to[s] = f(s) for whole lanes. A lane is computed before it is stored, so that the compiler can assume
// that f does not read what was written. Flattened: a call of f would prevent vectorisation.
template <class C, class F>
[[gnu::flatten]] void by_lanes(int64_t n, C* to, F f) {
  for (int64_t begin = 0; begin < n; begin += kLane) {
    C made[kLane];
    for (int64_t k = 0; k < kLane; ++k) made[k] = f(begin + k);
    std::copy_n(made, kLane, to + begin);
  }
}

// The sequence of one sample: its states are the labels with blanks around and between them. Rows
// are as long as whole lanes, with two places of kNever on either side of them.
template <class C>
class Alignment {
 public:
  Alignment(const C* log_probs, int64_t batch, int64_t classes, const int64_t* label,
            int64_t length, int64_t steps, int64_t blank)
      : log_probs_(log_probs),
        stride_(batch * classes),
        states_(2 * length + 1),
        width_((states_ + kLane - 1) / kLane * kLane),
        steps_(steps),
        classes_(states_),
        skips_(row()),
        logs_(row()) {
    for (int64_t s = 0; s < states_; ++s) classes_[s] = s % 2 ? label[s / 2] : blank;
    for (int64_t s = 0; s < row(); ++s) logs_[s] = 0, skips_[s] = kNever<C>;
    for (int64_t s = 3; s < states_; s += 2)
      if (label[s / 2] != label[s / 2 - 1]) skips_[s + 2] = 0;
  }

  int64_t row() const { return width_ + 4; }
  int64_t steps() const { return steps_; }
  // Whether no alignment has so few steps: every label takes one, and a blank between two equal ones.
  bool too_long() const {
    int64_t least = states_ / 2;
    for (int64_t s = 3; s < states_; s += 2) least += classes_[s] == classes_[s - 2];
    return least > steps_;
  }
  int64_t states() const { return states_; }
  int64_t class_of(int64_t state) const { return classes_[state]; }
  // A row's first state.
  static C* at(C* rows, int64_t row_size, int64_t t) { return rows + t * row_size + 2; }

  // Logarithms of the probabilities, by state, of the step that was read last.
  const C* logs() const { return logs_.data() + 2; }
  // The path sums from the start to each state of step t; `from` is the row of the step before.
  void forward(int64_t t, const C* from, C* to) const {
    const C* log = load(t);
    if (t == 0) {
      for (int64_t s = -2; s < width_ + 2; ++s)
        to[s] = s >= 0 && s < std::min<int64_t>(states_, 2) ? log[s] : kNever<C>;
      return;
    }
    step(from, -1, skips_.data() + 2, log, to);
  }
  // The path sums from each state of step t to the end; `from` is the row of the step after.
  void backward(int64_t t, const C* from, C* to) const {
    const C* log = load(t);
    if (t == steps_ - 1) {
      for (int64_t s = -2; s < width_ + 2; ++s)
        to[s] = s >= std::max<int64_t>(states_ - 2, 0) && s < states_ ? log[s] : kNever<C>;
      return;
    }
    step(from, 1, skips_.data() + 4, log, to);
  }
  // The logarithm of the likelihood from the last row.
  C finish(const C* last) const {
    const C a = last[states_ - 1], b = states_ > 1 ? last[states_ - 2] : kNever<C>;
    const C high = std::max(a, b);
    return high + std::log(std::exp(a - high) + std::exp(b - high));
  }

 private:
  const C* load(int64_t t) const {
    const C* line = log_probs_ + t * stride_;
    for (int64_t s = 0; s < states_; ++s) logs_[s + 2] = std::max(line[classes_[s]], kNever<C>);
    return logs();
  }
  // to[s] = log(exp(from[s]) + exp(from[s + d]) + exp(from[s + 2 d]) where allowed) + log[s].
  void step(const C* from, int64_t d, const C* allowed, const C* log, C* to) const {
    by_lanes(width_, to, [=](int64_t s) {
      const C a = from[s], b = from[s + d], c = from[s + 2 * d] + allowed[s];
      // The largest one's share is 1; the others follow in either order.
      const C ab = a > b ? a : b, below = a > b ? b : a;
      const C high = ab > c ? ab : c, other = ab > c ? c : ab;
      const C ways = 1 + functions::weight_exp(below - high) + functions::weight_exp(other - high);
      const C made = high + functions::log(ways) + log[s];
      return made > kNever<C> ? made : kNever<C>;
    });
    for (int64_t s = states_; s < width_ + 2; ++s) to[s] = kNever<C>;
    to[-1] = to[-2] = kNever<C>;
  }

  const C* log_probs_;
  int64_t stride_, states_, width_, steps_;
  Scratch<int64_t, 1024> classes_;
  Scratch<C> skips_, logs_;
};

// The operands of one call, checked, and body(b, alignment) for each sequence.
template <class C>
class Sequences {
 public:
  explicit Sequences(KernelCall& call)
      : log_probs_(&call.in(0)),
        labels_(&call.in(1)),
        input_lengths_(&call.in(2)),
        label_lengths_(&call.in(3)),
        steps_(call.in(0).shape[0]),
        batch_(call.in(0).shape[1]),
        classes_(call.in(0).shape[2]),
        longest_(call.in(1).shape[1]) {}

  template <class Body>
  void each(int64_t blank, Body&& body) const {
    parallel_for(0, batch_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        check(b, blank);
        body(b, Alignment<C>(log_probs_.data() + b * classes_, batch_, classes_,
                             labels_.data() + b * longest_, label_lengths_[b], input_lengths_[b],
                             blank));
      }
    });
  }
  int64_t classes() const { return classes_; }
  int64_t batch() const { return batch_; }

 private:
  void check(int64_t b, int64_t blank) const {
    user_check(input_lengths_[b] >= 0 && input_lengths_[b] <= steps_, ErrorKind::InvalidArgument,
               "input_lengths[{}] is {}, but there are {} steps.", b, input_lengths_[b], steps_);
    user_check(label_lengths_[b] >= 0 && label_lengths_[b] <= longest_, ErrorKind::InvalidArgument,
               "label_lengths[{}] is {}, but labels are {} long.", b, label_lengths_[b], longest_);
    for (int64_t i = 0; i < label_lengths_[b]; ++i) {
      const int64_t label = labels_[b * longest_ + i];
      user_check(label >= 0 && label < classes_ && label != blank, ErrorKind::OutOfRange,
                 "labels[{}, {}] is {}; with {} classes and blank {} it cannot be.", b, i, label,
                 classes_, blank);
    }
  }

  Converted<C> log_probs_;
  Converted<int64_t> labels_, input_lengths_, label_lengths_;
  int64_t steps_, batch_, classes_, longest_;
};

// Without steps, only the empty label is possible, and certain.
template <class C>
C log_likelihood(const Alignment<C>& a, C* rows, bool keeps) {
  if (a.steps() == 0) return a.states() == 1 ? C(0) : kNever<C>;
  C* to = nullptr;
  for (int64_t t = 0; t < a.steps(); ++t) {
    const C* from = to;
    to = Alignment<C>::at(rows, a.row(), keeps ? t : t % 2);
    a.forward(t, from, to);
  }
  return a.finish(to);
}

void ctc(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    auto* out = static_cast<T*>(call.out().data);
    Sequences<C>(call).each(call.arg(4).as_int(), [&](int64_t b, const Alignment<C>& a) {
      if (a.too_long()) {
        out[b] = static_cast<T>(C(0));
        return;
      }
      const Scratch<C> rows(2 * a.row());
      const C ways = log_likelihood(a, rows.data(), false);
      out[b] = static_cast<T>(ways < kNever<C> / 10 ? std::numeric_limits<C>::infinity() : -ways);
    });
  });
}

// How likely each state of a step is, relative to the likeliest, and the sum over states. It stands for the likelihood, whose
// logarithm is large and lacks digits.
template <class C>
C shares(const Alignment<C>& a, const C* ahead, const C* behind, const C* log, C* share) {
  const int64_t width = a.row() - 4;
  by_lanes(width, share, [=](int64_t s) { return ahead[s] + behind[s] - log[s]; });
  const C most = *std::max_element(share, share + a.states());
  by_lanes(width, share, [=](int64_t s) { return functions::weight_exp(share[s] - most); });
  return std::accumulate(share, share + a.states(), C(0));
}

void ctc_grad(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Sequences<C> sequences(call);
    const Converted<C> grad(&call.in(4));
    const int64_t classes = sequences.classes(), stride = sequences.batch() * classes;
    auto* out = static_cast<T*>(call.out().data);
    std::fill_n(out, call.out().numel, T(C(0)));
    sequences.each(call.arg(5).as_int(), [&](int64_t b, const Alignment<C>& a) {
      const Scratch<C> rows(std::max<int64_t>(a.steps(), 1) * a.row()), back(2 * a.row()),
          share(a.row()), total(classes);
      const C ways = log_likelihood(a, rows.data(), true);
      if (ways < kNever<C> / 10) return;
      std::fill_n(total.data(), classes, C(0));
      C* to = nullptr;
      for (int64_t t = a.steps() - 1; t >= 0; --t) {
        const C* from = to;
        to = Alignment<C>::at(back.data(), a.row(), t % 2);
        a.backward(t, from, to);
        const C *ahead = Alignment<C>::at(rows.data(), a.row(), t), *log = a.logs();
        const C whole = shares(a, ahead, to, log, share.data());
        for (int64_t s = 0; s < a.states(); ++s) total[a.class_of(s)] += share[s];
        T* line = out + t * stride + b * classes;
        for (int64_t s = 0; s < a.states(); ++s)
          line[a.class_of(s)] = static_cast<T>(-grad[b] * (total[a.class_of(s)] / whole));
        for (int64_t s = 0; s < a.states(); ++s) total[a.class_of(s)] = 0;
      }
    });
  });
}

}  // namespace

KernelList ctc_kernels() {
  static const oar_kernel list[] = {
      {"ctc", 1, "cpu:generic", nullptr, kernel_entry<ctc>},
      {"ctc_grad", 1, "cpu:generic", nullptr, training_entry<ctc_grad>},
  };
  return list;
}

}  // namespace oar::cpu
