// A .tflite file as plain structs.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/flatbuffer.h"
#include "oar/tensor/tensor.h"

namespace oar::tflite {

// real = (stored - zero) * scale, for the whole tensor or for each index along an axis
struct Quantisation {
  std::vector<float> scales;
  std::vector<int64_t> zeros;
  size_t axis = 0;

  bool given() const { return !scales.empty(); }
  bool operator==(const Quantisation&) const = default;
};

struct TensorInfo {
  std::string name;
  int32_t type = 0;            // as the file numbers it
  std::vector<int64_t> shape;  // -1: open
  std::string_view data;       // of a constant
  Quantisation quantisation;
  bool sparse = false;

  DType dtype() const;
  bool quantised() const;  // integers that stand for real numbers
};

struct Op {
  int32_t code = 0;
  std::string name;                      // "CONV_2D", or that of a custom op
  std::vector<int32_t> inputs, outputs;  // tensors; -1 where an optional one is left out
  FlatTable options;

  std::string str() const;
};

struct ModelFile {
  explicit ModelFile(std::string content);

  const std::string bytes;
  FlatFile file;
  std::vector<TensorInfo> tensors;
  std::vector<Op> ops;
  std::vector<int32_t> inputs, outputs;
};

// A constant: real numbers if it is quantised.
Tensor constant_of(const TensorInfo& info);

}  // namespace oar::tflite
