#include "oar/ops/core/scalar.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <numbers>

#include "oar/base/error.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/format.h"
#include "oar/ops/core/registry.h"

namespace oar {
namespace {

struct Function {
  std::string_view word;
  ScalarFn fn;
  int arity;
};

// What a body may call by name.
// clang-format off
constexpr Function kFunctions[] = {
    {"abs", ScalarFn::Abs, 1},           {"sign", ScalarFn::Sign, 1},
    {"min", ScalarFn::Min, 2},           {"max", ScalarFn::Max, 2},
    {"fmin", ScalarFn::FMin, 2},         {"fmax", ScalarFn::FMax, 2},
    {"floor", ScalarFn::Floor, 1},       {"ceil", ScalarFn::Ceil, 1},
    {"round", ScalarFn::Round, 1},       {"trunc", ScalarFn::Trunc, 1},
    {"sqrt", ScalarFn::Sqrt, 1},         {"pow", ScalarFn::Pow, 2},
    {"hypot", ScalarFn::Hypot, 2},       {"copysign", ScalarFn::CopySign, 2},
    {"signbit", ScalarFn::SignBit, 1},   {"exp", ScalarFn::Exp, 1},
    {"expm1", ScalarFn::Expm1, 1},       {"log", ScalarFn::Log, 1},
    {"log1p", ScalarFn::Log1p, 1},       {"log2", ScalarFn::Log2, 1},
    {"log10", ScalarFn::Log10, 1},       {"sin", ScalarFn::Sin, 1},
    {"cos", ScalarFn::Cos, 1},           {"tan", ScalarFn::Tan, 1},
    {"asin", ScalarFn::Asin, 1},         {"acos", ScalarFn::Acos, 1},
    {"atan", ScalarFn::Atan, 1},         {"atan2", ScalarFn::Atan2, 2},
    {"sinh", ScalarFn::Sinh, 1},         {"cosh", ScalarFn::Cosh, 1},
    {"tanh", ScalarFn::Tanh, 1},         {"asinh", ScalarFn::Asinh, 1},
    {"acosh", ScalarFn::Acosh, 1},       {"atanh", ScalarFn::Atanh, 1},
    {"erf", ScalarFn::Erf, 1},           {"lgamma", ScalarFn::LogGamma, 1},
    {"isnan", ScalarFn::IsNan, 1},       {"isinf", ScalarFn::IsInf, 1},
    {"isfinite", ScalarFn::IsFinite, 1},
    {"ldexp", ScalarFn::Ldexp, 2},       {"mantissa", ScalarFn::Mantissa, 1},
    {"exponent", ScalarFn::Exponent, 1}, {"gcd", ScalarFn::Gcd, 2},
    {"shift_right_bits", ScalarFn::ShiftRightBits, 2},  // shifts the sign bit too
    {"sum_of", ScalarFn::SumOf, 1},      {"mean_of", ScalarFn::MeanOf, 1},
    {"product_of", ScalarFn::ProductOf, 1},
    {"least_of", ScalarFn::LeastOf, 1},  {"greatest_of", ScalarFn::GreatestOf, 1},
};
// clang-format on

struct Operator {
  std::string_view sign;
  ScalarFn fn;
  int strength;
};

// Binary operators; a longer one comes before its own prefix.
// clang-format off
constexpr Operator kOperators[] = {
    {"||", ScalarFn::Or, 1},         {"&&", ScalarFn::And, 2},
    {"==", ScalarFn::Equal, 6},      {"!=", ScalarFn::NotEqual, 6},
    {"<<", ScalarFn::ShiftLeft, 8},  {">>", ScalarFn::ShiftRight, 8},
    {"<=", ScalarFn::LessEqual, 7},  {">=", ScalarFn::GreaterEqual, 7},
    {"<", ScalarFn::Less, 7},        {">", ScalarFn::Greater, 7},
    {"|", ScalarFn::BitOr, 3},       {"^", ScalarFn::BitXor, 4},
    {"&", ScalarFn::BitAnd, 5},      {"+", ScalarFn::Add, 9},
    {"-", ScalarFn::Subtract, 9},    {"*", ScalarFn::Multiply, 10},
    {"//", ScalarFn::FloorDivide, 10}, {"/", ScalarFn::Divide, 10},
    {"%", ScalarFn::Modulo, 10},
};
// clang-format on

constexpr std::pair<std::string_view, double> kConstants[] = {
    {"pi", std::numbers::pi},
    {"e", std::numbers::e},
    {"inf", std::numeric_limits<double>::infinity()},
    {"nan", std::numeric_limits<double>::quiet_NaN()}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Recursive descent. Each function returns the number of the step that it has added.
class ScalarParser {
 public:
  ScalarParser(std::string_view text, const Schema& schema) : text_(text), schema_(schema) {}

  ScalarBody run() {
    for (std::string_view name = word_before_equals(); !name.empty(); name = word_before_equals()) {
      if (schema_.index_of(name) >= 0) fail_here(format("{} is a parameter", name));
      names_[name] = expression();
      expect(";");
    }
    do body_.results_.push_back(expression());
    while (take(","));
    if (at_ < text_.size()) fail_here("the body should end");
    if (body_.results_.size() != schema_.results.size())
      fail_here(format("{} results for {}", body_.results_.size(), schema_.results.size()));
    return std::move(body_);
  }

 private:
  [[noreturn]] void fail_here(const std::string& what) const {
    fail(ErrorKind::InvalidArgument,
         "the scalar body of {} is wrong at '{}': {}.\nhint: The body is \"{}\".", schema_.name,
         text_.substr(std::min(at_, text_.size())), what, text_);
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view sign) {
    skip();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    skip();
    return true;
  }
  void expect(std::string_view sign) {
    if (!take(sign)) fail_here(format("'{}' is missing", sign));
  }
  std::string_view word() {
    skip();
    const size_t start = at_;
    if (at_ < text_.size() && is_letter(text_[at_]))
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return text_.substr(start, at_ - start);
  }
  // "name =" of a part; consumes nothing if there is none.
  std::string_view word_before_equals() {
    const size_t start = at_;
    const std::string_view name = word();
    skip();
    const bool named =
        !name.empty() && text_.substr(at_).starts_with("=") && !text_.substr(at_).starts_with("==");
    at_ = named ? at_ + 1 : start;
    return named ? name : std::string_view();
  }

  uint16_t add(ScalarStep step) {
    body_.steps_.push_back(step);
    return static_cast<uint16_t>(body_.steps_.size() - 1);
  }
  uint16_t add(ScalarFn fn, uint16_t a, uint16_t b = 0, uint16_t c = 0) {
    return add({.fn = fn, .operands = {a, b, c}});
  }

  uint16_t expression() {
    const uint16_t condition = binary(0);
    if (!take("?")) return condition;
    const uint16_t yes = expression();
    expect(":");
    return add(ScalarFn::Select, condition, yes, expression());
  }

  uint16_t binary(int weakest) {
    uint16_t left = unary();
    for (const Operator* found = next_operator(weakest); found; found = next_operator(weakest))
      left = add(found->fn, left, binary(found->strength));
    return left;
  }
  // Consumes an operator that binds more tightly than `weakest`.
  const Operator* next_operator(int weakest) {
    skip();
    const auto fits = [&](const Operator& o) { return text_.substr(at_).starts_with(o.sign); };
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators), fits);
    if (found == std::end(kOperators) || found->strength <= weakest) return nullptr;
    at_ += found->sign.size();
    return found;
  }

