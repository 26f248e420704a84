#include "oar/interop/onnx/graph_writer.h"

#include <algorithm>

#include "oar/base/error.h"
#include "oar/interop/onnx/model.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/byte_count.h"

namespace oar::onnx {
namespace {

std::string bytes_of_tensor(const Tensor& t) {
  const Tensor plain = t.is_contiguous() ? t : assign(t);
  return {static_cast<const char*>(plain->data),
          static_cast<size_t>(bytes_of(plain.shape(), plain.dtype()).value())};
}

ProtoWriter proto_of(const Tensor& t) {
  ProtoWriter made;
  for (const Dim d : t.dims()) made.integer(1, d.value());
  made.integer(2, number_of(t.dtype()));
  made.text(9, bytes_of_tensor(t));
  return made;
}

// The numbers of AttributeProto's types.
enum AttributeType : int64_t {
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kInts = 7
};

ProtoWriter proto_of(const std::string& name, const AttributeValue& value) {
  ProtoWriter made;
  made.text(1, name);
  AttributeType type = kInt;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    made.integer(3, *integer);
  } else if (const auto* number = std::get_if<double>(&value)) {
    made.float32(2, static_cast<float>(*number));
    type = kFloat;
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    made.text(4, *text);
    type = kString;
  } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t i : *list) made.integer(8, i);
    type = kInts;
  } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
    made.message(5, proto_of(*tensor));
    type = kTensor;
  } else {
    made.message(6, std::get<std::shared_ptr<const GraphWriter>>(value)->proto());
    type = kGraph;
  }
  made.integer(20, type);
  return made;
}

}  // namespace

std::string Weights::fresh(std::string_view stem) {
  std::string name(stem);
  while (taken.contains(name)) name = format("{}_{}", stem, taken[std::string(stem)]++);
  taken.emplace(name, 1);
  return name;
}

GraphWriter::GraphWriter(std::string name, int64_t version, std::shared_ptr<Weights> weights,
                         GraphWriter* around)
    : opset(version), name_(std::move(name)), weights_(std::move(weights)), around_(around) {}

Names GraphWriter::nodes(std::string_view op, const Names& inputs, const Attributes& attributes,
                         size_t count) {
  Names outputs;
  for (size_t i = 0; i < count; ++i) outputs.push_back(weights_->fresh(op));
  Names given = inputs;
  while (!given.empty() && given.back().empty()) given.pop_back();
  nodes_.push_back({std::string(op), std::move(given), outputs, attributes});
  return outputs;
}

std::string GraphWriter::weight(const Tensor& t, std::string_view name) {
  weights_->list.emplace_back(weights_->fresh(name), t);
  return weights_->list.back().first;
}

std::string GraphWriter::constant(const Tensor& t) {
  constexpr int64_t kShared = 64;  // elements of constants that are worth comparing
  if (t.numel().value() > kShared) return weight(t, "constant");
  const std::string key =
      format("{} {} {}", oar::name_of(t.dtype()), t.shape().str(), bytes_of_tensor(t));
  const auto [found, is_new] = weights_->by_content.try_emplace(key);
  if (is_new) found->second = weight(t, "constant");
  return found->second;
}

std::string GraphWriter::integers(const std::vector<int64_t>& list) {
  return constant(
      Tensor::from_vector(list, Shape{static_cast<int64_t>(list.size())}, DType::Int64));
}

std::string GraphWriter::number(double value, DType dtype) {
  return constant(Tensor::scalar(value, dtype));
}

// ---- sizes -------------------------------------------------------------------------------------

bool GraphWriter::knows(Dim d) const {
  for (const DimTerm& term : terms_of(d))
    for (const DimFactor& f : term.factors) {
      const bool found = f.kind == DimFactor::Symbol ? sources_.contains(f.self.word())
                                                     : knows(f.left) && knows(f.right);
      if (!found && !(around_ && around_->knows(f.self))) return false;
    }
  return true;
}

std::string GraphWriter::size_from(const Source& source) {
  auto [found, is_new] = shapes_.try_emplace(source.name);
  if (is_new) found->second = node("Shape", {source.name});
  return node("Gather", {found->second, integers({source.axis})}, {{"axis", int64_t{0}}});
}

struct GraphWriter::SizeNodes {
  GraphWriter& graph;

  std::string size(Dim d) { return graph.size(d); }
  std::string number(int64_t value) { return graph.integers({value}); }
  std::string symbol(Dim d) {
    const auto own = graph.sources_.find(d.word());
    return own != graph.sources_.end() ? graph.size_from(own->second) : graph.around_->size(d);
  }
  std::string add(const std::string& a, const std::string& b) { return graph.node("Add", {a, b}); }
  std::string multiply(const std::string& a, const std::string& b) {
    return graph.node("Mul", {a, b});
  }
  std::string quotient(const std::string& a, const std::string& b) {  // also below zero
    return graph.node("Div", {graph.node("Sub", {a, remainder(a, b)}), b});
  }
  std::string remainder(const std::string& a, const std::string& b) {
    return graph.node("Mod", {a, b});
  }
  std::string least(const std::string& a, const std::string& b) {
    return graph.node("Min", {a, b});
  }
  std::string most(const std::string& a, const std::string& b) { return graph.node("Max", {a, b}); }
};

std::string GraphWriter::size(Dim d) {
  if (d.is_known()) return integers({d.value()});
  if (around_ && around_->knows(d)) return around_->size(d);
  if (const auto found = sizes_.find(d.word()); found != sizes_.end()) return found->second;
  user_check(knows(d), ErrorKind::Unsupported, "the size {} cannot be computed in the model.",
             d.str());
  SizeNodes nodes{*this};
  std::string made = computed_size(d, nodes);
  return sizes_[d.word()] = std::move(made);
}

