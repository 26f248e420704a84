// Paddle's inference models as programs.
//
//   const paddle::Model model = paddle::Model::load("inference");  // .json or .pdmodel, and .pdiparams
//   const std::vector<Tensor> out = model.run({image});
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace paddle {

struct Signature {
  std::string name;
  DType dtype = DType::Float32;
  std::vector<int64_t> shape;  // -1: open
};

// A model that runs. It is imported when it first runs; inputs that do not fit a program that it has get one of their own.
class Model {
 public:
  // The path of both files without their endings.
  static Model load(const std::string& prefix);
  // Two files with any names; there may be no second one.
  static Model load_files(const std::string& program_path, const std::string& parameters_path);
  // Their content.
  Model(std::string_view program, std::string_view parameters);

  const std::vector<Signature>& inputs() const;
  const std::vector<std::string>& outputs() const;
  // The weights by their names in the file.
  NamedTensors parameters() const;
  // In the order of inputs() and outputs(). Several threads may call it at once.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  // The program for inputs like these.
  const Program& program(const std::vector<Tensor>& inputs) const;
  // The program for any sizes that the file leaves open.
  Program open_program() const;

 private:
  struct Parts;
  std::shared_ptr<Parts> parts_;
};

// Did Paddle write this program? Oar's own files have the same endings.
bool is_program(std::string_view file);

}  // namespace paddle
}  // namespace oar
