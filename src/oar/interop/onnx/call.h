// What a converter of an ONNX operator sees, and the tables of converters.
//
//   Values gemm(const Call& c) { return {matmul(c.tensor(0), c.tensor(1), c.flag("transA"), c.flag("transB"))}; }
//   constexpr Converter kConverters[] = {{"Gemm", gemm}, …};
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "oar/interop/onnx/model.h"

namespace oar::onnx {

// A value of the graph. Its content is known if it does not depend on an input. The elements of an integer tensor may be
// sizes of other tensors: then they are known as expressions, which is enough for a shape.
struct Item {
  Tensor tensor;
  bool known = false;
  std::optional<std::vector<Dim>> sizes;
  std::optional<std::vector<double>> numbers;  // the content of a known tensor of few elements

  // Tensors that an attribute or a shape could be.
  static constexpr int64_t kFew = 4096;

  Item() = default;
  Item(Tensor t) : tensor(std::move(t)) {}  // what most converters return
  Item(Tensor t, std::vector<Dim> s) : tensor(std::move(t)), sizes(std::move(s)) {}
};
using Values = std::vector<Item>;

class Call {
 public:
  Call(const Node& node, int64_t opset, std::vector<Item> inputs)
      : node(node), opset(opset), inputs_(std::move(inputs)) {}

  const Node& node;
  const int64_t opset;

  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].tensor.defined(); }
  const Item& item(size_t i) const;
  const Tensor& tensor(size_t i) const { return item(i).tensor; }
  // An undefined tensor if it is left out.
  Tensor maybe(size_t i) const { return has(i) ? tensor(i) : Tensor{}; }
  std::vector<Tensor> tensors() const;
  // The content of an input that must be known before a run.
  std::vector<int64_t> integers(size_t i) const;
  std::vector<double> numbers(size_t i) const;
  // … of integers that may depend on the sizes of the model's inputs.
  std::vector<Dim> sizes(size_t i) const;
  std::optional<std::vector<Dim>> maybe_sizes(size_t i) const;

  // Attributes.
  bool given(std::string_view name) const { return node.find(name) != nullptr; }
  int64_t integer(std::string_view name, int64_t otherwise) const;
  bool flag(std::string_view name, bool otherwise = false) const {
    return integer(name, otherwise) != 0;
  }
  double number(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> list(std::string_view name, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> number_list(std::string_view name) const;
  // The axes of a call: an attribute in old versions, an input in newer ones. Nothing if neither is given.
  std::optional<std::vector<int64_t>> axes(size_t input) const;

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  std::vector<Item> inputs_;
};

struct Converter {
  std::string_view op;
  Values (*convert)(const Call&);
  std::string_view domain = "";
};

// One table per family.
std::span<const Converter> elementwise_converters();
std::span<const Converter> shape_converters();
std::span<const Converter> reduction_converters();
std::span<const Converter> network_converters();
std::span<const Converter> recurrent_converters();
std::span<const Converter> resize_converters();
std::span<const Converter> selection_converters();
// Null if no table has the operator.
const Converter* find_converter(std::string_view domain, std::string_view op);

}  // namespace oar::onnx
