#include "oar/interop/keras/model.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <utility>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/interop/constants.h"

namespace oar::keras {
namespace {

constexpr int kDeepest = 32;  // models in models

const JsonValue* member(const JsonValue* object, std::string_view name) {
  return object && object->is_object() ? object->find(name) : nullptr;
}
const JsonValue* member(const JsonValue& object, std::string_view name) {
  return member(&object, name);
}

std::string text_in(const JsonValue& object, std::string_view name) {
  const JsonValue* found = member(object, name);
  return found && found->is_text() ? found->text() : "";
}

// ---- what layers are called with ---------------------------------------------------------------

// ["dense", 0, 0], which Keras 2 follows by a dictionary, in some places.
std::optional<Reference> triple(const JsonValue& json) {
  if (!json.is_list() || json.list().size() < 3) return std::nullopt;
  const JsonValue::List& list = json.list();
  if (!list[0].is_text() || !list[1].has_integer() || !list[2].has_integer()) return std::nullopt;
  if (list[0].text() == "_CONSTANT_VALUE") return std::nullopt;
  return Reference{list[0].text(), list[1].integer(), list[2].integer()};
}

Argument argument_of(const JsonValue& json, bool new_style, int depth);

std::vector<Argument> arguments_in(const JsonValue::List& list, bool new_style, int depth) {
  std::vector<Argument> made;
  for (const JsonValue& item : list) made.push_back(argument_of(item, new_style, depth + 1));
  return made;
}

Argument argument_of(const JsonValue& json, bool new_style, int depth) {
  user_check(depth < kDeepest, ErrorKind::InvalidArgument, "lists of arguments are too deep.");
  if (new_style) {
    if (text_in(json, "class_name") == "__keras_tensor__") {
      const auto found = triple(json.at("config").at("keras_history"));
      user_check(found.has_value(), ErrorKind::InvalidArgument, "a tensor has no origin.");
      return {*found};
    }
    // Tuples and lists of tensors; any other value is one of the configuration.
    if (text_in(json, "class_name") == "__tuple__")
      return {arguments_in(json.at("items").list(), new_style, depth)};
    if (json.is_list()) return {arguments_in(json.list(), new_style, depth)};
    return {json};
  }
  if (const auto found = triple(json)) return {*found};
  if (!json.is_list()) return {json};
  const JsonValue::List& list = json.list();
  if (list.size() >= 3 && list[0].is_text() && list[0].text() == "_CONSTANT_VALUE")
    return {list[2]};
  return {arguments_in(list, new_style, depth)};
}

void add_named(LayerCall& call, const JsonValue& named, bool new_style) {
  for (const auto& [key, value] : named.object())
    call.named[key] = argument_of(value, new_style, 0);
}

// [["dense", 0, 0, {}], …], a single entry without the list around it, or {"key": entry}.
LayerCall old_call(const JsonValue& node) {
  LayerCall call;
  std::vector<const JsonValue*> entries;
  if (node.is_object()) {
    for (const auto& [key, entry] : node.object()) entries.push_back(&entry);
  } else if (node.is_list() && !node.list().empty() && node.list()[0].is_text()) {
    entries.push_back(&node);
  } else {
    for (const JsonValue& entry : node.list()) entries.push_back(&entry);
  }
  for (const JsonValue* entry : entries) {
    call.arguments.push_back(argument_of(*entry, false, 0));
    if (entry->is_list() && entry->list().size() == 4 && entry->list()[3].is_object())
      add_named(call, entry->list()[3], false);
  }
  return call;
}

std::vector<LayerCall> calls_in(const JsonValue& layer) {
  std::vector<LayerCall> calls;
  const JsonValue* nodes = member(layer, "inbound_nodes");
  if (!nodes) return calls;
  for (const JsonValue& node : nodes->list()) {
    if (!node.is_object() || !member(node, "args")) {
      calls.push_back(old_call(node));
      continue;
    }
    LayerCall call{arguments_in(node.at("args").list(), true, 0), {}};
    if (const JsonValue* named = member(node, "kwargs")) add_named(call, *named, true);
    calls.push_back(std::move(call));
  }
  return calls;
}

// ---- models ------------------------------------------------------------------------------------

// Tensors of a list, or of a dictionary in the order of its keys.
void collect(const JsonValue& json, const std::string& key, Model& model,
             std::vector<Reference>& into, bool keys, int depth = 0) {
  user_check(depth < kDeepest, ErrorKind::InvalidArgument, "lists of inputs are too deep.");
  if (const auto found = triple(json)) {
    into.push_back(*found);
    if (keys) model.output_keys.push_back(key);
  } else if (json.is_list()) {
    for (const JsonValue& item : json.list()) collect(item, key, model, into, keys, depth + 1);
  } else if (json.is_object()) {
    for (const auto& [name, item] : json.object())
      collect(item, name, model, into, keys, depth + 1);
  }
}

// Keras 2 and TensorFlow.js have the layers of a model without inputs as a list alone.
const JsonValue::List& layers_in(const JsonValue& config) {
  if (config.is_list()) return config.list();
  const JsonValue* layers = member(config, "layers");
  user_check(
      layers && layers->is_list(), ErrorKind::Unsupported,
      "it is a model of a class of its own, whose code the file does not have.\nhint: Export it as a "
      "SavedModel, with model.export(folder).");
  return layers->list();
}

void add_layer(Model& model, Layer layer) {
  user_check(model.places.emplace(layer.name, model.layers.size()).second,
             ErrorKind::InvalidArgument, "the file has two layers '{}' in one model.", layer.name);
  model.layers.push_back(std::move(layer));
}

// The sizes that a sequence of layers takes: those of its first layer.
JsonValue shape_of_first(const Layer& first, const JsonValue& config) {
  for (const char* name : {"batch_input_shape", "batch_shape"})
    if (const JsonValue* found = member(first.config, name)) return *found;
  if (first.model && !first.model->layers.empty())
    return shape_of_first(first.model->layers.front(), first.model->layers.front().config);
  for (const char* name : {"build_input_shape", "batch_input_shape"})
    if (const JsonValue* found = member(config, name)) return *found;
  return {};
}

// Layers in a row: each is called with what the one before it makes.
void chain(Model& model, const JsonValue& config) {
  if (model.layers.empty()) return;
  if (model.layers.front().type != "InputLayer") {
    const Layer& first = model.layers.front();
    JsonValue::Object input{{"batch_input_shape", shape_of_first(first, config)}};
    if (const JsonValue* dtype = member(first.config, "dtype");
        dtype && first.type != "Embedding" && !first.model)
      input.emplace("dtype", *dtype);
    Layer made;
    made.type = "InputLayer";
    made.name = model.layers.front().name + "_input";
    made.config = JsonValue::of(std::move(input));
    model.layers.insert(model.layers.begin(), std::move(made));
  }
  model.places.clear();
  for (size_t i = 0; i < model.layers.size(); ++i) {
    Layer& layer = model.layers[i];
    user_check(model.places.emplace(layer.name, i).second, ErrorKind::InvalidArgument,
               "the file has two layers '{}' in one model.", layer.name);
    if (i > 0) layer.calls = {{{Argument{Reference{model.layers[i - 1].name, 0, 0}}}, {}}};
  }
  model.inputs = {{model.layers.front().name, 0, 0}};
  model.outputs = {{model.layers.back().name, 0, 0}};
}

bool is_sequence(std::string_view type) { return type == "Sequential"; }

// The numbers of calls of a model that is called inside of another one begin with 1 where Keras counts the one that made it.
void count_calls_from_zero(Model& model) {
  std::map<std::string, std::vector<Reference*>> named;
  const auto add = [&](Reference& r) { named[r.layer].push_back(&r); };
  const std::function<void(Argument&)> visit = [&](Argument& a) {
    if (auto* r = std::get_if<Reference>(&a.content)) add(*r);
    if (auto* list = std::get_if<std::vector<Argument>>(&a.content))
      for (Argument& item : *list) visit(item);
  };
  for (Layer& layer : model.layers) {
    for (LayerCall& call : layer.calls) {
      for (Argument& a : call.arguments) visit(a);
      for (auto& [name, a] : call.named) visit(a);
    }
  }
  for (Reference& r : model.outputs) add(r);
  for (auto& [name, references] : named) {
    const Layer* layer = model.find(name);
    if (!layer || !layer->model) continue;
    const auto least = std::min_element(references.begin(), references.end(),
                                        [](auto* a, auto* b) { return a->call < b->call; });
    const int64_t first = (*least)->call;
    for (Reference* r : references) r->call -= first;
  }
}

}  // namespace

// ---- weights -----------------------------------------------------------------------------------

Weights Weights::below(const std::vector<std::string_view>& names) const {
  const auto place_in = [&](const Entry& entry) {
    const auto last = entry.path.end() - (entry.path.empty() ? 0 : 1);
    const auto found = std::find_if(entry.path.begin(), last, [&](const std::string& part) {
      return std::find(names.begin(), names.end(), part) != names.end();
    });
    return found == last ? entry.path.size() : static_cast<size_t>(found - entry.path.begin());
  };
  // A layer of the same name may be inside of another model: the outermost one is meant.
  size_t least = by_place() ? 0 : ~size_t{0};
  if (!by_place())
    for (const Entry& entry : entries_)
      if (const size_t at = place_in(entry); at < entry.path.size()) least = std::min(least, at);
  std::vector<Entry> kept;
  for (const Entry& entry : entries_) {
    const size_t at = place_in(entry);
    if (at != least || at >= entry.path.size()) continue;
    kept.push_back(
        {{entry.path.begin() + static_cast<ptrdiff_t>(at) + 1, entry.path.end()}, entry.tensor});
  }
  return {std::move(kept), kind_};
}

Tensor Weights::find(std::string_view name, size_t place) const {
  if (by_place()) {
    const std::string wanted = std::to_string(place);
    for (const Entry& entry : entries_)
      if (entry.path.size() == 2 && entry.path[0] == "vars" && entry.path[1] == wanted)
        return entry.tensor;
    return {};
  }
  for (const Entry& entry : entries_)
    if (!entry.path.empty() && entry.path.back() == name) return entry.tensor;
  return kind_ == Ordered && place < entries_.size() ? entries_[place].tensor : Tensor{};
}

Tensor TurnedWeights::turned(const Tensor& weight, const std::vector<int64_t>& order) {
  const std::lock_guard lock(mutex_);
  auto& entry = made_[{weight.impl(), order}];
  // The weight is kept, too, so that no other tensor gets its address.
  if (!entry.first.defined()) {
    entry = {weight, interop::permuted_copy(weight, order)};
    history_of(entry.second).name = history_of(weight).name;
  }
  return entry.second;
}

std::string name_of_group(std::string_view type) {
  std::string name;
  for (size_t i = 0; i < type.size(); ++i) {
    const auto c = static_cast<unsigned char>(type[i]);
    const auto lower = [&](size_t at) {
      return at < type.size() && std::islower(static_cast<unsigned char>(type[at])) != 0;
    };
    if (i > 0 && std::isupper(c) != 0 && (lower(i - 1) || lower(i + 1))) name += '_';
    name += static_cast<char>(std::tolower(c));
  }
  return name;
}

void share_out(Model& model, const Weights& weights) {
  std::map<std::string, int> used;
  Weights inside = weights;
  if (weights.by_place()) inside = weights.below({"layers", "_layer_checkpoint_dependencies"});
  for (Layer& layer : model.layers) {
    if (layer.is_function) continue;
    std::string name = layer.name;
    if (weights.by_place()) {
      // The class has another name than the layer.
      const bool grouped = layer.type == "GroupQueryAttention";
      name = grouped ? "grouped_query_attention" : name_of_group(layer.type);
      const int before = used[name]++;
      if (before > 0) name += "_" + std::to_string(before);
    }
    layer.weights = inside.below({name});
    // TensorFlow.js and Keras 2 do not name a model that is inside of another one.
    if (layer.model && !weights.by_place() && layer.weights.entries().empty())
      layer.weights = inside;
    if (layer.model) share_out(*layer.model, layer.weights);
  }
}

// ---- parsing -----------------------------------------------------------------------------------

std::string Layer::str() const { return format("{} '{}'", type, name); }

const Layer* Model::find(const std::string& layer) const {
  const auto found = places.find(layer);
  return found == places.end() ? nullptr : &layers[found->second];
}

bool is_model_type(std::string_view type) {
  return type == "Sequential" || type == "Functional" || type == "Model";
}

Layer parse_layer(const JsonValue& json, int version, int depth) {
  Layer layer;
  layer.version = version;
  layer.type = json.at("class_name").text();
  const JsonValue* config = member(json, "config");
  if (config) layer.config = *config;
  layer.name = text_in(json, "name");
  if (layer.name.empty() && config) layer.name = text_in(*config, "name");
  layer.calls = calls_in(json);
  const std::string module = text_in(json, "module");
  layer.is_function = module.starts_with("keras.src.ops") || module.starts_with("keras.ops") ||
                      layer.type == "TFOpLambda" || layer.type == "SlicingOpLambda" ||
                      layer.type == "TensorFlowOpLayer";
  // "Custom>Name" and "package>Name" are classes that were registered.
  if (const size_t sign = layer.type.rfind('>'); sign != std::string::npos)
    layer.type.erase(0, sign + 1);
  if (is_model_type(layer.type))
    layer.model = std::make_shared<Model>(parse_model(json, version, depth + 1));
  return layer;
}

Model parse_model(const JsonValue& json, int version, int depth) {
  user_check(depth < kDeepest, ErrorKind::InvalidArgument,
             "models are inside of each other too deeply.");
  const JsonValue& config = json.at("config");
  const bool sequence = is_sequence(json.at("class_name").text());
  Model model;
  model.name = json.at("class_name").text();
  for (const JsonValue& entry : layers_in(config)) {
    Layer layer = parse_layer(entry, version, depth);
    if (sequence && layer.name.empty()) layer.name = format("layer_{}", model.layers.size());
    add_layer(model, std::move(layer));
  }
  const JsonValue *inputs = member(config, "input_layers"),
                  *outputs = member(config, "output_layers");
  if (sequence && !(inputs && outputs)) {
    chain(model, config);
  } else {
    user_check(inputs && outputs, ErrorKind::InvalidArgument,
               "the model has no inputs or outputs.");
    collect(*inputs, "", model, model.inputs, false);
    collect(*outputs, "", model, model.outputs, true);
  }
  count_calls_from_zero(model);
  user_check(!model.outputs.empty(), ErrorKind::InvalidArgument, "the model has no outputs.");
  return model;
}

}  // namespace oar::keras
