// Sums, products, all and any. Small floats accumulate in float32, integers in 64 bits.
#include <cmath>

#include "oar/backend/cpu/loops/copy.h"
#include "oar/backend/cpu/reduce/reduce.h"
#include "oar/backend/cpu/simd/exponentials.h"
#include "oar/tensor/byte_count.h"

namespace oar::cpu {
namespace {

template <class T, class Acc>
struct ProductReducer : Vectorised<Fold::product, T, Acc> {
  Acc identity() const { return Acc(1); }
  Acc step(Acc acc, const T* p, int64_t) const {
    return wrapping_multiply(acc, convert_element<Acc>(*p));
  }
  Acc join(Acc a, Acc b) const { return wrapping_multiply(a, b); }
  Acc finish(Acc acc, int64_t) const { return acc; }
};

// As in Paddle, elements are cast to the result's dtype before they are summed. If that is more
// than a wider accumulator, they are read as this dtype.
std::optional<DType> cast_first(DType in, DType out) {
  if (is_integral(out) || is_bool(out))
    return is_differentiable(in) ? std::optional(DType::Int64) : std::nullopt;
  if (is_complex(out))
    return out != in && out == DType::Complex128 ? std::optional(out) : std::nullopt;
  const bool widens = out == DType::Float64 && in != DType::Float64;
  return !is_floating(in) || widens ? std::optional(DType::Float64) : std::nullopt;
}

template <template <class, class> class Reducer>
void fold(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  const auto wanted = cast_first(call.dtype(), static_cast<DType>(call.out().dtype));
  visit_wide<kAllTypes>(wanted.value_or(call.dtype()), [&](auto in) {
    using T = typename decltype(in)::type;
    reduce_into<T, T>(call.out(), call.in(0), Ints(axes), Reducer<T, T>{});
  });
}

void sum(KernelCall& call) { fold<SumReducer>(call); }
void prod(KernelCall& call) { fold<ProductReducer>(call); }

void mean(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_wide<kNumbers>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    const int64_t count = ReduceLayout(call.in(0), Ints(axes)).inner.count;
    user_check(count > 0 || !std::is_integral_v<T> || call.out().numel == 0,
               ErrorKind::InvalidArgument,
               "the mean of no integers is not an integer (x has no elements along axis).\nhint: "
               "Cast x "
               "to a float first; its mean is then NaN.");
    reduce_into<T, T>(call.out(), call.in(0), Ints(axes), MeanReducer<T, T>{{}, count});
  });
}

template <class T>
struct CountReducer : Adding<int64_t>, Vectorised<Fold::count, T, int64_t> {
  int64_t step(int64_t acc, const T* p, int64_t) const { return acc + convert_element<bool>(*p); }
};

void count_nonzero(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_wide<kAllTypes>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    reduce_into<T, int64_t>(call.out(), call.in(0), Ints(axes), CountReducer<T>{});
  });
}

template <class T>
struct NumbersReducer : Adding<T>, Vectorised<Fold::numbers, T, T> {
  T step(T acc, const T* p, int64_t) const { return *p == *p ? acc + *p : acc; }
};

const char* accepts_nansum(const oar_kernel_call* call) {
  const auto& c = *static_cast<const KernelCall*>(call);
  const bool real = is_floating(c.dtype());
  return real && c.in(0).dtype == c.out().dtype ? nullptr : "complex, or cast to another dtype";
}
void nansum(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_wide<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    reduce_into<T, T>(call.out(), call.in(0), Ints(axes), NumbersReducer<T>{});
  });
}

// Whether any element is true; or with `all`, by the opposite of each, whether all are. Only bits
// matter: an element is true if any bit but its sign is set.
template <class Word>
struct LogicReducer {
  Word bits;
  bool all;
  uint8_t identity() const { return 0; }
  uint8_t join(uint8_t a, uint8_t b) const { return a | b; }
  uint8_t step(uint8_t acc, const Word* p, int64_t) const {
    bool is_true;
    if constexpr (std::is_same_v<Word, Wide>)
      is_true = ((p->words[0] & bits.words[0]) | (p->words[1] & bits.words[1])) != 0;
    else
      is_true = (*p & bits) != 0;
    return static_cast<uint8_t>(acc | static_cast<uint8_t>(is_true != all));
  }
  uint8_t finish(uint8_t acc, int64_t) const { return acc ^ static_cast<uint8_t>(all); }
};

// The bits of an element, without the signs of its numbers, in a word that holds it.
uint64_t bits_of_value(DType dtype) {
  if (!is_floating(dtype) && !is_complex(dtype)) return ~uint64_t{0};
  switch (size_of(is_complex(dtype) ? real_type_of(dtype) : dtype)) {
    case 1:
      return 0x7f;
    case 2:
      return 0x7fff;
    case 4:
      return 0x7fffffff'7fffffff;
    default:
      return ~uint64_t{0} >> 1;
  }
}

template <bool kAll>
void logic(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  const uint64_t bits = bits_of_value(call.dtype());
  const ReduceLayout layout(call.in(0), Ints(axes));
  const auto reduce = [&](auto word) {
    using Reducer = LogicReducer<decltype(word)>;
    // A bool is a byte that holds 0 or 1.
    RowReduction<decltype(word), uint8_t, Reducer>(layout, call.in(0), nullptr, Reducer{word, kAll},
                                                   static_cast<uint8_t*>(call.out().data))
        .run();
  };
  switch (size_of(call.dtype())) {
    case 1:
      return reduce(static_cast<uint8_t>(bits));
    case 2:
      return reduce(static_cast<uint16_t>(bits));
    case 4:
      return reduce(static_cast<uint32_t>(bits));
    case 8:
      return reduce(bits);
    default:
      return reduce(Wide{{bits, bits}});
  }
}

// The exponents are taken relative to the largest. An infinite one is the result.
template <class T>
struct LogSumExpReducer : Adding<T>, VectorisedAround<Fold::exponents, T, T> {
  T step(T acc, const T* p, int64_t row) const {
    return acc + functions::exp(*p - this->centre[row]);
  }
  T finish(T acc, int64_t row) const {
    const T high = this->centre[row];
    return std::isinf(high) ? high : std::log(acc) + high;
  }
};

void logsumexp(KernelCall& call) {
  const auto axes = reduced_axes(call, 1);
  visit_wide<kFloats>(call.dtype(), [&](auto in) {
    using T = typename decltype(in)::type;
    const Scratch<T> high(std::max<int64_t>(call.out().numel, 1));
    reduce_rows<T, T>(call.in(0), Ints(axes), ExtremeReducer<T, true>{}, high.data());
    reduce_into<T, T>(call.out(), call.in(0), Ints(axes), LogSumExpReducer<T>{{}, {high.data()}});
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
      {"sum", 1, vector_name(), nullptr, kernel_entry<sum>},
      {"mean", 1, vector_name(), nullptr, kernel_entry<mean>},
      {"product_of", 1, "cpu:generic", nullptr, kernel_entry<product_of>},
      {"prod", 1, vector_name(), nullptr, kernel_entry<prod>},
      {"count_nonzero", 1, vector_name(), nullptr, kernel_entry<count_nonzero>},
      {"nansum", 1, vector_name(), accepts_nansum, kernel_entry<nansum>},
      {"all", 1, "cpu:generic", nullptr, kernel_entry<logic<true>>},
      {"any", 1, "cpu:generic", nullptr, kernel_entry<logic<false>>},
      {"logsumexp", 1, vector_name(), nullptr, kernel_entry<logsumexp>},
  };
  return list;
}

}  // namespace oar::cpu
