// Models and weights, from one format to another.
//
//   const Conversion done = convert("net.oar", "net.onnx");
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"
#include "oar/interop/load.h"

namespace OAR_API oar {
namespace interop {

using InputShapes = std::map<std::string, std::vector<int64_t>>;  // by the names of inputs

struct ConvertOptions {
  LoadOptions load;
  InputShapes shapes;  // where the file does not say enough
  int64_t opset = 17;  // of ONNX
};

struct Conversion {
  FileKind kind = FileKind::Unknown;  // of the source
  std::string source, target;         // files
  size_t calls = 0;                   // of ops; none: weights were converted
  size_t tensors = 0;
  int64_t bytes = 0;  // of all files that were written
};

// Writes .onnx, Paddle's .json and .pdmodel with .pdiparams, and .safetensors, .npz and .pdparams for weights, also those of a model. The
// ending of the target decides. Files appear whole or not at all. (.oar files are written in Python.)
Conversion convert(const std::string& source, const std::string& target,
                   const ConvertOptions& options = {});

// Numbers that fit the inputs of a model: normal ones, and 0 or 1 for integers, which are indices of nearly everything. A name of an
// open size is one size wherever it occurs.
std::vector<Tensor> example_inputs(const GraphModel& model, const InputShapes& shapes,
                                   uint64_t seed = 0);

// How far two values of an output are apart. `relative` is a part of the largest element; infinite where shapes differ. Places where both
// are NaN or the same infinity are equal.
struct Difference {
  double largest = 0, absolute = 0, relative = 0;
};
Difference difference_of(const Tensor& one, const Tensor& other);

// The tensors of a file of weights; values inside of others are called "outer.inner".
NamedTensors load_weights(const std::string& path, FileKind kind);

}  // namespace interop
}  // namespace oar
