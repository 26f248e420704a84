// Reductions, normalisations over axes, products, as nodes.
#include "oar/interop/onnx/graph_writer.h"
#include "oar/interop/onnx/model.h"

namespace oar::onnx {
namespace {

std::vector<int64_t> all_axes(const OpCall& c) {
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.rank("x"); ++i) axes.push_back(i);
  return axes;
}
std::vector<int64_t> axes_of(const OpCall& c) {
  if (!c.given("axis")) return all_axes(c);
  std::vector<int64_t> axes =
      c.value("axis").tag == OAR_TAG_INT ? std::vector{c.integer("axis")} : c.list("axis");
  return axes.empty() ? all_axes(c) : axes;
}

// Axes are an attribute before version 18, except those of ReduceSum.
std::string reduced(OpCall& c, std::string_view op, const std::string& x,
                    const std::vector<int64_t>& axes, bool keep) {
  if (axes.empty()) return x;  // a number
  const auto kept = std::pair<std::string, AttributeValue>("keepdims", int64_t{keep});
  if (c.opset >= 18 || op == "ReduceSum") return c.node(op, {x, c.graph().integers(axes)}, {kept});
  return c.node(op, {x}, {kept, {"axes", axes}});
}
std::string cast_node(OpCall& c, const std::string& x, DType dtype) {
  return c.node("Cast", {x}, {{"to", number_of(dtype)}});
}
// Computes in the dtype of the result.
template <char kind>
void write_reduction(OpCall& c) {
  constexpr const char* op = kind == 's'   ? "ReduceSum"
                             : kind == 'm' ? "ReduceMean"
                             : kind == 'p' ? "ReduceProd"
                             : kind == 'x' ? "ReduceMax"
                             : kind == 'n' ? "ReduceMin"
                                           : "ReduceLogSumExp";
  const DType dtype = c.result_type().dtype;
  const std::string x = c.type("x").dtype == dtype ? c.in("x") : cast_node(c, c.in("x"), dtype);
  c.give(0, reduced(c, op, x, axes_of(c), c.flag("keepdim")));
}
// Whether any or all elements are true: the largest or smallest as a number.
template <bool all>
void write_truth(OpCall& c) {
  const std::string truth =
      c.type("x").dtype == DType::Bool ? c.in("x") : cast_node(c, c.in("x"), DType::Bool);
  const std::string made =
      reduced(c, all ? "ReduceMin" : "ReduceMax", cast_node(c, truth, DType::Int32), axes_of(c),
              c.flag("keepdim"));
  c.give(0, cast_node(c, made, DType::Bool));
}
template <bool largest>
void write_arg(OpCall& c) {
  const char* op = largest ? "ArgMax" : "ArgMin";
  std::string made;
  if (c.given("axis")) {
    made = c.node(op, {c.in("x")},
                  {{"axis", c.integer("axis")}, {"keepdims", int64_t{c.flag("keepdim")}}});
  } else {
    const std::string line = c.node("Reshape", {c.in("x"), c.graph().integers({-1})});
    made = c.node(op, {line}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}});
    made = c.node("Reshape", {made, c.graph().shape(c.result_type().shape)});
  }
  const DType dtype = c.result_type().dtype;
  c.give(0, dtype == DType::Int64 ? made : cast_node(c, made, dtype));
}

template <bool logarithm>
void write_softmax(OpCall& c) {
  const DType dtype = c.result_type().dtype;
  const std::string x = c.type("x").dtype == dtype ? c.in("x") : cast_node(c, c.in("x"), dtype);
  c.give(0, c.node(logarithm ? "LogSoftmax" : "Softmax", {x}, {{"axis", c.integer("axis")}}));
}
void write_cumsum(OpCall& c) {
  const std::string axis = c.graph().number(static_cast<double>(c.integer("axis")), DType::Int64);
  c.give(0, c.node("CumSum", {c.in("x"), axis},
                   {{"exclusive", int64_t{c.flag("exclusive")}},
                    {"reverse", int64_t{c.flag("reverse")}}}));
}

std::string turned(OpCall& c, std::string_view name, bool turn) {
  const int64_t rank = c.rank(name);
  if (!turn || rank < 2) return c.in(name);
  std::vector<int64_t> perm;
  for (int64_t i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(rank) - 1], perm[static_cast<size_t>(rank) - 2]);
  return c.node("Transpose", {c.in(name)}, {{"perm", perm}});
}
void write_matmul(OpCall& c) {
  c.give(0, c.node("MatMul",
                   {turned(c, "x", c.flag("transpose_x")), turned(c, "y", c.flag("transpose_y"))}));
}
void write_linear(OpCall& c) {
  if (c.rank("x") == 2 && c.rank("weight") == 2 && c.has("bias"))
    return c.give(0, c.node("Gemm", {c.in("x"), c.in("weight"), c.in("bias")}));
  const std::string product = c.node("MatMul", {c.in("x"), c.in("weight")});
  c.give(0, c.has("bias") ? c.node("Add", {product, c.in("bias")}) : product);
}
void write_einsum(OpCall& c) {
  Names inputs;
  for (const ValueId id : c.values("operands")) inputs.push_back(c.graph().name_of(id));
  c.give(0, c.node("Einsum", inputs, {{"equation", c.text("equation")}}));
}

