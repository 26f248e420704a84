// Shrinking activations and units with a slope of their own below zero.
#include <cmath>

#include "oar/backend/cpu/apply.h"
#include "oar/backend/cpu/log_math.h"

namespace oar::cpu {
namespace {

// NaN is neither above nor below a threshold; the comparisons are such that it passes through.
void hardshrink(KernelCall& call) {
  apply_unary<kFloats>(call, [limit = call.arg(1).as_double()](auto v) {
    return std::abs(v) <= static_cast<decltype(v)>(limit) ? decltype(v)(0) : v;
  });
}
void softshrink(KernelCall& call) {
  apply_unary<kFloats>(call, [limit = call.arg(1).as_double()](auto v) {
    const auto size = static_cast<decltype(v)>(limit);
    const auto inside = v < -size ? -size : v;
    return v - (inside > size ? size : inside);
  });
}
void shrink_grad(KernelCall& call) {
  apply_binary<kFloats>(call, [limit = call.arg(2).as_double()](auto x, auto grad) {
    return std::abs(x) <= static_cast<decltype(x)>(limit) ? decltype(x)(0) : grad;
  });
}

struct Tanhshrink {
  template <class T>
  T operator()(T v) const {
    return v - tanh_of(v);
  }
};
struct TanhshrinkGrad {
  template <class T>
  T operator()(T x, T grad) const {
    const T t = tanh_of(x);
    return grad * t * t;
  }
};

void thresholded_relu(KernelCall& call) {
  const double limit = call.arg(1).as_double(), value = call.arg(2).as_double();
  apply_unary<kFloats>(call, [=](auto v) {
    using T = decltype(v);
    return v <= static_cast<T>(limit) ? static_cast<T>(value) : v;
  });
}
void thresholded_relu_grad(KernelCall& call) {
  apply_binary<kFloats>(call, [limit = call.arg(2).as_double()](auto x, auto grad) {
    return x <= static_cast<decltype(x)>(limit) ? decltype(x)(0) : grad;
  });
}

void celu(KernelCall& call) {
  const double alpha = call.arg(1).as_double();
  if (alpha < 0)
    return apply_unary<kFloats>(call, [alpha](auto v) {
      const auto a = static_cast<decltype(v)>(alpha);
      return v < 0 ? a * std::expm1(v / a) : v;
    });
  apply_unary<kFloats>(call, [alpha](auto v) {
    const auto a = static_cast<decltype(v)>(alpha);
    const auto below = a * expm1_of(v < 0 ? v / a : decltype(v)(0));
    return v < 0 ? below : v;
  });
}
void celu_grad(KernelCall& call) {
  apply_binary<kFloats>(call, [alpha = call.arg(2).as_double()](auto x, auto grad) {
    const auto below = grad * exp_of(x / static_cast<decltype(x)>(alpha));
    return x > 0 ? grad : below;
  });
}

void selu(KernelCall& call) {
  const double scale = call.arg(1).as_double(), alpha = call.arg(2).as_double();
  apply_unary<kFloats>(call, [=](auto v) {
    using T = decltype(v);
    const T below = static_cast<T>(scale * alpha) * expm1_of(v < 0 ? v : T(0));
    return v < 0 ? below : static_cast<T>(scale) * v;
  });
}
void selu_grad(KernelCall& call) {
  const double scale = call.arg(2).as_double(), alpha = call.arg(3).as_double();
  apply_binary<kFloats>(call, [=](auto x, auto grad) {
    using T = decltype(x);
    const T below = static_cast<T>(scale * alpha) * exp_of(x);
    return grad * (x > 0 ? static_cast<T>(scale) : below);
  });
}

struct Softsign {
  template <class T>
  T operator()(T v) const {
    return v / (1 + std::abs(v));
  }
};
struct SoftsignGrad {
  template <class T>
  T operator()(T x, T grad) const {
    const T width = 1 + std::abs(x);
    return grad / (width * width);
  }
};

struct Sloped {
  template <class T>
  T operator()(T x, T slope) const {
    return x > 0 ? x : slope * x;
  }
};
void sloped_grad(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_ternary<T>(call.out(), call.in(0), call.in(1), call.in(2),
                   [](auto x, auto grad, auto slope) { return x > 0 ? grad : slope * grad; });
  });
}

}  // namespace

KernelList units_kernels() {
  static const oar_kernel list[] = {
      {"hardshrink", 1, "cpu:ref", nullptr, kernel_entry<hardshrink>},
      {"softshrink", 1, "cpu:ref", nullptr, kernel_entry<softshrink>},
      {"shrink_grad", 1, "cpu:ref", nullptr, kernel_entry<shrink_grad>},
      {"tanhshrink", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, Tanhshrink>>},
      {"tanhshrink_grad", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, TanhshrinkGrad>>},
      {"thresholded_relu", 1, "cpu:ref", nullptr, kernel_entry<thresholded_relu>},
      {"thresholded_relu_grad", 1, "cpu:ref", nullptr, kernel_entry<thresholded_relu_grad>},
      {"celu", 1, "cpu:ref", nullptr, kernel_entry<celu>},
      {"celu_grad", 1, "cpu:ref", nullptr, kernel_entry<celu_grad>},
      {"selu", 1, "cpu:ref", nullptr, kernel_entry<selu>},
      {"selu_grad", 1, "cpu:ref", nullptr, kernel_entry<selu_grad>},
      {"softsign", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, Softsign>>},
      {"softsign_grad", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, SoftsignGrad>>},
      {"sloped", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, Sloped>>},
      {"sloped_grad", 1, "cpu:ref", nullptr, kernel_entry<sloped_grad>},
  };
  return list;
}

}  // namespace oar::cpu
