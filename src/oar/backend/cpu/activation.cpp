// Activations and their derivatives.
#include <cmath>
#include <numbers>

#include "oar/backend/cpu/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;
constexpr unsigned kReals = kIntegers | kFloats;

// NaN passes through, as in NumPy's maximum.
struct Relu {
  template <class T>
  T operator()(T v) const {
    return v < T(0) ? T(0) : v;
  }
};
struct ReluGrad {
  template <class T>
  T operator()(T out, T grad) const {
    return out > T(0) ? grad : T(0);
  }
};

void leaky_relu(KernelCall& call) {
  apply_unary<kFloats>(call, [slope = call.arg(1).as_double()](auto v) {
    return v >= 0 ? v : static_cast<decltype(v)>(slope) * v;
  });
}
void leaky_relu_grad(KernelCall& call) {
  apply_binary<kFloats>(call, [slope = call.arg(2).as_double()](auto x, auto grad) {
    return x >= 0 ? grad : static_cast<decltype(x)>(slope) * grad;
  });
}

void elu(KernelCall& call) {
  apply_unary<kFloats>(call, [alpha = call.arg(1).as_double()](auto v) {
    return v < 0 ? static_cast<decltype(v)>(alpha) * std::expm1(v) : v;
  });
}
void elu_grad(KernelCall& call) {
  apply_binary<kFloats>(call, [alpha = call.arg(2).as_double()](auto x, auto grad) {
    return x > 0 ? grad : grad * static_cast<decltype(x)>(alpha) * std::exp(x);
  });
}

// erfc instead of 1 + erf: far below 0 the latter would cancel to nothing.
template <class T>
T normal_distribution(T v) {
  return std::erfc(-v * (std::numbers::sqrt2_v<T> / 2)) / 2;
}
template <class T>
T normal_density(T v) {
  return std::exp(-v * v / 2) * (std::numbers::inv_sqrtpi_v<T> * std::numbers::sqrt2_v<T> / 2);
}
template <class T>
constexpr T kTanhScale = std::numbers::inv_sqrtpi_v<T> * std::numbers::sqrt2_v<T>;
template <class T>
constexpr T kTanhCubic = T(0.044715);

struct Gelu {
  template <class T>
  T operator()(T v) const {
    return v * normal_distribution(v);
  }
};
struct GeluTanh {
  template <class T>
  T operator()(T v) const {
    return v / 2 * (1 + std::tanh(kTanhScale<T> * v * (1 + kTanhCubic<T> * v * v)));
  }
};
struct GeluGrad {
  template <class T>
  T operator()(T x, T grad) const {
    return grad * (normal_distribution(x) + x * normal_density(x));
  }
};
struct GeluTanhGrad {
  template <class T>
  T operator()(T x, T grad) const {
    const T square = x * x;
    const T t = std::tanh(kTanhScale<T> * x * (1 + kTanhCubic<T> * square));
    const T slope = kTanhScale<T> * (1 + 3 * kTanhCubic<T> * square);
    return grad * ((1 + t) / 2 + x / 2 * (1 - t * t) * slope);
  }
};
void gelu(KernelCall& call) {
  if (call.arg(1).as_bool()) return unary<kFloats, GeluTanh>(call);
  unary<kFloats, Gelu>(call);
}
void gelu_grad(KernelCall& call) {
  if (call.arg(2).as_bool()) return binary<kFloats, GeluTanhGrad>(call);
  binary<kFloats, GeluGrad>(call);
}

template <class T>
T conjugate(T v) {
  if constexpr (is_complex_type<T>)
    return std::conj(v);
  else
    return v;
}
struct Sigmoid {
  template <class T>
  T operator()(T v) const {
    return T(1) / (T(1) + std::exp(-v));
  }
};
struct SigmoidGrad {
  template <class T>
  T operator()(T out, T grad) const {
    return grad * conjugate(out * (T(1) - out));
  }
};
struct Silu {
  template <class T>
  T operator()(T v) const {
    return v / (T(1) + std::exp(-v));
  }
};
struct SiluGrad {
  template <class T>
  T operator()(T x, T grad) const {
    const T s = Sigmoid{}(x);
    return grad * conjugate(s * (T(1) + x * (T(1) - s)));
  }
};
struct LogSigmoid {
  template <class T>
  T operator()(T v) const {
    return (v < 0 ? v : T(0)) - std::log1p(std::exp(-std::abs(v)));
  }
};

