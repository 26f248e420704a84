#include "oar/interop/keras/call.h"

#include <cctype>
#include <unordered_map>

#include "oar/base/error.h"
#include "oar/interop/graph_model.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

// "tf.math.reduce_mean" and "math.reduce_mean" are called by their last part, "GetItem" as "getitem".
std::string function_name(const Layer& layer) {
  std::string name = layer.type;
  if (layer.type == "SlicingOpLambda") return "getitem";
  if (layer.type == "TFOpLambda") {
    const JsonValue* function = layer.config.is_object() ? layer.config.find("function") : nullptr;
    name = function && function->is_text() ? function->text() : layer.name;
  }
  name.erase(0, name.rfind('.') + 1);
  std::string plain;
  for (const char c : name)
    if (c != '_') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return plain;
}

using Table = std::unordered_map<std::string_view, const Converter*>;

Table table_of(std::initializer_list<std::span<const Converter>> parts) {
  Table all;
  for (const auto& part : parts)
    for (const Converter& converter : part) all.emplace(converter.type, &converter);
  return all;
}

}  // namespace

const Converter* find_converter(const Layer& layer) {
  static const Table kLayers =
      table_of({core_converters(), window_converters(), shape_converters(), merge_converters(),
                normalisation_converters(), recurrent_converters(), attention_converters(),
                preparation_converters()});
  static const Table kFunctions = table_of({function_converters()});
  const Table& table = layer.is_function ? kFunctions : kLayers;
  const std::string name = layer.is_function ? function_name(layer) : layer.type;
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second;
}

Call::Call(const Layer& of, std::vector<Given> arguments, NamedGiven named, TurnedWeights& turned)
    : layer(of),
      arguments_(std::move(arguments)),
      named_(std::move(named)),
      turned_(turned),
      weights_(of.weights) {
  for (const Given& given : arguments_)
    items_.insert(items_.end(), given.items.begin(), given.items.end());
}

const Item& Call::item(size_t i) const {
  if (i >= items_.size()) refuse(format("its input {} is missing", i));
  return items_[i];
}

std::vector<Tensor> Call::tensors() const {
  std::vector<Tensor> all;
  for (const Item& item : items_) all.push_back(item.tensor);
  return all;
}

const Given* Call::named(std::string_view name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : &found->second;
}

const JsonValue* Call::find(std::string_view key) const {
  const JsonValue* found = layer.config.is_object() ? layer.config.find(key) : nullptr;
  return found && !found->is_none() ? found : nullptr;
}

int64_t Call::integer(std::string_view key, int64_t otherwise) const {
  const JsonValue* found = find(key);
  return found ? found->integer() : otherwise;
}

double Call::number(std::string_view key, double otherwise) const {
  const JsonValue* found = find(key);
  // Numbers that are arrays of NumPy: {"class_name": "__numpy__", "config": {"value": …}}.
  if (found && found->is_object()) {
    if (const JsonValue* config = found->find("config"))
      found = config->find("value");
    else
      found = found->find("value");
    if (!found) refuse(format("its '{}' is no number", key));
  }
  return found ? found->number() : otherwise;
}

bool Call::flag(std::string_view key, bool otherwise) const {
  const JsonValue* found = find(key);
  return found ? found->flag() : otherwise;
}

std::string Call::text(std::string_view key, std::string_view otherwise) const {
  const JsonValue* found = find(key);
  return found && found->is_text() ? found->text() : std::string(otherwise);
}

std::vector<int64_t> Call::list(std::string_view key) const {
  const JsonValue* found = find(key);
  std::vector<int64_t> values;
  if (!found) return values;
  if (found->is_number()) return {found->integer()};
  // A tuple may say that it is one.
  if (found->is_object() && found->find("items")) found = found->find("items");
  for (const JsonValue& value : found->list())
    values.push_back(value.is_none() ? -1 : value.integer());
  return values;
}

std::vector<int64_t> Call::list(std::string_view key, size_t axes, int64_t otherwise) const {
  std::vector<int64_t> values = list(key);
  if (values.empty()) values.assign(axes, otherwise);
  if (values.size() == 1) values.assign(axes, values[0]);
  if (values.size() != axes) refuse(format("its '{}' has {} numbers", key, values.size()));
  return values;
}

std::vector<double> Call::numbers(std::string_view key) const {
  const JsonValue* found = find(key);
  std::vector<double> values;
  if (!found) return values;
  if (found->is_number()) return {found->number()};
  if (found->is_object() && found->find("config")) found = found->at("config").find("value");
  if (!found) refuse(format("its '{}' has no numbers", key));
  // [[[0.5, 0.25]]] counts as [0.5, 0.25].
  while (found->is_list() && found->list().size() == 1 && found->list()[0].is_list())
    found = &found->list()[0];
  for (const JsonValue& value : found->list()) values.push_back(value.number());
  return values;
}

int64_t Call::axis(int64_t given, const Tensor& of) const {
  const int64_t rank = of.rank(), axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) refuse(format("it has no axis {}", given));
  return axis;
}

Tensor Call::maybe_weight(std::string_view name) const {
  const size_t place = taken_++;
  Tensor found = weights_.find(name, place);
  if (!found.defined()) return found;
  interop::GraphCapture::constant(format("{}/{}", layer.name, name), found);
  return found;
}

Tensor Call::weight(std::string_view name) const {
  Tensor found = maybe_weight(name);
  if (!found.defined()) refuse(format("the file has no weight '{}' of it", name));
  return found;
}

Tensor Call::turned(const Tensor& weight, const std::vector<int64_t>& order) const {
  if (static_cast<size_t>(weight.rank()) != order.size())
    refuse(format("a weight has {} axes instead of {}", weight.rank(), order.size()));
  return turned_.turned(weight, order);
}

Layer Call::inner(const JsonValue& json, const std::vector<std::string_view>& attributes,
                  const std::vector<std::string_view>& names) const {
  Layer made = parse_layer(json, layer.version);
  if (weights_.by_place())
    made.weights = weights_.below(attributes);
  else
    made.weights = weights_.below(names.empty() ? std::vector<std::string_view>{made.name} : names);
  // Keras 2 does not always name the layer that is inside.
  if (!weights_.by_place() && made.weights.entries().empty()) made.weights = weights_;
  if (made.model) share_out(*made.model, made.weights);
  if (made.name.empty()) made.name = layer.name;
  return made;
}

Items Call::run(const Layer& of, const Items& inputs, const NamedGiven& named) const {
  Given given;
  given.items = inputs;
  given.is_list = inputs.size() > 1;
  return run_layer(of, {given}, named, turned_);
}

Call Call::part(const std::vector<std::string_view>& names) const {
  Call made(*this);
  made.weights_ = weights_.below(names);
  made.taken_ = 0;
  return made;
}

void Call::refuse(std::string_view why) const {
  fail(ErrorKind::Unsupported, "the layer {} cannot be imported: {}.", layer.str(), why);
}

Tensor projected(const Tensor& x, const Tensor& kernel, const Tensor& bias) {
  const Tensor y = matmul(x, kernel);
  return bias.defined() ? y + bias : y;
}

}  // namespace oar::keras
