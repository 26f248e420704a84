#include "oar/interop/any_model.h"

#include <filesystem>
#include <functional>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/caffe/import.h"
#include "oar/interop/keras/import.h"
#include "oar/interop/onnx/import.h"
#include "oar/interop/paddle/import.h"
#include "oar/interop/pytorch/import.h"
#include "oar/interop/tensorflow/import.h"
#include "oar/interop/tflite/import.h"
#include "oar/runtime/model.h"

namespace oar::interop {

using Tensors = std::vector<Tensor>;

struct AnyModel::Parts {
  FileKind kind = FileKind::Unknown;
  std::string path;
  std::vector<Signature> inputs;
  std::function<std::vector<std::string>()> outputs;
  std::function<Tensors(const Tensors&)> run;
  std::function<Program(const Tensors&)> program;
};

namespace {

namespace fs = std::filesystem;

// "folder/net.oar" without its ending.
std::string stem_of(const std::string& path) { return fs::path(path).replace_extension().string(); }

// The second file of a model that has two.
std::string weights_of(const std::string& path, const LoadOptions& options, const char* end) {
  if (!options.weights.empty()) return options.weights;
  std::string beside = stem_of(path) + end;
  if (fs::is_regular_file(beside)) return beside;
  std::vector<std::string> found;
  const fs::path folder = fs::path(path).parent_path();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder))
    if (entry.path().extension() == end) found.push_back(entry.path().string());
  user_check(
      found.size() == 1, ErrorKind::NotFound,
      "\"{}\" needs the file with its weights, and its folder has {}.\nhint: Name it with --weights FILE.",
      path, found.empty() ? format("no *{}", end) : format("several: {}", join(found, ", ")));
  return found[0];
}

template <class Parts>
void take_oar(Parts& parts, const Model& model) {
  for (const Model::Port& port : model.inputs())
    parts.inputs.push_back({port.name, port.dtype, port.shape});
  parts.outputs = [model] {
    std::vector<std::string> names;
    for (const Model::Port& port : model.outputs()) names.push_back(port.name);
    return names;
  };
  parts.run = [model](const Tensors& given) { return model.run(given); };
  parts.program = [model](const Tensors&) { return model.program(); };
}

Signature signature_of(const Port& port) {
  Signature made{port.name, port.dtype.value_or(DType::Float32), std::nullopt};
  if (!port.shape) return made;
  made.shape.emplace();
  for (size_t axis = 0; axis < port.shape->size(); ++axis) {
    const int64_t size = (*port.shape)[axis];
    const std::string given = axis < port.open_sizes.size() ? port.open_sizes[axis] : "";
    const std::string name = given.empty() ? format("{}_{}", port.name, axis) : given;
    made.shape->push_back(size >= 0 ? Dim(size) : Dim::symbol(name));
  }
  return made;
}

template <class Parts>
void take_graph(Parts& parts, const GraphModel& model) {
  for (const Port& port : model.inputs()) parts.inputs.push_back(signature_of(port));
  parts.outputs = [model] { return model.outputs(); };
  parts.run = [model](const Tensors& given) { return model.run(given); };
  parts.program = [model](const Tensors& like) { return model.program(like); };
}

template <class Parts>
void load_into(Parts& parts, const LoadOptions& options) {
  const std::string& path = parts.path;
  switch (parts.kind) {
    case FileKind::Oar:
      return take_oar(parts, Model::load(path, options.method, options.verify));
    case FileKind::OarProgram:
      return take_oar(parts, Model::load_files(path, weights_of(path, options, ".pdiparams")));
    case FileKind::PaddleLegacy:
    case FileKind::PaddlePir: {
      const std::string beside = stem_of(path) + ".pdiparams";
      const std::string weights = options.weights.empty() ? beside : options.weights;
      return take_graph(parts, paddle::Model::load_files(path, weights));
    }
    case FileKind::Onnx:
      return take_graph(parts, onnx::Model::load(path));
    case FileKind::TensorFlow:
      return take_graph(parts, tensorflow::load_model(path));
    case FileKind::Keras:
      return take_graph(parts, keras::load_model(path));
    case FileKind::TorchProgram:
    case FileKind::TorchScript:
      return take_graph(parts, pytorch::load_model(path).graph);
    case FileKind::Tflite:
      return take_graph(parts, tflite::load_model(path));
    case FileKind::CaffeNet:
      return take_graph(parts, caffe::load_model(path, weights_of(path, options, ".caffemodel")));
    default:
      break;
  }
  fail(
      ErrorKind::InvalidArgument,
      "it is {}, not a model that runs.\nhint: Oar runs .oar files and models of Paddle (.pdmodel, "
      ".json), ONNX, TensorFlow, Keras, TFLite, PyTorch (.pt2, TorchScript) and Caffe (.prototxt). `oar inspect` shows what "
      "other files hold.",
      described(parts.kind));
}

}  // namespace

std::string Signature::str() const {
  return format("{}: {}{}", name, name_of(dtype), shape ? to_string(Dims(*shape)) : "[any shape]");
}

AnyModel AnyModel::load(const std::string& path, const LoadOptions& options) {
  auto parts = std::make_shared<Parts>();
  parts->path = model_file(path);
  parts->kind = guess_kind(parts->path);
  if (parts->kind == FileKind::CaffeWeights) {  // the other one of its two files
    LoadOptions both = options;
    both.weights = path;
    return load(weights_of(path, {}, ".prototxt"), both);
  }
  try {
    load_into(*parts, options);
  } catch (const Error& error) {
    if (error.text().find(parts->path) != std::string::npos) throw;
    fail(error.kind(), "\"{}\" cannot be loaded: {}{}{}", parts->path, error.text(),
         error.hint().empty() ? "" : "\nhint: ", error.hint());
  }
  AnyModel model;
  model.parts_ = std::move(parts);
  return model;
}

FileKind AnyModel::kind() const { return parts_->kind; }
const std::string& AnyModel::path() const { return parts_->path; }
const std::vector<Signature>& AnyModel::inputs() const { return parts_->inputs; }
std::vector<std::string> AnyModel::outputs() const { return parts_->outputs(); }
Tensors AnyModel::run(const Tensors& inputs) const { return parts_->run(inputs); }
Program AnyModel::program(const Tensors& like) const { return parts_->program(like); }

}  // namespace oar::interop