std::string GraphWriter::shape(Dims dims) {
  Names parts;
  std::vector<int64_t> known;
  const auto flush = [&] {
    if (!known.empty()) parts.push_back(integers(std::exchange(known, {})));
  };
  for (const Dim d : dims) {
    if (d.is_known()) {
      known.push_back(d.value());
      continue;
    }
    flush();
    parts.push_back(size(d));
  }
  if (parts.empty()) return integers(known);
  flush();
  return parts.size() == 1 ? parts[0] : node("Concat", parts, {{"axis", int64_t{0}}});
}

// ---- values ------------------------------------------------------------------------------------

void GraphWriter::define(const Program& program, ValueId id, const std::string& name) {
  names_[id] = name;
  const Shape& shape = program.type_of(id).shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].is_known()) continue;
    const std::vector<DimTerm> terms = terms_of(shape[i]);
    const bool is_symbol = terms.size() == 1 && terms[0].coefficient == 1 &&
                           terms[0].factors.size() == 1 &&
                           terms[0].factors[0].kind == DimFactor::Symbol;
    if (is_symbol && !knows(shape[i]))
      sources_.emplace(shape[i].word(), Source{name, static_cast<int64_t>(i)});
  }
}

void GraphWriter::add_input(const Program& program, ValueId id, const std::string& name) {
  const std::string unique = weights_->fresh(name);
  inputs_.push_back({unique, program.type_of(id)});
  define(program, id, unique);
}

void GraphWriter::add_port(std::string_view name, const ValueType& type) {
  inputs_.push_back({weights_->fresh(name), type});
}

void GraphWriter::add_output(const ValueType& type, const std::string& value,
                             const std::string& name) {
  outputs_.push_back({name, type});
  nodes_.push_back({"Identity", {value}, {name}, {}});
}

void GraphWriter::add_body(const Program& program) {
  for (const Instruction& call : program.body.instructions) {
    OpCall one(program, call, this, opset);
    write_call(one);
  }
}

// ---- messages ----------------------------------------------------------------------------------

ProtoWriter GraphWriter::proto_of(const Node& node) {
  ProtoWriter made;
  for (const std::string& name : node.inputs) made.text(1, name);
  for (const std::string& name : node.outputs) made.text(2, name);
  made.text(3, node.outputs[0]);
  made.text(4, node.op);
  for (const auto& [name, value] : node.attributes) made.message(5, onnx::proto_of(name, value));
  return made;
}

ProtoWriter GraphWriter::proto_of(const Port& port) {
  ProtoWriter shape;
  for (const Dim d : port.type.shape) {
    ProtoWriter size;
    if (d.is_known())
      size.integer(1, d.value());
    else
      size.text(2, d.str());
    shape.message(1, size);
  }
  ProtoWriter tensor, type, made;
  tensor.integer(1, number_of(port.type.dtype));
  tensor.message(2, shape);
  type.message(1, tensor);
  made.text(1, port.name);
  made.message(2, type);
  return made;
}

// Names that a graph reads, with those of the graphs inside its nodes.
void GraphWriter::collect_read(const Node& node, std::unordered_set<std::string>& read) const {
  read.insert(node.inputs.begin(), node.inputs.end());
  for (const auto& [name, value] : node.attributes)
    if (const auto* inner = std::get_if<std::shared_ptr<const GraphWriter>>(&value))
      for (const Node& one : (*inner)->nodes_) collect_read(one, read);
}

// Nodes whose results nothing reads are left out.
std::vector<bool> GraphWriter::used_nodes() const {
  std::unordered_set<std::string> read;
  for (const Port& port : outputs_) read.insert(port.name);
  std::vector<bool> used(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    const Node& node = nodes_[i];
    used[i] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](const std::string& name) { return read.contains(name); });
    if (used[i]) collect_read(node, read);
  }
  return used;
}

ProtoWriter GraphWriter::proto() const {
  ProtoWriter made;
  const std::vector<bool> used = used_nodes();
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (used[i]) made.message(1, proto_of(nodes_[i]));
  made.text(2, name_);
  for (const Port& port : inputs_) made.message(11, proto_of(port));
  for (const Port& port : outputs_) made.message(12, proto_of(port));
  return made;
}

// ---- a call ------------------------------------------------------------------------------------

std::string OpCall::in(std::string_view name) const {
  const ValueId id = value_of(name);
  return id == kNoValue ? std::string() : graph_->name_of(id);
}

// ---- tables ------------------------------------------------------------------------------------

namespace {

const OpWriter* writer_of(const Op& op) {
  for (const auto table : {elementwise_writers(), shape_writers(), reduction_writers(),
                           network_writers(), selection_writers(), control_writers()})
    for (const OpWriter& w : table)
      if (w.op == op.name()) return &w;
  return nullptr;
}

// A call whose record names its counterpart, with the same operands and nothing else.
bool has_same_form(const Op& op) {
  const auto& parameters = op.schema().parameters;
  const std::string_view name = static_cast<const char*>(op.def().onnx);
  return !name.empty() && std::all_of(parameters.begin(), parameters.end(),
                                      [](const Parameter& p) { return p.type == ArgType::Tensor; });
}

}  // namespace

bool can_be_written(const OpCall& c) {
  if (const OpWriter* w = writer_of(*c.call.op)) return !w->accepts || w->accepts(c);
  return has_same_form(*c.call.op);
}

void write_call(OpCall& c) {
  if (const OpWriter* w = writer_of(*c.call.op)) return w->write(c);
  Names inputs;
  for (const Operand& operand : c.call.operands)
    inputs.push_back(c.graph().name_of(operand.ids[0]));
  c.give(0, c.node(static_cast<const char*>(c.call.op->def().onnx), inputs));
}

}  // namespace oar::onnx
