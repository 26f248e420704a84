// Scalar bodies: what the parser takes, and every body against the op's kernel, element by element.
#include "oar/ops/core/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "oar/base/string_util.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/element.h"

namespace oar {
namespace {

// Of a contiguous tensor.
const void* place_of(const Tensor& t, int64_t element) {
  return static_cast<const char*>(t->data) + element * static_cast<int64_t>(size_of(t.dtype()));
}
double element_of(const Tensor& t, int64_t element) {
  return load_element(place_of(t, element), t.dtype()).real();
}

// A value of one step. `weak` ones, numbers and attributes, take the type of what they meet.
struct Number {
  DType type = DType::Float64;  // Bool, an integer type, Float32 or Float64
  bool weak = false;
  double real = 0;
  int64_t integer = 0;  // of Bool and integers

  bool is_real() const { return is_floating(type); }
  double as_real() const { return is_real() ? real : static_cast<double>(integer); }
  bool truth() const { return is_real() ? real != 0 : integer != 0; }
};

Number real_number(DType type, double v, bool weak = false) {
  return {type, weak, type == DType::Float32 && !weak ? static_cast<float>(v) : v, 0};
}
Number whole_number(DType type, int64_t v, bool weak = false) {
  int64_t word = 0;
  if (type == DType::Bool) return {type, weak, 0, v != 0};
  store_integer(&word, type, v);
  return {type, weak, 0, load_integer(&word, type)};
}
Number truth_value(bool v) { return whole_number(DType::Bool, v); }

Number cast_to(const Number& n, DType type) {
  if (is_floating(type)) return real_number(type, n.as_real());
  if (is_bool(type)) return truth_value(n.truth());
  return n.is_real() ? whole_number(type, static_cast<int64_t>(n.real))
                     : whole_number(type, n.integer);
}

// Both in the type that they meet in.
DType meeting(const Number& a, const Number& b) {
  if (a.weak == b.weak) {
    if (a.type == b.type) return a.type;
    if (is_bool(a.type)) return b.type;
    if (is_bool(b.type)) return a.type;
    return promote(a.type, b.type);
  }
  const Number &strong = a.weak ? b : a, &weak = a.weak ? a : b;
  if (strong.is_real() || !weak.is_real()) return is_bool(strong.type) ? weak.type : strong.type;
  return DType::Float64;
}

// Evaluates one element. Functions are computed in double and rounded to the type.
class Interpreter {
 public:
  Interpreter(const Op& op, Args args, TensorList results)
      : op_(op), args_(args), results_(results) {}

  std::vector<Number> run(int64_t element) {
    made_.clear();
    for (const ScalarStep& step : op_.scalar()->steps()) made_.push_back(value_of(step, element));
    std::vector<Number> out;
    for (uint16_t r : op_.scalar()->results()) out.push_back(made_[r]);
    return out;
  }

 private:
  Number value_of(const ScalarStep& step, int64_t element) {
    const Value* argument = step.fn <= ScalarFn::Sizes ? &args_[step.parameter] : nullptr;
    switch (step.fn) {
      case ScalarFn::Operand:
        return load(argument->as_tensor(), element);
      case ScalarFn::Attribute:
        return attribute(*argument);
      case ScalarFn::Given:
        return truth_value(!argument->is_none());
      case ScalarFn::Sizes: {
        int64_t product = 1;
        for (Dim d : argument->as_dim_list()) product *= d.value();
        return whole_number(DType::Int64, product, true);
      }
      case ScalarFn::Number:
        return step.whole ? whole_number(DType::Int64, static_cast<int64_t>(step.number), true)
                          : real_number(DType::Float64, step.number, true);
      case ScalarFn::Largest:
        return largest(results_[0].dtype());
      default:
        break;
    }
    const Number &a = made_[step.operands[0]], &b = made_[step.operands[1]],
                 &c = made_[step.operands[2]];
    if (step.fn == ScalarFn::Select) return selected(a, b, c);
    return arity_of(step.fn) == 1 ? unary(step.fn, a) : binary(step.fn, a, b);
  }

  static Number load(const Tensor& t, int64_t element) {
    const void* p = place_of(t, element);
    if (!is_floating(t.dtype())) return whole_number(t.dtype(), load_integer(p, t.dtype()));
    return real_number(t.dtype() == DType::Float64 ? DType::Float64 : DType::Float32,
                       load_element(p, t.dtype()).real());
  }

