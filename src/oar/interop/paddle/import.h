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
#include "oar/interop/graph_model.h"
#include "oar/ir/program.h"

namespace OAR_API oar {
namespace paddle {

struct ModelFile;

class Model : public interop::GraphModel {
 public:
  // The path of both files without their endings.
  static Model load(const std::string& prefix);
  // Their content.
  Model(std::string_view program, std::string_view parameters);

  // The weights by their names in the file.
  NamedTensors parameters() const;
  // The program for any sizes that the file leaves open.
  Program open_program() const;

 private:
  explicit Model(std::shared_ptr<const ModelFile> file);
  std::shared_ptr<const ModelFile> file_;
};

// Did Paddle write this program? Oar's own files have the same endings.
bool is_program(std::string_view file);

}  // namespace paddle
}  // namespace oar
