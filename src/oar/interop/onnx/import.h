// Models of ONNX as programs.
//
//   const onnx::Model model = onnx::Model::load("model.onnx");
//   const std::vector<Tensor> out = model.run({image});
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"
#include "oar/interop/graph_model.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace onnx {

struct Imported {
  Program program;
  // Their names in the file; that of a tensor in a sequence has its place: "rows.0".
  std::vector<std::string> inputs, outputs;
  std::string results;  // interop::Results::arrangement
};

// What a run is given for an input: a tensor, a sequence of such, or nothing where the input is optional.
struct Given {
  enum Kind : uint8_t { Tensor, Sequence, None } kind = Tensor;
  std::vector<Given> items;
};

// What is known about the inputs before the import.
struct Expected {
  NamedTensors examples;  // inputs like those of the runs to come
  NamedTensors constant;  // inputs that decide on shapes: constants of the program
  std::map<std::string, Given> structures;  // of inputs that are more than a tensor
  bool fixed_sizes = false;                 // open sizes become those of the examples
};

// Sizes that the file leaves open stay open; a name that it gives to several is one size. `folder` holds external data.
Imported import_model(std::string_view file, const std::string& folder = ".",
                      const Expected& expected = {});
// A tensor of ONNX's own tests (`input_0.pb`).
Tensor read_tensor(std::string_view file);

class Model : public interop::GraphModel {
 public:
  static Model load(const std::string& path);
  Model(std::string_view file, const std::string& folder);
};

}  // namespace onnx
}  // namespace oar
