// A series is computed coefficient by coefficient, on demand. An op that is linear in what varies is applied to each
// coefficient, a product is a convolution of coefficients. For any other op y = f(x) the op's own derivative gives a
// differential equation, y' = J(x, y) x', whose right side consists of calls on the series x, x' and y: coefficient
// k - 1 of y' needs no coefficient of y above k - 1, and gives coefficient k of y. Equal calls share one series, so that
// sin and cos, each the derivative of the other, are two series and not a tree of them.
#include "oar/autograd/series.h"

#include <algorithm>
#include <map>
#include <memory>

#include "oar/base/string_util.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/creation.h"

namespace oar {
namespace {

class Series;
// Coefficient k of every result of a call; those below k are known when it is asked.
using Next = std::function<std::vector<Tensor>(int)>;

// The coefficients of the results of one call, from the first on.
struct CallSeries {
  Next next;
  std::vector<std::vector<Tensor>> known;

  Tensor at(int k, size_t result) {
    while (static_cast<int>(known.size()) < k) {
      user_check(static_cast<bool>(next), ErrorKind::InvalidArgument,
                 "a tensor from inside taylor is used after taylor has returned.\nhint: Return it "
                 "from the function.");
      known.push_back(next(static_cast<int>(known.size()) + 1));
    }
    return known[static_cast<size_t>(k) - 1][result];
  }
};

// What the series of one expansion share.
struct Expansion {
  explicit Expansion(int l) : level(l) {}
  Expansion(const Expansion&) = delete;
  Expansion& operator=(const Expansion&) = delete;
  ~Expansion() {  // a series of a differential equation refers to itself
    for (const auto& call : calls) call->next = nullptr;
  }

  Tensor wrap(const Tensor& value, std::shared_ptr<CallSeries> call, size_t result);
  Outputs wrap_all(const Outputs& values, const std::shared_ptr<CallSeries>& call);
  std::shared_ptr<CallSeries> add(Next next) {
    calls.push_back(std::make_shared<CallSeries>(CallSeries{std::move(next), {}}));
    return calls.back();
  }

  const int level;
  std::vector<std::shared_ptr<CallSeries>> calls;
  std::map<std::string, Outputs> results;  // of calls on series alone
};

class Series final : public Wrapped {
 public:
  Series(Expansion* e, Tensor v, std::shared_ptr<CallSeries> c, size_t r)
      : Wrapped(e->level, std::move(v)), expansion_(e), call_(std::move(c)), result_(r) {}
  Outputs call(const Op& op, Args args) const override;
  Tensor detached() const override { return detach_wrapped(value); }
  Tensor coefficient(int k) const { return k == 0 ? value : call_->at(k, result_); }

 private:
  Outputs by_rule(const Op& op, Args args) const;
  Outputs linear(const Op& op, Args args) const;
  Outputs convolution(const Op& op, Args args, const std::vector<size_t>& varying) const;
  Outputs times_unit(const Op& op, Args args, size_t factor) const;
  Outputs differential_equation(const Op& op, Args args) const;
  Tensor derivative(const Tensor& t) const;
  std::string key_of(const Op& op, Args args) const;