  uint16_t unary() {
    if (take("-")) return add(ScalarFn::Negate, unary());
    if (take("!")) return add(ScalarFn::Not, unary());
    if (take("~")) return add(ScalarFn::BitNot, unary());
    if (take("(")) {
      const uint16_t inside = expression();
      expect(")");
      return inside;
    }
    skip();
    if (at_ < text_.size() && is_digit(text_[at_])) return number();
    const std::string_view name = word();
    if (name.empty()) fail_here("a number, a name or '(' should follow");
    return take("(") ? call(name) : value(name);
  }

  uint16_t number() {
    ScalarStep step;
    const char* start = text_.data() + at_;
    const auto [end, error] = std::from_chars(start, text_.data() + text_.size(), step.number);
    if (error != std::errc()) fail_here("this is not a number");
    step.whole = std::all_of(start, end, is_digit);
    at_ += static_cast<size_t>(end - start);
    return add(step);
  }

  uint16_t call(std::string_view name) {
    if (name == "given" || name == "product") return call_on_attribute(name);
    const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                     [&](const Function& f) { return f.word == name; });
    if (found == std::end(kFunctions)) fail_here(format("there is no function {}", name));
    uint16_t operands[3] = {0, 0, 0};
    for (int i = 0; i < found->arity; ++i) {
      if (i > 0) expect(",");
      operands[i] = expression();
    }
    expect(")");
    return add(found->fn, operands[0], operands[1], operands[2]);
  }

