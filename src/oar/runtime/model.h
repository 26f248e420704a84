// A saved model: the program and the weights that `save_inference_model` or `jit.save` wrote.
//
//   const Model model = Model::load("digits.oar");         // or "digits": digits.pdmodel and digits.pdiparams
//   const std::vector<Tensor> out = model.run({images});   // in the order of model.inputs()
//
// A file may be hostile: whatever it holds, the answer is a model or an error.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"
#include "oar/tensor/tensor.h"

namespace OAR_RUNTIME_API oar {

class Model {
 public:
  // An input or an output. A size that is left open is a symbol.
  struct Port {
    std::string name;
    DType dtype;
    Shape shape;
    std::string str() const;  // "image: float32[batch, 1, 8, 8]"
  };

  // An `.oar` file has several methods. Its weights are mapped: loading reads none of them, and processes share them. `verify`
  // compares them with their checksums. Without that ending the path is the prefix of two files.
  static Model load(const std::string& path, const std::string& method = "forward",
                    bool verify = false);
  // Two files with any names.
  static Model load_files(const std::string& program_path, const std::string& weights_path);
  // `program` is a line of JSON and the text of a program; `weights` are what it reads, by name.
  static Model parse(std::string_view program, const std::map<std::string, Tensor>& weights);

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;
  // What runs write, by the names in the file: parameters, moments and counters of a training step.
  const std::map<std::string, Tensor>& written_states() const;
  // Its inputs may have another order than inputs().
  const Program& program() const;

  // May be called by several threads at once. A state that the program writes keeps its new value for the next run; then runs
  // must not overlap.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace oar
