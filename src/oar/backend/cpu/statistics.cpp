// Reductions around a centre, and sizes of rows.
#include <cmath>

#include "oar/backend/cpu/reduce/reduce.h"

namespace oar::cpu {
namespace {

void var(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const auto axes = reduced_axes(call, 1);
  visit_wide<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    const int64_t count = ReduceLayout(x, Ints(axes)).inner.count;
    const int64_t divisor = std::max<int64_t>(call.arg(2).as_bool() ? count - 1 : count, 0);
    const Scratch<T> centre(std::max<int64_t>(out.numel, 1));
    reduce_rows<T, T>(x, Ints(axes), MeanReducer<T, T>{{}, count}, centre.data());
    reduce_into<T, T>(out, x, Ints(axes),
                      SpreadReducer<T, T>{{}, {centre.data()}, static_cast<T>(divisor)});
  });
}

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

KernelList statistics_kernels() {
  static const oar_kernel list[] = {
      {"var", 1, vector_name(), nullptr, kernel_entry<var>},
      {"root_sum_square", 1, vector_name(), nullptr, kernel_entry<root_sum_square>},
  };
  return list;
}

}  // namespace oar::cpu
