// Shapes, slices, joins, new tensors, in PIR's words.
#include <algorithm>
#include <limits>

#include "oar/interop/paddle/writer.h"
#include "oar/ops/core/view.h"

namespace oar::paddle {
namespace {

FileOperand whole(std::string_view attribute, int64_t value, DType dtype = DType::Int32) {
  return FileOperand::constant(attribute, static_cast<double>(value), dtype);
}

// Sizes that stay are 0 and one that follows from the others is -1, so that most shapes are constants.
void reshape_op(const Written& c) {
  const Shape &from = c.type("x").shape, &to = c.result_type().shape;
  if (to.empty()) {  // a legacy file cannot name the shape of a number
    List axes(from.size());
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    if (axes.empty()) return c.give(c.in("x"));
    return c.give(c.add("squeeze", {c.in("x"), FileOperand::constant("axis", axes)}, c.result()));
  }
  List plain;
  size_t open = 0;
  bool zero = false;
  for (size_t i = 0; i < to.size(); ++i) {
    zero |= to[i] == Dim(0);
    const bool stays = to[i].is_symbolic() && i < from.size() && from[i] == to[i];
    open += to[i].is_symbolic() && !stays;
    plain.push_back(to[i].is_known() ? to[i].value() : stays ? 0 : -1);
  }
  const bool fits = open <= 1 && !zero;
  c.give(
      c.add("reshape",
            {c.in("x"), fits ? FileOperand::constant("shape", plain) : c.writer.sizes("shape", to)},
            c.result()));
}
void transpose_op(const Written& c) {
  List perm = c.list("perm");
  for (int64_t& axis : perm) axis += axis < 0 ? c.rank("x") : 0;
  c.give(c.add("transpose", {c.in("x")}, c.result(), {ints_of("perm", perm)}));
}
void broadcast_op(const Written& c) {
  // Elementwise ops broadcast by themselves.
  const ValueId made = c.call.results[0];
  if (c.writer.only_broadcast(made)) return c.writer.stand_for(made, c.in("x"));
  std::vector<Dim> shape(Dims(c.result_type().shape).begin(), Dims(c.result_type().shape).end());
  const Shape& from = c.type("x").shape;
  const size_t before = shape.size() - from.size();
  for (size_t i = before; i < shape.size(); ++i)
    if (shape[i] == from[i - before] && shape[i].is_symbolic()) shape[i] = Dim(-1);
  if (shape.empty()) return c.give(c.in("x"));
  c.give(c.add("expand", {c.in("x"), c.writer.sizes("shape", shape)}, c.result()));
}
void concat_op(const Written& c) {
  c.give(c.add("concat", {FileOperand::list(c.all_in("x")), whole("axis", c.integer("axis"))},
               c.result()));
}
void stack_op(const Written& c) {
  c.give(c.add("stack", {FileOperand::list(c.all_in("x"))}, c.result(),
               {int_of("axis", c.integer("axis"))}));
}
void split_op(const Written& c) {
  std::vector<FileType> types;
  for (size_t i = 0; i < c.call.results.size(); ++i) types.push_back(c.result(i));
  const int64_t axis = c.axis("axis", "x");
  c.give_all(c.writer.add_list(
      "split",
      {c.in("x"), FileOperand::constant("sections", c.list("sections")), whole("axis", axis)},
      types, {}));
}

// ---- slices --------------------------------------------------------------------------------------

constexpr int64_t kEnd = std::numeric_limits<int32_t>::max();  // of any axis, in both formats

std::vector<Dim> clamped(std::vector<Dim> ends) {
  for (Dim& d : ends)
    if (d.is_known()) d = Dim(std::clamp(d.value(), -kEnd, kEnd));
  return ends;
}
void slice_op(const Written& c) {
  const Cut cut = cut_of(c);
  FileType type = c.result();
  for (auto axis = cut.added.rbegin(); axis != cut.added.rend(); ++axis)
    type.shape.erase(type.shape.begin() + *axis);
  FileId made = c.in("x");
  const bool plain =
      std::all_of(cut.steps.begin(), cut.steps.end(), [](int64_t step) { return step == 1; });
  const FileOperand starts = c.writer.sizes("starts", cut.starts),
                    ends = c.writer.sizes("ends", clamped(cut.ends));
  if (!cut.axes.empty() && plain) {
    made = c.add("slice", {made, starts, ends}, type,
                 {longs_of("axes", cut.axes), longs_of("infer_flags", List(cut.axes.size(), 1)),
                  longs_of("decrease_axis", cut.dropped)});
  } else if (!cut.axes.empty()) {
    FileType all{type.dtype, List(static_cast<size_t>(c.rank("x")), 1)};
    size_t next = 0;
    for (size_t i = 0; i < all.shape.size(); ++i)
      if (std::find(cut.dropped.begin(), cut.dropped.end(), static_cast<int64_t>(i)) ==
          cut.dropped.end())
        all.shape[i] = type.shape.at(next++);
    made = c.add("strided_slice", {made, starts, ends, FileOperand::constant("strides", cut.steps)},
                 all, {ints_of("axes", cut.axes)});
    if (!cut.dropped.empty())
      made = c.add("squeeze", {made, FileOperand::constant("axis", cut.dropped)}, type);
  }
  if (!cut.added.empty())
    made = c.add("unsqueeze", {made, FileOperand::constant("axis", cut.added)}, c.result());
  c.give(made);
}
void slice_put_op(const Written& c) {
  const Cut cut = cut_of(c);
  c.give(
      c.add("set_value_with_tensor",
            {c.in("x"), c.in("value"), c.writer.sizes("starts", cut.starts),
             c.writer.sizes("ends", clamped(cut.ends)), FileOperand::constant("steps", cut.steps)},
            c.result(),
            {longs_of("axes", cut.axes), longs_of("decrease_axes", cut.dropped),
             longs_of("none_axes", cut.added)}));
}
bool puts_forwards(const ProgramCall& c) {
  const Cut cut = cut_of(c);
  return c.type("x").dtype == c.type("value").dtype && !cut.axes.empty() && cut.added.empty() &&
         std::all_of(cut.steps.begin(), cut.steps.end(), [](int64_t step) { return step > 0; });
}

void flip_op(const Written& c) {
  c.give(c.add("flip", {c.in("x")}, c.result(), {ints_of("axis", c.list("axis"))}));
}
void tile_op(const Written& c) {
  c.give(c.add("tile", {c.in("x"), c.writer.sizes("repeat_times", c.sizes("repeat_times"))},
               c.result()));
}
void pad_op(const Written& c) {
  const FileOperand value = FileOperand::constant("pad_value", c.number("value"), c.result().dtype);
  c.give(c.add("pad", {c.in("x"), value}, c.result(), {ints_of("paddings", c.list("paddings"))}));
}
bool pads_known(const ProgramCall& c) { return c.are_known("paddings") && c.rank("x") > 0; }

// ---- new tensors -----------------------------------------------------------------------------------

void filled(const Written& c, double value) {
  FileType type = c.result();
  const bool number = type.shape.empty();
  if (number) type.shape = {1};
  const std::vector<Dim> one{Dim(1)};
  FileId made = c.add("full_with_tensor",
                      {FileOperand::constant("value", value, type.dtype),
                       c.writer.sizes("shape", number ? Dims(one) : Dims(c.result_type().shape))},
                      type, {dtype_of("dtype", type.dtype)});
  if (number) made = c.add("squeeze", {made, FileOperand::constant("axis", {0})}, c.result());
  c.give(made);
}
void full_op(const Written& c) { filled(c, c.number("fill_value")); }
void zeros_op(const Written& c) { filled(c, 0); }
void ones_op(const Written& c) { filled(c, 1); }

// The product of sizes, as a number.
void product_op(const Written& c) {
  Dim product = 1;
  for (const Dim d : c.sizes("sizes")) product = product * d;
  FileId made = c.writer.size(product);
  if (c.result().dtype != DType::Int64) made = c.cast(made, c.result().dtype);
  c.give(c.add("squeeze", {made, FileOperand::constant("axis", {0})}, c.result()));
}
// Numbers that may be sizes.
FileId scalar_of(const Written& c, const char* name) {
  const Value& v = c.value(name);
  const DType dtype = c.result().dtype;
  if (v.tag != OAR_TAG_INT || Dim::from_word(v.as_int()).is_known())
    return c.writer.number(c.number(name), dtype);
  const FileId made = c.writer.size(Dim::from_word(v.as_int()));
  return dtype == DType::Int64 ? made : c.cast(made, dtype);
}
void range_op(const Written& c) {
  c.give(c.add("arange", {scalar_of(c, "start"), scalar_of(c, "end"), scalar_of(c, "step")},
               c.result(), {dtype_of("dtype", c.result().dtype)}));
}
void triangle_op(const Written& c) {
  c.give(c.add(c.call.op->name(), {c.in("x")}, c.result(),
               {int_of("diagonal", c.integer("diagonal"))}));
}
void diagonal_op(const Written& c) {
  c.give(c.add("diagonal", {c.in("x")}, c.result(),
               {int_of("offset", c.integer("offset")), int_of("axis1", c.integer("axis1")),
                int_of("axis2", c.integer("axis2"))}));
}

constexpr OpWriter kWriters[] = {
    {"reshape", reshape_op},
    {"squeeze", reshape_op},
    {"unsqueeze", reshape_op},
    {"flatten", reshape_op},
    {"transpose", transpose_op},
    {"broadcast_to", broadcast_op, nullptr, false, true},
    {"expand", broadcast_op, nullptr, false, true},
    {"concat", concat_op},
    {"stack", stack_op},
    {"split_sections", split_op},
    {"slice_view", slice_op},
    {"slice_put", slice_put_op, puts_forwards},
    {"flip", flip_op},
    {"tile", tile_op},
    {"pad_constant", pad_op, pads_known},
    {"full", full_op},
    {"full_like", full_op},
    {"zeros", zeros_op},
    {"zeros_like", zeros_op},
    {"ones", ones_op},
    {"ones_like", ones_op},
    {"product_of", product_op},
    {"range", range_op},
    {"tril", triangle_op},
    {"triu", triangle_op},
    {"diagonal", diagonal_op},
};

}  // namespace

std::span<const OpWriter> shape_writers() { return kWriters; }

}  // namespace oar::paddle
