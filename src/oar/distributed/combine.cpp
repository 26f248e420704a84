#include "oar/distributed/combine.h"

#include <complex>
#include <type_traits>

#include "oar/base/error.h"
#include "oar/base/half_bits.h"

namespace oar::distributed {
namespace {

// 16-bit floats are combined in float32 and rounded once a step.
struct Half {
  uint16_t bits;
  float value() const { return half_value(bits); }
  static Half of(float v) { return {half_bits(v)}; }
};
struct BFloat {
  uint16_t bits;
  float value() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
  static BFloat of(float v) {
    const auto word = __builtin_bit_cast(uint32_t, v);
    if ((word & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>(word >> 16 | 0x40)};  // NaN
    return {static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16)};
  }
};

template <class T>
constexpr bool kIs16Bit = std::is_same_v<T, Half> || std::is_same_v<T, BFloat>;
template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<std::complex<T>> = true;

// As the ops maximum and minimum: NaN wins.
template <ReduceKind kKind, class T>
T combined(T a, T b) {
  if constexpr (kIs16Bit<T>) {
    return T::of(combined<kKind>(a.value(), b.value()));
  } else if constexpr (std::is_same_v<T, bool>) {
    return kKind == ReduceKind::Sum || kKind == ReduceKind::Max ? a || b : a && b;
  } else if constexpr (kKind == ReduceKind::Sum || kKind == ReduceKind::Prod) {
    constexpr bool kSum = kKind == ReduceKind::Sum;
    if constexpr (std::is_integral_v<T>) {  // they wrap
      using Unsigned = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
      const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
      return static_cast<T>(kSum ? x + y : x * y);
    } else {
      return kSum ? a + b : a * b;
    }
  } else if constexpr (kIsComplex<T>) {
    return a;  // refused before
  } else {
    if (a != a) return a;
    const bool takes_b = (kKind == ReduceKind::Max ? b > a : b < a) || b != b;
    return takes_b ? b : a;
  }
}

template <ReduceKind kKind, class T>
void combine_all(void* out, const void* a, const void* b, size_t count) {
  T* to = static_cast<T*>(out);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  for (size_t i = 0; i < count; ++i) to[i] = combined<kKind>(x[i], y[i]);
}

template <class T>
Combine combine_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum:
      return combine_all<ReduceKind::Sum, T>;
    case ReduceKind::Max:
      return combine_all<ReduceKind::Max, T>;
    case ReduceKind::Min:
      return combine_all<ReduceKind::Min, T>;
    case ReduceKind::Prod:
      return combine_all<ReduceKind::Prod, T>;
  }
  return nullptr;
}

// Calls f with a null pointer to the element type; false for dtypes that are not computed in.
template <class F>
bool with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::Bool:
      return f(static_cast<bool*>(nullptr)), true;
    case DType::UInt8:
      return f(static_cast<uint8_t*>(nullptr)), true;
    case DType::Int8:
      return f(static_cast<int8_t*>(nullptr)), true;
    case DType::Int16:
      return f(static_cast<int16_t*>(nullptr)), true;
    case DType::Int32:
      return f(static_cast<int32_t*>(nullptr)), true;
    case DType::Int64:
      return f(static_cast<int64_t*>(nullptr)), true;
    case DType::UInt32:
      return f(static_cast<uint32_t*>(nullptr)), true;
    case DType::UInt64:
      return f(static_cast<uint64_t*>(nullptr)), true;
    case DType::Float16:
      return f(static_cast<Half*>(nullptr)), true;
    case DType::BFloat16:
      return f(static_cast<BFloat*>(nullptr)), true;
    case DType::Float32:
      return f(static_cast<float*>(nullptr)), true;
    case DType::Float64:
      return f(static_cast<double*>(nullptr)), true;
    case DType::Complex64:
      return f(static_cast<std::complex<float>*>(nullptr)), true;
    case DType::Complex128:
      return f(static_cast<std::complex<double>*>(nullptr)), true;
    default:
      return false;
  }
}

}  // namespace

Reduction reduction_of(ReduceKind kind, DType dtype, const char* what) {
  Reduction how{kind, static_cast<oar_dtype>(dtype), 0, nullptr};
  const bool ordered = kind == ReduceKind::Max || kind == ReduceKind::Min;
  user_check(!ordered || !is_complex(dtype), ErrorKind::InvalidType,
             "[{}] complex numbers have no order, so no maximum or minimum.\nhint: Reduce their "
             "absolute values.",
             what);
  const bool known = with_type(dtype, [&]<class T>(T* /*type*/) {
    how.combine = combine_of<T>(kind);
    how.element_size = sizeof(T);
  });
  user_check(known, ErrorKind::InvalidType,
             "[{}] elements of {} are stored only, and not combined.\nhint: Cast the tensor first, "
             "for example to float32.",
             what, name_of(dtype));
  return how;
}

void divide(void* data, size_t count, DType dtype, double divisor) {
  with_type(dtype, [&]<class T>(T* /*type*/) {
    T* x = static_cast<T*>(data);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (kIs16Bit<T>)
        x[i] = T::of(static_cast<float>(x[i].value() / divisor));
      else if constexpr (kIsComplex<T>)
        x[i] /= static_cast<typename T::value_type>(divisor);
      else if constexpr (std::is_floating_point_v<T>)
        x[i] /= static_cast<T>(divisor);
    }
  });
}

}  // namespace oar::distributed
