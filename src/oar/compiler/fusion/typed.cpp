#include "oar/compiler/fusion/typed.h"

#include <cmath>
#include <limits>

#include "oar/base/format.h"
#include "oar/tensor/element.h"

namespace oar::fusion {
namespace {

bool equal_steps(const Step& a, const Step& b) {
  const bool same_number = std::bit_cast<int64_t>(a.number) == std::bit_cast<int64_t>(b.number);
  return a.kind == b.kind && a.fn == b.fn && a.type == b.type && a.rounded == b.rounded &&
         std::equal(a.operands, a.operands + 3, b.operands) && a.port == b.port && same_number &&
         a.integer == b.integer && a.loose == b.loose;
}

constexpr size_t kMostSteps = 4000;  // far beyond what compiles in a moment

// Integers as they are in a narrower type.
int64_t wrapped(int64_t v, DType type) {
  int64_t word = 0;
  store_integer(&word, type, v);
  return load_integer(&word, type);
}

}  // namespace

uint16_t StepList::add(const Step& step) {
  for (size_t i = 0; i < steps_.size(); ++i)
    if (equal_steps(steps_[i], step)) return static_cast<uint16_t>(i);
  if (steps_.size() >= kMostSteps) throw NotFusible{"it is too long"};
  steps_.push_back(step);
  return static_cast<uint16_t>(steps_.size() - 1);
}

uint16_t StepList::load(uint16_t port, DType dtype) {
  return add({.kind = StepKind::Load, .type = computed_as(dtype), .port = port});
}
uint16_t StepList::number(DType type, double real, int64_t integer) {
  if (type == DType::Float32) return add({.type = type, .number = static_cast<float>(real)});
  if (type == DType::Float64) return add({.type = type, .number = real});
  return add({.type = type,
              .integer = type == DType::Bool ? int64_t{integer != 0} : wrapped(integer, type)});
}
uint16_t StepList::cast(uint16_t step, DType to) {
  if (at(step).type == to) return step;
  return add({.kind = StepKind::Cast, .type = to, .operands = {step, 0, 0}});
}
uint16_t StepList::rounded(uint16_t step, DType to) {
  const uint16_t wide = cast(step, DType::Float32);
  if (at(wide).kind == StepKind::Round && at(wide).rounded == to) return wide;
  return add({.kind = StepKind::Round, .rounded = to, .operands = {wide, 0, 0}});
}
uint16_t StepList::apply(ScalarFn fn, DType type, std::initializer_list<uint16_t> operands) {
  Step step{.kind = StepKind::Apply, .fn = fn, .type = type};
  step.loose = loose_ && fn == ScalarFn::Divide && is_floating(type);
  std::copy(operands.begin(), operands.end(), step.operands);
  return add(step);
}
uint16_t StepList::fold(ScalarFn fn, uint16_t step) {
  return add({.kind = StepKind::Fold, .fn = fn, .type = at(step).type, .operands = {step, 0, 0}});
}

DType computed_as(DType dtype) {
  switch (dtype) {
    case DType::Float16:
    case DType::BFloat16:
      return DType::Float32;
    case DType::Bool:
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Float32:
    case DType::Float64:
      return dtype;
    default:
      throw NotFusible{format("{} is not computed by generated code", name_of(dtype))};
  }
}

namespace {

// A value of a body while it is typed: a step, or a number that takes the type of what it meets.
struct Typed {
  bool known = false;
  uint16_t step = 0;
  DType type = DType::Float64;  // of a known one: Bool, Int64 or Float64
  double real = 0;
  int64_t integer = 0;