  // given(min): was the optional attribute passed? product(sizes): of a list of sizes.
  uint16_t call_on_attribute(std::string_view function) {
    const std::string_view name = word();
    const int i = schema_.index_of(name);
    if (i < 0 || schema_.parameters[static_cast<size_t>(i)].is_tensor())
      fail_here(format("{} takes an attribute", function));
    expect(")");
    return add({.fn = function == "given" ? ScalarFn::Given : ScalarFn::Sizes,
                .parameter = static_cast<uint16_t>(i)});
  }

  uint16_t value(std::string_view name) {
    if (const auto part = names_.find(name); part != names_.end()) return part->second;
    if (const int i = schema_.index_of(name); i >= 0) {
      const bool tensor = schema_.parameters[static_cast<size_t>(i)].is_tensor();
      return add({.fn = tensor ? ScalarFn::Operand : ScalarFn::Attribute,
                  .parameter = static_cast<uint16_t>(i)});
    }
    if (name == "largest") return add({.fn = ScalarFn::Largest});
    for (const auto& [constant, number] : kConstants)
      if (constant == name) return add({.number = number});
    fail_here(format("{} is not a parameter, part or constant", name));
  }

  std::string_view text_;
  const Schema& schema_;
  size_t at_ = 0;
  std::map<std::string_view, uint16_t> names_;
  ScalarBody body_;
};

ScalarBody ScalarBody::parse(std::string_view text, const Schema& schema) {
  return ScalarParser(text, schema).run();
}

int arity_of(ScalarFn fn) {
  if (fn <= ScalarFn::Largest) return 0;
  if (fn == ScalarFn::Select) return 3;
  if (fn == ScalarFn::Negate || fn == ScalarFn::Not || fn == ScalarFn::BitNot) return 1;
  for (const Function& f : kFunctions)
    if (f.fn == fn) return f.arity;
  return 2;
}

double flops_of(ScalarFn fn) {
  constexpr double kSeries = 8;  // a polynomial and the reduction of its argument
  if (fn <= ScalarFn::Largest) return 0;
  if (fn == ScalarFn::Pow || fn == ScalarFn::LogGamma) return 2 * kSeries;
  return fn >= ScalarFn::Exp && fn < ScalarFn::IsNan ? kSeries : 1;
}

double ScalarBody::flops() const {
  double sum = 0;
  for (const ScalarStep& step : steps_) sum += flops_of(step.fn);
  return sum;
}

bool ScalarBody::folds() const {
  return std::any_of(steps_.begin(), steps_.end(),
                     [](const ScalarStep& step) { return step.fn >= ScalarFn::SumOf; });
}

bool ScalarBody::is_sum() const {
  const auto adds = [](const ScalarStep& step) {
    return step.fn == ScalarFn::Operand || step.fn == ScalarFn::Add;
  };
  return results_.size() == 1 && std::all_of(steps_.begin(), steps_.end(), adds);
}

// Parsed when it is first asked for: most programs never ask.
const ScalarBody* Op::scalar() const {
  if (const ScalarBody* body = scalar_.load(std::memory_order_acquire); body || !def_.scalar)
    return body;
  static auto& mutex = *new ForkMutex;
  std::lock_guard lock(mutex);
  if (!scalar_.load(std::memory_order_relaxed))
    scalar_.store(new ScalarBody(ScalarBody::parse(def_.scalar, schema_)),
                  std::memory_order_release);  // kept as long as the op: for ever
  return scalar_.load(std::memory_order_relaxed);
}

}  // namespace oar
