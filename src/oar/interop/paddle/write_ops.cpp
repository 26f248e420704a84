// Oar's ops as those of PIR.
#include <algorithm>

#include "oar/interop/paddle/writer.h"

namespace oar::paddle {
namespace {

using List = std::vector<int64_t>;

std::string dialect(std::string_view op) { return "1." + std::string(op); }

void unary(const Written& c, std::string_view op) {
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result()));
}
void binary(const Written& c, std::string_view op) {
  c.define(c.writer.add(dialect(op), {c.operand("x"), c.operand("y")}, c.result()));
}
void same(const Written& c, std::string_view) { c.define(c.operand("x")); }

PirId scaled(const Written& c, PirId x, const PirType& type, double by, double bias = 0) {
  return c.writer.add("1.scale", {x, c.writer.number(by)}, type,
                      {float_attribute("bias", bias), flag_attribute("bias_after_scale", true)});
}
void negated(const Written& c, std::string_view) {
  c.define(scaled(c, c.operand("x"), c.result(), -1));
}
void scale_op(const Written& c, std::string_view) {
  if (!c.flag("bias_after_scale")) c.refuse("it adds before it multiplies");
  c.define(scaled(c, c.operand("x"), c.result(), c.attribute("scale").as_scalar().to_double(),
                  c.attribute("bias").as_scalar().to_double()));
}
void with_number(const Written& c, std::string_view op, const char* parameter, const char* name) {
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result(),
                        {float_attribute(name, c.number(parameter))}));
}
void leaky(const Written& c, std::string_view op) {
  with_number(c, op, "negative_slope", "negative_slope");
}
void elu_op(const Written& c, std::string_view op) { with_number(c, op, "alpha", "alpha"); }
void hard_sigmoid(const Written& c, std::string_view op) {
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result(),
                        {float_attribute("slope", c.number("slope")),
                         float_attribute("offset", c.number("offset"))}));
}
void gelu_op(const Written& c, std::string_view op) {
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result(),
                        {flag_attribute("approximate", c.flag("approximate"))}));
}
void softplus_op(const Written& c, std::string_view op) {
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result(),
                        {float_attribute("beta", c.number("beta")),
                         float_attribute("threshold", c.number("threshold"))}));
}
void soft_max(const Written& c, std::string_view op) {
  if (c.type("x").dtype != c.result().dtype) c.refuse("it casts its operand");
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result(),
                        {int_attribute("axis", c.integer("axis"))}));
}
void cast_op(const Written& c, std::string_view op) {
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result(),
                        {dtype_attribute("dtype", c.result().dtype)}));
}

// ---- products and convolutions -------------------------------------------------------------------

PirId product(const Written& c, PirId x, PirId y, const PirType& type, bool left, bool right) {
  return c.writer.add("1.matmul", {x, y}, type,
                      {flag_attribute("transpose_x", left), flag_attribute("transpose_y", right)});
}
void matmul_op(const Written& c, std::string_view) {
  c.define(product(c, c.operand("x"), c.operand("y"), c.result(), c.flag("transpose_x"),
                   c.flag("transpose_y")));
}
void linear_op(const Written& c, std::string_view) {
  PirId made = product(c, c.operand("x"), c.operand("weight"), c.result(), false, false);
  if (c.has("bias")) made = c.writer.add("1.add", {made, c.operand("bias")}, c.result());
  c.define(made);
}

PirId reshaped(const Written& c, PirId x, DType dtype, const List& shape) {
  return c.writer.add("1.reshape", {x, c.writer.integers(shape)}, {dtype, shape});
}
// A tensor of channels, for [batch, channels, height, width].
PirId by_channel(const Written& c, const char* parameter) {
  const PirType type = c.type(parameter);
  return reshaped(c, c.operand(parameter), type.dtype, {1, type.shape.at(0), 1, 1});
}

void check_images(const Written& c) {
  if (c.type("x").shape.size() != 4) c.refuse("only images are supported");
  if (c.flag("channels_last")) c.refuse("its channels come last");
}
void conv_op(const Written& c, std::string_view) {
  check_images(c);
  PirId made = c.writer.add(
      "1.conv2d", {c.operand("x"), c.operand("weight")}, c.result(),
      {ints_attribute("strides", c.list("stride")), ints_attribute("paddings", c.list("padding")),
       text_attribute("padding_algorithm", "EXPLICIT"),
       ints_attribute("dilations", c.list("dilation")),
       int_attribute("groups", c.integer("groups")), text_attribute("data_format", "NCHW")});
  if (c.has("bias")) made = c.writer.add("1.add", {made, by_channel(c, "bias")}, c.result());
  c.define(made);
}