  static Number attribute(const Value& v) {
    switch (v.tag) {
      case OAR_TAG_BOOL:
        return whole_number(DType::Bool, v.as_bool(), true);
      case OAR_TAG_INT:
        return whole_number(DType::Int64, v.as_int(), true);
      case OAR_TAG_DOUBLE:
        return real_number(DType::Float64, v.as_double(), true);
      default:
        return real_number(DType::Float64, 0, true);  // None, read after given()
    }
  }

  static Number largest(DType type) {
    return real_number(DType::Float64,
                       type == DType::Float16    ? 65504
                       : type == DType::BFloat16 ? static_cast<double>(bfloat16(3.3895e38F))
                       : type == DType::Float32  ? std::numeric_limits<float>::max()
                                                 : std::numeric_limits<double>::max(),
                       true);
  }

  static Number selected(const Number& which, const Number& yes, const Number& no) {
    const Number& chosen = which.truth() ? yes : no;
    if (yes.weak && no.weak) return chosen;
    return cast_to(chosen, meeting(yes, no));
  }

  static Number unary(ScalarFn fn, const Number& a) {
    const double x = a.as_real();
    switch (fn) {
      case ScalarFn::Not:
        return truth_value(!a.truth());
      case ScalarFn::IsNan:
        return truth_value(std::isnan(x));
      case ScalarFn::IsInf:
        return truth_value(std::isinf(x));
      case ScalarFn::IsFinite:
        return truth_value(std::isfinite(x));
      case ScalarFn::SignBit:
        return truth_value(std::signbit(x));
      default:
        break;
    }
    if (!a.is_real() && (fn < ScalarFn::Sqrt)) return whole_unary(fn, a);
    const DType type = a.is_real() ? a.type : DType::Float64;
    return real_number(type, real_unary(fn, x), a.weak);
  }

  static Number whole_unary(ScalarFn fn, const Number& a) {
    const int64_t x = a.integer;
    if (fn == ScalarFn::BitNot && is_bool(a.type)) return truth_value(x == 0);
    const auto negative = static_cast<int64_t>(0 - static_cast<uint64_t>(x));
    if (fn == ScalarFn::BitNot) return whole_number(a.type, ~x, a.weak);
    if (fn == ScalarFn::Negate) return whole_number(a.type, negative, a.weak);
    if (fn == ScalarFn::Abs) return whole_number(a.type, x < 0 ? negative : x, a.weak);
    if (fn == ScalarFn::Sign) return whole_number(a.type, (x > 0) - (x < 0), a.weak);
    return a;  // floor and its kin
  }

  // clang-format off
  static double real_unary(ScalarFn fn, double x) {
    switch (fn) {
      case ScalarFn::Negate: return -x;
      case ScalarFn::Abs: return std::abs(x);
      case ScalarFn::Sign: return std::isnan(x) ? x : static_cast<double>((x > 0) - (x < 0));
      case ScalarFn::Floor: return std::floor(x);
      case ScalarFn::Ceil: return std::ceil(x);
      case ScalarFn::Round: return std::nearbyint(x);
      case ScalarFn::Trunc: return std::trunc(x);
      case ScalarFn::Sqrt: return std::sqrt(x);
      case ScalarFn::Exp: return std::exp(x);
      case ScalarFn::Expm1: return std::expm1(x);
      case ScalarFn::Log: return std::log(x);
      case ScalarFn::Log1p: return std::log1p(x);
      case ScalarFn::Log2: return std::log2(x);
      case ScalarFn::Log10: return std::log10(x);
      case ScalarFn::Sin: return std::sin(x);
      case ScalarFn::Cos: return std::cos(x);
      case ScalarFn::Tan: return std::tan(x);
      case ScalarFn::Asin: return std::asin(x);
      case ScalarFn::Acos: return std::acos(x);
      case ScalarFn::Atan: return std::atan(x);
      case ScalarFn::Sinh: return std::sinh(x);
      case ScalarFn::Cosh: return std::cosh(x);
      case ScalarFn::Tanh: return std::tanh(x);
      case ScalarFn::Asinh: return std::asinh(x);
      case ScalarFn::Acosh: return std::acosh(x);
      case ScalarFn::Atanh: return std::atanh(x);
      case ScalarFn::Erf: return std::erf(x);
      case ScalarFn::LogGamma: return std::lgamma(x);
      case ScalarFn::Mantissa: { int e = 0; return std::frexp(x, &e); }
      case ScalarFn::Exponent: { int e = 0; std::frexp(x, &e); return e; }
      default: ADD_FAILURE() << "no unary function " << static_cast<int>(fn); return 0;
    }
  }
  // clang-format on

