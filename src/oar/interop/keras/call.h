// What a converter of a layer of Keras sees, and the tables of converters.
//
//   Items elu_of(const Call& c) { return {elu(c.tensor(), c.number("alpha", 1))}; }
//   constexpr Converter kConverters[] = {{"ELU", elu_of}, …};
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "oar/interop/keras/model.h"

namespace oar::keras {

// A tensor, and which of its steps count: bool[batch, steps], or undefined if all do.
struct Item {
  Tensor tensor, mask;

  Item() = default;
  Item(Tensor t) : tensor(std::move(t)) {}  // what most converters return
  Item(Tensor t, Tensor m) : tensor(std::move(t)), mask(std::move(m)) {}
};
using Items = std::vector<Item>;

// Arguments as a call of a layer gives them: lists of tensors are kept apart from other values.
struct Given {
  Items items;  // tensors, in order
  bool is_list = false;
  JsonValue value;  // if it is no tensor
};
using NamedGiven = std::map<std::string, Given, std::less<>>;

class Call {
 public:
  Call(const Layer& of, std::vector<Given> arguments, NamedGiven named, TurnedWeights& turned);

  const Layer& layer;

  // Tensors of all arguments by place, one after the other.
  size_t count() const { return items_.size(); }
  const Items& items() const { return items_; }
  const Item& item(size_t i = 0) const;
  const Tensor& tensor(size_t i = 0) const { return item(i).tensor; }
  std::vector<Tensor> tensors() const;
  const std::vector<Given>& arguments() const { return arguments_; }
  // An argument by name; null if it is not given.
  const Given* named(std::string_view name) const;
  const NamedGiven& all_named() const { return named_; }

  // The configuration. `null` is as good as nothing.
  const JsonValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  int64_t integer(std::string_view key, int64_t otherwise) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  std::string text(std::string_view key, std::string_view otherwise = "") const;
  // One number stands for a list of one.
  std::vector<int64_t> list(std::string_view key) const;
  // For each axis of a window.
  std::vector<int64_t> list(std::string_view key, size_t axes, int64_t otherwise) const;
  std::vector<double> numbers(std::string_view key) const;
  bool channels_first() const { return text("data_format") == "channels_first"; }
  // An axis of a tensor, from 0 on.
  int64_t axis(int64_t given, const Tensor& of) const;

  // Weights, in the order in which the layer keeps them.
  Tensor weight(std::string_view name) const;
  Tensor maybe_weight(std::string_view name) const;
  Tensor turned(const Tensor& weight, const std::vector<int64_t>& order) const;
  // A layer inside of this one: what Keras calls it, and how the file may name its weights, if not as the layer.
  Layer inner(const JsonValue& json, const std::vector<std::string_view>& attributes,
              const std::vector<std::string_view>& names = {}) const;
  Items run(const Layer& layer, const Items& inputs, const NamedGiven& named = {}) const;
  // A part of this layer that has weights of its own: what Keras calls it, and its name.
  Call part(const std::vector<std::string_view>& names) const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  std::vector<Given> arguments_;
  NamedGiven named_;
  Items items_;
  TurnedWeights& turned_;
  Weights weights_;
  mutable size_t taken_ = 0;
};

struct Converter {
  std::string_view type;
  Items (*convert)(const Call&);
  enum Masks : uint8_t {
    Drops,   // what it makes has no mask
    Passes,  // it has that of the first input
    Own,     // the converter decides
  } masks = Drops;
};

std::span<const Converter> core_converters();
std::span<const Converter> window_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> merge_converters();
std::span<const Converter> normalisation_converters();
std::span<const Converter> recurrent_converters();
std::span<const Converter> attention_converters();
std::span<const Converter> preparation_converters();
// Of functions that are called in place of layers, by their last name: "add", "relu", "getitem".
std::span<const Converter> function_converters();
// Null if no table has it.
const Converter* find_converter(const Layer& layer);

// A function of elements, from its name or from {"class_name": …, "config": …}; nothing is the identity.
Tensor activate(const Call& c, const Tensor& x, const JsonValue* activation);
// The function of this name.
Tensor activate_function(const Call& c, const Tensor& x, std::string_view name);
// The layer's own: "activation".
Tensor activated(const Call& c, const Tensor& x);
// x * kernel + bias over the last axis.
Tensor projected(const Tensor& x, const Tensor& kernel, const Tensor& bias);

// Runs a layer, whatever it is.
Items run_layer(const Layer& layer, std::vector<Given> arguments, NamedGiven named,
                TurnedWeights& turned);
Items run_model(const Model& model, const Items& inputs, TurnedWeights& turned);

}  // namespace oar::keras
