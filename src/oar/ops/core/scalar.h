// The scalar body of an op: one element of each result from the elements of the operands at the same index. An interpreter or
// a code generator runs its steps once per element.
//
//   max(x, 0)
//   s = 1 / (1 + exp(-x)); grad * s * (1 + x * (1 - s))      a name for a part, then the result
//   y * grad, x * grad                                       two results
//   given(min) && x < min ? min : x                          an optional attribute
//
// Names are the op's parameters. Operators are those of C, with the same precedence, and `//` and `%` divide as Python does
// (the quotient is rounded down). Functions are the rows of the table in scalar.cpp. Constants: pi, e, inf, nan, and
// `largest`, the greatest finite number of the result's dtype.
//
// Types. An operand has its dtype, and 8- and 16-bit floats are read as float32. Numbers and attributes take the type of the
// other operand; a whole number stays exact with an integer, and the result wraps. Arithmetic is done in the type of its
// operands, comparisons return bool, `?:` and min need one type on both sides. The result is cast to its dtype at the end.
// Bodies are for real numbers; complex calls are left to kernels.
//
// Of a reduction, the body says how the elements along its axes become one: `sum_of(x)`, `least_of(x != 0)`. The elements are
// cast to the dtype of the result first; an outermost fold is all that such a body has.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/schema.h"

namespace OAR_API oar {

// clang-format off
enum class ScalarFn : uint8_t {
  // Leaves: `parameter` or `number`.
  Operand, Attribute, Given, Sizes, Number, Largest,
  // Operators.
  Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Negate,
  Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual,
  And, Or, Not, BitAnd, BitOr, BitXor, BitNot, ShiftLeft, ShiftRight, Select,
  // Functions.
  Abs, Sign, Min, Max, FMin, FMax, Floor, Ceil, Round, Trunc, Sqrt, Pow, Hypot, CopySign, SignBit,
  Exp, Expm1, Log, Log1p, Log2, Log10, Sin, Cos, Tan, Asin, Acos, Atan, Atan2, Sinh, Cosh, Tanh,
  Asinh, Acosh, Atanh, Erf, LogGamma, IsNan, IsInf, IsFinite, Ldexp, Mantissa, Exponent,
  Gcd, ShiftRightBits,
  // Folds.
  SumOf, MeanOf, ProductOf, LeastOf, GreatestOf,
};
// clang-format on

// How many operands a function has, and how many flops it counts as: 1, or more for a series.
int arity_of(ScalarFn fn);
double flops_of(ScalarFn fn);

// One step; its operands are steps before it.
struct ScalarStep {
  ScalarFn fn = ScalarFn::Number;
  uint16_t operands[3] = {0, 0, 0};
  uint16_t parameter = 0;  // of Operand, Attribute, Given, Sizes
  bool whole = false;      // Number: written without a point, so an integer
  double number = 0;
};

class ScalarBody {
 public:
  // InvalidArgument with the position of the mistake.
  static ScalarBody parse(std::string_view text, const Schema& schema);

  const std::vector<ScalarStep>& steps() const { return steps_; }
  // The step that computes each result.
  const std::vector<uint16_t>& results() const { return results_; }
  // Of one element of all results.
  double flops() const;
  // Does it join the elements along some axes?
  bool folds() const;
  // Is the result the sum of all operands?
  bool is_sum() const;

 private:
  friend class ScalarParser;
  std::vector<ScalarStep> steps_;
  std::vector<uint16_t> results_;
};

}  // namespace oar
