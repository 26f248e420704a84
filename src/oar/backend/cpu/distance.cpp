// Lengths of vectors.
#include <cmath>

#include "oar/backend/cpu/reduce/reduce.h"

namespace oar::cpu {
namespace {

template <class T, class C>
struct NormReducer : Adding<C>, Vectorised<Fold::squares, T, C> {
  C step(C acc, const T* p, int64_t) const {
    if constexpr (is_complex_type<T>)
      return acc + std::norm(*p);
    else
      return acc + static_cast<C>(*p) * static_cast<C>(*p);
  }
  C finish(C acc, int64_t) const { return std::sqrt(acc); }
};

void root_sum_square(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_wide<kFloats | kComplexes>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using C = decltype(std::abs(T{}));
    reduce_into<T, C>(call.out(), call.in(0), Ints(axes), NormReducer<T, C>{});
  });
}

}  // namespace

KernelList distance_kernels() {
  static const oar_kernel list[] = {
      {"root_sum_square", 1, vector_name(), nullptr, kernel_entry<root_sum_square>},
  };
  return list;
}

}  // namespace oar::cpu
