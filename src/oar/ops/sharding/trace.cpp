#include "oar/ops/sharding/trace.h"

#include "oar/ops/sharding/bind.h"

namespace oar {
namespace {

thread_local CallReader* t_reader = nullptr;

Outputs planning_layer(const Op& op, Args args) { return t_reader->call(op, args); }

}  // namespace

ReadingCalls::ReadingCalls(CallReader& reader)
    : outer_(std::exchange(t_reader, &reader)), planning_(kPlanning) {}
ReadingCalls::~ReadingCalls() { t_reader = outer_; }

Outputs inferred_results(const Op& op, Args args) {
  const LayersOff quiet(kPlanning);
  Outputs outputs;
  for (const TensorMeta& m : infer_results(op, args))
    outputs.push_back(Tensor::meta(m.shape, m.dtype, devices::current()));
  return outputs;
}

void install_planning_layer() { install_layer(kPlanning, planning_layer); }

ShardTrace::ShardTrace(const Op& op, Args args) {
  for_each_tensor(args, [&](const Tensor& t) { operands_.push_back(add_value(t, false)); });
  const ReadingCalls reading(*this);
  for (const Tensor& t : dispatch(op, args)) results_.push_back(value_of(t));
  for (size_t i = 0; i < args.size(); ++i)
    if (op.schema().parameters[i].written)
      for_each_tensor(args.subspan(i, 1),
                      [&](const Tensor& t) { written_.push_back(value_of(t)); });
}

int ShardTrace::add_value(const Tensor& t, bool constant) {
  const int id = static_cast<int>(tensors_.size());
  tensors_.push_back(t);
  constant_.push_back(constant);
  values_[t.impl()] = id;
  return id;
}

int ShardTrace::value_of(const Tensor& t) {
  if (!t.defined()) return add_value(Tensor::meta(Shape(), DType::Float32), true);
  const auto found = values_.find(t.impl());
  return found != values_.end() ? found->second : add_value(t, true);
}

Outputs ShardTrace::call(const Op& op, Args args) {
  const OpDef& rules = rules_of(op).def();
  Outputs outputs;
  if (!states_plan(op) && rules.decompose) {
    outputs = rules.decompose(args);
    if (!op.inplace_of()) return outputs;
    values_[args[0].as_tensor().impl()] = value_of(outputs[0]);
    return outputs;
  }
  outputs = inferred_results(op, args);
  TracedCall call{&op, Frame(args), whole_plan(op, args, outputs), {}, {}};
  {
    const LayersOff quiet(kPlanning);
    if (states_plan(op)) stated_plan({op, args, call.plan});
  }
  for_each_tensor(args, [&](const Tensor& t) { call.operands.push_back(value_of(t)); });
  for (const Tensor& t : outputs) call.results.push_back(add_value(t, false));
  rename_written(call, args);
  calls_.push_back(std::move(call));
  return outputs;
}

// After a write the operand's handle refers to the new value.
void ShardTrace::rename_written(const TracedCall& call, Args args) {
  const Schema& schema = call.op->schema();
  for (size_t r = 0; r < schema.results.size(); ++r)
    for (size_t i = 0; schema.results[r].written && i < args.size(); ++i)
      if (schema.parameters[i].alias == schema.results[r].alias && args[i].is_tensor())
        values_[args[i].as_tensor().impl()] = call.results[r];
}

}  // namespace oar
