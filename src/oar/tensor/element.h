// Element types as C++ types, and access to one element of any dtype.
#pragma once

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>

#include "oar/base/api.h"
#include "oar/base/error.h"
#include "oar/base/half_bits.h"
#include "oar/tensor/dtype.h"

namespace OAR_API oar {

// Round to nearest even, as hardware does. NaN stays NaN.
struct bfloat16 {
  uint16_t bits = 0;
  bfloat16() = default;
  bfloat16(float value) {  // arithmetic reads naturally with it
    const auto word = std::bit_cast<uint32_t>(value);
    bits = value != value ? static_cast<uint16_t>(word >> 16 | 0x40)
                          : static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

struct float16 {
  uint16_t bits = 0;
  float16() = default;
  float16(float value);
  operator float() const;
};

struct float8_e4m3fn {
  uint8_t bits = 0;
  float8_e4m3fn() = default;
  float8_e4m3fn(float value);
  operator float() const;
};

struct float8_e5m2 {
  uint8_t bits = 0;
  float8_e5m2() = default;
  float8_e5m2(float value);
  operator float() const;
};

#if defined(__F16C__)
inline float16::float16(float value) {
  bits = static_cast<uint16_t>(
      __builtin_ia32_vcvtps2ph((__attribute__((vector_size(16))) float){value, 0, 0, 0}, 0)[0]);
}
inline float16::operator float() const {
  typedef short v8hi __attribute__((vector_size(16)));
  return __builtin_ia32_vcvtph2ps((v8hi){static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0})[0];
}
#elif defined(__aarch64__)
inline float16::float16(float value) : bits(std::bit_cast<uint16_t>(static_cast<__fp16>(value))) {}
inline float16::operator float() const { return static_cast<float>(std::bit_cast<__fp16>(bits)); }
#else
inline float16::float16(float value) : bits(half_bits(value)) {}
inline float16::operator float() const { return half_value(bits); }
#endif

// float8: finite numbers beyond the range become the largest one, as in Paddle. e4m3fn has no infinity, but NaN.
namespace detail {
uint8_t float_to_float8(float value, int exponent_bits, int mantissa_bits, bool finite_only);
float float8_to_float(uint8_t bits, int exponent_bits, int mantissa_bits, bool finite_only);
}  // namespace detail
inline float8_e4m3fn::float8_e4m3fn(float v) : bits(detail::float_to_float8(v, 4, 3, true)) {}
inline float8_e4m3fn::operator float() const { return detail::float8_to_float(bits, 4, 3, true); }
inline float8_e5m2::float8_e5m2(float v) : bits(detail::float_to_float8(v, 5, 2, false)) {}
inline float8_e5m2::operator float() const { return detail::float8_to_float(bits, 5, 2, false); }

// The values of packed dtypes, four bits each. Integers wrap around as with NumPy's astype and ml_dtypes;
// float4 has no infinity and no NaN: larger numbers than 6 become 6, and NaN a zero.
double packed_value(uint8_t bits, DType dtype);
uint8_t packed_bits(double value, DType dtype);
inline double load_packed(const void* data, DType dtype, int64_t index) {
  const uint8_t pair = static_cast<const uint8_t*>(data)[index / 2];
  return packed_value(index % 2 ? pair >> 4 : pair & 15, dtype);
}
// Two threads must not write to one byte.
inline void store_packed(void* data, DType dtype, int64_t index, double value) {
  uint8_t& pair = static_cast<uint8_t*>(data)[index / 2];
  const uint8_t bits = packed_bits(value, dtype);
  pair = static_cast<uint8_t>(index % 2 ? (pair & 15) | bits << 4 : (pair & 0xf0) | bits);
}

template <class T>
struct TypeTag {
  using type = T;
};

// Calls body(TypeTag<T>{}) with the C++ type of the dtype.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& body) {
  switch (dtype) {
    case DType::Bool:
      return body(TypeTag<bool>{});
    case DType::UInt8:
      return body(TypeTag<uint8_t>{});
    case DType::Int8:
      return body(TypeTag<int8_t>{});
    case DType::Int16:
      return body(TypeTag<int16_t>{});
    case DType::Int32:
      return body(TypeTag<int32_t>{});
    case DType::Int64:
      return body(TypeTag<int64_t>{});
    case DType::Float16:
      return body(TypeTag<float16>{});
    case DType::BFloat16:
      return body(TypeTag<bfloat16>{});
    case DType::Float32:
      return body(TypeTag<float>{});
    case DType::Float64:
      return body(TypeTag<double>{});
    case DType::Complex64:
      return body(TypeTag<std::complex<float>>{});
    case DType::Complex128:
      return body(TypeTag<std::complex<double>>{});
    case DType::Float8E4M3FN:
      return body(TypeTag<float8_e4m3fn>{});
    case DType::Float8E5M2:
      return body(TypeTag<float8_e5m2>{});
    case DType::UInt32:
      return body(TypeTag<uint32_t>{});
    case DType::UInt64:
      return body(TypeTag<uint64_t>{});
    case DType::Int4:
    case DType::UInt4:
    case DType::Float4E2M1FN:
      detail::refuse_packed_size(dtype);
  }
  fail(ErrorKind::Internal, "unknown dtype code {}", static_cast<int>(dtype));
}

template <class T>
inline constexpr bool is_complex_type = false;
template <class T>
inline constexpr bool is_complex_type<std::complex<T>> = true;
template <class T>
inline constexpr bool is_small_float =
    std::is_same_v<T, float16> || std::is_same_v<T, bfloat16> || std::is_same_v<T, float8_e4m3fn> ||
    std::is_same_v<T, float8_e5m2>;

// The type arithmetic is done in: 16- and 8-bit floats compute in float.
template <class T>
using compute_t = std::conditional_t<is_small_float<T>, float, T>;

// To float, rounded to an odd last bit if it is not exact. A second rounding to fewer bits then gives
// the same as a direct rounding of the double.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (back == value || value != value || (bits & 1) != 0) return nearest;
  // The neighbour on the other side of the value is odd. Infinity's is the largest float.
  const bool away = (back < value) == (value > 0);
  return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

// One element conversion with the semantics of NumPy's astype.
template <class To, class From>
To convert_element(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (is_complex_type<From>) {
    if constexpr (is_complex_type<To>)
      return To(static_cast<typename To::value_type>(value.real()),
                static_cast<typename To::value_type>(value.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return value.real() != 0 || value.imag() != 0;
    else
      return convert_element<To>(value.real());
  } else if constexpr (is_complex_type<To>) {
    return To(static_cast<typename To::value_type>(static_cast<compute_t<From>>(value)), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<compute_t<From>>(value) != compute_t<From>(0);
  } else if constexpr (is_small_float<To> && std::is_same_v<From, double>) {
    return To(round_to_odd(value));
  } else if constexpr (is_small_float<To>) {
    return To(static_cast<float>(static_cast<compute_t<From>>(value)));
  } else {
    return static_cast<To>(static_cast<compute_t<From>>(value));
  }
}

// For packed dtypes the first element of the byte.
inline std::complex<double> load_element(const void* p, DType dtype) {
  if (is_packed(dtype)) return load_packed(p, dtype, 0);
  return visit_dtype(dtype, [&](auto tag) {
    typename decltype(tag)::type value;
    std::memcpy(&value, p, sizeof(value));
    return convert_element<std::complex<double>>(value);
  });
}
inline int64_t load_integer(const void* p, DType dtype) {
  if (is_packed(dtype)) return static_cast<int64_t>(load_packed(p, dtype, 0));
  return visit_dtype(dtype, [&](auto tag) {
    typename decltype(tag)::type value;
    std::memcpy(&value, p, sizeof(value));
    return convert_element<int64_t>(value);
  });
}
inline void store_element(void* p, DType dtype, std::complex<double> value) {
  if (is_packed(dtype)) return store_packed(p, dtype, 0, value.real());
  visit_dtype(dtype, [&](auto tag) {
    const auto converted = convert_element<typename decltype(tag)::type>(value);
    std::memcpy(p, &converted, sizeof(converted));
  });
}
inline void store_integer(void* p, DType dtype, int64_t value) {
  if (is_packed(dtype)) return store_packed(p, dtype, 0, static_cast<double>(value));
  visit_dtype(dtype, [&](auto tag) {
    const auto converted = convert_element<typename decltype(tag)::type>(value);
    std::memcpy(p, &converted, sizeof(converted));
  });
}

}  // namespace oar
