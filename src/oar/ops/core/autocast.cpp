#include "oar/ops/core/autocast.h"

#include <algorithm>

#include "oar/ops/gen/copy.h"

namespace oar {
namespace {

thread_local AutocastState t_state;
thread_local DType t_last = DType::Float32;

bool listed(const std::vector<std::string>& list, const Op& op) {
  return !list.empty() && std::find(list.begin(), list.end(), op.name()) != list.end();
}

Amp policy_of(const Op& op) {
  if (listed(t_state.low, op)) return Amp::Low;
  if (listed(t_state.full, op)) return Amp::Full;
  const Amp own = op.def().amp;
  switch (t_state.level) {
    case AutocastLevel::O1:
      return own;
    case AutocastLevel::OD:
      return own == Amp::Low ? Amp::Low : Amp::Full;
    case AutocastLevel::O2:
      if (own == Amp::Low) return own;
      if (!op.accepts(t_state.dtype)) return Amp::Full;
      return t_state.promote ? Amp::Follow : Amp::Low;
  }
  return own;
}

bool is_low(const Tensor& t) { return t.dtype() == DType::Float16 || t.dtype() == DType::BFloat16; }

// float64 and integers were requested by the user; only the working types are exchanged.
Tensor adjusted(const Tensor& t, Amp policy, DType low) {
  if (!t.defined()) return t;
  if (policy == Amp::Low && t.dtype() == DType::Float32) return cast(t, low);
  if (policy == Amp::Full && is_low(t)) return cast(t, DType::Float32);
  return t;
}

// The operands that share a dtype: not the float32 statistics of a norm, for example.
template <class F>
void for_each_shared(const Op& op, Args args, F f) {
  for (size_t i = 0; i < args.size(); ++i)
    if (op.promotes() >> i & 1) for_each_tensor(args.subspan(i, 1), f);
}

// An op that follows its operands and does not promote them itself computes in the widest of those that share a dtype; the
// others are then no narrower. They may be wider.
Amp followed(const Op& op, Args args) {
  bool full = false, low = false;
  for_each_shared(op, args, [&](const Tensor& t) { full |= t.dtype() == DType::Float32; });
  for_each_tensor(args, [&](const Tensor& t) { low |= is_low(t); });
  return full && low ? Amp::Full : Amp::Follow;
}

// A copy has the dtype that was requested; a branch or loop has the types of its program.
bool is_exempt(const Op& op) {
  if (op.has(Trait::Inplace) || op.copied() >= 0) return true;
  const auto& parameters = op.schema().parameters;
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& p) { return p.type == ArgType::Program; });
}

Outputs autocast_layer(const Op& op, Args args) {
  if (is_exempt(op)) return proceed(op, args, below(kAutocast));
  Amp policy = policy_of(op);
  if (policy == Amp::Follow && !op.has(Trait::Promote)) policy = followed(op, args);
  if (policy == Amp::Follow) return proceed(op, args, below(kAutocast));
  Frame frame(args);
  const DType low = t_state.dtype;
  const AutocastScope off(
      {});  // for the casts themselves, and the parts of an op that is decomposed
  for (size_t i = 0; i < args.size(); ++i) {
    // To float32 go all operands; to the low type those that share a dtype.
    if (policy == Amp::Low && !(op.promotes() >> i & 1)) continue;
    if (args[i].is_tensor()) frame.set_tensor(i, adjusted(args[i].as_tensor(), policy, low));
    if (!args[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : args[i].as_tensors()) list.push_back(adjusted(t, policy, low));
    frame.set_tensors(i, std::move(list));
  }
  return proceed(op, frame.args(), below(kAutocast));
}

}  // namespace

void install_autocast_layer() { install_layer(kAutocast, autocast_layer); }

const AutocastState& autocast_state() { return t_state; }
DType last_autocast_dtype() { return t_last; }
void forget_autocast_dtype() { t_last = t_state.enabled ? t_state.dtype : DType::Float32; }

AutocastState exchange_autocast(AutocastState state) {
  std::swap(t_state, state);
  if (t_state.enabled) {
    t_layers.on |= kAutocast;
    t_last = t_state.dtype;
  } else {
    t_layers.on &= ~uint32_t{kAutocast};
  }
  return state;
}

AutocastScope::AutocastScope(AutocastState state) : outer_(exchange_autocast(std::move(state))) {}
AutocastScope::~AutocastScope() { exchange_autocast(std::move(outer_)); }

}  // namespace oar
