// Shapes, slices, joins, new tensors, as nodes.
#include "oar/interop/onnx/graph_writer.h"
#include "oar/interop/onnx/model.h"

namespace oar::onnx {
namespace {

// Sizes that stay are 0 and one that follows from the others is -1, so that most shapes are constants.
void write_reshape(OpCall& c) {
  const Shape &from = c.type("x").shape, &to = c.result_type().shape;
  std::vector<int64_t> plain;
  size_t open = 0;
  bool empty = false;
  for (size_t i = 0; i < to.size(); ++i) {
    empty |= to[i] == Dim(0);
    if (to[i].is_known())
      plain.push_back(to[i].value());
    else if (i < from.size() && from[i] == to[i])
      plain.push_back(0);
    else
      plain.push_back(open++ == 0 ? -1 : 0);
  }
  const bool fits = open <= 1 && !empty;
  c.give(0, c.node("Reshape", {c.in("x"), fits ? c.graph().integers(plain) : c.graph().shape(to)},
                   fits ? Attributes{} : Attributes{{"allowzero", int64_t{1}}}));
}
void write_transpose(OpCall& c) {
  std::vector<int64_t> perm = c.list("perm");
  for (int64_t& axis : perm) axis += axis < 0 ? c.rank("x") : 0;
  c.give(0, c.node("Transpose", {c.in("x")}, {{"perm", perm}}));
}
void write_broadcast(OpCall& c) {
  c.give(0, c.node("Expand", {c.in("x"), c.graph().shape(c.result_type().shape)}));
}
void write_concat(OpCall& c) {
  Names parts;
  for (const ValueId id : c.values("x")) parts.push_back(c.graph().name_of(id));
  c.give(0, c.node("Concat", parts, {{"axis", c.integer("axis")}}));
}
void write_split(OpCall& c) {
  const int64_t axis = c.axis("axis", "x");
  std::vector<Dim> parts;
  for (size_t i = 0; i < c.call.results.size(); ++i)
    parts.push_back(c.result_type(i).shape[static_cast<size_t>(axis)]);
  const Names made =
      c.graph().nodes("Split", {c.in("x"), c.graph().shape(parts)}, {{"axis", axis}}, parts.size());
  for (size_t i = 0; i < made.size(); ++i) c.give(i, made[i]);
}

void write_slice_view(OpCall& c) {
  const Cut cut = cut_of(c);
  GraphWriter& g = c.graph();
  std::string made = c.in("x");
  if (!cut.axes.empty())
    made = c.node("Slice", {made, g.shape(cut.starts), g.shape(cut.ends), g.integers(cut.axes),
                            g.integers(cut.steps)});
  if (!cut.dropped.empty()) made = c.node("Squeeze", {made, g.integers(cut.dropped)});
  if (!cut.added.empty()) made = c.node("Unsqueeze", {made, g.integers(cut.added)});
  c.give(0, made);
}
void write_flip(OpCall& c) {
  const std::vector<int64_t> axes = c.list("axis");
  const size_t count = axes.size();
  GraphWriter& g = c.graph();
  c.give(0, c.node("Slice", {c.in("x"), g.integers(std::vector<int64_t>(count, -1)),
                             g.integers(std::vector<int64_t>(count, INT64_MIN + 1)),
                             g.integers(axes), g.integers(std::vector<int64_t>(count, -1))}));
}

void write_tile(OpCall& c) {
  std::vector<Dim> times = c.sizes("repeat_times");
  GraphWriter& g = c.graph();
  std::string x = c.in("x");
  const auto rank = static_cast<size_t>(c.rank("x"));
  if (times.size() > rank) {  // axes of size 1 before the others
    std::vector<int64_t> fresh;
    for (size_t i = 0; i < times.size() - rank; ++i) fresh.push_back(static_cast<int64_t>(i));
    x = c.node("Unsqueeze", {x, g.integers(fresh)});
  }
  while (times.size() < rank) times.insert(times.begin(), Dim(1));
  c.give(0, c.node("Tile", {x, g.shape(times)}));
}

// (before, after) for each axis, as ONNX has them: all starts, then all ends.
std::string pads_of(OpCall& c) {
  const std::vector<Dim> both = c.sizes("paddings");
  std::vector<Dim> pads;
  for (const size_t part : {0, 1})
    for (size_t i = part; i < both.size(); i += 2) pads.push_back(both[i]);
  return c.graph().shape(pads);
}
void write_pad_constant(OpCall& c) {
  c.give(0, c.node("Pad", {c.in("x"), pads_of(c), c.number_like(c.number("value"), "x")},
                   {{"mode", std::string("constant")}}));
}
void write_pad_edges(OpCall& c) {
  const std::string mode = c.text("mode");
  const std::string kind = mode == "replicate" ? "edge" : mode == "circular" ? "wrap" : mode;
  c.give(0, c.node("Pad", {c.in("x"), pads_of(c)}, {{"mode", kind}}));
}
bool has_mode(const OpCall& c) { return c.text("mode") != "circular" || c.opset >= 19; }

// One number in a whole tensor.
void write_filled(OpCall& c, double value) {
  const ValueType& type = c.result_type();
  c.give(0, c.node("Expand", {c.graph().number(value, type.dtype), c.graph().shape(type.shape)}));
}
void write_full(OpCall& c) { write_filled(c, c.number("fill_value")); }
void write_zeros(OpCall& c) { write_filled(c, 0); }
void write_ones(OpCall& c) { write_filled(c, 1); }
// The product of sizes, as a number.
void write_product_of(OpCall& c) {
  Dim product = 1;
  for (const Dim d : c.sizes("sizes")) product = product * d;
  GraphWriter& g = c.graph();
  const std::string number = c.node("Squeeze", {g.size(product), g.integers({0})});
  c.give(0, c.node("Cast", {number}, {{"to", number_of(c.result_type().dtype)}}));
}
// Numbers that may be sizes.
std::string scalar_of(OpCall& c, std::string_view name) {
  const Value& v = c.value(name);
  GraphWriter& g = c.graph();
  if (v.tag != OAR_TAG_INT || Dim::from_word(v.as_int()).is_known())
    return g.number(c.number(name), c.result_type().dtype);
  const std::string number =
      c.node("Squeeze", {g.size(Dim::from_word(v.as_int())), g.integers({0})});
  return c.node("Cast", {number}, {{"to", number_of(c.result_type().dtype)}});
}
void write_range(OpCall& c) {
  c.give(0, c.node("Range", {scalar_of(c, "start"), scalar_of(c, "end"), scalar_of(c, "step")}));
}
// The axes of the diagonal last, in one; its elements are a step of one row and one column apart.
void write_diagonal(OpCall& c) {
  const int64_t rank = c.rank("x"), a = c.axis("axis1", "x"), b = c.axis("axis2", "x");
  std::vector<int64_t> perm, shape;
  for (int64_t i = 0; i < rank; ++i)
    if (i != a && i != b) perm.push_back(i);
  perm.insert(perm.end(), {a, b});
  const Dim columns = c.type("x").shape[static_cast<size_t>(b)];
  const int64_t offset = c.integer("offset");
  const Dim first = offset >= 0 ? Dim(offset) : columns * -offset,
            count = c.result_type().shape[static_cast<size_t>(rank) - 2];
  GraphWriter& g = c.graph();
  const std::string turned = c.node("Transpose", {c.in("x")}, {{"perm", perm}});
  std::vector<int64_t> lines(static_cast<size_t>(rank) - 2, 0);
  lines.push_back(-1);
  const std::string flat = c.node("Reshape", {turned, g.integers(lines)});
  const std::string step = g.size(columns + 1);
  const std::string end = g.size(first + (columns + 1) * count);
  c.give(0, c.node("Slice", {flat, g.size(first), end, g.integers({-1}), step}));
}
template <bool upper>
void write_triangle(OpCall& c) {
  const std::string k = c.graph().number(static_cast<double>(c.integer("diagonal")), DType::Int64);
  c.give(0, c.node("Trilu", {c.in("x"), k}, {{"upper", int64_t{upper}}}));
}

constexpr OpWriter kWriters[] = {
    {"reshape", write_reshape},
    {"squeeze", write_reshape},
    {"unsqueeze", write_reshape},
    {"flatten", write_reshape},
    {"transpose", write_transpose},
    {"broadcast_to", write_broadcast},
    {"expand", write_broadcast},
    {"concat", write_concat},
    {"split_sections", write_split},
    {"slice_view", write_slice_view},
    {"flip", write_flip},
    {"tile", write_tile},
    {"pad_constant", write_pad_constant},
    {"pad_edges", write_pad_edges, has_mode},
    {"full", write_full},
    {"full_like", write_full},
    {"zeros", write_zeros},
    {"zeros_like", write_zeros},
    {"ones", write_ones},
    {"ones_like", write_ones},
    {"product_of", write_product_of},
    {"range", write_range},
    {"diagonal", write_diagonal},
    {"triu", write_triangle<true>},
    {"tril", write_triangle<false>},
};

}  // namespace

std::span<const OpWriter> shape_writers() { return kWriters; }

}  // namespace oar::onnx