  static Number binary(ScalarFn fn, const Number& left, const Number& right) {
    if (fn == ScalarFn::And) return truth_value(left.truth() && right.truth());
    if (fn == ScalarFn::Or) return truth_value(left.truth() || right.truth());
    DType type = meeting(left, right);
    const bool weak = left.weak && right.weak;
    if (!is_floating(type) && fn == ScalarFn::Divide) type = DType::Float64;
    const auto in_type = [&](const Number& n) {
      if (n.weak && !n.is_real() && !is_floating(type)) return n;  // as it is; the result wraps
      return weak && is_floating(type) ? real_number(type, n.as_real(), true) : cast_to(n, type);
    };
    const Number a = in_type(left), b = in_type(right);
    if (fn >= ScalarFn::Less && fn <= ScalarFn::NotEqual)
      return truth_value(is_floating(type) ? compared(fn, a.real, b.real)
                                           : compared(fn, a.integer, b.integer));
    if (is_floating(type)) return real_number(type, real_binary(fn, a.real, b.real, type), weak);
    return whole_number(type, whole_binary(fn, a.integer, b.integer, type), weak);
  }

  // clang-format off
  template <class T>
  static bool compared(ScalarFn fn, T a, T b) {
    switch (fn) {
      case ScalarFn::Less: return a < b;
      case ScalarFn::LessEqual: return a <= b;
      case ScalarFn::Greater: return a > b;
      case ScalarFn::GreaterEqual: return a >= b;
      case ScalarFn::Equal: return a == b;
      default: return a != b;
    }
  }

  static double real_binary(ScalarFn fn, double a, double b, DType type) {
    const bool nan = std::isnan(a) || std::isnan(b);
    const double kNan = std::numeric_limits<double>::quiet_NaN();
    switch (fn) {
      case ScalarFn::Add: return a + b;
      case ScalarFn::Subtract: return a - b;
      case ScalarFn::Multiply: return a * b;
      case ScalarFn::Divide: return a / b;
      case ScalarFn::FloorDivide: {
        if (b == 0) return a / b;
        const double left = std::fmod(a, b);
        const double quotient = (a - left) / b;
        return left != 0 && (left < 0) != (b < 0) ? std::nearbyint(quotient) - 1
                                                  : std::nearbyint(quotient);
      }
      case ScalarFn::Modulo: {
        const double left = std::fmod(a, b);
        if (left == 0) return std::copysign(0.0, b);
        return (left < 0) != (b < 0) ? left + b : left;
      }
      case ScalarFn::Min: return nan ? kNan : std::min(a, b);
      case ScalarFn::Max: return nan ? kNan : std::max(a, b);
      case ScalarFn::FMin: return std::fmin(a, b);
      case ScalarFn::FMax: return std::fmax(a, b);
      case ScalarFn::Pow: return std::pow(a, b);
      case ScalarFn::Hypot: return std::hypot(a, b);
      case ScalarFn::CopySign: return std::copysign(a, b);
      case ScalarFn::Atan2: return std::atan2(a, b);
      case ScalarFn::Ldexp:  // exact in double; a float has room for the product
        return type == DType::Float64 && b == std::floor(b) && std::abs(b) <= 1e6
                   ? std::ldexp(a, static_cast<int>(b)) : a * std::exp2(b);
      default: ADD_FAILURE() << "no function of reals " << static_cast<int>(fn); return 0;
    }
  }

