// Reductions that look at the data twice.
#include <cmath>

#include "oar/backend/cpu/reduce.h"
#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu {
namespace {

void var(KernelCall& call) {
  const oar_tensor &x = call.in(0), &out = call.out();
  const auto axes = reduced_axes(call, 1);
  visit<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using C = compute_t<T>;
    const int64_t count = ReduceLayout(x, Ints(axes)).inner.count;
    const int64_t divisor = std::max<int64_t>(call.arg(2).as_bool() ? count - 1 : count, 0);
    const Scratch<C> centre(std::max<int64_t>(out.numel, 1));
    reduce_rows<T, C>(x, Ints(axes), MeanReducer<T, C>{{}, count}, centre.data());
    reduce_into<T, C>(out, x, Ints(axes),
                      SpreadReducer<T, C>{{}, {centre.data()}, static_cast<C>(divisor)});
  });
}

// The exponents are taken relative to the largest. An infinite one is the result.
template <class T, class C = compute_t<T>>
struct LogSumExpReducer : Adding<C>, VectorisedAround<Fold::exponents, T, C> {
  C step(C acc, const T* p, int64_t row) const {
    return acc + functions::exp(static_cast<C>(*p) - this->centre[row]);
  }
  C finish(C acc, int64_t row) const {
    const C high = this->centre[row];
    return std::isinf(high) ? high : std::log(acc) + high;
  }
};

void logsumexp(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using C = compute_t<T>;
    const Scratch<C> high(std::max<int64_t>(call.out().numel, 1));
    reduce_rows<T, C>(call.in(0), Ints(axes), ExtremeReducer<T, true>{}, high.data());
    reduce_into<T, C>(call.out(), call.in(0), Ints(axes), LogSumExpReducer<T>{{}, {high.data()}});
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
  visit<kFloats | kComplexes>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using C = decltype(std::abs(compute_t<T>{}));
    reduce_into<T, C>(call.out(), call.in(0), Ints(axes), NormReducer<T, C>{});
  });
}

}  // namespace

KernelList statistics_kernels() {
  static const oar_kernel list[] = {
      {"var", 1, "cpu:ref", nullptr, kernel_entry<var>},
      {"logsumexp", 1, "cpu:ref", nullptr, kernel_entry<logsumexp>},
      {"root_sum_square", 1, "cpu:ref", nullptr, kernel_entry<root_sum_square>},
  };
  return list;
}

}  // namespace oar::cpu
