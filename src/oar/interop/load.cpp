#include "oar/interop/load.h"

#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/caffe/import.h"
#include "oar/interop/onnx/import.h"
#include "oar/interop/paddle/import.h"
#include "oar/interop/pytorch/import.h"
#include "oar/interop/tensorflow/import.h"
#include "oar/interop/tflite/import.h"
#include "oar/runtime/model.h"

namespace oar::interop {

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

Port port_of(const Model::Port& given) {
  Port port{given.name, given.dtype, std::vector<int64_t>{}, {}};
  for (const Dim size : given.shape) {
    port.shape->push_back(size.is_known() ? size.value() : -1);
    port.open_sizes.push_back(size.is_known() ? "" : size.str());
  }
  return port;
}

GraphModel saved(const Model& model) {
  std::vector<Port> inputs;
  std::vector<std::string> outputs;
  for (const Model::Port& port : model.inputs()) inputs.push_back(port_of(port));
  for (const Model::Port& port : model.outputs()) outputs.push_back(port.name);
  const auto run = [model](const std::vector<Tensor>& given) { return model.run(given); };
  return {std::move(inputs), std::move(outputs),
          GraphModel::Whole{run, [model] { return model.program(); }}};
}

GraphModel loaded(FileKind kind, const std::string& path, const LoadOptions& options) {
  switch (kind) {
    case FileKind::Oar:
      return saved(Model::load(path, options.method, options.verify));
    case FileKind::OarProgram:
      return saved(Model::load_files(path, weights_of(path, options, ".pdiparams")));
    case FileKind::PaddleLegacy:
    case FileKind::PaddlePir: {
      const std::string beside = stem_of(path) + ".pdiparams";
      const std::string weights = options.weights.empty() ? beside : options.weights;
      return paddle::Model::load_files(path, weights);
    }
    case FileKind::Onnx:
      return onnx::Model::load(path);
    case FileKind::TensorFlow:
      return tensorflow::load_model(path);
    case FileKind::TorchProgram:
    case FileKind::TorchScript:
      return pytorch::load_model(path).graph;
    case FileKind::Tflite:
      return tflite::load_model(path);
    case FileKind::CaffeNet:
      return caffe::load_model(path, weights_of(path, options, ".caffemodel"));
    default:
      break;
  }
  fail(
      ErrorKind::InvalidArgument,
      "it is {}, not a model that runs.\nhint: Oar runs .oar files and models of Paddle (.pdmodel, "
      ".json), ONNX, TensorFlow, TFLite, PyTorch (.pt2, TorchScript) and Caffe (.prototxt). `oar inspect` shows what "
      "other files hold.",
      described(kind));
}

}  // namespace

GraphModel load_model(const std::string& path, const LoadOptions& options) {
  const std::string file = model_file(path);
  const FileKind kind = guess_kind(file);
  if (kind == FileKind::CaffeWeights) {  // the other one of its two files
    LoadOptions both = options;
    both.weights = path;
    return load_model(weights_of(path, {}, ".prototxt"), both);
  }
  try {
    GraphModel model = loaded(kind, file, options);
    model.came_from(kind, file);
    return model;
  } catch (const Error& error) {
    if (error.text().find(file) != std::string::npos) throw;
    fail(error.kind(), "\"{}\" cannot be loaded: {}{}{}", file, error.text(),
         error.hint().empty() ? "" : "\nhint: ", error.hint());
  }
}

}  // namespace oar::interop
