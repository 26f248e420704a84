// How often each element is repeated, as positions.
#include "oar/backend/cpu/loops/copy.h"
#include "oar/tensor/byte_count.h"

namespace oar::cpu {
namespace {

void repeat_positions(KernelCall& call) {
  const oar_tensor& repeats = call.in(0);
  const TemporaryTensor counts(dims_of(repeats), DType::Int64);
  copy_elements(*counts, repeats);
  Count total = 0;
  for (int64_t i = 0; i < repeats.numel; ++i) {
    const int64_t count = counts.data<int64_t>()[i];
    user_check(count >= 0, ErrorKind::InvalidArgument,
               "repeats[{}] is {}; it must not be negative.", i, count);
    total = total + count;
  }
  const int64_t size = total.value();
  auto* out = static_cast<int64_t*>(call.allocate(0, Ints(&size, 1)).data);
  for (int64_t i = 0; i < repeats.numel; ++i) out = std::fill_n(out, counts.data<int64_t>()[i], i);
}

}  // namespace

KernelList repeat_kernels() {
  static const oar_kernel list[] = {
      {"repeat_positions", 1, "cpu:generic", nullptr, kernel_entry<repeat_positions>},
  };
  return list;
}

}  // namespace oar::cpu
