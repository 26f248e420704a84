// Elements chosen by index or by a condition, in PIR's words.
#include <algorithm>

#include "oar/interop/paddle/writer.h"

namespace oar::paddle {
namespace {

// Rows of an axis; the index is a line there.
void select(const Written& c, FileId index, const List& index_shape, int64_t axis) {
  if (index_shape.size() != 1) index = c.reshaped(index, {-1});
  const FileType from = c.type_in("x");
  FileType type = from;
  type.shape.at(static_cast<size_t>(axis)) = c.writer.type_of(index).shape.at(0);
  const bool line = index_shape.size() == 1;
  const FileId made =
      c.add("index_select", {c.in("x"), index}, line ? c.result() : type, {int_of("axis", axis)});
  if (line) return c.give(made);
  const Shape& to = c.result_type().shape;
  if (to.empty())
    return c.give(c.add("squeeze", {made, FileOperand::constant("axis", {0})}, c.result()));
  c.give(c.add("reshape", {made, c.writer.sizes("shape", to)}, c.result()));
}
void index_select_op(const Written& c) {
  select(c, c.in("index"), c.type_in("index").shape, c.axis("axis", "x"));
}
void embedding_op(const Written& c) {
  c.give(c.add("embedding", {c.in("x"), c.in("weight")}, c.result(),
               {long_of("padding_idx", c.integer("padding_idx")), flag_of("sparse", false)}));
}
void gather_nd_op(const Written& c) {
  c.give(c.add("gather_nd", {c.in("x"), c.in("index")}, c.result()));
}
void take_along_op(const Written& c) {
  c.give(c.add("take_along_axis", {c.in("x"), c.in("index")}, c.result(),
               {int_of("axis", c.axis("axis", "x"))}));
}
void put_along_op(const Written& c) {
  c.give(c.add("put_along_axis", {c.in("x"), c.in("index"), c.in("value")}, c.result(),
               {int_of("axis", c.axis("axis", "x")), text_of("reduce", c.text("reduce")),
                flag_of("include_self", c.flag("include_self"))}));
}

// One index, perhaps after whole axes: its axis, else -1.
int64_t only_axis(const ProgramCall& c) {
  const std::vector<ValueId> ids = c.values("indices");
  int64_t axis = -1;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] == kNoValue) continue;
    if (axis >= 0 || !is_integral(c.program.type_of(ids[i]).dtype)) return -1;
    axis = static_cast<int64_t>(i);
  }
  return axis;
}
// Indices of the first axes, without a gap and of one shape.
bool index_first_axes(const ProgramCall& c) {
  const std::vector<ValueId> ids = c.values("indices");
  return !ids.empty() && std::all_of(ids.begin(), ids.end(), [&](ValueId id) {
    if (id == kNoValue || !is_integral(c.program.type_of(id).dtype)) return false;
    return c.program.type_of(id).shape == c.program.type_of(ids[0]).shape;
  });
}
bool can_take(const ProgramCall& c) { return only_axis(c) >= 0 || index_first_axes(c); }
void index_take_op(const Written& c) {
  if (const int64_t axis = only_axis(c); axis >= 0) {
    const ValueId id = c.values("indices")[static_cast<size_t>(axis)];
    const FileId given = c.writer.id_of(id);
    // Indices may count from the end here, and may not there.
    const DType dtype = c.writer.type_of(given).dtype;
    const FileType type{dtype, c.writer.type_of(given).shape};
    FileId size = c.writer.size(c.type("x").shape[static_cast<size_t>(axis)]);
    if (dtype != DType::Int64) size = c.cast(size, dtype);
    return select(c, c.add("remainder", {given, size}, type), type.shape, axis);
  }
  std::vector<FileId> columns;
  FileType one{DType::Int64, c.writer.type_of_value(c.values("indices")[0]).shape};
  one.shape.push_back(1);
  for (const ValueId id : c.values("indices"))
    columns.push_back(c.add(
        "unsqueeze",
        {c.cast(c.writer.id_of(id), DType::Int64), FileOperand::constant("axis", {-1})}, one));
  FileType all = one;
  all.shape.back() = static_cast<int64_t>(columns.size());
  const FileId index =
      c.add("concat",
            {FileOperand::list(columns), FileOperand::constant("axis", -1.0, DType::Int32)}, all);
  c.give(c.add("gather_nd", {c.in("x"), index}, c.result()));
}

void nonzero_op(const Written& c) { c.give(c.add("nonzero", {c.in("x")}, c.result())); }
void masked_select_op(const Written& c) {
  c.give(c.add("masked_select", {c.in("x"), c.in("mask")}, c.result()));
}
bool has_same_shape(const ProgramCall& c) { return c.type("x").shape == c.type("mask").shape; }
void one_hot_op(const Written& c) {
  const FileOperand count = FileOperand::constant(
      "num_classes", static_cast<double>(c.integer("num_classes")), DType::Int32);
  c.give(c.add("one_hot", {c.in("x"), count}, c.result()));
}
bool is_usual_one_hot(const ProgramCall& c) {
  return Dim::from_word(c.integer("num_classes")).is_known() &&
         c.result_type().dtype == DType::Float32;
}

constexpr OpWriter kWriters[] = {
    {"index_select", index_select_op},
    {"embedding_lookup", embedding_op},
    {"gather_nd", gather_nd_op},
    {"take_along", take_along_op},
    {"put_along", put_along_op},
    {"index_take", index_take_op, can_take},
    {"nonzero", nonzero_op},
    {"masked_select", masked_select_op, has_same_shape},
    {"one_hot", one_hot_op, is_usual_one_hot},
};

}  // namespace

std::span<const OpWriter> selection_writers() { return kWriters; }

}  // namespace oar::paddle
