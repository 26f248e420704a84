// NumPy's names of element types, as in the pickles of arrays. Not part of the interface.
#pragma once

#include <optional>
#include <string_view>

#include "oar/tensor/dtype.h"

namespace oar {

struct NumpyType {
  DType dtype;
  const char* name;
};
// bfloat16, which NumPy does not have, is kept as its bits in uint16, as Paddle does it.
inline constexpr NumpyType kNumpyTypes[] = {
    {DType::Bool, "b1"},      {DType::UInt8, "u1"},      {DType::Int8, "i1"},
    {DType::Int16, "i2"},     {DType::Int32, "i4"},      {DType::Int64, "i8"},
    {DType::UInt32, "u4"},    {DType::UInt64, "u8"},     {DType::Float16, "f2"},
    {DType::Float32, "f4"},   {DType::Float64, "f8"},    {DType::BFloat16, "u2"},
    {DType::Complex64, "c8"}, {DType::Complex128, "c16"}};

inline const char* numpy_type_of(DType dtype) {
  for (const NumpyType& type : kNumpyTypes)
    if (type.dtype == dtype) return type.name;
  return nullptr;
}

inline std::optional<DType> dtype_of_numpy(std::string_view name) {
  for (const NumpyType& type : kNumpyTypes)
    if (name == type.name) return type.dtype;
  return std::nullopt;
}

}  // namespace oar
