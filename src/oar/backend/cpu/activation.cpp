// Activations of complex numbers; floats have vectorised loops (simd/).
#include <cmath>

#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

struct Sigmoid {
  template <class T>
  T operator()(T v) const {
    return T(1) / (T(1) + std::exp(-v));
  }
};
struct SigmoidGrad {
  template <class T>
  T operator()(T out, T grad) const {
    return grad * std::conj(out * (T(1) - out));
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
    return grad * std::conj(s * (T(1) + x * (T(1) - s)));
  }
};

}  // namespace

KernelList activation_kernels() {
  static const oar_kernel list[] = {
      {"sigmoid", 1, "cpu:generic", nullptr, kernel_entry<unary<kComplexes, Sigmoid>>},
      {"sigmoid_grad", 1, "cpu:generic", nullptr, training_entry<binary<kComplexes, SigmoidGrad>>},
      {"silu", 1, "cpu:generic", nullptr, kernel_entry<unary<kComplexes, Silu>>},
      {"silu_grad", 1, "cpu:generic", nullptr, training_entry<binary<kComplexes, SiluGrad>>},
  };
  return list;
}

}  // namespace oar::cpu