  static Typed of_real(double v) { return {.known = true, .real = v}; }
  static Typed of_whole(int64_t v) { return {.known = true, .type = DType::Int64, .integer = v}; }
  static Typed of_truth(bool v) { return {.known = true, .type = DType::Bool, .integer = v}; }
  bool is_real() const { return is_floating(type); }
  double as_real() const { return is_real() ? real : static_cast<double>(integer); }
  bool truth() const { return is_real() ? real != 0 : integer != 0; }
};

bool wraps(ScalarFn fn) {
  return fn == ScalarFn::Add || fn == ScalarFn::Subtract || fn == ScalarFn::Multiply;
}
bool asks_real(ScalarFn fn) {
  return fn == ScalarFn::IsNan || fn == ScalarFn::IsInf || fn == ScalarFn::IsFinite ||
         fn == ScalarFn::SignBit;
}
// Integers are not divided here: eager kernels check the divisor.
bool is_for_reals_alone(ScalarFn fn) {
  return fn == ScalarFn::Divide || fn == ScalarFn::FloorDivide || fn == ScalarFn::Modulo ||
         fn == ScalarFn::Pow || fn == ScalarFn::CopySign;
}
bool has_code(ScalarFn fn) {
  return fn != ScalarFn::LogGamma && fn != ScalarFn::Ldexp && fn != ScalarFn::Mantissa &&
         fn != ScalarFn::Exponent && fn != ScalarFn::Gcd;
}

class BodyTyper {
 public:
  BodyTyper(StepList& steps, const Op& op, Args attributes, const std::vector<uint16_t>& operands,
            DType made, Total* total)
      : steps_(steps),
        op_(op),
        attributes_(attributes),
        operands_(operands),
        made_(made),
        total_(total) {}

  std::vector<uint16_t> run(const std::vector<DType>& made, bool rounds) {
    for (const ScalarStep& step : op_.scalar()->steps()) values_.push_back(value_of(step));
    std::vector<uint16_t> results;
    for (size_t r = 0; r < made.size(); ++r) {
      const uint16_t step = in_type(values_[op_.scalar()->results()[r]], computed_as(made[r]));
      const bool narrow = is_floating(made[r]) && size_of(made[r]) == 2;
      results.push_back(narrow && rounds && !total_ ? steps_.rounded(step, made[r]) : step);
    }
    return results;
  }

 private:
  [[noreturn]] static void refuse() { throw NotFusible{"generated code has no such function"}; }

  Typed value_of(const ScalarStep& step) {
    switch (step.fn) {
      case ScalarFn::Operand:
        return of_step(operands_[step.parameter]);
      case ScalarFn::Attribute:
        return attribute(attributes_[step.parameter]);
      case ScalarFn::Given:
        return Typed::of_truth(!attributes_[step.parameter].is_none());
      case ScalarFn::Sizes: {
        int64_t product = 1;
        for (Dim d : attributes_[step.parameter].as_dim_list()) product *= d.value();
        return Typed::of_whole(product);
      }
      case ScalarFn::Number:
        return step.whole ? Typed::of_whole(static_cast<int64_t>(step.number))
                          : Typed::of_real(step.number);
      case ScalarFn::Largest:
        return Typed::of_real(largest());
      default:
        break;
    }
    if (!has_code(step.fn)) refuse();
    if (step.fn >= ScalarFn::SumOf) return folded(step.fn, values_[step.operands[0]]);
    const Typed &a = values_[step.operands[0]], &b = values_[step.operands[1]],
                &c = values_[step.operands[2]];
    if (step.fn == ScalarFn::Select) return selected(a, b, c);
    if (step.fn == ScalarFn::And || step.fn == ScalarFn::Or) return joined(step.fn, a, b);
    if (step.fn == ScalarFn::Not)
      return a.known ? Typed::of_truth(!a.truth())
                     : of_step(steps_.apply(step.fn, DType::Bool, {in_type(a, DType::Bool)}));
    return oar::arity_of(step.fn) == 1 ? unary(step.fn, a) : binary(step.fn, a, b);
  }

  Typed folded(ScalarFn fn, const Typed& each) {
    const DType type = computed_as(made_);
    if (fn == ScalarFn::MeanOf && !is_floating(type))
      throw NotFusible{"a mean of integers is cut to one"};
    const ScalarFn joins = fn == ScalarFn::ProductOf    ? ScalarFn::Multiply
                           : fn == ScalarFn::LeastOf    ? ScalarFn::Min
                           : fn == ScalarFn::GreatestOf ? ScalarFn::Max
                                                        : ScalarFn::Add;
    if (total_) {
      *total_ = {joins, fn == ScalarFn::MeanOf};
      return of_step(in_type(each, type));
    }
    const uint16_t sum = steps_.fold(joins, in_type(each, type));
    if (fn != ScalarFn::MeanOf) return of_step(sum);
    const uint16_t count = steps_.add({.kind = StepKind::Count, .type = type});
    return of_step(steps_.apply(ScalarFn::Divide, type, {sum, count}));
  }