  static int64_t whole_binary(ScalarFn fn, int64_t a, int64_t b, DType type) {
    const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
    const auto bits = static_cast<int64_t>(8 * size_of(type));
    const bool out = b < 0 || b >= bits;  // a shift beyond the type
    switch (fn) {
      case ScalarFn::Add: return static_cast<int64_t>(ua + ub);
      case ScalarFn::Subtract: return static_cast<int64_t>(ua - ub);
      case ScalarFn::Multiply: return static_cast<int64_t>(ua * ub);
      case ScalarFn::FloorDivide: return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
      case ScalarFn::Modulo: return (a % b != 0) && ((a < 0) != (b < 0)) ? a % b + b : a % b;
      case ScalarFn::Min: case ScalarFn::FMin: return std::min(a, b);
      case ScalarFn::Max: case ScalarFn::FMax: return std::max(a, b);
      case ScalarFn::BitAnd: return a & b;
      case ScalarFn::BitOr: return a | b;
      case ScalarFn::BitXor: return a ^ b;
      case ScalarFn::Gcd: return std::gcd(a, b);
      case ScalarFn::CopySign: return (a < 0) != (b < 0) ? -a : a;
      case ScalarFn::ShiftLeft: return out ? 0 : static_cast<int64_t>(ua << ub);
      case ScalarFn::ShiftRight: return out ? (a < 0 ? -1 : 0) : a >> b;
      case ScalarFn::ShiftRightBits: {
        const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
        return out ? 0 : static_cast<int64_t>((ua & mask) >> ub);
      }
      case ScalarFn::Pow: {
        if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
        uint64_t power = 1;
        for (int64_t i = 0; i < b; ++i) power *= ua;
        return static_cast<int64_t>(power);
      }
      default: ADD_FAILURE() << "no function of integers " << static_cast<int>(fn); return 0;
    }
  }
  // clang-format on

