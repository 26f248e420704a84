// Paddle's .pdparams, .pdopt and .pdstate files: pickles of dictionaries, lists, numbers, text and arrays.
//
// A pickle can name any function and have it called. This reader knows the few names that arrays and plain containers need, and
// rejects every other one: a file from a stranger can be wrong, but it cannot do anything. Nothing is read beyond its end, and
// neither depth nor size is without limit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/safetensors.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// A value of a state dict: nothing, a bool, a number, text, a tensor, a list, or values by name.
class StateTree {
 public:
  using List = std::vector<StateTree>;
  using Dict = std::vector<std::pair<std::string, StateTree>>;  // in the order of the file

  StateTree() = default;
  StateTree(bool value) : value_(value) {}
  StateTree(int value) : value_(int64_t{value}) {}
  StateTree(int64_t value) : value_(value) {}
  StateTree(uint64_t value);
  StateTree(double value) : value_(value) {}
  StateTree(const char* value) : value_(std::string(value)) {}
  StateTree(std::string value) : value_(std::move(value)) {}
  StateTree(Tensor value) : value_(std::move(value)) {}
  StateTree(List value) : value_(std::move(value)) {}
  StateTree(Dict value) : value_(std::move(value)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_text() const { return std::holds_alternative<std::string>(value_); }

  // An error if it is something else. Integers are numbers, too.
  bool boolean() const;
  int64_t integer() const;
  uint64_t word() const;  // from 0 to 2^64 - 1
  double number() const;
  // A temporary hands its content over, so that a loop over what a function returns is safe.
  const std::string& text() const&;
  std::string text() && { return static_cast<const StateTree&>(*this).text(); }
  const Tensor& tensor() const&;
  Tensor tensor() && { return static_cast<const StateTree&>(*this).tensor(); }
  const List& list() const&;
  List list() && { return static_cast<const StateTree&>(*this).list(); }
  const Dict& dict() const&;
  Dict dict() && { return static_cast<const StateTree&>(*this).dict(); }

  // Of a dictionary: a value by its name, an error if it is not there, and whether it is.
  const StateTree& at(std::string_view name) const&;
  StateTree at(std::string_view name) && { return static_cast<const StateTree&>(*this).at(name); }
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  const StateTree* find(std::string_view name) const;
  // Adds a value, or replaces the one of this name.
  void set(std::string name, StateTree value);

  // "a dictionary", for messages.
  const char* kind() const;
  // The content, whatever it is.
  const auto& content() const { return value_; }

 private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Tensor, List, Dict>
      value_;
};

StateTree parse_pickle(std::string_view file);
StateTree load_pickle(const std::string& path);
std::string to_pickle(const StateTree& value);
// A tensor as files have it: in the memory of the CPU, in C order.
Tensor as_written(const Tensor& tensor);
// Replaces the file as a whole.
void save_pickle(const std::string& path, const StateTree& value);

// Named tensors as Paddle's state dicts have them. `names` are those of the parameters, if they differ.
StateTree pickled_state(const NamedTensors& tensors,
                        const std::map<std::string, std::string>& names = {});
// … and back; an error if there is something else in the dictionary.
NamedTensors tensors_in(const StateTree& state);

}  // namespace oar
