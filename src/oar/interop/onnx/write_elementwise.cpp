// Ops that compute element by element, as nodes. Those whose records name a counterpart with the same operands need no entry.
#include "oar/interop/onnx/graph_writer.h"
#include "oar/interop/onnx/model.h"

namespace oar::onnx {
namespace {

void same_value(OpCall& c) { c.give(0, c.graph().name_of(c.call.operands[0].ids[0])); }

void write_cast(OpCall& c) {
  c.give(0, c.node("Cast", {c.in("x")}, {{"to", number_of(c.result_type().dtype)}}));
}
void write_rsqrt(OpCall& c) { c.give(0, c.node("Reciprocal", {c.node("Sqrt", {c.in("x")})})); }
void write_square(OpCall& c) { c.give(0, c.node("Mul", {c.in("x"), c.in("x")})); }
void write_expm1(OpCall& c) {
  c.give(0, c.node("Sub", {c.node("Exp", {c.in("x")}), c.number_like(1, "x")}));
}
void write_log1p(OpCall& c) {
  c.give(0, c.node("Log", {c.node("Add", {c.in("x"), c.number_like(1, "x")})}));
}
void write_silu(OpCall& c) {
  c.give(0, c.node("Mul", {c.in("x"), c.node("Sigmoid", {c.in("x")})}));
}
std::string clipped(OpCall& c, const std::string& low, const std::string& high) {
  return c.node("Clip", {c.in("x"), low, high});
}
void write_relu6(OpCall& c) { c.give(0, clipped(c, c.number_like(0, "x"), c.number_like(6, "x"))); }
void write_clip(OpCall& c) {
  const auto bound = [&](const char* name) {
    return c.given(name) ? c.number_like(c.number(name), "x") : std::string();
  };
  c.give(0, clipped(c, bound("min"), bound("max")));
}
void write_hardsigmoid(OpCall& c) {
  c.give(0, c.node("HardSigmoid", {c.in("x")},
                   {{"alpha", c.number("slope")}, {"beta", c.number("offset")}}));
}
void write_leaky(OpCall& c) {
  c.give(0, c.node("LeakyRelu", {c.in("x")}, {{"alpha", c.number("negative_slope")}}));
}
void write_elu(OpCall& c) { c.give(0, c.node("Elu", {c.in("x")}, {{"alpha", c.number("alpha")}})); }
void write_celu(OpCall& c) {
  c.give(0, c.node("Celu", {c.in("x")}, {{"alpha", c.number("alpha")}}));
}
void write_selu(OpCall& c) {
  c.give(0,
         c.node("Selu", {c.in("x")}, {{"gamma", c.number("scale")}, {"alpha", c.number("alpha")}}));
}
void write_gelu(OpCall& c) {
  const std::string kind = c.flag("approximate") ? "tanh" : "none";
  c.give(0, c.node("Gelu", {c.in("x")}, {{"approximate", kind}}));
}
bool has_gelu(const OpCall& c) { return c.opset >= 20; }
bool has_mish(const OpCall& c) { return c.opset >= 18; }
void write_mish(OpCall& c) { c.give(0, c.node("Mish", {c.in("x")})); }
bool is_usual_softplus(const OpCall& c) {
  return c.number("beta") == 1 && c.number("threshold") >= 20;
}
void write_softplus(OpCall& c) { c.give(0, c.node("Softplus", {c.in("x")})); }
void write_thresholded(OpCall& c) {
  c.give(0, c.node("ThresholdedRelu", {c.in("x")}, {{"alpha", c.number("threshold")}}));
}
bool falls_to_zero(const OpCall& c) { return c.number("value") == 0; }
void write_hardshrink(OpCall& c) {
  c.give(0, c.node("Shrink", {c.in("x")}, {{"lambd", c.number("threshold")}, {"bias", 0.0}}));
}
// A slope per element or channel, already shaped to broadcast.
void write_sloped(OpCall& c) { c.give(0, c.node("PRelu", {c.in("x"), c.in("slope")})); }

void write_round(OpCall& c) { c.give(0, c.node("Round", {c.in("x")})); }
bool to_integers(const OpCall& c) { return c.integer("decimals") == 0; }
void write_trunc(OpCall& c) {
  const std::string size = c.node("Floor", {c.node("Abs", {c.in("input")})});
  c.give(0, c.node("Mul", {c.node("Sign", {c.in("input")}), size}));
}
void write_not_equal(OpCall& c) {
  c.give(0, c.node("Not", {c.node("Equal", {c.in("x"), c.in("y")})}));
}
void write_isfinite(OpCall& c) {
  const std::string x = c.in("x");
  c.give(0, c.node("Not", {c.node("Or", {c.node("IsInf", {x}), c.node("IsNaN", {x})})}));
}
bool of_floats(const OpCall& c) { return is_floating(c.type("x").dtype); }

// Rounds down. ONNX divides integers towards zero; its Mod has the sign of the divisor.
void write_floor_divide(OpCall& c) {
  const std::string x = c.in("x"), y = c.in("y");
  if (is_floating(c.type("x").dtype)) return c.give(0, c.node("Floor", {c.node("Div", {x, y})}));
  c.give(0, c.node("Div", {c.node("Sub", {x, c.node("Mod", {x, y})}), y}));
}
void write_remainder(OpCall& c) {
  const std::string x = c.in("x"), y = c.in("y");
  if (!is_floating(c.type("x").dtype)) return c.give(0, c.node("Mod", {x, y}));
  c.give(0, c.node("Sub", {x, c.node("Mul", {c.node("Floor", {c.node("Div", {x, y})}), y})}));
}
void write_scale(OpCall& c) {
  const std::string scale = c.number_like(c.number("scale"), "x"),
                    bias = c.number_like(c.number("bias"), "x");
  const bool after = c.flag("bias_after_scale");
  const std::string first =
      after ? c.node("Mul", {c.in("x"), scale}) : c.node("Add", {c.in("x"), bias});
  c.give(0, after ? c.node("Add", {first, bias}) : c.node("Mul", {first, scale}));
}
bool keeps_dtype(const OpCall& c) { return c.type("x").dtype == c.result_type().dtype; }

// The angle of (y, x): atan of the quotient, half a turn further on the left side.
void write_atan2(OpCall& c) {
  const std::string y = c.in("x"), x = c.in("y"), zero = c.number_like(0, "x");
  const double pi = 3.14159265358979323846;
  const auto number = [&](double v) { return c.number_like(v, "x"); };
  const std::string below = c.node("Less", {y, zero}), left = c.node("Less", {x, zero});
  const std::string turn = c.node("Where", {below, number(-pi), number(pi)});
  const std::string angle = c.node("Atan", {c.node("Div", {y, x})});
  const std::string turned = c.node("Where", {left, c.node("Add", {angle, turn}), angle});
  const std::string upright = c.node("Mul", {c.node("Sign", {y}), number(pi / 2)});
  c.give(0, c.node("Where", {c.node("Equal", {x, zero}), upright, turned}));
}

// Logical ops take any dtype, those of ONNX bools.
std::string as_bool(OpCall& c, std::string_view name) {
  if (c.type(name).dtype == DType::Bool) return c.in(name);
  return c.node("Cast", {c.in(name)}, {{"to", number_of(DType::Bool)}});
}
template <char kind>
void write_logical(OpCall& c) {
  if (kind == 'n') return c.give(0, c.node("Not", {as_bool(c, "x")}));
  const char* op = kind == 'a' ? "And" : kind == 'o' ? "Or" : "Xor";
  c.give(0, c.node(op, {as_bool(c, "x"), as_bool(c, "y")}));
}
void write_shift(OpCall& c, const char* direction) {
  c.give(0, c.node("BitShift", {c.in("x"), c.in("y")}, {{"direction", std::string(direction)}}));
}
void write_left(OpCall& c) { write_shift(c, "LEFT"); }
void write_right(OpCall& c) { write_shift(c, "RIGHT"); }
bool of_unsigned(const OpCall& c) { return c.type("x").dtype == DType::UInt8; }

constexpr OpWriter kWriters[] = {
    {"assign", same_value},
    {"without_gradient", same_value},
    {"in_backward", same_value},
    {"with_shape", same_value},
    {"cast", write_cast},
    {"rsqrt", write_rsqrt},
    {"square", write_square},
    {"expm1", write_expm1},
    {"log1p", write_log1p},
    {"silu", write_silu},
    {"relu6", write_relu6},
    {"clip", write_clip, keeps_dtype},
    {"hardsigmoid", write_hardsigmoid},
    {"leaky_relu", write_leaky},
    {"elu", write_elu},
    {"celu", write_celu},
    {"selu", write_selu},
    {"gelu", write_gelu, has_gelu},
    {"mish", write_mish, has_mish},
    {"softplus", write_softplus, is_usual_softplus},
    {"thresholded_relu", write_thresholded, falls_to_zero},
    {"hardshrink", write_hardshrink},
    {"sloped", write_sloped},
    {"round", write_round, to_integers},
    {"atan2", write_atan2},
    {"trunc", write_trunc},
    {"not_equal", write_not_equal},
    {"isfinite", write_isfinite, of_floats},
    {"floor_divide", write_floor_divide},
    {"remainder", write_remainder},
    {"scale", write_scale, keeps_dtype},
    {"logical_not", write_logical<'n'>},
    {"logical_and", write_logical<'a'>},
    {"logical_or", write_logical<'o'>},
    {"logical_xor", write_logical<'x'>},
    {"bitwise_left_shift", write_left, of_unsigned},
    {"bitwise_right_shift", write_right, of_unsigned},
};

}  // namespace

std::span<const OpWriter> elementwise_writers() { return kWriters; }

}  // namespace oar::onnx
