#include "oar/interop/load.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/formats/oar_file.h"
#include "oar/interop/caffe/import.h"
#include "oar/interop/json_value.h"
#include "oar/interop/keras/import.h"
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

// The program as its file describes it: the first line of its text has the order of inputs, and names by the labels of the text.
Program as_described(Program program, const std::string& first_line) {
  const JsonValue line = JsonValue::parse(first_line);
  for (const auto& [label, name] : line.at("names").object())
    for (ProgramValue& value : program.values)
      if (value.name == label) value.name = name.text();
  std::vector<ValueId> inputs;
  for (const JsonValue& feed : line.at("feed").list())
    inputs.push_back(*std::find_if(program.inputs.begin(), program.inputs.end(), [&](ValueId id) {
      return program.values[static_cast<size_t>(id)].name == feed.text();
    }));
  program.inputs = std::move(inputs);
  return program;
}

GraphModel saved(const std::string& text, const std::map<std::string, Tensor>& weights) {
  const Model model = Model::parse(text, weights);
  std::vector<Port> inputs;
  std::vector<std::string> outputs;
  for (const Model::Port& port : model.inputs()) inputs.push_back(port_of(port));
  for (const Model::Port& port : model.outputs()) outputs.push_back(port.name);
  const auto run = [model](const std::vector<Tensor>& given) { return model.run(given); };
  const auto program = [model, line = text.substr(0, text.find('\n'))] {
    return as_described(model.program(), line);
  };
  return {std::move(inputs), std::move(outputs), GraphModel::Whole{run, program}};
}

GraphModel saved_file(const std::string& path, const LoadOptions& options) {
  const OarFile file = load_oar(path, options.verify);
  const auto method = file.methods.find(options.method);
  std::vector<std::string> names;
  for (const auto& [name, unused] : file.methods) names.push_back(name);
  user_check(method != file.methods.end(), ErrorKind::InvalidArgument,
             "\"{}\" has no method '{}'; it has {}.", path, options.method, join(names, ", "));
  return saved(method->second.program, file.tensors);
}

GraphModel loaded(FileKind kind, const std::string& path, const LoadOptions& options) {
  switch (kind) {
    case FileKind::Oar:
      return saved_file(path, options);
    case FileKind::OarProgram:
      return saved(read_file(path), load_safetensors(weights_of(path, options, ".pdiparams")));
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
    case FileKind::Keras:
      return keras::load_model(path);
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
      ".json), ONNX, TensorFlow, Keras, TFLite, PyTorch (.pt2, TorchScript) and Caffe (.prototxt). `oar inspect` shows what "
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
  GraphModel model = naming_file(file, [&] { return loaded(kind, file, options); });
  model.came_from(kind, file);
  return model;
}

}  // namespace oar::interop
