// What a converter of an operator of TensorFlow sees, and the tables of converters.
//
//   Items square_of(const Call& c) { return {square(c.tensor(0))}; }
//   constexpr Converter kConverters[] = {{"Square", square_of}, …};
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/tensorflow/graph_def.h"

namespace oar::tensorflow {

// A value of the graph. Its content is known if it does not depend on what a run computes.
struct Item {
  Tensor tensor;
  bool known = false;
  bool dead = false;                                      // of a branch that is not taken
  std::shared_ptr<const std::vector<std::string>> texts;  // a tensor of texts
  std::shared_ptr<const std::vector<Item>> list;          // a list of tensors
  std::string variable;                                   // the name of one

  Item() = default;
  Item(Tensor t) : tensor(std::move(t)) {}  // what most converters return
  bool defined() const { return tensor.defined() || texts || list || !variable.empty(); }
};
using Items = std::vector<Item>;

// What a converter may ask of the run that its node is part of.
class Around {
 public:
  virtual ~Around() = default;
  virtual Items call_function(const std::string& name, const Items& arguments) = 0;
  virtual bool has_function(const std::string& name) const = 0;
  // For nodes that lead: computes at once if `known`, else as part of the program.
  virtual Items compute(const Node& node, bool known, const std::function<Items()>& body) = 0;
  // A weight: a state of the program, under this name.
  virtual Item constant(const std::string& name, const Tensor& tensor) = 0;
  virtual Item variable(const std::string& name) = 0;
  virtual void assign(const std::string& name, const Item& value) = 0;
  // The variable with this key in the model's checkpoint.
  virtual Tensor restored(const std::string& key) = 0;  // undefined if it is no tensor of numbers
  // Whether variables get their values now.
  virtual bool restores() const = 0;
  // A constant with its axes in another order, which all programs of the model share.
  virtual Tensor turned(const Tensor& constant, const std::vector<int64_t>& order) = 0;
  // False while a program is made: then what a run computes is not known, not even its sizes.
  virtual bool steps() const = 0;
};

class Call {
 public:
  Call(const Node& of, Items inputs, Around& run)
      : node(of), around(run), inputs_(std::move(inputs)) {}

  const Node& node;
  Around& around;

  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].tensor.defined(); }
  const Item& item(size_t i) const;
  const Tensor& tensor(size_t i) const;
  Tensor maybe(size_t i) const { return has(i) ? tensor(i) : Tensor{}; }
  const Items& items() const { return inputs_; }
  // Those from `first` on, without the last `less`.
  std::vector<Tensor> tensors(size_t first = 0, size_t less = 0) const;
  bool known(size_t i) const { return item(i).known; }
  // The content of an input that must be known before a run.
  const Tensor& constant(size_t i) const;
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> numbers(size_t i) const;
  int64_t integer(size_t i) const;
  double number(size_t i) const;
  // An axis of an input, from 0 on.
  int64_t axis(int64_t given, size_t input = 0) const;
  std::vector<int64_t> axes(size_t i, size_t input = 0) const;

  // Attributes.
  const Attribute* attribute(std::string_view name) const { return node.find(name); }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name) const { return integer(name, 0) != 0; }
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise = "") const;
  std::vector<int64_t> list(std::string_view name) const;
  DType dtype(std::string_view name) const;
  DType dtype(std::string_view name, DType otherwise) const;

  [[noreturn]] void refuse(std::string_view why) const;
  // For what only a run step by step can do.
  void need_steps(std::string_view why) const;

 private:
  Items inputs_;
};

struct Converter {
  std::string_view op;
  Items (*convert)(const Call&);
  enum Kind : uint8_t {
    Computes,
    Sizes,  // its result depends on the sizes of its inputs alone
    Leads,  // it calls functions, or moves values: nothing that it does itself is part of the program
    Notes,     // it has no result, and is never run
    Writes,    // it gives a variable a value
    Branches,  // of its results one is dead
    Merges,    // it takes what is not dead
  } kind = Computes;
  // The names of its outputs, if there are several that are no list.
  std::string_view outputs = "";
};

std::span<const Converter> elementwise_converters();
std::span<const Converter> reduction_converters();
std::span<const Converter> network_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> selection_converters();
std::span<const Converter> control_converters();
std::span<const Converter> list_converters();
// Null if no table has the operator.
const Converter* find_converter(std::string_view op);

std::vector<Dim> dims_of(const Call& c, const std::vector<int64_t>& sizes);

}  // namespace oar::tensorflow