  Expansion* expansion_;
  std::shared_ptr<CallSeries> call_;
  size_t result_;
};

Tensor Expansion::wrap(const Tensor& value, std::shared_ptr<CallSeries> call, size_t result) {
  return Tensor::with_payload(Kind::Dual, value.dims(), value.dtype(), value.device(), 0,
                              make_intrusive<Series>(this, value, std::move(call), result));
}

Outputs Expansion::wrap_all(const Outputs& values, const std::shared_ptr<CallSeries>& call) {
  Outputs wrapped;
  for (size_t i = 0; i < values.size(); ++i) {
    const bool varies = values[i].defined() && is_differentiable(values[i].dtype());
    wrapped.push_back(varies ? wrap(values[i], call, i) : values[i]);
  }
  return wrapped;
}

const Series* series_at(const Tensor& t, int level) {
  return static_cast<const Series*>(wrapped_at(t, level));
}

Tensor coefficient_of(const Tensor& t, int k, int level) {
  const Series* series = series_at(t, level);
  if (series) return series->coefficient(k);
  return k == 0 ? t : Tensor();
}

Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? add(a, b) : a;
}

std::vector<size_t> varying_parameters(Args args, int level) {
  std::vector<size_t> varying;
  for (size_t i = 0; i < args.size(); ++i) {
    bool varies = false;
    for_each_tensor(args.subspan(i, 1),
                    [&](const Tensor& t) { varies |= wrapped_at(t, level) != nullptr; });
    if (varies) varying.push_back(i);
  }
  return varying;
}

bool linear_in(const Op& op, size_t parameter) {
  const std::vector<std::string_view> names = split(rules_of(op).def().linear_in, ' ');
  return std::find(names.begin(), names.end(), op.schema().parameters[parameter].name) !=
         names.end();
}

// Equal keys mean equal results; empty if that cannot be told.
std::string Series::key_of(const Op& op, Args args) const {
  if (op.has(Trait::Random)) return {};
  std::string key = format("{} {}", static_cast<const void*>(&op), args.size());
  bool known = true;
  for (const Value& v : args) {
    if (!v.is_tensor() && !v.is_tensors()) key += " " + v.str();
    for_each_tensor({&v, 1}, [&](const Tensor& t) {
      const Series* series = series_at(t, level);
      known &= series != nullptr;
      // The same result of the same call is the same series, whichever tensor holds it.
      if (series)
        key += format(" {}.{}", static_cast<const void*>(series->call_.get()), series->result_);
    });
  }
  return known ? key : std::string();
}

Outputs Series::call(const Op& op, Args args) const {
  user_check(
      !op.has(Trait::Inplace) || !wrapped_at(args[0].as_tensor(), level), ErrorKind::Unsupported,
      "[{}] taylor cannot expand a function that writes a tensor in place.\nhint: Use the form "
      "without the underscore, which returns a new tensor.",
      op.name());
  const bool constant = op.has(Trait::NoGrad) || level <= tangents_cut_until();
  if (op.has(Trait::Inplace)) {
    user_check(
        constant || (t_layers.off & kRecording), ErrorKind::InvalidArgument,
        "a tensor from outside taylor cannot be assigned a series.\nhint: Clone it inside the "
        "function first.");
    return dispatch(op, unwrapped(args, level).args());
  }
  if (constant) return dispatch(op, unwrapped(args, level).args());
  const std::string key = key_of(op, args);
  if (const auto found = expansion_->results.find(key);
      !key.empty() && found != expansion_->results.end())
    return found->second;
  Outputs outputs = by_rule(op, args);
  if (!key.empty()) expansion_->results.emplace(key, outputs);
  return outputs;
}

Outputs Series::by_rule(const Op& op, Args args) const {
  const OpDef& rules = rules_of(op).def();
  if (op.has(Trait::Linear)) return linear(op, args);
  const std::vector<size_t> varying = varying_parameters(args, level);
  const auto factor =
      std::find_if(varying.begin(), varying.end(), [&](size_t i) { return linear_in(op, i); });
  const bool product =
      std::all_of(varying.begin(), varying.end(), [&](size_t i) { return linear_in(op, i); });
  if (product && varying.size() <= 2) return convolution(op, args, varying);
  if (factor != varying.end() && op.has(Trait::Elementwise)) return times_unit(op, args, *factor);
  const bool scalar_function = op.has(Trait::Elementwise) && varying.size() == 1 && rules.vjp;
  if (rules.decompose && !scalar_function) {
    check_arguments(op, args);
    return rules.decompose(args);
  }
  if (!rules.vjp && !rules.jvp)  // random: not a function of its operands
    return dispatch(op, unwrapped(args, level).args());
  return differential_equation(op, args);
}

// The op on coefficient k of every operand.
Outputs Series::linear(const Op& op, Args args) const {
  const auto frame = std::make_shared<Frame>(args);
  const Outputs values = dispatch(op, unwrapped(args, level).args());
  return expansion_->wrap_all(values, expansion_->add([frame, &op, values, level = level](int k) {
    const size_t count = values.size();
    // Where another coefficient has the result's type, a number suffices for a zero: adding -0 changes nothing, and programs
    // do without it.
    bool any = false, whole = false;
    for_each_tensor(frame->args(), [&](const Tensor& t) {
      const Tensor c = coefficient_of(t, k, level);
      if (!c.defined()) return;
      any = true;
      whole |= op.has(Trait::Broadcast) && same(c.shape(), values[0].shape()) &&
               c.dtype() == values[0].dtype();
    });
    if (!any) return std::vector<Tensor>(count);
    const auto part = [&](const Tensor& t) {
      Tensor c = coefficient_of(t, k, level);
      if (c.defined()) return c;
      Tensor value = coefficient_of(t, 0, level);
      if (!is_differentiable(t.dtype())) return value;  // an index stays what it is
      return whole ? literal(-0.0) : zeros_like(value);
    };
    Frame parts(frame->args());
    for (size_t i = 0; i < frame->size(); ++i) {
      const Value& v = (*frame)[i];
      if (v.is_tensor()) parts.set_tensor(i, part(v.as_tensor()));
      if (!v.is_tensors()) continue;
      std::vector<Tensor> list;
      for (const Tensor& t : v.as_tensors()) list.push_back(t.defined() ? part(t) : t);
      parts.set_tensors(i, std::move(list));
    }
    const Outputs made = dispatch(op, parts.args());
    return std::vector<Tensor>(made.begin(), made.end());
  }));
}

// Linear in one varying operand, or in each of two. An elementwise product of a series with itself has pairs of equal terms.
Outputs Series::convolution(const Op& op, Args args, const std::vector<size_t>& varying) const {
  const auto frame = std::make_shared<Frame>(args);
  const Outputs values = dispatch(op, unwrapped(args, level).args());
  const auto series_of = [&](size_t j) { return series_at(args[varying[j]].as_tensor(), level); };
  const bool square = varying.size() == 2 && op.has(Trait::Elementwise) &&
                      series_of(0)->call_ == series_of(1)->call_ &&
                      series_of(0)->result_ == series_of(1)->result_;
  return expansion_->wrap_all(
      values, expansion_->add([frame, varying, square, &op, level = level](int k) {
        Tensor total;
        for (int i = varying.size() == 1 ? k : 0; i <= k; ++i) {
          if (square && 2 * i >= k && total.defined()) {
            total = total * 2.0;
            if (2 * i > k) break;
          } else if (square && 2 * i > k) {
            break;
          }
          Frame term(frame->args());
          bool zero = false;
          for (size_t j = 0; j < varying.size(); ++j) {
            const Tensor c =
                coefficient_of((*frame)[varying[j]].as_tensor(), j == 0 ? i : k - i, level);
            zero |= !c.defined();
            if (c.defined()) term.set_tensor(varying[j], c);
          }
          if (!zero) total = sum_of(total, dispatch(op, term.args())[0]);
          if (square && 2 * i == k) break;
        }
        return std::vector<Tensor>{total};
      }));
}

// An elementwise op that is linear in one operand: that operand times the op at one.
Outputs Series::times_unit(const Op& op, Args args, size_t factor) const {
  Frame unit(args);
  const Tensor& x = args[factor].as_tensor();
  unit.set(factor, Value());
  std::string key = key_of(op, unit.args());
  if (!key.empty()) key += format(" at one {}", static_cast<int>(x.dtype()));
  Outputs at_one;
  if (const auto found = expansion_->results.find(key);
      !key.empty() && found != expansion_->results.end()) {
    at_one = found->second;
  } else {
    unit.set_tensor(factor, ones_like(coefficient_of(x, 0, level)));
    at_one = dispatch(op, unit.args());
    if (!key.empty()) expansion_->results.emplace(key, at_one);
  }
  Outputs outputs;
  outputs.push_back(multiply(x, at_one[0]));
  return outputs;
}

// dx/dt as a series.
Tensor Series::derivative(const Tensor& t) const {
  const Series* x = series_at(t, level);
  if (!x) return {};
  const std::string key = format("d {}.{}", static_cast<const void*>(x->call_.get()), x->result_);
  if (const auto found = expansion_->results.find(key); found != expansion_->results.end())
    return found->second[0];
  Tensor first = x->coefficient(1);
  if (!first.defined()) first = zeros_like(x->value);
  const auto call = expansion_->add([call = x->call_, result = x->result_](int k) {
    const Tensor c = call->at(k + 1, result);
    return std::vector<Tensor>{c.defined() ? c * static_cast<double>(k + 1) : c};
  });
  Outputs outputs;
  outputs.push_back(expansion_->wrap(first, call, 0));
  expansion_->results.emplace(key, outputs);
  return outputs[0];
}

// y' = J(x, y) x'.
Outputs Series::differential_equation(const Op& op, Args args) const {
  const auto frame = std::make_shared<Frame>(args);
  const Outputs values = dispatch(op, unwrapped(args, level).args());
  const auto call = expansion_->add({});
  const Outputs outputs = expansion_->wrap_all(values, call);
  const auto slope = std::make_shared<std::vector<Tensor>>();
  const Intrusive<Series> self(const_cast<Series*>(this));
  call->next = [frame, outputs, slope, self, &op, level = level](int k) {
    if (slope->empty()) {
      const TangentOf tangent = [&](const Tensor& t) { return self->derivative(t); };
      *slope = output_tangents(op, frame->args(), frame->args(), {outputs.data(), outputs.size()},
                               tangent);
    }
    std::vector<Tensor> made;
    for (const Tensor& s : *slope) {
      const Tensor c = s.defined() ? coefficient_of(s, k - 1, level) : s;
      made.push_back(c.defined() && k > 1 ? c * (1.0 / k) : c);
    }
    return made;
  };
  return outputs;
}

}  // namespace

