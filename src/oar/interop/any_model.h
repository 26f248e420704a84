// Any model that Oar runs, whatever wrote its file.
//
//   const AnyModel model = AnyModel::load("net.onnx");    // or .oar, .pdmodel, .json, .tflite, .prototxt
//   const std::vector<Tensor> out = model.run({image});   // in the order of model.inputs()
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/interop/guess.h"
#include "oar/ir/program.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace interop {

// An input, as the file describes it.
struct Signature {
  std::string name;
  DType dtype = DType::Float32;
  std::optional<Shape> shape;  // a size that is open is a symbol; nothing: any number of axes

  std::string str() const;  // "image: float32[batch, 3, 224, 224]"
};

struct LoadOptions {
  std::string method = "forward";  // of an .oar file
  std::string weights;  // the second file of a model that has two; empty: the one beside the first
  bool verify = false;  // compares the weights of an .oar file with their checksums
};

class AnyModel {
 public:
  // A file, the prefix of several files, or a folder with one model. Errors name the file.
  static AnyModel load(const std::string& path, const LoadOptions& options = {});

  FileKind kind() const;
  const std::string& path() const;  // of the file that was guessed
  const std::vector<Signature>& inputs() const;
  std::vector<std::string> outputs() const;  // some formats tell only after a run
  // Several threads may call it at once, unless the model writes states.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs) const;
  // The program for inputs like these, as it is in the file: no pass has changed it.
  Program program(const std::vector<Tensor>& like) const;

 private:
  struct Parts;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace interop
}  // namespace oar
