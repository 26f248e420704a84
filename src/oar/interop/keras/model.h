// Models of Keras as plain structs: layers, what each is called with, and weights.
//
// Keras 2, Keras 3 and TensorFlow.js write one thing in three ways; here it is in one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "oar/interop/json_value.h"
#include "oar/tensor/tensor.h"

namespace oar::keras {

// Tensors with the paths that a file gives them, those of one layer or of everything in it.
class Weights {
 public:
  struct Entry {
    std::vector<std::string>
        path;  // "forward_layer", "cell", "vars", "0", or "forward_lstm", "lstm_cell", "kernel"
    Tensor tensor;
  };

  enum Kind : uint8_t {
    Placed,   // paths are made of attributes and numbers, as Keras 3 writes them
    Ordered,  // of names, and the order is that of the layers
    Named,    // of names alone
  };

  Weights() = default;
  Weights(std::vector<Entry> entries, Kind kind) : entries_(std::move(entries)), kind_(kind) {}

  Kind kind() const { return kind_; }
  bool by_place() const { return kind_ == Placed; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Those below any of these names.
  Weights below(const std::vector<std::string_view>& names) const;
  // The weight of this name, or else the one at this place of its layer, where that is known; undefined if there is none.
  Tensor find(std::string_view name, size_t place) const;

 private:
  std::vector<Entry> entries_;
  Kind kind_ = Named;
};

// A tensor that a call of a layer made: the layer, the number of the call, the number of the result.
struct Reference {
  std::string layer;
  int64_t call = 0, result = 0;
};

// What a layer is called with: a tensor, a list, or a value of the configuration.
struct Argument {
  std::variant<JsonValue, Reference, std::vector<Argument>> content;

  const Reference* reference() const { return std::get_if<Reference>(&content); }
  const std::vector<Argument>* list() const { return std::get_if<std::vector<Argument>>(&content); }
  const JsonValue* value() const { return std::get_if<JsonValue>(&content); }
};

struct LayerCall {
  std::vector<Argument> arguments;
  std::map<std::string, Argument, std::less<>> named;
};

struct Model;

struct Layer {
  std::string type, name;    // "Dense", "dense_1"
  bool is_function = false;  // of keras.ops or TensorFlow, called in place of a layer
  JsonValue config;
  int version = 3;  // of Keras, which changed some defaults
  Weights weights;
  std::shared_ptr<Model> model;  // if it is one
  std::vector<LayerCall> calls;

  std::string str() const;  // "Dense 'dense_1'"
};

// A weight with its axes in another order is made once, whatever asks for it.
class TurnedWeights {
 public:
  Tensor turned(const Tensor& weight, const std::vector<int64_t>& order);

 private:
  std::mutex mutex_;
  std::map<std::pair<const void*, std::vector<int64_t>>, std::pair<Tensor, Tensor>> made_;
};

struct Model {
  std::string name;
  std::vector<Layer> layers;
  std::map<std::string, size_t> places;  // of layers, by name
  std::vector<Reference> inputs, outputs;
  std::vector<std::string> output_keys;  // of a dictionary of outputs
  std::shared_ptr<TurnedWeights> turned;

  const Layer* find(const std::string& layer) const;
};

// A model, or a layer inside of another one, from {"class_name": …, "config": …}.
// `version`: of the Keras that wrote it.
Layer parse_layer(const JsonValue& json, int version, int depth = 0);
Model parse_model(const JsonValue& json, int version, int depth = 0);
bool is_model_type(std::string_view type);
// What Keras 3 calls the weights of a class: "LSTMCell" has "lstm_cell".
std::string name_of_group(std::string_view type);
// Gives each layer its part of the weights.
void share_out(Model& model, const Weights& weights);

}  // namespace oar::keras
