// Forward derivatives. Every op has one: its own rule, or the op itself if it is linear, or its
// vjp if the Jacobian is diagonal, or its vjp transposed once more.
#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/autograd/transform.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"

namespace oar {
namespace {

Tensor tangent_of(const Tensor& t, int level) {
  const Wrapped* w = t.defined() ? wrapped_at(t, level) : nullptr;
  return w ? static_cast<const Dual*>(w)->tangent : Tensor();
}

// The arguments with tangents instead of the tensors; zeros for missing ones, if requested.
Frame tangent_frame(Args args, Args primals, const TangentOf& tangent_of, bool zeros_for_none) {
  Frame frame(args);
  const auto tangent = [&](const Tensor& t, const Tensor& value) {
    Tensor d = t.defined() ? tangent_of(t) : Tensor();
    if (d.defined() || !zeros_for_none || !t.defined()) return d;
    return is_differentiable(t.dtype()) ? zeros_like(value) : value;  // an index stays what it is
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) {
      if (Tensor d = tangent(args[i].as_tensor(), primals[i].as_tensor()); d.defined())
        frame.set_tensor(i, d);
      else
        frame.set(i, Value());
    }
    if (args[i].is_tensors()) {
      std::vector<Tensor> list;
      for (size_t j = 0; j < args[i].as_tensors().size(); ++j)
        list.push_back(tangent(args[i].as_tensors()[j], primals[i].as_tensors()[j]));
      frame.set_tensors(i, std::move(list));
    }
  }
  return frame;
}

// One tangent per tensor slot, lists flattened, as a vjp counts its gradients.
std::vector<Tensor> tangent_slots(const Op& op, Args args, const TangentOf& tangent_of) {
  std::vector<Tensor> slots;
  const auto add_slot = [&](const Tensor& t) {
    slots.push_back(t.defined() ? tangent_of(t) : Tensor());
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.schema().parameters[i].is_tensor()) continue;
    if (args[i].is_tensors())
      for (const Tensor& t : args[i].as_tensors()) add_slot(t);
    else
      add_slot(args[i].as_tensor());
  }
  return slots;
}

bool is_real_elementwise(const Op& op, TensorList outputs, const std::vector<Tensor>& slots) {
  if (!op.has(Trait::Elementwise) || outputs.size() != 1) return false;
  for (const Tensor& t : slots)
    if (t.defined() && (is_complex(t.dtype()) || t.dtype() != outputs[0].dtype())) return false;
  return !is_complex(outputs[0].dtype());
}

// A diagonal Jacobian is its own transpose.
std::vector<Tensor> through_diagonal(const Op& op, Args primals, TensorList outputs,
                                     const std::vector<Tensor>& slots) {
  Tensor total;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].defined()) continue;
    std::unique_ptr<bool[]> needed(new bool[slots.size()]());
    needed[i] = true;
    const Tensor cotangents[] = {slots[i]};
    const Grads grads = call_vjp(op, primals, outputs, cotangents, {needed.get(), slots.size()});
    if (!grads[i].defined()) continue;
    total = total.defined() ? add(total, grads[i]) : grads[i];
  }
  return {total};
}

// vjp is linear in the cotangent u: u -> J^T u. Its own vjp at t is J t.
std::vector<Tensor> through_transpose(const Op& op, Args primals, TensorList outputs,
                                      const std::vector<Tensor>& slots) {
  const bool recording = grad_enabled();
  const GradMode on(true);
  std::vector<Tensor> u, inputs;
  for (const Tensor& out : outputs) {
    u.emplace_back();
    if (!is_differentiable(out.dtype())) continue;
    u.back() = zeros_like(out);
    set_stop_gradient(u.back(), false);
    inputs.push_back(u.back());
  }
  std::unique_ptr<bool[]> needed(new bool[slots.size()]());
  for (size_t i = 0; i < slots.size(); ++i) needed[i] = slots[i].defined();
  const Grads transposed = call_vjp(op, primals, outputs, u, {needed.get(), slots.size()});
  std::vector<Tensor> from, along;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].defined() || !transposed[i].defined()) continue;
    from.push_back(transposed[i]);
    along.push_back(slots[i]);
  }
  const std::vector<Tensor> found =
      grad(from, inputs, along, {.retain_graph = true, .create_graph = recording}, true);
  std::vector<Tensor> tangents;
  size_t next = 0;
  for (const Tensor& out : outputs)
    tangents.push_back(is_differentiable(out.dtype()) ? found[next++] : Tensor());
  return tangents;
}

