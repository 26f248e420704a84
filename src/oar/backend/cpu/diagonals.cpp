// Triangles.
#include <cstring>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {
namespace {

// One row at a time: the kept part is a prefix (tril) or a suffix (triu).
template <bool kLower>
void triangle(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const int64_t diagonal = call.arg(1).as_int();
  const int64_t rows = out.shape[out.ndim - 2], columns = out.shape[out.ndim - 1];
  copy_elements(out, x);
  const int64_t size = element_size(out);
  parallel_for(
      0, columns ? out.numel / columns : 0,
      std::max<int64_t>(1, kGrain / std::max<int64_t>(columns, 1)),
      [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          auto* row = static_cast<char*>(out.data) + r * columns * size;
          const int64_t from = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
          const int64_t edge = std::clamp<int64_t>(r % rows + from + (kLower ? 1 : 0), 0, columns);
          if (kLower)
            std::memset(row + edge * size, 0, static_cast<size_t>((columns - edge) * size));
          else
            std::memset(row, 0, static_cast<size_t>(edge * size));
        }
      });
}

}  // namespace

KernelList diagonals_kernels() {
  static const oar_kernel list[] = {
      {"tril", 1, "cpu:generic", nullptr, kernel_entry<triangle<true>>},
      {"triu", 1, "cpu:generic", nullptr, kernel_entry<triangle<false>>},
  };
  return list;
}

}  // namespace oar::cpu
