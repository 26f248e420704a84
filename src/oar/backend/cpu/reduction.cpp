// Sums and products. Small floats accumulate in float32, integers in 64 bits.
#include "oar/backend/cpu/kernels.h"
#include "oar/backend/cpu/reduce.h"

namespace oar::cpu {
namespace {

// What a sum is carried in.
template <class T>
using sum_t = std::conditional_t<std::is_integral_v<T>, int64_t, compute_t<T>>;
template <class T>
using wide_t = std::conditional_t<is_complex_type<T>, std::complex<double>, double>;

template <class T, class Acc>
struct ProductReducer {
  Acc identity() const { return Acc(1); }
  Acc step(Acc acc, const T* p, int64_t) const {
    return wrapping_multiply(acc, convert_element<Acc>(*p));
  }
  Acc join(Acc a, Acc b) const { return wrapping_multiply(a, b); }
  Acc finish(Acc acc, int64_t) const { return acc; }
};

// Calls body(T, Acc) with what the element type is and what it is carried in, given what is to come
// out: as in Paddle, the elements are cast to the result's dtype before they are summed.
template <class Body>
void visit_sum(DType in, DType out, Body&& body) {
  visit<kAllTypes>(in, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!std::is_integral_v<T>) {
      if (is_integral(out)) return body(tag, TypeTag<int64_t>{});
      if (out == DType::Float64 || out == DType::Complex128) return body(tag, TypeTag<wide_t<T>>{});
    }
    body(tag, TypeTag<sum_t<T>>{});
  });
}

template <template <class, class> class Reducer>
void fold(KernelCall& call, int axis_argument) {
  const auto axes = reduced_axes(call, axis_argument);
  visit_sum(call.dtype(), static_cast<DType>(call.out().dtype), [&](auto in, auto carried) {
    using T = typename decltype(in)::type;
    using Acc = typename decltype(carried)::type;
    reduce_into<T, Acc>(call.out(), call.in(0), Ints(axes), Reducer<T, Acc>{});
  });
}

void sum(KernelCall& call) { fold<SumReducer>(call, 1); }
void prod(KernelCall& call) { fold<ProductReducer>(call, 1); }

void mean(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kNumbers>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using Acc = sum_t<T>;
    const int64_t count = ReduceLayout(call.in(0), Ints(axes)).inner.count;
    user_check(count > 0 || !std::is_integral_v<T> || call.out().numel == 0,
               ErrorKind::InvalidArgument,
               "the mean of no integers is no integer (x has no elements along axis).\nhint: Cast x "
               "to a float first; its mean is then NaN.");
    reduce_into<T, Acc>(call.out(), call.in(0), Ints(axes), MeanReducer<T, Acc>{{}, count});
  });
}

void product_of(KernelCall& call) {
  int64_t product = 1;
  for (int64_t size : call.arg(0).as_ints()) product *= size;
  store_integer(call.out().data, static_cast<DType>(call.out().dtype), product);
}

}  // namespace

KernelList reduction_kernels() {
  static const oar_kernel list[] = {
      {"sum", 1, "cpu:ref", nullptr, kernel_entry<sum>},
      {"mean", 1, "cpu:ref", nullptr, kernel_entry<mean>},
      {"product_of", 1, "cpu:ref", nullptr, kernel_entry<product_of>},
      {"prod", 1, "cpu:ref", nullptr, kernel_entry<prod>},
  };
  return list;
}

}  // namespace oar::cpu
