// What a converter of an op of Paddle sees, and the tables of converters.
//
//   Values conv(const Call& c) { return {conv2d(c.tensor(0), c.tensor(1), {}, c.list("strides"))}; }
//   constexpr Converter kConverters[] = {{"conv2d", conv}, …};
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/paddle/model.h"

namespace oar::paddle {

// A value of the program: a tensor, or a list of them. Its content is known if it does not depend on an input. The elements
// of an integer tensor may be sizes of other tensors: then they are known as expressions, which is enough for a shape.
struct Item {
  Tensor tensor;
  bool known = false;
  std::optional<std::vector<Dim>> sizes;
  std::optional<std::vector<double>> numbers;  // the content of a known tensor of few elements
  bool is_list = false;
  std::vector<Item> list;

  // Tensors that an attribute or a shape could be.
  static constexpr int64_t kFew = 4096;

  Item() = default;
  Item(Tensor t) : tensor(std::move(t)) {}  // what most converters return
  Item(Tensor t, std::optional<std::vector<Dim>> s) : tensor(std::move(t)), sizes(std::move(s)) {}
  static Item of_list(std::vector<Item> items);
  bool given() const { return is_list || tensor.defined(); }
};
using Values = std::vector<Item>;

class Call {
 public:
  Call(const Node& node, std::vector<Item> inputs) : node(node), inputs_(std::move(inputs)) {}

  const Node& node;

  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].given(); }
  const Item& item(size_t i) const;
  const Tensor& tensor(size_t i) const;
  // An undefined tensor if it is left out.
  Tensor maybe(size_t i) const { return has(i) ? tensor(i) : Tensor{}; }
  // An operand that is a list; one tensor is a list of one.
  std::vector<Item> items(size_t i) const;
  std::vector<Tensor> tensors(size_t i) const;
  std::optional<std::vector<Dim>> maybe_sizes(size_t i) const;

  // What newer programs have as an operand and others as an attribute. An operand must be known before a run, or, for
  // sizes, depend on the sizes of the inputs alone.
  std::vector<Dim> sizes(size_t i, std::string_view attribute) const;
  std::vector<int64_t> integers(size_t i, std::string_view attribute) const;
  int64_t integer(size_t i, std::string_view attribute, int64_t otherwise) const;
  double number(size_t i, std::string_view attribute, double otherwise) const;

  // Attributes.
  bool given(std::string_view name) const { return node.find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const {
    return integer(name, otherwise) != 0;
  }
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> list(std::string_view name,
                            const std::vector<int64_t>& otherwise = {}) const;
  std::vector<double> number_list(std::string_view name) const;
  // Nothing if the file leaves it open.
  std::optional<DType> dtype(std::string_view name) const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  std::vector<Item> inputs_;
};

struct Converter {
  std::string_view op;
  Values (*convert)(const Call&);
};

// One table per family.
std::span<const Converter> elementwise_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> selection_converters();
std::span<const Converter> reduction_converters();
std::span<const Converter> network_converters();
std::span<const Converter> recurrent_converters();
// Null if no table has the op.
const Converter* find_converter(std::string_view op);

// Sizes as an int64 tensor, which a run computes.
Tensor as_tensor(const std::vector<Dim>& sizes, DType dtype = DType::Int64);

}  // namespace oar::paddle
