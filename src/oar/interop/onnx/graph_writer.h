// A graph as it is written to a file, and what a writer of an op sees of a call.
//
//   void write_rsqrt(OpCall& c) { c.give(0, c.node("Reciprocal", {c.node("Sqrt", {c.in("x")})})); }
//   constexpr OpWriter kWriters[] = {{"rsqrt", write_rsqrt}, …};
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "oar/interop/program_call.h"
#include "oar/interop/proto_writer.h"

namespace oar::onnx {

class GraphWriter;
using Names = std::vector<std::string>;
using AttributeValue = std::variant<int64_t, double, std::string, std::vector<int64_t>, Tensor,
                                    std::shared_ptr<const GraphWriter>>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

// What all graphs of a model share: weights and constants, which inner graphs see, too.
struct Weights {
  std::vector<std::pair<std::string, Tensor>> list;
  std::unordered_map<std::string, std::string> by_content;  // small ones
  std::unordered_map<std::string, int> taken;               // names
  std::map<std::string, int64_t> domains;

  std::string fresh(std::string_view stem);
};

class GraphWriter {
 public:
  GraphWriter(std::string name, int64_t opset, std::shared_ptr<Weights> weights,
              GraphWriter* around = nullptr);

  const int64_t opset;
  Weights& weights() { return *weights_; }
  const std::shared_ptr<Weights>& shared_weights() const { return weights_; }

  // The names of its results.
  Names nodes(std::string_view op, const Names& inputs, const Attributes& attributes, size_t count);
  std::string node(std::string_view op, const Names& inputs, const Attributes& attributes = {}) {
    return nodes(op, inputs, attributes, 1)[0];
  }
  std::string constant(const Tensor& t);
  std::string weight(const Tensor& t, std::string_view name);
  std::string integers(const std::vector<int64_t>& list);
  std::string number(double value, DType dtype);

  // A size as an int64 tensor of one element; sizes as one of several.
  std::string size(Dim d);
  std::string shape(Dims dims);

  // Values of the program that is being written.
  void define(const Program& program, ValueId id, const std::string& name);
  const std::string& name_of(ValueId id) const { return names_.at(id); }
  void add_input(const Program& program, ValueId id, const std::string& name);
  void add_port(std::string_view name, const ValueType& type);  // an input that nothing reads
  // Values that `write` defines are those of another program: their numbers mean nothing here.
  template <class F>
  std::string aside(F&& write) {
    const auto own = std::exchange(names_, {});
    std::string made = write();
    names_ = own;
    return made;
  }
  void add_output(const ValueType& type, const std::string& value, const std::string& name);
  void add_body(const Program& program);

  ProtoWriter proto() const;

 private:
  struct Node {
    std::string op;
    Names inputs, outputs;
    Attributes attributes;
  };
  struct Port {
    std::string name;
    ValueType type;
  };
  struct Source {
    std::string name;
    int64_t axis;
  };
  static ProtoWriter proto_of(const Node& node);
  static ProtoWriter proto_of(const Port& port);
  void collect_read(const Node& node, std::unordered_set<std::string>& read) const;
  std::vector<bool> used_nodes() const;
  bool knows(Dim d) const;
  std::string size_from(const Source& source);
  struct SizeNodes;

  std::string name_;
  std::shared_ptr<Weights> weights_;
  GraphWriter* around_;
  std::vector<Node> nodes_;
  std::vector<Port> inputs_, outputs_;
  std::unordered_map<ValueId, std::string> names_;
  std::unordered_map<int64_t, Source> sources_;          // by the word of a symbol
  std::unordered_map<int64_t, std::string> sizes_;       // … of an expression
  std::unordered_map<std::string, std::string> shapes_;  // by the name of a value
};

// A call of the program, and the graph that it is written to.
class OpCall : public ProgramCall {
 public:
  OpCall(const Program& program, const Instruction& call, GraphWriter* graph, int64_t opset)
      : ProgramCall(program, call), opset(opset), graph_(graph) {}

  const int64_t opset;
  GraphWriter& graph() const { return *graph_; }

  std::string in(std::string_view name) const;  // "" if it is left out

  // Nodes.
  std::string node(std::string_view op, const Names& inputs, const Attributes& a = {}) const {
    return graph_->node(op, inputs, a);
  }
  std::string number_like(double value, std::string_view operand) const {
    return graph_->number(value, type(operand).dtype);
  }
  void give(size_t result, const std::string& name) const {
    graph_->define(program, call.results[result], name);
  }

 private:
  GraphWriter* graph_;
};

struct OpWriter {
  std::string_view op;
  void (*write)(OpCall&);
  // Null: always. Without it a call is written as its parts.
  bool (*accepts)(const OpCall&) = nullptr;
};

// One table per family.
std::span<const OpWriter> elementwise_writers();
std::span<const OpWriter> shape_writers();
std::span<const OpWriter> reduction_writers();
std::span<const OpWriter> network_writers();
std::span<const OpWriter> selection_writers();
std::span<const OpWriter> control_writers();

// Can the call be written as it is?
bool can_be_written(const OpCall& call);
void write_call(OpCall& call);

}  // namespace oar::onnx
