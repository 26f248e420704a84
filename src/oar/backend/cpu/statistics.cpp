// Reductions that look at the data twice.
#include <cmath>

#include "oar/backend/cpu/reduce.h"
#include "oar/backend/cpu/vector_math.h"

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
                      SpreadReducer<T, C>{{}, centre.data(), static_cast<C>(divisor)});
  });
}

template <class T>
struct MaxReducer {
  using C = compute_t<T>;
  C identity() const { return -std::numeric_limits<C>::infinity(); }
  C join(C a, C b) const { return b > a || b != b ? b : a; }
  C step(C acc, const T* p, int64_t) const { return join(acc, static_cast<C>(*p)); }
  // The exponents are taken relative to this; an infinite one would make NaN of equal infinities.
  C finish(C acc, int64_t) const { return std::isinf(acc) ? C(0) : acc; }
};

template <class T>
struct LogSumExpReducer : SumReducer<T, compute_t<T>> {
  using C = compute_t<T>;
  const C* base;
  C step(C acc, const T* p, int64_t row) const {
    return acc + exp_of(static_cast<C>(*p) - base[row]);
  }
  C finish(C acc, int64_t row) const { return std::log(acc) + base[row]; }
};

void logsumexp(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using C = compute_t<T>;
    const Scratch<C> base(std::max<int64_t>(call.out().numel, 1));
    reduce_rows<T, C>(call.in(0), Ints(axes), MaxReducer<T>{}, base.data());
    reduce_into<T, C>(call.out(), call.in(0), Ints(axes), LogSumExpReducer<T>{{}, base.data()});
  });
}

}  // namespace

KernelList statistics_kernels() {
  static const oar_kernel list[] = {
      {"var", 1, "cpu:ref", nullptr, kernel_entry<var>},
      {"logsumexp", 1, "cpu:ref", nullptr, kernel_entry<logsumexp>},
  };
  return list;
}

}  // namespace oar::cpu
