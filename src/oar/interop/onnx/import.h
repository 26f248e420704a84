// Models of ONNX as programs.
//
//   const onnx::Model model = onnx::Model::load("model.onnx");
//   const std::vector<Tensor> out = model.run({image});
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"
#include "oar/interop/signature.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace onnx {

struct Imported {
  Program program;
  std::vector<std::string> inputs, outputs;  // their names in the file
};

// What is known about the inputs before the import.
struct Expected {
  NamedTensors examples;  // inputs like those of the runs to come
  NamedTensors constant;  // inputs that decide on shapes: constants of the program
};

// Sizes that the file leaves open stay open; a name that it gives to several is one size. `folder` holds external data.
Imported import_model(std::string_view file, const std::string& folder = ".",
                      const Expected& expected = {});
// A tensor of ONNX's own tests (`input_0.pb`).
Tensor read_tensor(std::string_view file);

// A model that runs. It is imported when it first runs; inputs that do not fit a program that it has get one of their own.
class Model {
 public:
  static Model load(const std::string& path);
  Model(std::string file, std::string folder);

  const std::vector<std::string>& inputs() const;
  const std::vector<std::string>& outputs() const;
  // Of the inputs, with the names that the file gives to open sizes.
  std::vector<interop::Signature> signature() const;
  // In the order of inputs() and outputs(). Several threads may call it at once.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  // The program for inputs like these.
  const Program& program(const std::vector<Tensor>& inputs) const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

}  // namespace onnx
}  // namespace oar
