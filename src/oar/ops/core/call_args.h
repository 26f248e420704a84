// Parameter types of the generated functions: lists that can be written in braces.
#pragma once

#include <initializer_list>
#include <tuple>
#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// Borrowed lists; their source outlives the call they are arguments of.
class TensorArgs : public TensorList {
 public:
  TensorArgs() = default;
  TensorArgs(TensorList list) : TensorList(list) {}
  TensorArgs(const std::vector<Tensor>& list) : TensorList(list) {}
  TensorArgs(std::initializer_list<Tensor> list) : TensorList(list.begin(), list.size()) {}
};

class IntArgs : public Ints {
 public:
  IntArgs() = default;
  IntArgs(Ints list) : Ints(list) {}
  IntArgs(const std::vector<int64_t>& list) : Ints(list) {}
  IntArgs(std::initializer_list<int64_t> list) : Ints(list.begin(), list.size()) {}
  template <size_t N>
  IntArgs(const SmallVector<int64_t, N>& list) : Ints(list.data(), list.size()) {}
};

class DimArgs : public Dims {
 public:
  DimArgs() = default;
  DimArgs(Dims list) : Dims(list) {}
  DimArgs(const Shape& list) : Dims(list) {}
  DimArgs(const std::vector<int64_t>& list) : Dims(as_dims(list)) {}
  DimArgs(const std::vector<Dim>& list) : Dims(list) {}
  DimArgs(std::initializer_list<Dim> list) : Dims(list.begin(), list.size()) {}
};

class DoubleArgs : public std::span<const double> {
 public:
  DoubleArgs() = default;
  DoubleArgs(std::span<const double> list) : std::span<const double>(list) {}
  DoubleArgs(std::initializer_list<double> l) : std::span<const double>(l.begin(), l.size()) {}
};

// InvalidType if a required tensor is missing.
void require_defined(const Tensor& t, const char* op, const char* parameter);

}  // namespace oar