void softplus(KernelCall& call) {
  const double beta = call.arg(1).as_double(), threshold = call.arg(2).as_double();
  apply_unary<kFloats>(call, [=](auto v) {
    using T = decltype(v);
    const T scaled = v * static_cast<T>(beta);
    return scaled > static_cast<T>(threshold) ? v
                                              : std::log1p(std::exp(scaled)) / static_cast<T>(beta);
  });
}
void softplus_grad(KernelCall& call) {
  const double beta = call.arg(2).as_double(), threshold = call.arg(3).as_double();
  apply_binary<kFloats>(call, [=](auto x, auto grad) {
    using T = decltype(x);
    const T scaled = x * static_cast<T>(beta);
    return scaled > static_cast<T>(threshold) ? grad : grad * Sigmoid{}(scaled);
  });
}

struct Hardswish {
  template <class T>
  T operator()(T v) const {
    const T raised = v + 3 < 0 ? T(0) : v + 3;
    return v * (raised > 6 ? T(6) : raised) / 6;
  }
};
struct HardswishGrad {
  template <class T>
  T operator()(T x, T grad) const {
    return x >= 3 ? grad : x > -3 ? grad * (2 * x + 3) / 6 : T(0);
  }
};

// Beyond this, log(1 + exp(x)) is x in every precision.
template <class T>
T positive_part_smoothed(T v) {
  return v > 40 ? v : std::log1p(std::exp(v));
}
struct Mish {
  template <class T>
  T operator()(T v) const {
    return v * std::tanh(positive_part_smoothed(v));
  }
};
struct MishGrad {
  template <class T>
  T operator()(T x, T grad) const {
    const T t = std::tanh(positive_part_smoothed(x));
    return grad * (t + x * (1 - t * t) * Sigmoid{}(x));
  }
};

}  // namespace

KernelList activation_kernels() {
  static const oar_kernel list[] = {
      {"relu", 1, "cpu:ref", nullptr, kernel_entry<unary<kReals, Relu>>},
      {"relu_grad", 1, "cpu:ref", nullptr, kernel_entry<binary<kReals, ReluGrad>>},
      {"leaky_relu", 1, "cpu:ref", nullptr, kernel_entry<leaky_relu>},
      {"leaky_relu_grad", 1, "cpu:ref", nullptr, kernel_entry<leaky_relu_grad>},
      {"elu", 1, "cpu:ref", nullptr, kernel_entry<elu>},
      {"elu_grad", 1, "cpu:ref", nullptr, kernel_entry<elu_grad>},
      {"gelu", 1, "cpu:ref", nullptr, kernel_entry<gelu>},
      {"gelu_grad", 1, "cpu:ref", nullptr, kernel_entry<gelu_grad>},
      {"sigmoid", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Sigmoid>>},
      {"sigmoid_grad", 1, "cpu:ref", nullptr, kernel_entry<binary<kMath, SigmoidGrad>>},
      {"silu", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Silu>>},
      {"silu_grad", 1, "cpu:ref", nullptr, kernel_entry<binary<kMath, SiluGrad>>},
      {"log_sigmoid", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, LogSigmoid>>},
      {"softplus", 1, "cpu:ref", nullptr, kernel_entry<softplus>},
      {"softplus_grad", 1, "cpu:ref", nullptr, kernel_entry<softplus_grad>},
      {"hardswish", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, Hardswish>>},
      {"hardswish_grad", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, HardswishGrad>>},
      {"mish", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, Mish>>},
      {"mish_grad", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, MishGrad>>},
  };
  return list;
}

}  // namespace oar::cpu
