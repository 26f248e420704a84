// Reductions, sorting, sums along an axis, in PIR's words.
#include "oar/interop/paddle/writer.h"

namespace oar::paddle {
namespace {

List axes_of(const Written& c) {
  List axes;
  if (c.given("axis"))
    axes = c.value("axis").tag == OAR_TAG_INT ? List{c.integer("axis")} : c.list("axis");
  if (axes.empty())
    for (int64_t i = 0; i < c.rank("x"); ++i) axes.push_back(i);
  return axes;
}
FileId as_result(const Written& c) {
  const DType dtype = c.result().dtype;
  return c.type("x").dtype == dtype ? c.in("x") : c.cast(c.in("x"), dtype);
}
// PIR has some axes as an operand and others as an attribute.
void reduce(const Written& c, std::string_view op, bool operand, const FileAttributes& more = {}) {
  const List axes = axes_of(c);
  std::vector<FileOperand> operands{as_result(c)};
  FileAttributes attributes;
  if (operand)
    operands.push_back(FileOperand::constant("axis", axes));
  else
    attributes.push_back(longs_of("axis", axes));
  attributes.insert(attributes.end(), more.begin(), more.end());
  attributes.push_back(flag_of("keepdim", c.flag("keepdim")));
  c.give(c.add(op, operands, c.result(), attributes));
}
void by_operand(const Written& c) { reduce(c, c.call.op->name(), true); }
void by_attribute(const Written& c) { reduce(c, c.call.op->name(), false); }
void sum_op(const Written& c) { reduce(c, "sum", true, {dtype_of("dtype", c.result().dtype)}); }
void prod_op(const Written& c) { reduce(c, "prod", true, {flag_of("reduce_all", false)}); }
void truth_op(const Written& c) { reduce(c, c.call.op->name(), false); }
bool has_axes(const ProgramCall& c) { return c.rank("x") > 0; }

void logsumexp_op(const Written& c) {
  c.give(c.add("logsumexp", {c.in("x")}, c.result(),
               {ints_of("axis", axes_of(c)), flag_of("keepdim", c.flag("keepdim")),
                flag_of("reduce_all", false)}));
}
bool is_float32(const ProgramCall& c) { return has_axes(c) && c.type("x").dtype == DType::Float32; }

void arg_op(const Written& c) {
  const bool flat = !c.given("axis");
  c.give(c.add(
      c.call.op->name(),
      {c.in("x"), FileOperand::constant(
                      "axis", flat ? 0.0 : static_cast<double>(c.axis("axis", "x")), DType::Int64)},
      c.result(),
      {flag_of("keepdims", c.flag("keepdim")), flag_of("flatten", flat),
       dtype_of("dtype", c.result().dtype)}));
}

void softmax_op(const Written& c) {
  c.give(c.add(c.call.op->name(), {as_result(c)}, c.result(), {int_of("axis", c.integer("axis"))}));
}
void cumsum_op(const Written& c) {
  const FileOperand axis =
      FileOperand::constant("axis", static_cast<double>(c.axis("axis", "x")), DType::Int32);
  c.give(c.add("cumsum", {c.in("x"), axis}, c.result(),
               {flag_of("flatten", false), flag_of("exclusive", c.flag("exclusive")),
                flag_of("reverse", c.flag("reverse"))}));
}
void topk_op(const Written& c) {
  const FileOperand k =
      FileOperand::constant("k", static_cast<double>(c.integer("k")), DType::Int32);
  c.give_all(c.writer.add("topk", {c.in("x"), k}, {c.result(0), c.result(1)},
                          {int_of("axis", c.axis("axis", "x")),
                           flag_of("largest", c.flag("largest")), flag_of("sorted", true)}));
}
bool knows_count(const ProgramCall& c) { return Dim::from_word(c.integer("k")).is_known(); }
void sort_op(const Written& c) {
  c.give_all(c.writer.add("argsort", {c.in("x")}, {c.result(0), c.result(1)},
                          {int_of("axis", c.axis("axis", "x")),
                           flag_of("descending", c.flag("descending")), flag_of("stable", true)}));
}

constexpr OpWriter kWriters[] = {
    {"mean", by_operand, has_axes},
    {"sum", sum_op, has_axes},
    {"max", by_operand, has_axes},
    {"min", by_operand, has_axes},
    {"prod", prod_op, has_axes},
    {"amax", by_attribute, has_axes},
    {"amin", by_attribute, has_axes},
    {"any", truth_op, has_axes},
    {"all", truth_op, has_axes},
    {"logsumexp", logsumexp_op, is_float32},
    {"argmax", arg_op},
    {"argmin", arg_op},
    {"softmax", softmax_op},
    {"log_softmax", softmax_op},
    {"cumsum_along", cumsum_op},
    {"topk_along", topk_op, knows_count},
    {"sort_with_indices", sort_op},
};

}  // namespace

std::span<const OpWriter> reduction_writers() { return kWriters; }

}  // namespace oar::paddle
