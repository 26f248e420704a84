// Copies, also to another dtype.
#include "oar/backend/cpu/loops/copy.h"

#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {
namespace {

// Both assign and cast.
void copy(KernelCall& call) { copy_elements(call.out(), call.in(0)); }
void copy_into(KernelCall& call) { copy_elements(call.out(), call.in(1)); }

// The result is contiguous; x is copied into its memory under its own dtype.
void bitcast(KernelCall& call) {
  const oar_tensor& x = call.in(0);
  const auto steps = contiguous_strides(dims_of(x));
  const oar_tensor& out = call.out();
  copy_elements(LocalTensor(out.data, dtype_of(x), dims_of(x), {steps.data(), steps.size()}), x);
  if (dtype_of(out) != DType::Bool) return;
  // A byte that is neither 0 nor 1 is not a valid bool, and readers may treat it as either.
  auto* bytes = static_cast<uint8_t*>(out.data);
  parallel_for(0, out.numel, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) bytes[i] = bytes[i] != 0;
  });
}

}  // namespace

KernelList copy_kernels() {
  static const oar_kernel list[] = {
      {"cast", 1, "cpu:generic", nullptr, kernel_entry<copy>},
      {"assign", 1, "cpu:generic", nullptr, kernel_entry<copy>},
      {"bitcast", 1, "cpu:generic", nullptr, kernel_entry<bitcast>},
      {"copy_into", 1, "cpu:generic", nullptr, kernel_entry<copy_into>},
  };
  return list;
}

}  // namespace oar::cpu
