// Models that run.
#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/interop/onnx/parsed.h"

namespace oar::onnx {
namespace {

constexpr int64_t kLargestShape = 64;  // elements of an input that could be a shape or axes

interop::Port described(const Port& port) {
  interop::Port made{port.name, {}, {}};
  if (!port.is_tensor) return made;
  made.dtype = port.dtype;
  if (port.has_shape) made.shape.emplace();
  for (const Port::Size& size : port.shape) {
    made.shape->push_back(size.value);
    made.open_sizes.push_back(size.symbol);
  }
  return made;
}

struct Ports {
  std::vector<interop::Port> inputs;
  std::vector<std::string> outputs;
};
Ports ports_of(const Graph& graph) {
  Ports ports;
  for (const Port& port : graph.inputs)
    if (!graph.initializers.contains(port.name)) ports.inputs.push_back(described(port));
  for (const Port& port : graph.outputs) ports.outputs.push_back(port.name);
  return ports;
}

// Inputs that could be a shape, axes or a choice between branches.
std::map<size_t, Tensor> small_inputs(const std::vector<Tensor>& given) {
  std::map<size_t, Tensor> found;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].numel().value() <= kLargestShape && given[i].rank() <= 1) found[i] = given[i];
  return found;
}

// With open sizes if that is possible. Else a shape may depend on the content of an input, or a branch does not fit the inputs, and
// content or sizes say that it is not taken.
interop::Imported import_like(const ModelFile& file, const std::vector<interop::Port>& inputs,
                              const std::vector<Tensor>& given) {
  Expected expected;
  for (size_t i = 0; i < inputs.size(); ++i) expected.examples[inputs[i].name] = given[i];
  std::map<size_t, Tensor> constant = small_inputs(given);
  try {
    return import_parsed(file, expected).program;
  } catch (const Error&) {
    for (const auto& [place, tensor] : constant) expected.constant[inputs[place].name] = tensor;
  }
  interop::Imported imported = [&] {
    try {
      return import_parsed(file, expected).program;
    } catch (const Error&) {
      expected.fixed_sizes = true;
      return import_parsed(file, expected).program;
    }
  }();
  imported.constant = std::move(constant);
  return imported;
}

interop::GraphModel model_of(const std::shared_ptr<const ModelFile>& file) {
  Ports ports = ports_of(file->graph);
  const std::vector<interop::Port> inputs = ports.inputs;
  return {std::move(ports.inputs), std::move(ports.outputs),
          [file, inputs](const std::vector<Tensor>& given) {
            return import_like(*file, inputs, given);
          }};
}

}  // namespace

Model::Model(std::string_view file, const std::string& folder)
    : GraphModel(model_of(std::make_shared<const ModelFile>(parse_model(file, folder)))) {}

Model Model::load(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return {read_file(path), folder.empty() ? "." : folder};
}

}  // namespace oar::onnx