  Typed of_step(uint16_t step) const { return {.step = step, .type = steps_.at(step).type}; }

  static Typed attribute(const Value& v) {
    switch (v.tag) {
      case OAR_TAG_BOOL:
        return Typed::of_truth(v.as_bool());
      case OAR_TAG_INT:
        return Typed::of_whole(v.as_int());
      case OAR_TAG_DOUBLE:
        return Typed::of_real(v.as_double());
      case OAR_TAG_NONE:
        return Typed::of_real(0);  // read after given()
      default:
        throw NotFusible{"an attribute is not a real number"};
    }
  }

  double largest() const {
    switch (made_) {
      case DType::Float16:
        return 65504;
      case DType::BFloat16:
        return static_cast<double>(static_cast<float>(bfloat16(3.3895e38F)));
      case DType::Float32:
        return std::numeric_limits<float>::max();
      default:
        return std::numeric_limits<double>::max();
    }
  }

  // Throws for a whole number that the type does not have, unless the result wraps anyway.
  uint16_t in_type(const Typed& t, DType type, bool may_wrap = true) {
    if (!t.known) return steps_.cast(t.step, type);
    if (is_floating(type)) return steps_.number(type, t.as_real(), 0);
    if (t.is_real()) throw NotFusible{"a fraction meets an integer"};
    if (!may_wrap && type != DType::Bool && wrapped(t.integer, type) != t.integer)
      throw NotFusible{"a number is beyond its type"};
    return steps_.number(type, 0, t.integer);
  }

  Typed selected(const Typed& which, const Typed& yes, const Typed& no) {
    if (which.known) return which.truth() ? yes : no;
    const DType type = yes.known && no.known
                           ? (yes.is_real() || no.is_real() ? computed_as(made_) : yes.type)
                           : meeting(yes, no);
    return of_step(steps_.apply(
        ScalarFn::Select, type,
        {in_type(which, DType::Bool), in_type(yes, type, false), in_type(no, type, false)}));
  }

  Typed joined(ScalarFn fn, const Typed& a, const Typed& b) {
    const bool decides = fn == ScalarFn::Or;  // the answer that one operand can give alone
    if (a.known && a.truth() == decides) return Typed::of_truth(decides);
    if (b.known && b.truth() == decides) return Typed::of_truth(decides);
    if (a.known && b.known) return Typed::of_truth(!decides);
    if (a.known || b.known) return of_step(in_type(a.known ? b : a, DType::Bool));
    return of_step(
        steps_.apply(fn, DType::Bool, {in_type(a, DType::Bool), in_type(b, DType::Bool)}));
  }

  // The type in which two values meet: that of a number is that of the other.
  static DType meeting(const Typed& a, const Typed& b) {
    if (a.known == b.known) {
      if (a.type == b.type) return a.type;
      if (is_bool(a.type)) return b.type;
      if (is_bool(b.type)) return a.type;
      return computed_as(promote(a.type, b.type));
    }
    const Typed &strong = a.known ? b : a, &number = a.known ? a : b;
    if (strong.is_real() || !number.is_real())
      return is_bool(strong.type) ? number.type : strong.type;
    return DType::Float64;
  }

  Typed unary(ScalarFn fn, const Typed& a) {
    if (a.known) return Typed::of_real(number_of(fn, a.as_real(), 0));
    if (asks_real(fn)) {
      if (fn == ScalarFn::SignBit && !a.is_real())
        return binary(ScalarFn::Less, a, Typed::of_whole(0));
      if (!a.is_real()) return Typed::of_truth(fn == ScalarFn::IsFinite);
      return of_step(steps_.apply(fn, DType::Bool, {a.step}));
    }
    if (!a.is_real() && fn < ScalarFn::Sqrt) {
      if (is_bool(a.type) && fn != ScalarFn::BitNot) return a;  // abs, floor and their kin
      return of_step(steps_.apply(fn, a.type, {a.step}));
    }
    const DType type = a.is_real() ? a.type : DType::Float64;
    return of_step(steps_.apply(fn, type, {in_type(a, type)}));
  }

