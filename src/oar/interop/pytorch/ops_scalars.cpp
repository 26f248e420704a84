// Numbers that are known, checks that need nothing.
#include <cmath>
#include <functional>
#include <limits>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

bool whole(const Call& c, const char* name) { return c.value(name).kind != Value::Float; }
bool both_whole(const Call& c) { return whole(c, "a") && whole(c, "b"); }

int64_t checked(const Call& c, int64_t a, int64_t b, bool (*function)(int64_t, int64_t, int64_t*)) {
  int64_t made = 0;
  if (function(a, b, &made)) c.refuse("an integer is too large");
  return made;
}
bool adds(int64_t a, int64_t b, int64_t* r) { return __builtin_add_overflow(a, b, r); }
bool subtracts(int64_t a, int64_t b, int64_t* r) { return __builtin_sub_overflow(a, b, r); }
bool multiplies(int64_t a, int64_t b, int64_t* r) { return __builtin_mul_overflow(a, b, r); }

Value added(const Call& c) {
  if (both_whole(c)) return Value::of(checked(c, c.integer("a"), c.integer("b"), adds));
  return Value::of(c.number("a") + c.number("b"));
}
Value subtracted(const Call& c) {
  if (both_whole(c)) return Value::of(checked(c, c.integer("a"), c.integer("b"), subtracts));
  return Value::of(c.number("a") - c.number("b"));
}
Value multiplied(const Call& c) {
  if (both_whole(c)) return Value::of(checked(c, c.integer("a"), c.integer("b"), multiplies));
  return Value::of(c.number("a") * c.number("b"));
}
void check_divisor(const Call& c) {
  if (c.number("b") == 0) c.refuse("it divides by zero");
}
Value divided(const Call& c) {
  check_divisor(c);
  return Value::of(c.number("a") / c.number("b"));
}
int64_t down(int64_t a, int64_t b) {
  if (b == -1) return a == std::numeric_limits<int64_t>::min() ? a : -a;
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
Value divided_down(const Call& c) {
  check_divisor(c);
  if (both_whole(c)) return Value::of(down(c.integer("a"), c.integer("b")));
  return Value::of(std::floor(c.number("a") / c.number("b")));
}
Value rest(const Call& c) {
  check_divisor(c);
  if (both_whole(c)) {
    const int64_t a = c.integer("a"), b = c.integer("b");
    return Value::of(b == -1 ? int64_t{0} : a - down(a, b) * b);
  }
  const double a = c.number("a"), b = c.number("b");
  return Value::of(a - std::floor(a / b) * b);
}
Value raised(const Call& c) {
  const double made = std::pow(c.number("a"), c.number("b"));
  if (both_whole(c) && c.integer("b") >= 0) {
    if (std::fabs(made) > 9e15) c.refuse("an integer is too large");
    return Value::of(static_cast<int64_t>(made));
  }
  return Value::of(made);
}
Value negated(const Call& c) {
  if (whole(c, "a")) return Value::of(checked(c, 0, c.integer("a"), subtracts));
  return Value::of(-c.number("a"));
}
Value smaller(const Call& c) {
  if (both_whole(c)) return Value::of(std::min(c.integer("a"), c.integer("b")));
  return Value::of(std::min(c.number("a"), c.number("b")));
}
Value larger(const Call& c) {
  if (both_whole(c)) return Value::of(std::max(c.integer("a"), c.integer("b")));
  return Value::of(std::max(c.number("a"), c.number("b")));
}
Value magnitude(const Call& c) {
  if (whole(c, "a")) return Value::of(std::abs(c.integer("a")));
  return Value::of(std::fabs(c.number("a")));
}

template <class F>
Value compared(const Call& c) {
  const Value &a = c.value("a"), &b = c.value("b");
  if (a.kind == Value::Text && b.kind == Value::Text) return Value::flag(F()(a.text, b.text));
  if (both_whole(c)) return Value::flag(F()(c.integer("a"), c.integer("b")));
  return Value::flag(F()(c.number("a"), c.number("b")));
}

int64_t as_integer(const Call& c, double value) {
  if (!(std::fabs(value) < 9e18)) c.refuse("a number is too large for an integer");
  return static_cast<int64_t>(value);
}
Value floored(const Call& c) { return Value::of(as_integer(c, std::floor(c.number("a")))); }
Value lifted(const Call& c) { return Value::of(as_integer(c, std::ceil(c.number("a")))); }
Value truncated(const Call& c) { return Value::of(as_integer(c, std::trunc(c.number("a")))); }
Value nearest_even(const Call& c) {
  const double made = std::nearbyint(c.number("a"));
  return Value::of(made);
}
Value root(const Call& c) { return Value::of(std::sqrt(c.number("a"))); }
Value exponential_of(const Call& c) { return Value::of(std::exp(c.number("a"))); }
Value logarithm(const Call& c) { return Value::of(std::log(c.number("a"))); }
Value real_number(const Call& c) { return Value::of(c.number("a")); }
Value integer_number(const Call& c) {
  const Value& a = c.value("a");
  const bool real = a.kind == Value::Float || (a.is_tensor() && is_floating(a.tensor.dtype()));
  return real ? truncated(c) : Value::of(c.integer("a"));
}
Value truth(const Call& c) { return Value::flag(c.number("a") != 0); }
Value opposite(const Call& c) { return Value::flag(c.number("a") == 0); }
Value both_hold(const Call& c) { return Value::flag(c.number("a") != 0 && c.number("b") != 0); }
Value one_holds(const Call& c) { return Value::flag(c.number("a") != 0 || c.number("b") != 0); }
Value if_else(const Call& c) { return c.number("a") != 0 ? c.value("b") : c.value("c"); }

// The content of a tensor that depends on no input.
Value content(const Call& c) {
  const Value& x = c.value("self");
  if (x.is_number()) return x;
  if (!x.is_tensor() || !x.known)
    c.refuse("it reads a number that depends on the inputs of the model");
  if (is_bool(x.tensor.dtype())) return Value::flag(x.tensor.item_int() != 0);
  if (is_integral(x.tensor.dtype())) return Value::of(x.tensor.item_int());
  return Value::of(x.tensor.item_double());
}
Value item_at(const Call& c) {
  const Value& all = c.value("a");
  const int64_t at = c.integer("b");
  if (!all.is_list()) c.refuse("it is no list");
  const auto size = static_cast<int64_t>(all.box->items.size());
  const int64_t place = at < 0 ? at + size : at;
  if (place < 0 || place >= size) c.refuse(format("its index {} is out of range", at));
  return all.box->items[static_cast<size_t>(place)];
}
Value nothing(const Call&) { return {}; }
Value first_argument(const Call& c) { return c.value("self"); }
Value is_real(const Call& c) { return Value::flag(is_floating(c.tensor("self").dtype())); }

constexpr Converter kConverters[] = {
    {"operator.add(a, b)", added},
    {"operator.sub(a, b)", subtracted},
    {"operator.mul(a, b)", multiplied},
    {"operator.truediv(a, b)", divided},
    {"operator.floordiv(a, b)", divided_down},
    {"operator.mod(a, b)", rest},
    {"operator.pow(a, b)", raised},
    {"operator.neg(a)", negated},
    {"operator.abs(a)", magnitude},
    {"operator.eq(a, b)", compared<std::equal_to<>>},
    {"operator.ne(a, b)", compared<std::not_equal_to<>>},
    {"operator.lt(a, b)", compared<std::less<>>},
    {"operator.le(a, b)", compared<std::less_equal<>>},
    {"operator.gt(a, b)", compared<std::greater<>>},
    {"operator.ge(a, b)", compared<std::greater_equal<>>},
    {"operator.and_(a, b)", both_hold},
    {"operator.or_(a, b)", one_holds},
    {"operator.not_(a)", opposite},
    {"operator.getitem(a, b)", item_at},
    {"math.floor(a)", floored},
    {"math.ceil(a)", lifted},
    {"math.trunc(a)", truncated},
    {"math.sqrt(a)", root},
    {"math.exp(a)", exponential_of},
    {"math.log(a)", logarithm},
    {"builtins.round(a)", nearest_even},
    {"builtins.min(a, b)", smaller},
    {"builtins.max(a, b)", larger},
    {"builtins.float(a)", real_number},
    {"builtins.int(a)", integer_number},
    {"builtins.bool(a)", truth},
    {"builtins.if_else(a, b, c)", if_else},
    // The same, as TorchScript calls them.
    {"add(a:number, b:number)", added},
    {"sub(a:number, b:number)", subtracted},
    {"mul(a:number, b:number)", multiplied},
    {"floordiv(a:number, b:number)", divided_down},
    {"floor_divide(a:number, b:number)", divided_down},
    {"true_divide(a:number, b:number)", divided},
    {"remainder(a:number, b:number)", rest},
    {"pow(a:number, b:number)", raised},
    {"neg(a:number)", negated},
    {"abs(a:number)", magnitude},
    {"prim.abs(a:number)", magnitude},
    {"prim.min(a:number, b:number)", smaller},
    {"prim.max(a:number, b:number)", larger},
    {"eq(a:number, b:number)", compared<std::equal_to<>>},
    {"ne(a:number, b:number)", compared<std::not_equal_to<>>},
    {"lt(a:number, b:number)", compared<std::less<>>},
    {"le(a:number, b:number)", compared<std::less_equal<>>},
    {"gt(a:number, b:number)", compared<std::greater<>>},
    {"ge(a:number, b:number)", compared<std::greater_equal<>>},
    {"floor(a:number)", floored},
    {"ceil(a:number)", lifted},
    {"sqrt(a:number)", root},
    {"exp(a:number)", exponential_of},
    {"log(a:number)", logarithm},
    {"Int(a)", integer_number},
    {"IntImplicit(a)", integer_number},
    {"Float(a)", real_number},
    {"Bool(a)", truth},
    {"__not__(a)", opposite},
    {"ScalarImplicit(self)", content},
    {"item(self)", content},
    {"_local_scalar_dense(self)", content},
    {"is_nonzero(self)", content},
    {"is_floating_point(self)", is_real},
    {"sym_constrain_range(size, min=None, max=None)", nothing},
    {"sym_constrain_range_for_size(size, min=None, max=None)", nothing},
    {"_assert_async(self, assert_msg=None)", nothing},
    {"_assert_scalar(self, assert_msg=None)", nothing},
    {"_assert_tensor_metadata(a, size=None, stride=None, dtype=None, device=None, layout=None)",
     nothing},
    {"_print(s)", nothing},
    {"_functional_assert_async(self, assert_msg, dep_token)", first_argument},
};

}  // namespace

std::span<const Converter> scalar_converters() { return kConverters; }

}  // namespace oar::pytorch