void pool(const Written& c, const List& kernel, const List& stride, const List& padding,
          const char* kind, bool ceil, bool exclusive, bool adaptive) {
  c.define(
      c.writer.add("1.pool2d", {c.operand("x"), c.writer.integers(kernel)}, c.result(),
                   {ints_attribute("strides", stride), ints_attribute("paddings", padding),
                    flag_attribute("ceil_mode", ceil), flag_attribute("exclusive", exclusive),
                    text_attribute("data_format", "NCHW"), text_attribute("pooling_type", kind),
                    flag_attribute("global_pooling", false), flag_attribute("adaptive", adaptive),
                    text_attribute("padding_algorithm", "EXPLICIT")}));
}
void max_pool_op(const Written& c, std::string_view) {
  check_images(c);
  pool(c, c.list("kernel_size"), c.list("stride"), c.list("padding"), "max", c.flag("ceil_mode"),
       true, false);
}
void avg_pool_op(const Written& c, std::string_view) {
  check_images(c);
  if (!c.attribute("divisor").is_none()) c.refuse("it has a divisor of its own");
  pool(c, c.list("kernel_size"), c.list("stride"), c.list("padding"), "avg", c.flag("ceil_mode"),
       c.flag("exclusive"), false);
}
void adaptive_avg(const Written& c, std::string_view) {
  check_images(c);
  pool(c, c.list("output_size"), {1, 1}, {0, 0}, "avg", false, true, true);
}
void adaptive_max(const Written& c, std::string_view) {
  check_images(c);
  pool(c, c.list("output_size"), {1, 1}, {0, 0}, "max", false, true, true);
}

// ---- normalisations ------------------------------------------------------------------------------

void affine_op(const Written& c, std::string_view) {
  if (c.integer("channel_axis") != 1 || c.type("x").shape.size() != 4)
    c.refuse("only channels of images are supported");
  const PirId by = c.writer.add("1.multiply", {c.operand("x"), by_channel(c, "scale")}, c.result());
  c.define(c.writer.add("1.add", {by, by_channel(c, "shift")}, c.result()));
}
void layer_norm_op(const Written& c, std::string_view) {
  const PirId scale = c.has("weight") ? c.operand("weight") : 0;
  const PirId bias = c.has("bias") ? c.operand("bias") : 0;
  const PirType rows{DType::Float32, c.result(1).shape};
  const std::vector<PirId> made =
      c.writer.add("1.layer_norm", {c.operand("x"), scale, bias}, {c.result(), rows, rows},
                   {float_attribute("epsilon", c.number("epsilon")),
                    int_attribute("begin_norm_axis", c.integer("begin_axis"))});
  c.define(made[0]);
}

// [batch, steps, heads, features] each.
void attention_op(const Written& c, std::string_view) {
  if (c.has("keep") || c.flag("causal")) c.refuse("it drops weights or is causal");
  const auto swapped = [&](const char* parameter) {
    PirType type = c.type(parameter);
    std::swap(type.shape.at(1), type.shape.at(2));
    return std::pair(c.writer.add("1.transpose", {c.operand(parameter)}, type,
                                  {ints_attribute("perm", List{0, 2, 1, 3})}),
                     type);
  };
  const auto [query, query_type] = swapped("query");
  const auto [key, key_type] = swapped("key");
  const auto [value, value_type] = swapped("value");
  if (query_type.shape[1] != key_type.shape[1]) c.refuse("its heads share keys");
  PirType scores = query_type;
  scores.shape[3] = key_type.shape[2];
  PirId made = scaled(c, product(c, query, key, scores, false, true), scores, c.number("scale"));
  if (c.has("mask")) made = c.writer.add("1.add", {made, c.operand("mask")}, scores);
  made = c.writer.add("1.softmax", {made}, scores, {int_attribute("axis", -1)});
  PirType mixed = query_type;
  mixed.shape[3] = value_type.shape[3];
  made = product(c, made, value, mixed, false, false);
  c.define(
      c.writer.add("1.transpose", {made}, c.result(), {ints_attribute("perm", List{0, 2, 1, 3})}));
}

// ---- shapes --------------------------------------------------------------------------------------