  // x ** 3 as a product, as its own kernel computes it.
  Typed power(const Typed& a, int exponent) {
    uint16_t made = a.step;
    for (int i = 1; i < exponent; ++i)
      made = steps_.apply(ScalarFn::Multiply, a.type, {made, a.step});
    return of_step(made);
  }

  Typed binary(ScalarFn fn, const Typed& a, const Typed& b) {
    if (a.known && b.known) return both_known(fn, a, b);
    if (fn == ScalarFn::Pow && b.known && a.is_real())
      for (const int exponent : {1, 2, 3})
        if (b.as_real() == exponent) return power(a, exponent);
    DType type = meeting(a, b);
    if (!is_floating(type) && fn == ScalarFn::Divide) type = DType::Float64;
    if (!is_floating(type) && (is_for_reals_alone(fn) || fn >= ScalarFn::Sqrt) &&
        fn != ScalarFn::ShiftRightBits)
      refuse();
    const bool wrap = wraps(fn);
    const uint16_t x = in_type(a, type, wrap), y = in_type(b, type, wrap);
    const bool compares = fn >= ScalarFn::Less && fn <= ScalarFn::NotEqual;
    return of_step(steps_.apply(fn, compares ? DType::Bool : type, {x, y}));
  }

  static Typed both_known(ScalarFn fn, const Typed& a, const Typed& b) {
    const bool whole = !a.is_real() && !b.is_real();
    if (fn >= ScalarFn::Less && fn <= ScalarFn::NotEqual)
      return Typed::of_truth(number_of(fn, a.as_real(), b.as_real()) != 0);
    if (!whole || fn == ScalarFn::Divide)
      return Typed::of_real(number_of(fn, a.as_real(), b.as_real()));
    if (fn == ScalarFn::Add) return Typed::of_whole(a.integer + b.integer);
    if (fn == ScalarFn::Subtract) return Typed::of_whole(a.integer - b.integer);
    if (fn == ScalarFn::Multiply) return Typed::of_whole(a.integer * b.integer);
    refuse();
  }

  // Of numbers, in double.
  static double number_of(ScalarFn fn, double a, double b) {
    switch (fn) {
        // clang-format off
      case ScalarFn::Add: return a + b;
      case ScalarFn::Subtract: return a - b;
      case ScalarFn::Multiply: return a * b;
      case ScalarFn::Divide: return a / b;
      case ScalarFn::Negate: return -a;
      case ScalarFn::Abs: return std::abs(a);
      case ScalarFn::Sqrt: return std::sqrt(a);
      case ScalarFn::Exp: return std::exp(a);
      case ScalarFn::Log: return std::log(a);
      case ScalarFn::Pow: return std::pow(a, b);
      case ScalarFn::Min: return std::min(a, b);
      case ScalarFn::Max: return std::max(a, b);
      case ScalarFn::Less: return static_cast<double>(a < b);
      case ScalarFn::LessEqual: return static_cast<double>(a <= b);
      case ScalarFn::Greater: return static_cast<double>(a > b);
      case ScalarFn::GreaterEqual: return static_cast<double>(a >= b);
      case ScalarFn::Equal: return static_cast<double>(a == b);
      case ScalarFn::NotEqual: return static_cast<double>(a != b);
      default: refuse();
        // clang-format on
    }
  }

  StepList& steps_;
  const Op& op_;
  const Args attributes_;
  const std::vector<uint16_t>& operands_;  // by parameter
  const DType made_;
  Total* const total_;
  std::vector<Typed> values_;
};

}  // namespace

std::vector<uint16_t> apply_body(StepList& steps, const Op& op, Args attributes,
                                 const std::vector<uint16_t>& operands,
                                 const std::vector<DType>& made, bool rounds, Total* total) {
  steps.set_loose(!rounds);
  return BodyTyper(steps, op, attributes, operands, made[0], total).run(made, rounds);
}

}  // namespace oar::fusion