Coefficients taylor(const TensorFunction& f, const Coefficients& inputs, int order) {
  user_check(order >= 0, ErrorKind::InvalidArgument,
             "[taylor] order is {}, but must be at least 0.", order);
  const TransformLevel transform;
  Expansion expansion(transform.level());
  std::vector<Tensor> xs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& value = inputs[i].at(0);
    user_check(
        is_differentiable(value.dtype()), ErrorKind::InvalidType,
        "[taylor] input {} is {}, which has no derivatives.\nhint: Convert it to a float dtype.", i,
        value.describe());
    for (const Tensor& c : inputs[i])
      user_check(!c.defined() || (same(c.shape(), value.shape()) && c.dtype() == value.dtype()),
                 ErrorKind::InvalidArgument,
                 "[taylor] a coefficient of input {} is {}, its value {}; they must match.", i,
                 c.describe(), value.describe());
    const auto call = expansion.add([coefficients = inputs[i]](int k) {
      const auto at = static_cast<size_t>(k);
      return std::vector<Tensor>{at < coefficients.size() ? coefficients[at] : Tensor()};
    });
    xs.push_back(expansion.wrap(value, call, 0));
  }
  const std::vector<Tensor> ys = f(xs);
  // In the order of the calls, so that a long function does not recurse as deep as it is long.
  const size_t count = expansion.calls.size();
  for (int k = 1; k <= order; ++k)
    for (size_t i = 0; i < count; ++i) {
      const std::shared_ptr<CallSeries> call = expansion.calls[i];
      if (call->next) call->at(k, 0);
    }
  Coefficients results;
  for (const Tensor& y : ys) {
    results.emplace_back();
    for (int k = 0; k <= order; ++k) {
      const Tensor c = coefficient_of(y, k, expansion.level);
      results.back().push_back(c.defined() ? c : zeros_like(results.back()[0]));
    }
  }
  return results;
}

}  // namespace oar
