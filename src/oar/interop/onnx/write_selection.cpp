// Elements chosen by index or by a condition, as nodes.
#include "oar/interop/onnx/graph_writer.h"
#include "oar/interop/onnx/model.h"

namespace oar::onnx {
namespace {

std::string cast_node(OpCall& c, const std::string& x, DType dtype) {
  return c.node("Cast", {x}, {{"to", number_of(dtype)}});
}
// Indices of ONNX are int32 or int64.
std::string index_of(OpCall& c, std::string_view name) {
  const DType dtype = c.type(name).dtype;
  if (dtype == DType::Int64 || dtype == DType::Int32) return c.in(name);
  return cast_node(c, c.in(name), DType::Int64);
}
std::string as_int64(OpCall& c, std::string_view name) {
  return c.type(name).dtype == DType::Int64 ? c.in(name) : cast_node(c, c.in(name), DType::Int64);
}

void write_index_select(OpCall& c) {
  c.give(0, c.node("Gather", {c.in("x"), index_of(c, "index")}, {{"axis", c.integer("axis")}}));
}
void write_embedding(OpCall& c) {
  const std::string rows =
      c.node("Gather", {c.in("weight"), index_of(c, "x")}, {{"axis", int64_t{0}}});
  const int64_t padding = c.integer("padding_idx");
  if (padding < 0) return c.give(0, rows);
  const std::string is_padding = c.node(
      "Unsqueeze", {c.node("Equal", {c.in("x"), c.number_like(static_cast<double>(padding), "x")}),
                    c.graph().integers({-1})});
  c.give(0, c.node("Where", {is_padding, c.number_like(0, "weight"), rows}));
}
void write_gather_nd(OpCall& c) {
  c.give(0, c.node("GatherND", {c.in("x"), as_int64(c, "index")}));
}
void write_take_along(OpCall& c) {
  c.give(0, c.node("GatherElements", {c.in("x"), index_of(c, "index")},
                   {{"axis", c.integer("axis")}}));
}
bool keeps_old(const OpCall& c) { return c.flag("include_self"); }
void write_put_along(OpCall& c) {
  const std::string how = c.text("reduce");
  c.give(0, c.node("ScatterElements", {c.in("x"), index_of(c, "index"), c.in("value")},
                   {{"axis", c.integer("axis")},
                    {"reduction", std::string(how == "assign" ? "none" : how)}}));
}

// Positions along the first axes, stacked as the last axis of one tensor.
std::string stacked(OpCall& c, std::string_view name) {
  const std::vector<ValueId> ids = c.values(name);
  Shape shape;
  for (const ValueId id : ids) {
    const Shape& own = c.program.type_of(id).shape;
    if (own.size() >= shape.size()) shape = own;
  }
  GraphWriter& g = c.graph();
  Names columns;
  for (const ValueId id : ids) {
    std::string column = cast_node(c, g.name_of(id), DType::Int64);
    if (!(c.program.type_of(id).shape == shape))
      column = c.node("Expand", {column, g.shape(shape)});
    columns.push_back(c.node("Unsqueeze", {column, g.integers({-1})}));
  }
  return columns.size() == 1 ? columns[0] : c.node("Concat", columns, {{"axis", int64_t{-1}}});
}
// Indices of the first axes, without a gap, one of which has the shape that all broadcast to.
bool index_first_axes(const OpCall& c) {
  Shape widest;
  const std::vector<ValueId> ids = c.values("indices");
  for (const ValueId id : ids) {
    if (id == kNoValue || !is_integral(c.program.type_of(id).dtype)) return false;
    const Shape& own = c.program.type_of(id).shape;
    if (own.size() >= widest.size()) widest = own;
  }
  return !ids.empty();
}
// One index, perhaps after whole axes: its axis, else -1.
int64_t only_axis(const OpCall& c) {
  const std::vector<ValueId> ids = c.values("indices");
  int64_t axis = -1;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kNoValue) continue;
    if (axis >= 0 || !is_integral(c.program.type_of(ids[i]).dtype)) return -1;
    axis = static_cast<int64_t>(i);
  }
  return axis;
}
bool can_take(const OpCall& c) { return only_axis(c) >= 0 || index_first_axes(c); }
void write_index_take(OpCall& c) {
  if (const int64_t axis = only_axis(c); axis >= 0) {
    const ValueId id = c.values("indices")[static_cast<size_t>(axis)];
    const std::string index = cast_node(c, c.graph().name_of(id), DType::Int64);
    return c.give(0, c.node("Gather", {c.in("x"), index}, {{"axis", axis}}));
  }
  c.give(0, c.node("GatherND", {c.in("x"), stacked(c, "indices")}));
}
void write_index_put(OpCall& c) {
  const std::string index = stacked(c, "indices");
  const auto depth = c.values("indices").size();
  // The updates have the shape of the indices and of the axes after them.
  Shape shape;
  for (const ValueId id : c.values("indices")) {
    const Shape& own = c.program.type_of(id).shape;
    if (own.size() >= shape.size()) shape = own;
  }
  const Shape& x = c.type("x").shape;
  for (size_t i = depth; i < x.size(); ++i) shape.push_back(x[i]);
  const std::string value = c.type("value").shape == shape
                                ? c.in("value")
                                : c.node("Expand", {c.in("value"), c.graph().shape(shape)});
  c.give(0, c.node("ScatterND", {c.in("x"), index, value},
                   {{"reduction", std::string(c.flag("accumulate") ? "add" : "none")}}));
}

void write_nonzero(OpCall& c) {
  c.give(0, c.node("Transpose", {c.node("NonZero", {c.in("x")})},
                   {{"perm", std::vector<int64_t>{1, 0}}}));
}
void write_masked_select(OpCall& c) {
  GraphWriter& g = c.graph();
  const std::string line = g.integers({-1});
  const bool fits = c.type("x").shape == c.type("mask").shape;
  const std::string mask =
      fits ? c.in("mask") : c.node("Expand", {c.in("mask"), g.shape(c.type("x").shape)});
  c.give(0,
         c.node("Compress", {c.node("Reshape", {c.in("x"), line}), c.node("Reshape", {mask, line})},
                {{"axis", int64_t{0}}}));
}
bool has_same_rank(const OpCall& c) { return c.rank("x") >= c.rank("mask"); }
void write_one_hot(OpCall& c) {
  GraphWriter& g = c.graph();
  const DType dtype = c.result_type().dtype;
  const std::string both =
      g.constant(Tensor::from_vector(std::vector<double>{0, 1}, Shape{2}, dtype));
  c.give(0, c.node("OneHot",
                   {as_int64(c, "x"), g.size(Dim::from_word(c.integer("num_classes"))), both},
                   {{"axis", int64_t{-1}}}));
}

constexpr OpWriter kWriters[] = {
    {"index_select", write_index_select},
    {"embedding_lookup", write_embedding},
    {"gather_nd", write_gather_nd},
    {"take_along", write_take_along},
    {"put_along", write_put_along, keeps_old},
    {"index_take", write_index_take, can_take},
    {"index_put", write_index_put, index_first_axes},
    {"nonzero", write_nonzero},
    {"masked_select", write_masked_select, has_same_rank},
    {"one_hot", write_one_hot},
};

}  // namespace

std::span<const OpWriter> selection_writers() { return kWriters; }

}  // namespace oar::onnx
