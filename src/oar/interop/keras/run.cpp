// Runs of models, layer after layer, on symbolic tensors.
#include <algorithm>
#include <set>

#include "oar/base/error.h"
#include "oar/base/scope_guard.h"
#include "oar/interop/conversion_error.h"
#include "oar/interop/graph_model.h"
#include "oar/interop/keras/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

constexpr int kDeepest = 40;  // layers in layers
constexpr int64_t kMostCalls = 200000;
thread_local int t_depth = 0;
thread_local int64_t t_calls =
    0;  // of layers, in one run: models in models may call each other very often

// The precision that a layer computes in; half precision is widened.
std::optional<DType> dtype_of(const Layer& layer) {
  const JsonValue* policy = layer.config.is_object() ? layer.config.find("dtype") : nullptr;
  if (policy && policy->is_object()) {
    const JsonValue* config = policy->find("config");
    policy = config && config->is_object() ? config->find("name") : nullptr;
  }
  if (!policy || !policy->is_text()) return std::nullopt;
  const std::string& name = policy->text();
  if (name == "float64") return DType::Float64;
  if (name.find("float") != std::string::npos) return DType::Float32;
  return std::nullopt;
}

void bring_to(DType dtype, Items& items) {
  for (Item& item : items)
    if (item.tensor.defined() && is_floating(item.tensor.dtype()) && item.tensor.dtype() != dtype)
      item.tensor = cast(item.tensor, dtype);
}

class ModelRun {
 public:
  ModelRun(const Model& model, TurnedWeights& turned) : model_(model), turned_(turned) {}

  Items run(const Items& inputs) {
    user_check(inputs.size() == model_.inputs.size(), ErrorKind::InvalidArgument,
               "a model with {} inputs is given {}.", model_.inputs.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) made_[{model_.inputs[i].layer, 0}] = {inputs[i]};
    Items outputs;
    for (const Reference& output : model_.outputs) {
      evaluate(output);
      outputs.push_back(result(output));
    }
    return outputs;
  }

 private:
  using Place = std::pair<std::string, int64_t>;

  Place place_of(const Reference& r) const {
    const Layer* layer = model_.find(r.layer);
    user_check(layer, ErrorKind::InvalidArgument, "the model has no layer '{}', which it names.",
               r.layer);
    const auto count = std::max<int64_t>(static_cast<int64_t>(layer->calls.size()), 1);
    user_check(r.call >= 0 && r.call < count, ErrorKind::InvalidArgument,
               "the layer {} is called {} times, but the file names call {}.", layer->str(), count,
               r.call);
    return {r.layer, r.call};
  }

  const Item& result(const Reference& r) const {
    const Items& items = made_.at(place_of(r));
    user_check(r.result >= 0 && static_cast<size_t>(r.result) < items.size(),
               ErrorKind::InvalidArgument, "the layer '{}' has {} results, but the file names {}.",
               r.layer, items.size(), r.result);
    return items[static_cast<size_t>(r.result)];
  }

  static void add_references(const Argument& a, std::vector<Reference>& into) {
    if (const Reference* r = a.reference()) into.push_back(*r);
    if (const std::vector<Argument>* list = a.list())
      for (const Argument& item : *list) add_references(item, into);
  }

  // Many layers in a row must not fill the stack.
  void evaluate(const Reference& target) {
    std::vector<Place> waiting{place_of(target)};
    std::set<Place> begun;
    while (!waiting.empty()) {
      const Place at = waiting.back();
      if (made_.contains(at)) {
        waiting.pop_back();
        continue;
      }
      const Layer& layer = *model_.find(at.first);
      user_check(static_cast<size_t>(at.second) < layer.calls.size(), ErrorKind::InvalidArgument,
                 "the layer {} is no input of the model, but nothing is given to it.", layer.str());
      const LayerCall& call = layer.calls[static_cast<size_t>(at.second)];
      std::vector<Reference> needed;
      for (const Argument& a : call.arguments) add_references(a, needed);
      for (const auto& [name, a] : call.named) add_references(a, needed);
      bool ready = true;
      for (const Reference& r : needed) {
        const Place before = place_of(r);
        if (made_.contains(before)) continue;
        user_check(!begun.contains(before), ErrorKind::InvalidArgument,
                   "the model has a cycle through the layer {}.", layer.str());
        waiting.push_back(before);
        ready = false;
      }
      begun.insert(at);
      if (!ready) continue;
      waiting.pop_back();
      made_[at] = run_call(layer, call);
    }
  }

  Given given_of(const Argument& a) const {
    Given given;
    if (const Reference* r = a.reference()) {
      given.items = {result(*r)};
    } else if (const std::vector<Argument>* list = a.list()) {
      given.is_list = true;
      for (const Argument& item : *list) {
        const Given inner = given_of(item);
        given.items.insert(given.items.end(), inner.items.begin(), inner.items.end());
      }
      if (given.items.size() != list->size()) given.value = plain(a);
    } else {
      given.value = *a.value();
    }
    return given;
  }

  // A list without tensors, as it is in the file.
  static JsonValue plain(const Argument& a) {
    if (const JsonValue* value = a.value()) return *value;
    JsonValue::List values;
    if (const std::vector<Argument>* list = a.list())
      for (const Argument& item : *list) values.push_back(plain(item));
    return JsonValue::of(std::move(values));
  }

  Items run_call(const Layer& layer, const LayerCall& call) {
    std::vector<Given> arguments;
    NamedGiven named;
    for (const Argument& a : call.arguments) arguments.push_back(given_of(a));
    for (const auto& [name, a] : call.named) named[name] = given_of(a);
    return run_layer(layer, std::move(arguments), std::move(named), turned_);
  }

  const Model& model_;
  TurnedWeights& turned_;
  std::map<Place, Items> made_;
};

}  // namespace

Items run_model(const Model& model, const Items& inputs, TurnedWeights& turned) {
  return ModelRun(model, turned).run(inputs);
}

Items run_layer(const Layer& layer, std::vector<Given> arguments, NamedGiven named,
                TurnedWeights& turned) {
  if (t_depth == 0) t_calls = 0;
  user_check(++t_calls < kMostCalls, ErrorKind::InvalidArgument,
             "the model calls more than {} layers.", kMostCalls);
  user_check(t_depth < kDeepest, ErrorKind::InvalidArgument,
             "layers are inside of each other too deeply.");
  ++t_depth;
  const ScopeGuard leave([] { --t_depth; });
  if (layer.model) {
    Items inputs;
    for (const Given& given : arguments)
      inputs.insert(inputs.end(), given.items.begin(), given.items.end());
    return run_model(*layer.model, inputs, turned);
  }
  const Converter* converter = find_converter(layer);
  user_check(converter, ErrorKind::Unsupported,
             "the model has layers that Oar cannot import yet: {}.", layer.type);
  const auto layer_name = [&] { return "the layer " + layer.str(); };
  return interop::naming_node(layer_name, [&] {
    if (const auto dtype = dtype_of(layer); dtype && !layer.is_function) {
      for (Given& given : arguments) bring_to(*dtype, given.items);
      for (auto& [name, given] : named) bring_to(*dtype, given.items);
    }
    const Call call(layer, std::move(arguments), std::move(named), turned);
    Items made = converter->convert(call);
    if (converter->masks == Converter::Passes && !made.empty() && call.count() > 0)
      made[0].mask = call.item().mask;
    return made;
  });
}

}  // namespace oar::keras
