#include "oar/ops/core/autocast.h"

#include <algorithm>

#include "oar/ops/gen/copy.h"

namespace oar {
namespace {

thread_local AutocastState t_state;

Amp policy_of(const Op& op) {
  const auto listed = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), op.name()) != list.end();
  };
  if (listed(t_state.low)) return Amp::Low;
  if (listed(t_state.full)) return Amp::Full;
  return op.def().amp;
}

// float64 and integers were requested by the user; only the two working types are exchanged.
Tensor adjusted(const Tensor& t, Amp policy) {
  if (!t.defined()) return t;
  const bool low = t.dtype() == DType::Float16 || t.dtype() == DType::BFloat16;
  if (policy == Amp::Low && t.dtype() == DType::Float32) return cast(t, t_state.dtype);
  if (policy == Amp::Full && low) return cast(t, DType::Float32);
  return t;
}

Outputs autocast_layer(const Op& op, Args args) {
  const Amp policy = policy_of(op);
  if (policy == Amp::Follow || op.has(Trait::Inplace)) return proceed(op, args, below(kAutocast));
  Frame frame(args);
  {
    const LayersOff off(kAutocast);  // the casts themselves
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].is_tensor()) frame.set_tensor(i, adjusted(args[i].as_tensor(), policy));
      if (!args[i].is_tensors()) continue;
      std::vector<Tensor> list;
      for (const Tensor& t : args[i].as_tensors()) list.push_back(adjusted(t, policy));
      frame.set_tensors(i, std::move(list));
    }
  }
  return proceed(op, frame.args(), below(kAutocast));
}

}  // namespace

void install_autocast_layer() { install_layer(kAutocast, autocast_layer); }

const AutocastState& autocast_state() { return t_state; }

AutocastState exchange_autocast(AutocastState state) {
  std::swap(t_state, state);
  if (t_state.enabled)
    t_layers.on |= kAutocast;
  else
    t_layers.on &= ~uint32_t{kAutocast};
  return state;
}

AutocastScope::AutocastScope(AutocastState state) : outer_(exchange_autocast(std::move(state))) {}
AutocastScope::~AutocastScope() { exchange_autocast(std::move(outer_)); }

}  // namespace oar