// Weight and bias are those of a row; LayerNormalization needs the weight.
void write_layer_norm(OpCall& c) {
  const int64_t axis = c.axis("begin_axis", "x");
  const Shape& shape = c.type("x").shape;
  const Shape row(Dims(shape).subspan(static_cast<size_t>(axis)));
  GraphWriter& g = c.graph();
  const auto as_row = [&](const char* name) {
    if (c.rank(name) == row.rank()) return c.in(name);
    return c.node("Reshape", {c.in(name), g.shape(row)});
  };
  const std::string weight =
      c.has("weight") ? as_row("weight") : c.node("Expand", {c.number_like(1, "x"), g.shape(row)});
  const Names made =
      g.nodes("LayerNormalization", {c.in("x"), weight, c.has("bias") ? as_row("bias") : ""},
              {{"axis", axis}, {"epsilon", c.number("epsilon")}}, 3);
  c.give(0, made[0]);
  // The statistics have one element per row; ONNX keeps the axes.
  for (const size_t i : {1, 2})
    c.give(i, c.node("Reshape", {made[i], g.shape(c.result_type(i).shape)}));
}
bool has_float_statistics(const OpCall& c) { return c.type("x").dtype == DType::Float32; }

// Groups are the channels of an InstanceNormalization.
void write_group_norm(OpCall& c) {
  const Shape& shape = c.type("x").shape;
  const int64_t groups = c.integer("groups") == 0 ? shape[1].value() : c.integer("groups");
  GraphWriter& g = c.graph();
  const std::string grouped = c.node("Reshape", {c.in("x"), g.integers({0, groups, -1})});
  const auto all = [&](double v) {
    return g.constant(Tensor::from_vector(std::vector<double>(static_cast<size_t>(groups), v),
                                          Shape{groups}, c.type("x").dtype));
  };
  std::string made = c.node("InstanceNormalization", {grouped, all(1), all(0)},
                            {{"epsilon", c.number("epsilon")}});
  made = c.node("Reshape", {made, c.node("Shape", {c.in("x")})});
  std::vector<int64_t> channel(shape.size(), 1);
  channel[1] = -1;
  const std::string line = g.integers(channel);
  if (c.has("weight")) made = c.node("Mul", {made, c.node("Reshape", {c.in("weight"), line})});
  if (c.has("bias")) made = c.node("Add", {made, c.node("Reshape", {c.in("bias"), line})});
  c.give(0, made);
}
bool knows_channels(const OpCall& c) {
  return c.integer("groups") != 0 || c.type("x").shape[1].is_known();
}

void write_topk(OpCall& c) {
  const Names made =
      c.graph().nodes("TopK", {c.in("x"), c.graph().size(Dim::from_word(c.integer("k")))},
                      {{"axis", c.integer("axis")}, {"largest", int64_t{c.flag("largest")}}}, 2);
  for (const size_t i : {0, 1}) c.give(i, made[i]);
}
void write_sort(OpCall& c) {
  const Dim size = c.type("x").shape[static_cast<size_t>(c.axis("axis", "x"))];
  const Names made =
      c.graph().nodes("TopK", {c.in("x"), c.graph().size(size)},
                      {{"axis", c.integer("axis")}, {"largest", int64_t{c.flag("descending")}}}, 2);
  for (const size_t i : {0, 1}) c.give(i, made[i]);
}

constexpr OpWriter kWriters[] = {
    {"sum", write_reduction<'s'>},
    {"mean", write_reduction<'m'>},
    {"prod", write_reduction<'p'>},
    {"max", write_reduction<'x'>},
    {"min", write_reduction<'n'>},
    {"amax", write_reduction<'x'>},
    {"amin", write_reduction<'n'>},
    {"logsumexp", write_reduction<'l'>},
    {"any", write_truth<false>},
    {"all", write_truth<true>},
    {"argmax", write_arg<true>},
    {"argmin", write_arg<false>},
    {"softmax", write_softmax<false>},
    {"log_softmax", write_softmax<true>},
    {"cumsum_along", write_cumsum},
    {"matmul", write_matmul},
    {"linear", write_linear},
    {"einsum", write_einsum},
    {"layer_norm_rows", write_layer_norm, has_float_statistics},
    {"group_norm_rows", write_group_norm, knows_channels},
    {"topk_along", write_topk},
    {"sort_with_indices", write_sort},
};

}  // namespace

std::span<const OpWriter> reduction_writers() { return kWriters; }

}  // namespace oar::onnx
