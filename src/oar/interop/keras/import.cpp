#include "oar/interop/keras/import.h"

#include <algorithm>
#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/formats/hdf5.h"
#include "oar/interop/graph_model.h"
#include "oar/interop/keras/call.h"
#include "oar/interop/keras/files.h"
#include "oar/interop/tensorflow/web_weights.h"
#include "oar/ops/gen/copy.h"
#include "oar/runtime/region_runs.h"

namespace oar::keras {
namespace {

// ---- what the file says of inputs --------------------------------------------------------------

DType input_dtype(const Layer& layer) {
  const JsonValue* found = layer.config.is_object() ? layer.config.find("dtype") : nullptr;
  if (!found || !found->is_text()) return DType::Float32;
  const std::string& name = found->text();
  if (name.starts_with("int64")) return DType::Int64;
  if (name.starts_with("int32")) return DType::Int32;
  if (name.starts_with("int16")) return DType::Int16;
  if (name.starts_with("int8")) return DType::Int8;
  if (name.starts_with("uint8")) return DType::UInt8;
  if (name.starts_with("bool")) return DType::Bool;
  if (name.starts_with("float64")) return DType::Float64;
  user_check(name != "string", ErrorKind::Unsupported,
             "the input '{}' has texts, which cannot be imported.", layer.name);
  return DType::Float32;
}

interop::Port port_of(const Layer& layer) {
  interop::Port port{layer.name, input_dtype(layer), std::nullopt, {}};
  for (const char* key : {"batch_shape", "batch_input_shape"}) {
    const JsonValue* shape = layer.config.is_object() ? layer.config.find(key) : nullptr;
    if (!shape || !shape->is_list()) continue;
    port.shape.emplace();
    for (const JsonValue& size : shape->list())
      port.shape->push_back(size.has_integer() ? size.integer() : -1);
    break;
  }
  return port;
}

std::vector<interop::Port> ports_of(const Model& model) {
  std::vector<interop::Port> ports;
  for (const Reference& input : model.inputs) {
    const Layer* layer = model.find(input.layer);
    user_check(layer, ErrorKind::InvalidArgument, "the model has no layer '{}', which it names.",
               input.layer);
    ports.push_back(port_of(*layer));
  }
  return ports;
}

// Each output has the key of a dictionary, or the name of its layer.
std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  for (size_t i = 0; i < model.outputs.size(); ++i) {
    std::string name = i < model.output_keys.size() ? model.output_keys[i] : "";
    if (name.empty()) name = model.outputs[i].layer;
    const auto times = std::count(names.begin(), names.end(), name);
    names.push_back(times == 0 ? name : format("{}_{}", name, times));
  }
  return names;
}

// ---- models ------------------------------------------------------------------------------------

void find_unknown(const Layer& layer, std::vector<std::string>& unknown);

void find_unknown(const Model& model, std::vector<std::string>& unknown) {
  for (const Layer& layer : model.layers) find_unknown(layer, unknown);
}

void find_unknown(const Layer& layer, std::vector<std::string>& unknown) {
  if (layer.model)
    find_unknown(*layer.model, unknown);
  else if (!find_converter(layer))
    unknown.push_back(layer.type == "TFOpLambda" ? layer.str() : layer.type);
}

Program program_for(const Model& model, const std::vector<interop::Port>& ports,
                    const std::vector<Tensor>& like) {
  interop::GraphCapture graph;
  Items inputs;
  std::vector<interop::Value> values;
  for (size_t i = 0; i < like.size(); ++i) {
    values.push_back(graph.input(ports[i].name, like[i]));
    inputs.emplace_back(values.back().tensor);
  }
  const std::vector<interop::Value> outputs = graph.call(
      "the model", values,
      [&] {
        std::vector<Tensor> made;
        for (const Item& item : run_model(model, inputs, *model.turned))
          made.push_back(item.tensor);
        return made;
      },
      true);
  return graph.finish(outputs);
}

// Half precision saves memory: a model computes in single precision.
Weights widened(const Weights& weights) {
  std::vector<Weights::Entry> entries = weights.entries();
  const FreshLayers fresh;
  for (Weights::Entry& entry : entries)
    if (entry.tensor.dtype() == DType::Float16 || entry.tensor.dtype() == DType::BFloat16)
      entry.tensor = cast(entry.tensor, DType::Float32);
  return {std::move(entries), weights.kind()};
}

interop::GraphModel model_of(const FileParts& parts) {
  const JsonValue& architecture = parts.architecture;
  const JsonValue* type = architecture.is_object() ? architecture.find("class_name") : nullptr;
  user_check(type && type->is_text(), ErrorKind::InvalidArgument,
             "the file has no architecture of a model.");
  auto model = std::make_shared<Model>(parse_model(architecture, parts.version));
  std::vector<std::string> unknown;
  find_unknown(*model, unknown);
  interop::refuse_unknown(unknown, "layers");
  model->turned = std::make_shared<TurnedWeights>();
  share_out(*model, widened(parts.weights));
  const std::vector<interop::Port> ports = ports_of(*model);
  return {ports, output_names(*model), [model, ports](const std::vector<Tensor>& like) {
            return interop::Imported(program_for(*model, ports, like));
          }};
}

Weights web_weights(const JsonValue& manifest, const ReadFile& read) {
  std::vector<Weights::Entry> entries;
  for (const auto& [name, constant] : tensorflow::read_web_weights(manifest, read)) {
    if (!constant->tensor.defined()) continue;
    Weights::Entry entry{{}, constant->tensor};
    for (const std::string_view part : split(name, '/')) entry.path.emplace_back(part);
    entries.push_back(std::move(entry));
  }
  return {std::move(entries), Weights::Named};
}

}  // namespace

interop::GraphModel read_model(std::string_view file) {
  return model_of(is_hdf5(file) ? read_h5_parts(file) : read_archive_parts(file));
}

interop::GraphModel read_layers_model(std::string_view json, const ReadFile& read) {
  const JsonValue file = JsonValue::parse(json);
  const JsonValue* architecture = file.find("modelTopology");
  user_check(architecture && architecture->is_object(), ErrorKind::InvalidArgument,
             "the file has no layers: it is no model of TensorFlow.js.");
  const JsonValue* version = architecture->find("keras_version");
  const int major = major_version(version && version->is_text() ? version->text() : "");
  if (const JsonValue* inner = architecture->find("model_config")) architecture = inner;
  return model_of({*architecture, web_weights(file.at("weightsManifest"), read), major});
}

interop::GraphModel load_model(const std::string& path) {
  const std::string content = read_file(path);
  const size_t first = content.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || content[first] != '{') return read_model(content);
  return read_layers_model(
      content, tensorflow::files_in(std::filesystem::path(path).parent_path().string()));
}

std::vector<NamedTensor> read_weights(std::string_view file) {
  std::vector<NamedTensor> named;
  const Weights weights = read_h5_weights(file);
  for (const Weights::Entry& entry : weights.entries())
    named.push_back({join(entry.path, "/"), entry.tensor});
  return named;
}

}  // namespace oar::keras
