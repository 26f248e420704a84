// Loops of losses of pairs and of their derivatives.
#include "oar/backend/cpu/simd/loops.h"

namespace oar::cpu::simd {
namespace {

// Each loss: value(x, y) and its derivative in x. `a` and `b` are the settings of the call.
template <class T>
struct Settings {
  T a, b;
};

template <class T>
struct SquareLoss : Settings<T> {
  T value(T x, T y) const { return (x - y) * (x - y); }
  T slope(T x, T y) const { return 2 * (x - y); }
};
template <class T>
struct AbsoluteLoss : Settings<T> {
  T value(T x, T y) const { return magnitude(x - y); }
  T slope(T x, T y) const {
    const T below = x < y ? T(-1) : x - y;
    return x > y ? T(1) : below;
  }
};
template <class T>
struct HuberLoss : Settings<T> {
  T value(T x, T y) const {
    const T d = x - y, size = magnitude(d);
    const T inside = d * d / 2, outside = this->a * (size - this->a / 2);
    return size <= this->a ? inside : outside;
  }
  T slope(T x, T y) const {
    const T d = x - y, raised = d < -this->a ? -this->a : d;
    return raised > this->a ? this->a : raised;
  }
};
template <class T>
struct LogisticLoss : Settings<T> {
  T value(T x, T y) const { return softplus(-x * y); }
  T slope(T x, T y) const { return -y * sigmoid(-x * y); }
};
// Of a score.
template <class T>
struct BinaryEntropy : Settings<T> {
  T value(T x, T y) const { return (1 - y) * x + softplus(-x); }
  T slope(T x, T y) const { return sigmoid(x) - y; }
};
// Of a probability. A certain but wrong prediction has a large, finite cost.
template <class T>
struct BernoulliLoss : Settings<T> {
  static T bounded_log(T x) {
    const T made = log(x);
    return made < -100 ? T(-100) : made;
  }
  T value(T x, T y) const { return (y - 1) * bounded_log(1 - x) - y * bounded_log(x); }
  T slope(T x, T y) const {
    const T width = (1 - x) * x;
    return (x - y) / (width < T(1e-12) ? T(1e-12) : width);
  }
};
template <class T>
struct FocalLoss : Settings<T> {
  T weight(T y) const { return this->a * y + (1 - this->a) * (1 - y); }
  static T miss(T p, T y) { return p + y - 2 * p * y; }
  static T entropy(T x, T y) { return (1 - y) * x + softplus(-x); }
  T value(T x, T y) const {
    return weight(y) * functions::pow(miss(sigmoid(x), y), this->b) * entropy(x, y);
  }
  T slope(T x, T y) const {
    const T p = sigmoid(x), q = miss(p, y), gamma = this->b;
    const T straight = functions::pow(q, gamma) * (p - y);
    const T bent = gamma * functions::pow(q, gamma - 1) * (1 - 2 * y) * p * (1 - p) * entropy(x, y);
    return weight(y) * (gamma != 0 ? straight + bent : straight);
  }
};
template <class T>
struct HingeEmbedding : Settings<T> {
  T value(T x, T y) const {
    const T short_of = this->a - x, missing = short_of < 0 ? T(0) : short_of;
    const T unlike = y == -1 ? missing : T(0);
    return y == 1 ? x : unlike;
  }
  T slope(T x, T y) const {
    const T missing = x < this->a ? T(-1) : T(0);
    const T unlike = y == -1 ? missing : T(0);
    return y == 1 ? T(1) : unlike;
  }
};
// Stirling's approximation of log(y!), which Poisson losses add where y > 1 if `a` is set.
template <class T>
T log_factorial(T y) {
  constexpr T kLog2Pi = T(1.8378770664093454836);
  const T log_y = log(y > 1 ? y : T(1));
  const T made = y * log_y - y + (kLog2Pi + log_y) / 2;
  return y > 1 ? made : T(0);
}
template <class T>
struct PoissonOfLog : Settings<T> {
  T value(T x, T y) const {
    const T base = exp(x) - y * x;
    return this->a != 0 ? base + log_factorial(y) : base;
  }
  T slope(T x, T y) const { return exp(x) - y; }
};
template <class T>
struct Poisson : Settings<T> {
  T value(T x, T y) const {
    const T base = x - y * log(x + this->b);
    return this->a != 0 ? base + log_factorial(y) : base;
  }
  T slope(T x, T y) const { return 1 - y / (x + this->b); }
};
template <class T>
struct Divergence : Settings<T> {
  T value(T x, T y) const {
    const T made = y * (log(y > 0 ? y : T(1)) - x);
    return y > 0 ? made : T(0);
  }
  T slope(T, T y) const { return y > 0 ? -y : T(0); }
};
template <class T>
struct DivergenceOfLog : Settings<T> {
  T value(T x, T y) const { return exp(y) * (y - x); }
  T slope(T, T y) const { return -exp(y); }
};

// The third number is the factor of a mean.
template <template <class> class Loss>
struct Parts {
  template <class T>
  struct Value {
    Loss<T> loss;
    explicit Value(const double* n) : loss{{T(n[0]), T(n[1])}} {}
    T operator()(T x, T y) const { return loss.value(x, y); }
  };
  template <class T>
  struct Slope {
    Loss<T> loss;
    T share;
    explicit Slope(const double* n) : loss{{T(n[0]), T(n[1])}}, share(T(n[2])) {}
    T operator()(T x, T y, T grad) const { return loss.slope(x, y) * (grad * share); }
  };
};

}  // namespace

namespace OAR_SIMD_SET {
const Function kLoss[][kTypes] = {OAR_SIMD_LOSS(OAR_SIMD_ROW, OAR_SIMD_ROW)};
}

}  // namespace oar::cpu::simd
