// A module of TorchScript that runs: its parameters as inputs, what it returns as outputs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/graph_model.h"
#include "oar/interop/json_value.h"
#include "oar/interop/pytorch/machine.h"
#include "oar/interop/pytorch/torchscript/archive.h"

namespace oar::pytorch {

// Which arguments a call gives: an input of the model where `input` is set, else a value or a container of others.
struct Arranged {
  enum Kind : uint8_t { Input, None, Bool, Int, Float, Text, List, Tuple, Dict };
  Kind kind = None;
  int64_t integer = 0;
  double number = 0;
  std::string text;
  std::vector<Arranged> items;  // of a dictionary: keys and values in turn
  size_t input = 0;
  Type type;  // of the parameter, as far as it is known
};

struct Arrangement {
  std::vector<std::pair<std::string, Arranged>> arguments;  // by the names of parameters
  std::vector<interop::Port> inputs;
};

// What all arrangements of a model share.
class ScriptModel : public std::enable_shared_from_this<ScriptModel> {
 public:
  explicit ScriptModel(std::unique_ptr<Archive> archive);

  // Tensors and numbers without a default are inputs, tuples of them too; a list has one entry.
  interop::GraphModel graph();
  // The arguments as JSON: {"args": […], "kwargs": {…}}, with {"tensor": true} for each tensor.
  interop::GraphModel arranged(std::string_view arguments);
  NamedTensors weights() const;

 private:
  interop::GraphModel model_of(Arrangement arrangement);
  Program import(const Arrangement& arrangement, const std::vector<Tensor>& like);
  std::vector<Tensor> steps(const Arrangement& arrangement, const std::vector<Tensor>& inputs);
  std::vector<Value> results_of(Machine& machine, const Archive::Copy& copy,
                                const Arrangement& arrangement, const std::vector<Value>& inputs);
  void check_writes(const Program& program);
  Value of_tensor(Machine& machine, const Tensor& tensor) const;

  const std::unique_ptr<Archive> archive_;
  const Function& forward_;
  std::map<const void*, std::string> names_;  // of tensors
  std::mutex mutex_;
  bool changed_ = false;  // it keeps something between runs that no program does
  std::optional<std::set<const void*>> written_;  // tensors that each program writes
  std::vector<std::string> outputs_;
  std::map<std::string, interop::GraphModel> arranged_;
};

// The inputs of a call that gives all parameters without a default.
Arrangement flat_arrangement(const Function& forward);
Arrangement arrangement_in(const Function& forward, const JsonValue& arguments);
// Names of what a function returns, as far as its type tells.
std::vector<std::string> names_of_results(const Type& type);

}  // namespace oar::pytorch
