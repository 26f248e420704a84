// relu of integers; floats have vectorised loops (simd/).
#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

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

}  // namespace

KernelList relu_kernels() {
  static const oar_kernel list[] = {
      {"relu", 1, "cpu:generic", nullptr, kernel_entry<unary<kIntegers, Relu>>},
      {"relu_grad", 1, "cpu:generic", nullptr, training_entry<binary<kIntegers, ReluGrad>>},
  };
  return list;
}

}  // namespace oar::cpu