Outputs write_dual(const Op& op, Args args, int level) {
  const Tensor& x = args[0].as_tensor();
  const Tensor out = functional_result(op, args)[0];
  const Wrapped* made = wrapped_at(out, level);
  const Wrapped* target = wrapped_at(x, level);
  // Where tangents are cut, only the values count. The same holds for steps that an op runs without the tape, such as
  // running statistics.
  const bool cut = level <= tangents_cut_until() || (t_layers.off & kRecording);
  user_check(
      target || !made || cut, ErrorKind::InvalidArgument,
      "a tensor from outside jvp cannot be assigned a value that has a tangent.\nhint: Clone it "
      "inside the function first.");
  Outputs outputs;
  outputs.push_back(x);
  if (!target) {
    copy_into(x, made ? made->value : out);
    return outputs;
  }
  auto* dual = const_cast<Dual*>(static_cast<const Dual*>(target));
  copy_into(dual->value, made ? made->value : out);
  const Tensor tangent = made ? static_cast<const Dual*>(made)->tangent : Tensor();
  if (dual->tangent.defined())
    copy_into(dual->tangent, tangent.defined() ? tangent : zeros_like(dual->tangent));
  else if (tangent.defined())
    dual->tangent = assign(tangent);
  return outputs;
}

}  // namespace

std::vector<Tensor> output_tangents(const Op& op, Args args, Args primals, TensorList outputs,
                                    const TangentOf& tangent_of) {
  const OpDef& rules = rules_of(op).def();
  const std::vector<Tensor> slots = tangent_slots(op, args, tangent_of);
  const bool any =
      std::any_of(slots.begin(), slots.end(), [](const Tensor& t) { return t.defined(); });
  const bool varies = std::any_of(outputs.begin(), outputs.end(), [](const Tensor& t) {
    return t.defined() && is_differentiable(t.dtype());
  });
  if (!any || !varies || op.has(Trait::NoGrad)) return std::vector<Tensor>(outputs.size());
  if (rules.jvp) {
    const Frame tangents = tangent_frame(args, primals, tangent_of, false);
    const Made made = rules.jvp(JvpCall{primals, outputs, tangents.args()});
    return {made.begin(), made.end()};
  }
  if (op.has(Trait::Linear)) {
    const Outputs made = dispatch(op, tangent_frame(args, primals, tangent_of, true).args());
    return {made.begin(), made.end()};
  }
  if (!rules.vjp)
    return std::vector<Tensor>(outputs.size());  // random: not a function of its operands
  if (is_real_elementwise(op, outputs, slots)) return through_diagonal(op, primals, outputs, slots);
  return through_transpose(op, primals, outputs, slots);
}

Outputs Dual::call(const Op& op, Args args) const {
  const OpDef& rules = rules_of(op).def();
  if (op.has(Trait::Inplace)) return write_dual(op, args, level);
  const bool expands = !rules.vjp && !rules.jvp && !op.has(Trait::NoGrad) && !op.has(Trait::Linear);
  if (expands && rules.decompose) {
    check_arguments(op, args);
    return rules.decompose(args);
  }
  const Frame primals = unwrapped(args, level);
  const Outputs outputs = dispatch(op, primals.args());
  const TangentOf tangent_at = [level = level](const Tensor& t) { return tangent_of(t, level); };
  const TensorList outs{outputs.data(), outputs.size()};
  const std::vector<Tensor> tangents =
      level > tangents_cut_until() ? output_tangents(op, args, primals.args(), outs, tangent_at)
                                   : std::vector<Tensor>(outputs.size());
  Outputs wrapped;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const bool varies = outputs[i].defined() && is_differentiable(outputs[i].dtype());
    wrapped.push_back(make_dual(outputs[i], varies ? tangents[i] : Tensor(), level));
  }
  return wrapped;
}

