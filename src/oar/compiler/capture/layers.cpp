#include "oar/compiler/capture/layers.h"

#include "oar/autograd/record.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/capture/functionalise.h"
#include "oar/compiler/capture/regions.h"
#include "oar/ops/core/run.h"

namespace oar {
namespace {

constexpr uint32_t kOurs = kFunctionalise | kCapture;

bool any_of_kind(Args args, Kind kind) {
  bool found = false;
  for_each_tensor(args, [&](const Tensor& t) { found |= t.kind() == kind; });
  return found;
}

bool has_tensors(Args args) {
  bool found = false;
  for_each_tensor(args, [&](const Tensor&) { found = true; });
  return found;
}

// Views composed of other views (split, squeeze): only their parts say which elements they contain.
bool is_composite_view(const Op& op) {
  if (op.def().view || !op.def().decompose) return false;
  for (const Result& r : op.schema().results)
    if (r.alias && !r.written) return true;
  return false;
}

Outputs run_now(const Op& op, Args args) {
  const LayersOff off(kOurs);
  return run_op(op, args);
}

Outputs expanded(const Op& op, Args args) {
  OpScope scope(op.name().c_str());
  check_dtypes(op, args);
  return op.def().decompose(args);
}

// What capture can write to: one of its values, or memory that becomes a state.
bool writes_here(const Op& op, Args args) {
  if (!writes_arguments(op)) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!op.schema().parameters[i].written) continue;
    bool ours = true;
    for_each_tensor(args.subspan(i, 1),
                    [&](const Tensor& t) { ours &= t.is_dense() || t.kind() == Kind::Symbolic; });
    if (!ours) return false;
  }
  return true;
}

void check_leaf_write(Capture& capture, const Tensor& x) {
  for (Tensor t = x; t.defined(); t = capture.cell_of(t)->base)
    user_check(!(t.has(kRecording) && is_leaf(t)), ErrorKind::InvalidArgument,
               "a leaf that requires a gradient cannot be written in place.\nhint: Write under "
               "no_grad(), or to a copy: y = x.clone().");
}

// Wraps the layer of the tape. A write through a view changes the history of its base too, which the tape
// can only follow where the write is spelled out in functional ops.
Outputs recording_layer(const Op& op, Args args) {
  Capture* capture = Capture::current();
  if (!capture || (t_layers.off & kOurs)) [[likely]]
    return autograd_layer(op, args);
  if (any_of_kind(args, Kind::Meta)) return autograd_layer(op, args);
  for_each_tensor(args, [&](const Tensor& t) { capture->refresh(t); });
  if (!writes_here(op, args) || op.has(Trait::NoGrad)) {
    if (!capture->flow()) return autograd_layer(op, args);
    const Frame frame = capture->with_flow(op, args);
    // If the op is expanded instead, its parts come here one by one.
    const bool recorded = static_cast<bool>((op.inplace_of() ? *op.inplace_of() : op).def().vjp);
    const OnTape taped(capture->flow(), recorded);
    return autograd_layer(op, frame.args());
  }
  // Ops that write an argument which is not a result (running statistics) do that off the tape.
  // In a program that stays open such a variable does not stay a leaf: it becomes what was written.
  const bool guarded = op.has(Trait::Inplace) && !capture->is_open();
  for (size_t i = 0; guarded && i < args.size(); ++i)
    if (op.schema().parameters[i].written)
      for_each_tensor(args.subspan(i, 1), [&](const Tensor& t) { check_leaf_write(*capture, t); });
  return functionalise_write(*capture, op, args);
}

Outputs functionalise_layer(const Op& op, Args args) {
  if (any_of_kind(args, Kind::Meta)) return run_now(op, args);
  Capture& capture = Capture::require();
  if (grad_enabled()) {
    // The base of a view may have got a history since.
    for_each_tensor(args, [&](const Tensor& t) { capture.refresh(t); });
    if (dispatch_key(args) & kRecording) return call_below_casts(op, args);
  }
  if (writes_arguments(op)) return functionalise_write(capture, op, args);
  if (is_composite_view(op)) return expanded(op, args);
  Outputs outputs = proceed(op, args, below(kFunctionalise));
  if (op.has(Trait::View) && outputs[0].kind() == Kind::Symbolic)
    capture.link_view(outputs[0], op, args);
  return outputs;
}

Outputs capture_layer(const Op& op, Args args) {
  Capture& capture = Capture::require();
  // A tensor created from numbers alone is computed at once and becomes a constant when it is used: so
  // an optimiser may create its moments in the first captured step. Anything that reads a tensor is
  // recorded, even a plain one: it may be a state. A program that stays open records everything.
  if (!capture.is_open() && !has_tensors(args) && !op.has(Trait::Random) &&
      !has_symbolic_attributes(op, args))
    return run_now(op, args);
  if (op.def().infer || op.def().vjp) return capture.record(op, args);
  return expanded(op, args);
}

}  // namespace

void install_capture_layers() {
  wrap_layer(kRecording, autograd_layer, recording_layer);
  install_layer(kFunctionalise, functionalise_layer);
  install_layer(kCapture, capture_layer);
}

}  // namespace oar
