#include "oar/compiler/capture/training_calls.h"

#include "oar/base/scope_guard.h"
#include "oar/ops/core/dispatcher.h"

namespace oar {
namespace {

// The calls inside a branch or loop that is being written.
struct RegionCalls {
  bool for_inference;
  bool met_training = false;
};
thread_local RegionCalls* t_region_calls = nullptr;

// The place of `training` among the arguments where it is true; -1 otherwise.
int training_argument(const Op& op, Args args) {
  const int i = op.schema().index_of("training");
  if (i < 0 || op.has(Trait::Inplace)) return -1;
  const Value& v = args[static_cast<size_t>(i)];
  return v.tag == OAR_TAG_BOOL && v.as_bool() ? i : -1;
}

Outputs run_for_inference(const Op& op, Args args, int training) {
  Frame frame(args);
  frame.set(static_cast<size_t>(training), Value(false));
  return dispatch(op, frame.args());
}

// The counterpart comes first, before running statistics move on.
Outputs run_both(Builder& builder, const Op& op, Args args, int training) {
  const Outputs inference = run_for_inference(op, args, training);
  builder.begin(Role::Training);
  Outputs outputs = dispatch(op, args);
  builder.end();
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && inference[i].defined())
      builder.alternative(outputs[i], inference[i]);
  return outputs;
}

}  // namespace

std::optional<Outputs> call_in_builder(Builder& builder, const Op& op, Args args) {
  // As in Paddle: where values come later, x.exp_() is x.exp().
  if (op.inplace_of()) return dispatch(*op.inplace_of(), args);
  const int training = training_argument(op, args);
  if (training < 0) return std::nullopt;
  if (&builder == Capture::current()) return run_both(builder, op, args, training);
  if (!t_region_calls) return dispatch(op, args);
  t_region_calls->met_training = true;
  return t_region_calls->for_inference ? run_for_inference(op, args, training) : dispatch(op, args);
}

std::vector<Tensor> write_region_call(FunctionRef<std::vector<Tensor>()> write) {
  Builder* builder = Builder::current();
  if (!builder || builder != Capture::current()) return write();
  RegionCalls calls{true};
  t_region_calls = &calls;
  const ScopeGuard done([] { t_region_calls = nullptr; });
  std::vector<Tensor> inference = write();
  if (!calls.met_training) return inference;
  calls.for_inference = false;
  std::vector<Tensor> outputs;
  {
    builder->begin(Role::Training);
    const ScopeGuard end([&] { builder->end(); });
    outputs = write();
  }
  for (size_t i = 0; i < outputs.size(); ++i) builder->alternative(outputs[i], inference[i]);
  return outputs;
}

}  // namespace oar
