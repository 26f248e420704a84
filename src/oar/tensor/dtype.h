// Element types, their properties and how they promote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "oar/base/api.h"
#include "oar/tensor/c_types.h"

namespace OAR_RUNTIME_API oar {

enum class DType : uint8_t {
  Bool = OAR_BOOL,
  UInt8 = OAR_UINT8,
  Int8 = OAR_INT8,
  Int16 = OAR_INT16,
  Int32 = OAR_INT32,
  Int64 = OAR_INT64,
  Float16 = OAR_FLOAT16,
  BFloat16 = OAR_BFLOAT16,
  Float32 = OAR_FLOAT32,
  Float64 = OAR_FLOAT64,
  Complex64 = OAR_COMPLEX64,
  Complex128 = OAR_COMPLEX128,
  Float8E4M3FN = OAR_FLOAT8_E4M3FN,
  Float8E5M2 = OAR_FLOAT8_E5M2,
  Int4 = OAR_INT4,
  UInt4 = OAR_UINT4,
  Float4E2M1FN = OAR_FLOAT4_E2M1FN,
  UInt32 = OAR_UINT32,
  UInt64 = OAR_UINT64,
};
inline constexpr int kDTypeCount = OAR_DTYPE_COUNT;

namespace detail {
struct DTypeInfo {
  const char* name;
  uint8_t bits;
  char category;  // 'b'ool, 'i'nteger, 'f'loat, 'c'omplex, 'p'acked, 'u'nsigned and wide
};
inline constexpr DTypeInfo kDTypes[kDTypeCount] = {
    {"bool", 8, 'b'},          {"uint8", 8, 'i'},         {"int8", 8, 'i'},
    {"int16", 16, 'i'},        {"int32", 32, 'i'},        {"int64", 64, 'i'},
    {"float16", 16, 'f'},      {"bfloat16", 16, 'f'},     {"float32", 32, 'f'},
    {"float64", 64, 'f'},      {"complex64", 64, 'c'},    {"complex128", 128, 'c'},
    {"float8_e4m3fn", 8, 'f'}, {"float8_e5m2", 8, 'f'},   {"int4", 4, 'p'},
    {"uint4", 4, 'p'},         {"float4_e2m1fn", 4, 'p'}, {"uint32", 32, 'u'},
    {"uint64", 64, 'u'}};
// Unsupported: code that counts in whole bytes got a packed dtype.
[[noreturn]] void refuse_packed_size(DType t);
// InvalidArgument: the element does not begin at a whole byte.
[[noreturn]] void refuse_packed_offset(DType t, int64_t elements);
}  // namespace detail

constexpr const char* name_of(DType t) { return detail::kDTypes[static_cast<int>(t)].name; }
constexpr int64_t bits_of(DType t) { return detail::kDTypes[static_cast<int>(t)].bits; }
// Several elements share a byte.
constexpr bool is_packed(DType t) { return bits_of(t) < 8; }
// For storage: packed dtypes, uint32 and uint64. No op computes in them, and neither is_integral nor is_floating is
// true for them. Cast before computing.
constexpr bool is_stored(DType t) {
  const char category = detail::kDTypes[static_cast<int>(t)].category;
  return category == 'p' || category == 'u';
}
// Bytes of one element. An error for packed dtypes: use byte_count and byte_offset for whole tensors.
constexpr size_t size_of(DType t) {
  if (is_packed(t)) [[unlikely]]
    detail::refuse_packed_size(t);
  return static_cast<size_t>(bits_of(t)) / 8;
}
// Bytes of `elements` adjacent elements, from the start of a byte.
constexpr int64_t byte_count(int64_t elements, DType t) {
  if (!is_packed(t)) [[likely]]
    return elements * (bits_of(t) / 8);
  const int64_t per_byte = 8 / bits_of(t);
  return elements / per_byte + (elements % per_byte != 0);
}
// The offset in bytes of an element; an error if it does not begin at a whole byte.
constexpr int64_t byte_offset(int64_t elements, DType t) {
  if (is_packed(t) && elements % (8 / bits_of(t)) != 0) [[unlikely]]
    detail::refuse_packed_offset(t, elements);
  return is_packed(t) ? elements / (8 / bits_of(t)) : elements * (bits_of(t) / 8);
}
constexpr bool is_bool(DType t) { return t == DType::Bool; }
constexpr bool is_integral(DType t) { return detail::kDTypes[static_cast<int>(t)].category == 'i'; }
constexpr bool is_floating(DType t) { return detail::kDTypes[static_cast<int>(t)].category == 'f'; }
constexpr bool is_complex(DType t) { return detail::kDTypes[static_cast<int>(t)].category == 'c'; }
// Only these carry derivatives.
constexpr bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }

// The float type of a complex type's parts; other types are returned unchanged.
constexpr DType real_type_of(DType t) {
  if (t == DType::Complex64) return DType::Float32;
  if (t == DType::Complex128) return DType::Float64;
  return t;
}
constexpr DType complex_type_of(DType t) {
  return t == DType::Float64 || t == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

// The type that holds the values of both, as in Paddle: float16 and bfloat16 give float32,
// an integer and a float give the float.
DType promote(DType a, DType b);

// Accepts Paddle's spellings: "float32", "paddle.float32", "fp32", "float", "half", ….
std::optional<DType> dtype_from_name(std::string_view name);

// The type of Python's and C++'s floating literals; float32 until a user sets another.
DType default_dtype();
void set_default_dtype(DType t);

}  // namespace oar
