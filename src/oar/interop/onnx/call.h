// What a converter of an ONNX operator sees, and the tables of converters.
//
//   Values gemm(const Call& c) { return {matmul(c.tensor(0), c.tensor(1), c.flag("transA"), c.flag("transB"))}; }
//   constexpr Converter kConverters[] = {{"Gemm", gemm}, …};
#pragma once

#include <functional>
#include <memory>
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
  // A sequence: its elements are known, one by one. An optional without an element is a sequence of none.
  std::shared_ptr<const std::vector<Item>> sequence;
  bool is_none = false;
  int64_t number = 0;  // of an input's dtype in ONNX, if Oar holds it as another one

  // Tensors that an attribute or a shape could be.
  static constexpr int64_t kFew = 4096;

  Item() = default;
  Item(Tensor t) : tensor(std::move(t)) {}  // what most converters return
  Item(Tensor t, std::vector<Dim> s) : tensor(std::move(t)), sizes(std::move(s)) {}
};
using Values = std::vector<Item>;

// Runs a graph inside a node on values: those of the outer graphs are visible to it.
struct Surroundings {
  std::function<Values(const Graph&, const Values& inputs)> run_graph;
  // Records the calls of a function in the program.
  std::function<Values(const std::function<Values()>&)> captured;
  // A constant.
  std::function<Item(const Tensor&)> known;
  // Whether no program is made: nodes run one after the other, and everything is known.
  bool steps = false;
};

class Call {
 public:
  Call(const Node& node, int64_t opset, std::vector<Item> inputs, const Surroundings& around)
      : node(node), opset(opset), around_(around), inputs_(std::move(inputs)) {}

  const Node& node;
  const int64_t opset;
  // For nodes with graphs.
  Values run_graph(const Graph& graph, const Values& inputs) const {
    return around_.run_graph(graph, inputs);
  }
  Values captured(const std::function<Values()>& body) const { return around_.captured(body); }
  bool steps() const { return around_.steps; }
  Item known(int64_t number) const { return around_.known(Tensor::scalar(number, DType::Int64)); }
  Item known(bool truth) const {
    return around_.known(Tensor::scalar(int64_t{truth}, DType::Bool));
  }
  // The graph that is an attribute.
  const Graph& graph(std::string_view name) const;

  size_t count() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].tensor.defined(); }
  bool has_item(size_t i) const { return has(i) || (i < inputs_.size() && inputs_[i].sequence); }
  const Values& sequence(size_t i) const;
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
  std::vector<int64_t> list(std::string_view name,
                            const std::vector<int64_t>& otherwise = {}) const;
  std::vector<double> number_list(std::string_view name) const;
  // The axes of a call: an attribute in old versions, an input in newer ones. Nothing if neither is given.
  std::optional<std::vector<int64_t>> axes(size_t input) const;

  // The same node with other inputs.
  Call with(std::vector<Item> inputs) const { return {node, opset, std::move(inputs), around_}; }

  [[noreturn]] void refuse(std::string_view why) const;

 private:
  const Surroundings& around_;
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
std::span<const Converter> control_converters();
std::span<const Converter> sequence_converters();
std::span<const Converter> attention_converters();
std::span<const Converter> signal_converters();
std::span<const Converter> detection_converters();
std::span<const Converter> training_converters();
std::span<const Converter> contrib_converters();
std::span<const Converter> contrib_attention_converters();
std::span<const Converter> contrib_quantised_converters();
std::span<const Converter> tree_converters();
// Null if no table has the operator.
const Converter* find_converter(std::string_view domain, std::string_view op);

}  // namespace oar::onnx
