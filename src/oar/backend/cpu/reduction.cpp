// Sums and products. Small floats accumulate in float32, integers in 64 bits.
#include "oar/backend/cpu/compact.h"
#include "oar/backend/cpu/reduce.h"
#include "oar/tensor/byte_count.h"

namespace oar::cpu {
namespace {

// What a sum is carried in.
template <class T>
using sum_t = std::conditional_t<std::is_integral_v<T>, int64_t, compute_t<T>>;
template <class T, class Acc>
struct ProductReducer : Vectorised<Fold::product, T, Acc> {
  Acc identity() const { return Acc(1); }
  Acc step(Acc acc, const T* p, int64_t) const {
    return wrapping_multiply(acc, convert_element<Acc>(*p));
  }
  Acc join(Acc a, Acc b) const { return wrapping_multiply(a, b); }
  Acc finish(Acc acc, int64_t) const { return acc; }
};

// As in Paddle, elements are cast to the result's dtype before they are summed. Where that is more
// than a wider accumulator, it is done in front; this says to what.
std::optional<DType> cast_first(DType in, DType out) {
  if (is_integral(out) || is_bool(out))
    return is_differentiable(in) ? std::optional(DType::Int64) : std::nullopt;
  if (is_complex(out))
    return out != in && out == DType::Complex128 ? std::optional(out) : std::nullopt;
  const bool widens = out == DType::Float64 && in != DType::Float64;
  return !is_floating(in) || widens ? std::optional(DType::Float64) : std::nullopt;
}

template <template <class, class> class Reducer>
void fold_as_is(const oar_tensor& out, const oar_tensor& x, Ints axes) {
  visit<kAllTypes>(static_cast<DType>(x.dtype), [&](auto in) {
    using T = typename decltype(in)::type;
    using Acc = sum_t<T>;
    reduce_into<T, Acc>(out, x, axes, Reducer<T, Acc>{});
  });
}

template <template <class, class> class Reducer>
void fold(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  const oar_tensor& x = call.in(0);
  const auto wanted = cast_first(call.dtype(), static_cast<DType>(call.out().dtype));
  if (!wanted) return fold_as_is<Reducer>(call.out(), x, Ints(axes));
  const Scratch<std::complex<double>> memory(std::max<int64_t>(x.numel, 1));
  const FlatTensor flat(x, memory.data(), *wanted);
  visit_dtype(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    if (*wanted == DType::Int64)
      convert_elements<int64_t, T>(flat.get(), x);
    else if (*wanted == DType::Float64)
      convert_elements<double, T>(flat.get(), x);
    else
      convert_elements<std::complex<double>, T>(flat.get(), x);
  });
  fold_as_is<Reducer>(call.out(), flat.get(), Ints(axes));
}

void sum(KernelCall& call) { fold<SumReducer>(call); }
void prod(KernelCall& call) { fold<ProductReducer>(call); }

void mean(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kNumbers>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    using Acc = sum_t<T>;
    const int64_t count = ReduceLayout(call.in(0), Ints(axes)).inner.count;
    user_check(count > 0 || !std::is_integral_v<T> || call.out().numel == 0,
               ErrorKind::InvalidArgument,
               "the mean of no integers is no integer (x has no elements along axis).\nhint: "
               "Cast x "
               "to a float first; its mean is then NaN.");
    reduce_into<T, Acc>(call.out(), call.in(0), Ints(axes), MeanReducer<T, Acc>{{}, count});
  });
}

template <class T>
struct CountReducer : Adding<int64_t>, Vectorised<Fold::count, T, int64_t> {
  int64_t step(int64_t acc, const T* p, int64_t) const { return acc + convert_element<bool>(*p); }
};

void count_nonzero(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kAllTypes>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    reduce_into<T, int64_t>(call.out(), call.in(0), Ints(axes), CountReducer<T>{});
  });
}

template <class T, class C = compute_t<T>>
struct NumbersReducer : Adding<C>, Vectorised<Fold::numbers, T, C> {
  C step(C acc, const T* p, int64_t) const {
    const C v = static_cast<C>(*p);
    return v == v ? acc + v : acc;
  }
};

const char* accepts_nansum(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  const bool real = is_floating(c.dtype());
  return real && c.in(0).dtype == c.out().dtype ? nullptr : "complex, or cast to another dtype";
}
void nansum(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    reduce_into<T, compute_t<T>>(call.out(), call.in(0), Ints(axes), NumbersReducer<T>{});
  });
}

void product_of(KernelCall& call) {
  Count product = 1;
  for (int64_t size : call.arg(0).as_ints()) product = product * size;
  store_integer(call.out().data, static_cast<DType>(call.out().dtype), product.value());
}

}  // namespace

KernelList reduction_kernels() {
  static const oar_kernel list[] = {
      {"sum", 1, "cpu:ref", nullptr, kernel_entry<sum>},
      {"mean", 1, "cpu:ref", nullptr, kernel_entry<mean>},
      {"product_of", 1, "cpu:ref", nullptr, kernel_entry<product_of>},
      {"prod", 1, "cpu:ref", nullptr, kernel_entry<prod>},
      {"count_nonzero", 1, "cpu:ref", nullptr, kernel_entry<count_nonzero>},
      {"nansum", 1, "cpu:ref", accepts_nansum, kernel_entry<nansum>},
  };
  return list;
}

}  // namespace oar::cpu