void reshape_op(const Written& c, std::string_view) {
  List shape = c.result().shape;
  const List from = c.type("x").shape;
  const auto open = std::count(shape.begin(), shape.end(), -1);
  const auto& program = c.writer.program();
  if (open > 1)  // 0 keeps the size of an axis
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] < 0 && i < from.size() &&
          program.type_of(c.result_value()).shape[i] == program.type_of(c.value("x")).shape[i])
        shape[i] = 0;
  if (std::count(shape.begin(), shape.end(), -1) > 1) c.refuse("several sizes are open");
  c.define(c.writer.add("1.reshape", {c.operand("x"), c.writer.integers(shape)}, c.result()));
}
void transpose_op(const Written& c, std::string_view op) {
  c.define(c.writer.add(dialect(op), {c.operand("x")}, c.result(),
                        {ints_attribute("perm", c.list("perm"))}));
}
void broadcast_op(const Written& c, std::string_view) {
  // Elementwise ops broadcast by themselves.
  const ValueId made = c.result_value();
  c.writer.define(made, c.operand("x"));
  bool open = false;
  List shape = c.result().shape, from = c.type("x").shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t before = shape.size() - from.size();
    open |= shape[i] < 0 && (i < before || from[i - before] >= 0);
  }
  if (c.writer.only_broadcast(made)) return;
  if (open) c.refuse("an open size comes from elsewhere than its operand");
  c.define(c.writer.add("1.expand", {c.operand("x"), c.writer.integers(shape)}, c.result()));
}
void axes_op(const Written& c, std::string_view op) {
  c.define(
      c.writer.add(dialect(op), {c.operand("x"), c.writer.integers(c.list("axis"))}, c.result()));
}
void reduce_op(const Written& c, std::string_view op) {
  const List axes = c.list("axis");
  c.define(c.writer.add(dialect(op), {c.operand("x"), c.writer.integers(axes)}, c.result(),
                        {flag_attribute("keepdim", c.flag("keepdim"))}));
}
void sum_op(const Written& c, std::string_view op) {
  c.define(c.writer.add(
      dialect(op), {c.operand("x"), c.writer.integers(c.list("axis"))}, c.result(),
      {dtype_attribute("dtype", c.result().dtype), flag_attribute("keepdim", c.flag("keepdim"))}));
}
void concat_op(const Written& c, std::string_view op) {
  PirType parts{c.result().dtype, {}};
  for (const ValueId value : c.values("x")) parts.list.push_back(c.writer.type_of(value));
  const PirId list = c.writer.add("0.combine", c.operands("x"), parts);
  const PirId axis = c.writer.number(static_cast<double>(c.integer("axis")), DType::Int32);
  c.define(c.writer.add(dialect(op), {list, axis}, c.result()));
}
void split_op(const Written& c, std::string_view) {
  const List sections = c.list("sections");
  PirType parts{c.type("x").dtype, {}};
  for (size_t i = 0; i < sections.size(); ++i) parts.list.push_back(c.result(i));
  const PirId axis = c.writer.number(static_cast<double>(c.integer("axis")), DType::Int32);
  const PirId list =
      c.writer.add("1.split", {c.operand("x"), c.writer.integers(sections), axis}, parts);
  const std::vector<PirId> made = c.writer.add("0.split", {list}, parts.list, {});
  for (size_t i = 0; i < made.size(); ++i) c.define(made[i], i);
}
void embedding_op(const Written& c, std::string_view) {
  c.define(c.writer.add(
      "1.embedding", {c.operand("x"), c.operand("weight")}, c.result(),
      {long_attribute("padding_idx", c.integer("padding_idx")), flag_attribute("sparse", false)}));
}

constexpr OpWriter kWriters[] = {
    {"relu", unary},
    {"relu6", unary},
    {"sigmoid", unary},
    {"tanh", unary},
    {"exp", unary},
    {"log", unary},
    {"sqrt", unary},
    {"rsqrt", unary},
    {"square", unary},
    {"reciprocal", unary},
    {"abs", unary},
    {"floor", unary},
    {"ceil", unary},
    {"sin", unary},
    {"cos", unary},
    {"erf", unary},
    {"silu", unary},
    {"swish", unary},
    {"hardswish", unary},
    {"softsign", unary},
    {"log_sigmoid", unary, "logsigmoid"},
    {"add", binary, "", true},
    {"subtract", binary, "", true},
    {"multiply", binary, "", true},
    {"divide", binary, "", true},
    {"maximum", binary, "", true},
    {"minimum", binary, "", true},
    {"pow", binary, "elementwise_pow", true},
    {"assign", same},
    {"neg", negated},
    {"scale", scale_op},
    {"leaky_relu", leaky},
    {"elu", elu_op},
    {"hardsigmoid", hard_sigmoid},
    {"gelu", gelu_op},
    {"softplus", softplus_op},
    {"softmax", soft_max},
    {"log_softmax", soft_max},
    {"cast", cast_op},
    {"matmul", matmul_op},
    {"linear", linear_op},
    {"conv", conv_op},
    {"max_pool", max_pool_op},
    {"avg_pool", avg_pool_op},
    {"adaptive_avg_pool", adaptive_avg},
    {"adaptive_max_pool", adaptive_max},
    {"channel_affine", affine_op},
    {"layer_norm_rows", layer_norm_op},
    {"attention", attention_op},
    {"reshape", reshape_op},
    {"transpose", transpose_op},
    {"broadcast_to", broadcast_op, "", false, true},
    {"squeeze", axes_op},
    {"unsqueeze", axes_op},
    {"mean", reduce_op},
    {"sum", sum_op},
    {"max", reduce_op},
    {"min", reduce_op},
    {"embedding_lookup", embedding_op},
    {"concat", concat_op},
    {"split_sections", split_op},
};

}  // namespace

const OpWriter* find_writer(std::string_view op) {
  for (const OpWriter& w : kWriters)
    if (w.op == op) return &w;
  return nullptr;
}

}  // namespace oar::paddle
