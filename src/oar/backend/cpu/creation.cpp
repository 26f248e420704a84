// Filling.
#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {
namespace {

void full(KernelCall& call) {
  oar_tensor& out = call.out();
  const Scalar value = call.arg(1).as_scalar();
  visit_dtype(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T element = value.kind() <= Scalar::Int ? convert_element<T>(value.to_int())
                                                  : convert_element<T>(value.to_complex());
    auto* o = static_cast<T*>(out.data);
    parallel_for(0, out.numel, kGrain,
                 [&](int64_t b, int64_t e) { std::fill(o + b, o + e, element); });
  });
}

void range(KernelCall& call) {
  oar_tensor& out = call.out();
  const Scalar start = call.arg(0).as_scalar(), step = call.arg(2).as_scalar();
  const bool integral = start.kind() <= Scalar::Int && step.kind() <= Scalar::Int;
  visit_dtype(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* o = static_cast<T*>(out.data);
    parallel_for(0, out.numel, kGrain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        o[i] =
            integral
                ? convert_element<T>(start.to_int() + i * step.to_int())
                : convert_element<T>(start.to_double() + static_cast<double>(i) * step.to_double());
    });
  });
}

}  // namespace

KernelList creation_kernels() {
  static const oar_kernel list[] = {
      {"full", 1, "cpu:generic", nullptr, kernel_entry<full>},
      {"range", 1, "cpu:generic", nullptr, kernel_entry<range>},
  };
  return list;
}

}  // namespace oar::cpu