  const Op& op_;
  Args args_;
  TensorList results_;
  std::vector<Number> made_;
};

// How far a kernel may be from the exact value: some units in the last place of what was added up.
double tolerance(DType type) {
  if (type == DType::Float16) return 8e-3;
  if (type == DType::BFloat16) return 6e-2;
  return type == DType::Float32 ? 4e-6 : 1e-13;
}

bool matches(const Number& expected, const Tensor& result, int64_t element) {
  const DType type = result.dtype();
  if (!is_floating(type))
    return cast_to(expected, type).integer == load_integer(place_of(result, element), type);
  char bytes[16];
  store_element(bytes, type, expected.as_real());
  const double want = load_element(bytes, type).real(), have = element_of(result, element);
  if (std::isnan(want) || std::isnan(have)) return std::isnan(want) == std::isnan(have);
  if (want == have) return true;
  return std::abs(want - have) <= tolerance(type) * std::max(1.0, std::abs(want));
}

struct Count {
  int64_t elements = 0, calls = 0;
  std::set<std::string> ops;
};

bool is_real(const Tensor& t) { return !is_complex(t.dtype()); }

// The operands as every rule sees them, dense.
Frame prepared(const Op& op, const Frame& given) {
  Frame ready;
  const bool changed = op.prepares() && prepare(op, given.args(), ready);
  Frame frame = changed ? std::move(ready) : given.clone();
  for (size_t i = 0; i < frame.size(); ++i)
    if (frame[i].is_tensor()) frame.set_tensor(i, assign(frame[i].as_tensor()));
  return frame;
}

void compare_call(const Op& op, const Frame& given, Count& count, std::vector<std::string>& wrong) {
  const Frame frame = prepared(op, given);
  bool real = true;
  for_each_tensor(frame.args(), [&](const Tensor& t) { real &= is_real(t); });
  const Outputs results = dispatch(op, frame.args());
  std::vector<Tensor> dense;
  for (const Tensor& t : results) {
    real = real && is_real(t);
    dense.push_back(assign(t));
  }
  if (!real) return;
  ++count.calls;
  Interpreter interpreter(op, frame.args(), dense);
  for (int64_t k = 0; k < dense[0]->numel; ++k) {
    const std::vector<Number> expected = interpreter.run(k);
    for (size_t r = 0; r < dense.size(); ++r) {
      ++count.elements;
      if (matches(expected[r], dense[r], k)) continue;
      const bool has_operand = frame.size() > 0 && frame[0].is_tensor();
      wrong.push_back(format("{} {}: element {} of result {} is {}, the body gives {} (of {})",
                             op.name(), name_of(dense[r].dtype()), k, r, element_of(dense[r], k),
                             expected[r].as_real(),
                             has_operand ? element_of(frame[0].as_tensor(), k) : 0.0));
      return;
    }
  }
  count.ops.insert(op.name());
}

constexpr DType kTypes[] = {DType::Float32, DType::Float64, DType::Float16, DType::BFloat16,
                            DType::Int64,   DType::Int32,   DType::UInt8,   DType::Bool};

// The sample's call in a dtype; none where the op does not take it.
std::optional<Frame> call_in(const Op& op, const Sample& sample, DType dtype, uint64_t seed) try {
  Frame frame = sample.make(op.schema(), dtype, seed);
  dispatch(op, frame.args());
  return frame;
} catch (const Error&) {
  return std::nullopt;
}

TEST(Scalar, EveryBodyAgreesWithItsKernel) {
  Count count;
  std::vector<std::string> wrong;
  for (const Op* op : Registry::get().all()) {
    if (!op->def().scalar || op->inplace_of() || !op->def().samples || op->scalar()->folds())
      continue;
    uint64_t seed = 1;
    for (const Sample& sample : op->def().samples())
      for (DType dtype : kTypes)
        if (const std::optional<Frame> frame = call_in(*op, sample, dtype, seed++))
          compare_call(*op, *frame, count, wrong);
  }
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " calls differ:\n" << join(wrong, "\n");
  EXPECT_GE(count.ops.size(), 140u);
  EXPECT_GE(count.calls, 2000);
  EXPECT_GE(count.elements, 40000);
}

// Not a number, infinities, both zeros, and numbers at the ends of the range.
std::vector<double> special_numbers() {
  const double inf = std::numeric_limits<double>::infinity();
  return {std::nan(""), inf, -inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 3, -3, 88, -88, 1e4, -1e4, 1e-4};
}

// Every pair of special numbers, in the first two float operands of the call; the others hold ones.
std::optional<Frame> special_call(const Op& op, const Frame& like) {
  const std::vector<double> numbers = special_numbers();
  const size_t n = numbers.size();
  Frame frame = like.clone();
  size_t tensors = 0;
  for (size_t i = 0; i < frame.size(); ++i) {
    if (frame[i].is_tensors()) return std::nullopt;
    if (!frame[i].is_tensor()) continue;
    if (!is_floating(frame[i].as_tensor().dtype()) && tensors < 2 && op.has(Trait::Promote) &&
        (op.promotes() >> i & 1))
      return std::nullopt;
    const DType dtype = frame[i].as_tensor().dtype();
    Tensor t = Tensor::empty(Shape{static_cast<int64_t>(n * n)}, dtype);
    for (size_t k = 0; k < n * n; ++k) {
      const double v = tensors == 0 ? numbers[k / n] : tensors == 1 ? numbers[k % n] : 1;
      store_element(static_cast<char*>(t->data) + k * size_of(dtype), dtype,
                    is_floating(dtype) ? v : static_cast<double>(k % 2));
    }
    frame.set_tensor(i, t);
    ++tensors;
  }
  return tensors > 0 ? std::optional(std::move(frame)) : std::nullopt;
}

TEST(Scalar, BodiesAgreeOnSpecialNumbers) {
  // At infinity the kernel's slope is not 1, which the body's is.
  const std::set<std::string> other = {"mish_grad"};
  Count count;
  std::vector<std::string> wrong;
  for (const Op* op : Registry::get().all()) {
    if (!op->def().scalar || op->inplace_of() || !op->def().samples || op->has(Trait::View) ||
        other.contains(op->name()) || op->scalar()->folds())
      continue;
    for (DType dtype : {DType::Float32, DType::Float64})
      if (const std::optional<Frame> frame = call_in(*op, op->def().samples()[0], dtype, 1))
        if (const std::optional<Frame> special = special_call(*op, *frame))
          compare_call(*op, *special, count, wrong);
  }
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " calls differ:\n" << join(wrong, "\n");
  EXPECT_GE(count.ops.size(), 100u);
  EXPECT_GE(count.elements, 40000);
}

TEST(Scalar, EveryElementwisePrimitiveHasABody) {
  // Functions without a short formula, or about complex numbers or the bits of a dtype.
  const std::set<std::string> without = {"complex_conj", "real",      "imag",      "angle",
                                         "complex",      "nextafter", "erfinv",    "digamma",
                                         "polygamma",    "gammainc",  "gammaincc", "gammainc_order",
                                         "i0",           "i0e",       "i1",        "i1e"};
  size_t with = 0;
  for (const Op* op : Registry::get().all()) {
    if (!op->is_built_in() || op->inplace_of() || !op->has(Trait::Elementwise) ||
        op->has(Trait::Random) || op->def().decompose)
      continue;
    EXPECT_NE(op->def().scalar != nullptr, without.contains(op->name())) << op->name();
    with += op->def().scalar != nullptr;
  }
  EXPECT_GE(with, 60u);
}

Schema schema_of(const char* text) { return Schema::parse(text); }

TEST(Scalar, TheParserKnowsPrecedence) {
  const Schema schema =
      schema_of("f(Tensor x, Tensor y, float? low = None, int[] sizes = [2]) -> Tensor");
  const auto fns = [&](const char* text) {
    const ScalarBody body = ScalarBody::parse(text, schema);
    std::vector<ScalarFn> list;
    for (const ScalarStep& step : body.steps()) list.push_back(step.fn);
    return list;
  };
  using enum ScalarFn;
  const auto X = Operand;
  EXPECT_EQ(fns("x + y * 2"), (std::vector{X, X, Number, Multiply, Add}));
  EXPECT_EQ(fns("(x + y) * 2"), (std::vector{X, X, Add, Number, Multiply}));
  EXPECT_EQ(fns("x - y - 1"), (std::vector{X, X, Subtract, Number, Subtract}));
  EXPECT_EQ(fns("x < 1 && y >= 2 || !x"),
            (std::vector{X, Number, Less, X, Number, GreaterEqual, And, X, Not, Or}));
  EXPECT_EQ(fns("x // y / -y"), (std::vector{X, X, FloorDivide, X, Negate, Divide}));
  EXPECT_EQ(fns("given(low) ? max(x, low) : x % y"),
            (std::vector{Given, X, Attribute, Max, X, X, Modulo, Select}));
  EXPECT_EQ(fns("s = x + 1; s * s"), (std::vector{X, Number, Add, Multiply}));
  EXPECT_EQ(fns("x * product(sizes) << 2 & 1 == 1"),
            (std::vector{X, Sizes, Multiply, Number, ShiftLeft, Number, Number, Equal, BitAnd}));
  EXPECT_EQ(ScalarBody::parse("x + y", schema).is_sum(), true);
  EXPECT_EQ(ScalarBody::parse("x - y", schema).is_sum(), false);
}

TEST(Scalar, MistakesAreNamed) {
  const Schema schema = schema_of("f(Tensor x, float low = 1.0) -> Tensor");
  const auto complaint = [&](const char* text) -> std::string {
    try {
      ScalarBody::parse(text, schema);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint("x + z").find("z is not a parameter"), std::string::npos);
  EXPECT_NE(complaint("sine(x)").find("no function sine"), std::string::npos);
  EXPECT_NE(complaint("max(x)").find("',' is missing"), std::string::npos);
  EXPECT_NE(complaint("(x").find("')' is missing"), std::string::npos);
  EXPECT_NE(complaint("x, x").find("2 results for 1"), std::string::npos);
  EXPECT_NE(complaint("x x").find("should end"), std::string::npos);
  EXPECT_NE(complaint("x +").find("should follow"), std::string::npos);
  EXPECT_NE(complaint("x = 1; x").find("is a parameter"), std::string::npos);
  EXPECT_NE(complaint("given(x)").find("takes an attribute"), std::string::npos);
  EXPECT_NE(complaint("x ? 1").find("':' is missing"), std::string::npos);
}

TEST(Scalar, CopiesAreFoundByTheirBodies) {
  EXPECT_EQ(get_op("assign").copied(), 0);
  EXPECT_EQ(get_op("cast").copied(), 0);
  EXPECT_EQ(get_op("copy_into").copied(), 1);
  EXPECT_EQ(get_op("full").copied(), -1);  // an attribute
  EXPECT_EQ(get_op("add").copied(), -1);
  EXPECT_EQ(get_op("matmul").copied(), -1);
  size_t storing = 0;
  for (const Op* op : Registry::get().all()) storing += op->is_built_in() && op->stores();
  EXPECT_EQ(storing, 1u);
}

}  // namespace
}  // namespace oar
