// Element types, their properties and how they promote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "oar/tensor/c_types.h"

namespace oar {

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
};
inline constexpr int kDTypeCount = OAR_DTYPE_COUNT;

namespace detail {
struct DTypeInfo {
  const char* name;
  uint8_t size;
  char category;  // 'b'ool, 'i'nteger, 'f'loat, 'c'omplex
};
inline constexpr DTypeInfo kDTypes[kDTypeCount] = {
    {"bool", 1, 'b'},          {"uint8", 1, 'i'},      {"int8", 1, 'i'},
    {"int16", 2, 'i'},         {"int32", 4, 'i'},      {"int64", 8, 'i'},
    {"float16", 2, 'f'},       {"bfloat16", 2, 'f'},   {"float32", 4, 'f'},
    {"float64", 8, 'f'},       {"complex64", 8, 'c'},  {"complex128", 16, 'c'},
    {"float8_e4m3fn", 1, 'f'}, {"float8_e5m2", 1, 'f'}};
}  // namespace detail

constexpr const char* name_of(DType t) { return detail::kDTypes[static_cast<int>(t)].name; }
constexpr size_t size_of(DType t) { return detail::kDTypes[static_cast<int>(t)].size; }
constexpr bool is_bool(DType t) { return t == DType::Bool; }
constexpr bool is_integral(DType t) { return detail::kDTypes[static_cast<int>(t)].category == 'i'; }
constexpr bool is_floating(DType t) { return detail::kDTypes[static_cast<int>(t)].category == 'f'; }
constexpr bool is_complex(DType t) { return detail::kDTypes[static_cast<int>(t)].category == 'c'; }
// Only these carry derivatives.
constexpr bool is_differentiable(DType t) { return is_floating(t) || is_complex(t); }

// The float type of a complex type's parts; other types answer themselves.
constexpr DType real_type_of(DType t) {
  if (t == DType::Complex64) return DType::Float32;
  if (t == DType::Complex128) return DType::Float64;
  return t;
}
constexpr DType complex_type_of(DType t) {
  return t == DType::Float64 || t == DType::Complex128 ? DType::Complex128 : DType::Complex64;
}

// The type that holds the values of both, as in Paddle: float16 with bfloat16 gives float32,
// an integer with a float gives the float.
DType promote(DType a, DType b);

// Accepts Paddle's spellings: "float32", "paddle.float32", "fp32", "float", "half", ….
std::optional<DType> dtype_from_name(std::string_view name);

// The type of Python's and C++'s floating literals; float32 until a user sets another.
DType default_dtype();
void set_default_dtype(DType t);

}  // namespace oar
