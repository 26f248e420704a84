// Masks of dropout.
#include <cmath>

#include "oar/backend/cpu/random/random_stream.h"

namespace oar::cpu {
namespace {

void dropout_mask(KernelCall& call) {
  const oar_tensor& out = call.out();
  const Part part(call);
  const Stream stream = take(call, static_cast<uint64_t>(part.whole_numel()));
  const double p = call.arg(1).as_double();
  // Dropped if the 32 random bits are below p. p = 1 drops all, but 2^32 does not fit into 32 bits: then the
  // value of kept elements is 0 too, so that a 32-bit limit can compare several elements at once.
  const auto share = static_cast<uint64_t>(std::llround(p * 0x1p32));
  const bool drops_all = share > UINT32_MAX;
  const auto limit = static_cast<uint32_t>(drops_all ? 0 : share);
  visit<kFloats | kBools>(static_cast<DType>(out.dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto kept = static_cast<C>(drops_all ? 0.0 : call.arg(2).as_double());
    fill_blocks<T, C, 4>(out, part, stream, [=](const Block* bits, C* made) {
      for (size_t b = 0; b < kGroup; ++b)
        for (size_t k = 0; k < 4; ++k) made[4 * b + k] = bits[b][k] < limit ? C(0) : kept;
    });
  });
}

}  // namespace

KernelList dropout_kernels() {
  static const oar_kernel list[] = {
      {"dropout_mask", 1, "cpu:generic", nullptr, kernel_entry<dropout_mask>},
  };
  return list;
}

}  // namespace oar::cpu
