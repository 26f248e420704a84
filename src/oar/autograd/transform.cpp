#include "oar/autograd/transform.h"

#include "oar/autograd/record.h"
#include "oar/ops/gen/copy.h"

namespace oar {
namespace {
thread_local int t_depth = 0;
thread_local int t_cut_until = 0;

const Wrapped* wrapped(const Tensor& t) {
  const bool is = t.defined() && (t.kind() == Kind::Dual || t.kind() == Kind::Batched);
  return is ? static_cast<const Wrapped*>(t->payload.get()) : nullptr;
}
}  // namespace

TransformLevel::TransformLevel() : level_(++t_depth) {}
TransformLevel::~TransformLevel() { --t_depth; }

int tangents_cut_until() { return t_cut_until; }

GradState grad_state() { return {grad_enabled(), t_cut_until}; }

void set_grad_state(GradState state) {
  t_cut_until = state.tangents_cut_until;
  t_layers.off = state.recording ? t_layers.off & ~uint32_t{kRecording} : t_layers.off | kRecording;
}

GradState switch_grad(bool on) {
  const GradState before = grad_state();
  set_grad_state({on, on ? 0 : t_depth});
  return before;
}

const Wrapped* wrapped_at(const Tensor& t, int level) {
  const Wrapped* w = wrapped(t);
  return w && w->level == level ? w : nullptr;
}

Tensor make_dual(const Tensor& value, const Tensor& tangent, int level) {
  return Tensor::with_payload(Kind::Dual, value.dims(), value.dtype(), value.device(), 0,
                              make_intrusive<Dual>(level, value, tangent));
}

Tensor make_batched(const Tensor& value, int level) {
  return Tensor::with_payload(Kind::Batched, value.dims().subspan(1), value.dtype(), value.device(),
                              0, make_intrusive<Batched>(level, value));
}

Tensor detach_wrapped(const Tensor& t) {
  const Wrapped* w = wrapped(t);
  return w ? w->detached() : Tensor(t->alias());
}

Tensor Dual::detached() const { return make_dual(detach(value), Tensor(), level); }
Tensor Batched::detached() const { return make_batched(detach(value), level); }

Frame unwrapped(Args args, int level) {
  Frame frame(args);
  const auto inner = [level](const Tensor& t) {
    const Wrapped* w = wrapped_at(t, level);
    return w ? w->value : t;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) frame.set_tensor(i, inner(args[i].as_tensor()));
    if (args[i].is_tensors()) {
      std::vector<Tensor> list;
      for (const Tensor& t : args[i].as_tensors()) list.push_back(inner(t));
      frame.set_tensors(i, std::move(list));
    }
  }
  return frame;
}

Outputs functional_result(const Op& op, Args args) {
  if (op.stores()) {
    const Tensor& x = args[0].as_tensor();
    const Tensor& value = args[static_cast<size_t>(op.copied())].as_tensor();
    Outputs outputs;
    outputs.push_back(value.dtype() == x.dtype() ? value : cast(value, x.dtype()));
    return outputs;
  }
  const Op* counterpart = functional_of(op);
  user_check(counterpart != nullptr, ErrorKind::Unsupported,
             "{} writes its arguments and has no functional form, so it does not run inside jvp, "
             "taylor or vmap.\nhint: Call it outside the transform.",
             op.name());
  return dispatch(*counterpart, args);
}

Outputs transform_layer(const Op& op, Args args) {
  const Wrapped* outermost = nullptr;
  for_each_tensor(args, [&](const Tensor& t) {
    const Wrapped* w = wrapped(t);
    if (w && (!outermost || w->level > outermost->level)) outermost = w;
  });
  internal_check(outermost != nullptr, "the transform layer was called without a wrapped tensor");
  return outermost->call(op, args);
}

}  // namespace oar