int dual_level(TensorList tensors, const std::string& name) {
  const Wrapped* first = nullptr;
  for (const Tensor& t : tensors) {
    if (!t.defined() || (t.kind() != Kind::Dual && t.kind() != Kind::Batched)) continue;
    const auto* w = static_cast<const Wrapped*>(t->payload.get());
    if (!first || w->level > first->level) first = w;
  }
  if (!first || dynamic_cast<const Batched*>(first)) return 0;
  user_check(dynamic_cast<const Dual*>(first) != nullptr, ErrorKind::Unsupported,
             "taylor cannot expand {}, a function with its own derivative: that derivative is for "
             "one order only.\nhint: Write it with ordinary ops inside taylor, or nest oar.grad.",
             name);
  return first->level;
}

// backward is linear in the cotangents u: u -> J^T u. Its own vjp at the tangents is J t.
std::vector<Tensor> custom_dual(TensorList inputs, const CustomForward& forward,
                                const CustomBackward& backward, const std::string& name,
                                int level) {
  std::vector<Tensor> values, tangents;
  for (const Tensor& t : inputs) {
    const Wrapped* w = t.defined() ? wrapped_at(t, level) : nullptr;
    values.push_back(w ? w->value : t);
    tangents.push_back(tangent_of(t, level));
  }
  const bool recording = grad_enabled();
  std::vector<Tensor> outputs = custom_function(values, forward, backward, name), u, sources;
  std::vector<Tensor> made(outputs.size());
  if (level > tangents_cut_until()) {
    const GradMode on(true);
    for (const Tensor& out : outputs) {
      const bool varies = out.defined() && is_differentiable(out.dtype());
      u.push_back(varies ? zeros_like(out) : Tensor());
      if (!varies) continue;
      set_stop_gradient(u.back(), false);
      sources.push_back(u.back());
    }
    const std::vector<Tensor> transposed = backward(u);
    user_check(transposed.size() == inputs.size(), ErrorKind::InvalidArgument,
               "the backward of {} returned {} gradients for {} tensor inputs.", name,
               transposed.size(), inputs.size());
    std::vector<Tensor> from, along;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!tangents[i].defined() || !transposed[i].defined()) continue;
      from.push_back(
          fitting_gradient(transposed[i], values[i].shape(), format("the backward of {}", name)));
      along.push_back(tangents[i]);
    }
    const std::vector<Tensor> found =
        grad(from, sources, along, {.retain_graph = true, .create_graph = recording}, true);
    size_t next = 0;
    for (size_t i = 0; i < outputs.size(); ++i)
      if (u[i].defined()) made[i] = found[next++];
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined()) outputs[i] = make_dual(outputs[i], made[i], level);
  return outputs;
}

std::pair<std::vector<Tensor>, std::vector<Tensor>> jvp(const TensorFunction& f, TensorList primals,
                                                        TensorList tangents) {
  user_check(primals.size() == tangents.size(), ErrorKind::InvalidArgument,
             "jvp got {} values but {} tangents.", primals.size(), tangents.size());
  const TransformLevel transform;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < primals.size(); ++i) {
    const Tensor& d = tangents[i];
    user_check(
        !d.defined() || (same(d.shape(), primals[i].shape()) && d.dtype() == primals[i].dtype()),
        ErrorKind::InvalidArgument, "tangent {} is {}, its value {}; they must match.", i,
        d.describe(), primals[i].describe());
    // Integers have no derivative: their tangent is ignored.
    const bool varies = is_differentiable(primals[i].dtype());
    inputs.push_back(make_dual(primals[i], varies ? d : Tensor(), transform.level()));
  }
  std::pair<std::vector<Tensor>, std::vector<Tensor>> result;
  for (const Tensor& out : f(inputs)) {
    const Wrapped* w = wrapped_at(out, transform.level());
    const Tensor tangent = w ? static_cast<const Dual*>(w)->tangent : Tensor();
    result.first.push_back(w ? w->value : out);
    result.second.push_back(tangent.defined() ? tangent : zeros_like(result.first.back()));
  }
  return result;
}

}  // namespace oar
