// Functions of elements, in PIR's words.
#include <limits>

#include "oar/interop/paddle/writer.h"

namespace oar::paddle {
namespace {

// Ops of one or two tensors and nothing else, by the name that PIR has for them.
void unary(const Written& c) { c.give(c.add(c.call.op->name(), {c.in("x")}, c.result())); }
void binary(const Written& c) {
  c.give(c.add(c.call.op->name(), {c.in("x"), c.in("y")}, c.result()));
}

void log_sigmoid_op(const Written& c) { c.give(c.add("logsigmoid", {c.in("x")}, c.result())); }
void trunc_op(const Written& c) { c.give(c.add("trunc", {c.in("input")}, c.result())); }
void power(const Written& c) {
  c.give(c.add("elementwise_pow", {c.in("x"), c.in("y")}, c.result()));
}
void same(const Written& c) { c.give(c.in("x")); }

void negated(const Written& c) { c.give(c.scaled(c.in("x"), -1)); }
void scale_op(const Written& c) {
  c.give(c.add("scale",
               {c.in("x"), FileOperand::constant("scale", c.number("scale"), DType::Float32)},
               c.result(),
               {float_of("bias", c.number("bias")),
                flag_of("bias_after_scale", c.flag("bias_after_scale"))}));
}
bool keeps_dtype(const ProgramCall& c) { return c.type("x").dtype == c.result_type().dtype; }

// One number as an attribute of the same name.
template <const auto& parameter>
void with_number(const Written& c) {
  c.give(c.add(c.call.op->name(), {c.in("x")}, c.result(),
               {float_of(parameter, c.number(parameter))}));
}
constexpr char kAlpha[] = "alpha", kSlope[] = "negative_slope", kThreshold[] = "threshold";

void selu_op(const Written& c) {
  c.give(c.add("selu", {c.in("x")}, c.result(),
               {float_of("scale", c.number("scale")), float_of("alpha", c.number("alpha"))}));
}
void hard_sigmoid(const Written& c) {
  c.give(c.add("hardsigmoid", {c.in("x")}, c.result(),
               {float_of("slope", c.number("slope")), float_of("offset", c.number("offset"))}));
}
void gelu_op(const Written& c) {
  c.give(c.add("gelu", {c.in("x")}, c.result(), {flag_of("approximate", c.flag("approximate"))}));
}
void softplus_op(const Written& c) {
  c.give(c.add("softplus", {c.in("x")}, c.result(),
               {float_of("beta", c.number("beta")), float_of("threshold", c.number("threshold"))}));
}
void round_op(const Written& c) {
  c.give(c.add("round", {c.in("x")}, c.result(), {int_of("decimals", 0)}));
}
bool to_integers(const ProgramCall& c) { return c.integer("decimals") == 0; }

void clip_op(const Written& c) {
  const DType dtype = c.result().dtype;
  const auto bound = [&](const char* name, double otherwise) {
    return FileOperand::constant(name, c.given(name) ? c.number(name) : otherwise, dtype);
  };
  constexpr double kAll = std::numeric_limits<double>::infinity();
  c.give(c.add("clip", {c.in("x"), bound("min", -kAll), bound("max", kAll)}, c.result()));
}
bool clips_floats(const ProgramCall& c) {
  const bool both = c.given("min") && c.given("max");
  return keeps_dtype(c) && (both || is_floating(c.type("x").dtype));
}
void cast_op(const Written& c) { c.give(c.cast(c.in("x"), c.result().dtype)); }
void where_op(const Written& c) {
  c.give(c.add("where", {c.in("condition"), c.in("x"), c.in("y")}, c.result()));
}
bool needs_no_broadcast(const ProgramCall& c) {
  const Shape& shape = c.result_type().shape;
  return c.type("condition").shape == shape && c.type("x").shape == shape &&
         c.type("y").shape == shape;
}

constexpr OpWriter kWriters[] = {
    {"relu", unary},
    {"relu6", unary},
    {"sigmoid", unary},
    {"tanh", unary},
    {"exp", unary},
    {"expm1", unary},
    {"log", unary},
    {"log1p", unary},
    {"log2", unary},
    {"log10", unary},
    {"sqrt", unary},
    {"rsqrt", unary},
    {"square", unary},
    {"reciprocal", unary},
    {"abs", unary},
    {"sign", unary},
    {"floor", unary},
    {"ceil", unary},
    {"sin", unary},
    {"cos", unary},
    {"tan", unary},
    {"asin", unary},
    {"acos", unary},
    {"atan", unary},
    {"sinh", unary},
    {"cosh", unary},
    {"asinh", unary},
    {"acosh", unary},
    {"atanh", unary},
    {"erf", unary},
    {"silu", unary},
    {"hardswish", unary},
    {"softsign", unary},
    {"logical_not", unary},
    {"bitwise_not", unary},
    {"isnan", unary},
    {"isinf", unary},
    {"isfinite", unary},
    {"log_sigmoid", log_sigmoid_op},
    {"add", binary, nullptr, true},
    {"subtract", binary, nullptr, true},
    {"multiply", binary, nullptr, true},
    {"divide", binary, nullptr, true},
    {"maximum", binary, nullptr, true},
    {"minimum", binary, nullptr, true},
    {"fmax", binary, nullptr, true},
    {"fmin", binary, nullptr, true},
    {"floor_divide", binary, nullptr, true},
    {"remainder", binary, nullptr, true},
    {"pow", power, nullptr, true},
    {"equal", binary, nullptr, true},
    {"not_equal", binary, nullptr, true},
    {"less_than", binary, nullptr, true},
    {"less_equal", binary, nullptr, true},
    {"greater_than", binary, nullptr, true},
    {"greater_equal", binary, nullptr, true},
    {"logical_and", binary, nullptr, true},
    {"logical_or", binary, nullptr, true},
    {"logical_xor", binary, nullptr, true},
    {"bitwise_and", binary, nullptr, true},
    {"bitwise_or", binary, nullptr, true},
    {"bitwise_xor", binary, nullptr, true},
    {"assign", same},
    {"without_gradient", same},
    {"in_backward", same},
    {"with_shape", same},
    {"atan2", binary, nullptr, true},
    {"trunc", trunc_op},
    {"neg", negated},
    {"scale", scale_op, keeps_dtype},
    {"leaky_relu", with_number<kSlope>},
    {"elu", with_number<kAlpha>},
    {"celu", with_number<kAlpha>},
    {"hardshrink", with_number<kThreshold>},
    {"selu", selu_op},
    {"hardsigmoid", hard_sigmoid},
    {"gelu", gelu_op},
    {"softplus", softplus_op},
    {"round", round_op, to_integers},
    {"clip", clip_op, clips_floats},
    {"cast", cast_op},
    {"where", where_op, needs_no_broadcast},
};

}  // namespace

std::span<const OpWriter> elementwise_writers() { return kWriters; }

}  // namespace oar::paddle
