#include "oar/compiler/capture/regions.h"

#include <algorithm>

#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/autograd/transform.h"
#include "oar/base/string_util.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ops/families/control_rules.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/tensor/dim_assume.h"

namespace oar {

// ---- the flow of gradients ---------------------------------------------------------------------

void Capture::Flow::activate(ValueId id) {
  if (active.size() <= static_cast<size_t>(id)) active.resize(static_cast<size_t>(id) + 1, false);
  active[static_cast<size_t>(id)] = true;
}

void Capture::Flow::add_source(ValueId id, const Tensor& t) {
  if (!is_differentiable(t.dtype())) return;
  activate(id);
  sources.emplace(id, Tensor());
  handles.insert(t.impl());
}

// The tensor, or without_gradient of it if the tape ends here: a detached
// handle, or one that has become a leaf.
Tensor Capture::with_flow(const Tensor& t) {
  const bool ours = t.defined() && (t.is_dense() || t.kind() == Kind::Symbolic);
  if (!ours || !is_differentiable(t.dtype()) || t.has(kWeakScalar)) return t;
  const ValueId value = value_of(t);
  const History* h = maybe_history(t);
  const bool recorded = t.has(kRecording), node = h && h->node;
  const bool made_here = t.kind() == Kind::Symbolic && symbolic_payload(t).capture == serial_;
  if (flow_->is_active(value)) {
    // An outside tensor may have been used first through a detached handle.
    const bool source = flow_->handles.contains(t.impl()) || !made_here;
    if (!recorded || !(node || source)) return make_tensor(stopped(value));
    if (const auto source = flow_->sources.find(value);
        source != flow_->sources.end() && !source->second.defined())
      source->second = t;
    return t;
  }
  if (!around_) {
    // A function's own derivative, or a leaf that it has created: the tape continues from here.
    if (recorded) flow_->activate(value);
    return t;
  }
  user_check(!(recorded && node && made_here) || dynamic_cast<const OpNode*>(h->node.get()),
             ErrorKind::Unsupported,
             "{} has its own derivative, which is lost inside a branch or loop.\nhint: Call "
             "it before the branch or loop, or under no_grad().",
             node ? h->node->name() : "");
  user_check(
      !recorded || !flow_->handles.contains(t.impl()), ErrorKind::Unsupported,
      "a tensor ({}) that requires a gradient has been overwritten under no_grad() inside "
      "a branch or loop, and is used afterwards.\nhint: Write to it after the branch or loop.",
      t.describe());
  return t;
}

Frame Capture::with_flow(const Op& op, Args args) {
  Frame frame(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (op.schema().parameters[i].written) continue;
    if (args[i].is_tensor()) frame.set_tensor(i, with_flow(args[i].as_tensor()));
    if (!args[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : args[i].as_tensors()) list.push_back(with_flow(t));
    frame.set_tensors(i, std::move(list));
  }
  return frame;
}

ValueId Capture::stopped(ValueId value) {
  if (const auto it = flow_->stopped.find(value); it != flow_->stopped.end()) return it->second;
  static const Op& op = get_op("without_gradient");
  Instruction call;
  call.op = &op;
  call.operands.push_back({Operand::One, {value}});
  call.attributes.push(Value());
  const ValueId result = add_value(program_.type_of(value));
  call.results.push_back(result);
  program_.body.instructions.push_back(std::move(call));
  flow_->stopped.emplace(value, result);
  return result;
}

void Capture::stop_flow(Instruction& instruction) {
  if (flow_->on_tape || instruction.op->has(Trait::NoGrad)) return;
  for (Operand& operand : instruction.operands)
    for (ValueId& id : operand.ids)
      if (id != kNoValue && flow_->is_active(id)) id = stopped(id);
}

void Capture::go_on_flowing(const Instruction& instruction) {
  if (!flow_->on_tape || instruction.op->has(Trait::NoGrad)) return;
  bool flows = false;
  for_each_operand(instruction, [&](ValueId id) { flows |= flow_->is_active(id); });
  for (ValueId id : instruction.results)
    if (flows && is_differentiable(program_.type_of(id).dtype)) flow_->activate(id);
}

void Capture::follow_flow() { flow_ = std::make_unique<Flow>(); }

void Capture::end_flow(bool keep_stops) {
  flow_ended_ = true;
  keeps_stops_ = keep_stops;
}

namespace {

// The program reads the values themselves; `stops` has what without_gradient made of them.
Aliases without_stops(Program& program, const Stops& stops) {
  Aliases aliases(program);
  for (const auto& [value, result] : stops) aliases.set(result, value);
  if (!aliases.any()) return aliases;
  std::erase_if(program.body.instructions, [&](const Instruction& call) {
    return call.results.size() == 1 && aliases(call.results[0]) != call.results[0];
  });
  for (Instruction& call : program.body.instructions) aliases.apply(call);
  aliases.apply_to_results(program);
  return aliases;
}

}  // namespace

// Those of sources through which nothing flowed.
Stops Capture::idle_stops() const {
  Stops idle;
  for (const auto& [value, result] : flow_->stopped) {
    const auto source = flow_->sources.find(value);
    if (source != flow_->sources.end() && !source->second.defined()) idle.emplace(value, result);
  }
  return idle;
}

void Capture::forget_stops(const Stops& stops) {
  const Aliases aliases = without_stops(program_, stops);
  for (PlainTensors::Entry& entry : plain_.entries())
    entry.cell->value = aliases(entry.cell->value);
}

void RegionParts::forget_stops(const std::function<bool(ValueId, const Lifted*)>& needless) {
  std::unordered_map<ValueId, const Lifted*> by_value;
  for (const Lifted& l : lifted) by_value.emplace(l.value, &l);
  Stops stops;
  for (const auto& [value, result] : idle) {
    const auto it = by_value.find(value);
    if (needless(value, it == by_value.end() ? nullptr : it->second)) stops.emplace(value, result);
  }
  const Aliases aliases = without_stops(program, stops);
  for (Lifted& l : lifted) l.written = aliases(l.written);
  for (const auto& [value, result] : stops) idle.erase(value);
}

// ---- the end of a region -----------------------------------------------------------------------

void Capture::refuse_changed_gradients() {
  std::vector<std::string> changed;
  for (const PlainTensors::Entry& entry : plain_.entries()) {
    if (!entry.has_other_gradient() && !entry.grad_removed) continue;
    const History* h = maybe_history(entry.tensor);
    changed.push_back(!h || h->name.empty() ? entry.tensor.describe() : h->name);
  }
  user_check(changed.empty(), ErrorKind::Unsupported,
             "a branch or the body of a loop sets or clears the gradient of {}.\nhint: Call "
             "backward() and clear_grad() outside it.",
             join(changed, ", "));
}

// Tensors that outlive the capture are lifted; what only this capture holds is a constant.
void Capture::collect_lifted(RegionParts& parts) {
  for (PlainTensors::Entry& entry : plain_.entries()) {
    entry.original = Tensor();
    if (entry.value == kNoValue) continue;
    Tensor& t = entry.tensor;
    const bool made_here =
        t.is_dense() && t->reference_count() == 1 && t->storage->reference_count() == 1;
    if (t.is_dense() && (made_here || !around_)) {
      parts.program.constants.push_back({entry.value, t});
      continue;
    }
    const auto source = flow_->sources.find(entry.value);
    const bool on_tape = source != flow_->sources.end() && source->second.defined();
    const bool written = entry.cell->was_written();
    parts.lifted.push_back(
        {on_tape ? source->second : t, entry.value, written ? entry.cell->value : kNoValue});
  }
}

RegionParts Capture::finish_region(std::vector<Tensor>&& outputs) {
  {
    const Scope scope(*this);
    for (const Tensor& t : outputs) {
      user_check(t.defined(), ErrorKind::InvalidType,
                 "a branch or the body of a loop returned an undefined tensor.");
      program_.outputs.push_back(value_of(flow_ ? with_flow(t) : t));
    }
  }
  outputs.clear();
  refuse_changed_gradients();
  plain_.restore();
  followers_.clear();
  RegionParts parts;
  parts.program = std::move(program_);
  collect_lifted(parts);
  if (flow_) parts.idle = idle_stops();
  parts.forget_stops([&](ValueId id, const Lifted* lifted) {
    return !lifted && !flow_->asking_inputs.contains(id);
  });
  parts.program.assumptions = std::move(learnt_);
  if (!around_) return parts;
  parts.flows = std::move(flow_->active);
  around_->value_asked_ |= value_asked_;
  for (ContentRead& r : reads_) around_->reads_.push_back(std::move(r));
  return parts;
}

namespace {

// Assumptions made inside hold for the outer program too, as far as it knows the symbols.
void assume_again(const std::vector<DimAssumption>& assumptions, const std::vector<Dim>& own = {}) {
  const auto mentions = [&](Dim d) {
    const std::vector<Dim> symbols = d.symbols();
    return std::any_of(symbols.begin(), symbols.end(),
                       [&](Dim s) { return std::find(own.begin(), own.end(), s) != own.end(); });
  };
  for (const DimAssumption& a : assumptions)
    if (mentions(a.left) || mentions(a.right))
      continue;
    else if (a.kind == DimAssumption::Equal)
      assume_same(a.left, a.right);
    else if (a.kind == DimAssumption::NotEqual)
      same(a.left, a.right);
    else
      known_less(a.left, a.right);
}

}  // namespace

RegionParts capture_region(const std::string& name, TensorList like,
                           const Closure::Function& function, const std::vector<Dim>& own) {
  Capture inner(name, &Capture::require());
  std::vector<Tensor> outputs;
  {
    const Capture::Scope scope(inner);
    std::vector<Tensor> inputs;
    for (const Tensor& t : like) {
      const bool recorded = grad_enabled() && is_differentiable(t.dtype());
      const Tensor input = inner.input({t.dtype(), t.shape(), "", !recorded});
      // A loop's variable is not a leaf: the body may write it.
      inputs.push_back(recorded ? assign(input) : input);
    }
    outputs = function(inputs);
  }
  RegionParts parts = inner.finish_region(std::move(outputs));
  assume_again(parts.program.assumptions, own);
  return parts;
}

ClosurePtr to_region(Program program) {
  const FreshLayers fresh;
  name_values(program);
  program.renumber();
  optimise_region(program);
  program.gather_symbols();
  return make_intrusive<const Region>(std::move(program));
}

ClosurePtr trace_closure(const Closure::Function& function, TensorList like,
                         const std::string& name) {
  RegionParts parts;
  {
    const FreshLayers fresh;
    Capture inner(name);
    std::vector<Tensor> outputs;
    {
      const Capture::Scope scope(inner);
      std::vector<Tensor> inputs;
      for (const Tensor& t : like) inputs.push_back(inner.input({t.dtype(), t.shape()}));
      outputs = function(inputs);
    }
    parts = inner.finish_region(std::move(outputs));
  }
  assume_again(parts.program.assumptions);
  return to_region(std::move(parts.program));
}

// ---- derivatives of regions --------------------------------------------------------------------

namespace {

std::vector<Tensor> types_of(const Program& program, const std::vector<ValueId>& ids,
                             const std::vector<bool>* chosen = nullptr) {
  std::vector<Tensor> list;
  for (size_t i = 0; i < ids.size(); ++i) {
    const ValueType& type = program.type_of(ids[i]);
    if (chosen ? (*chosen)[i] : true)
      list.push_back(Tensor::meta(type.shape, type.dtype, type.device));
  }
  return list;
}

std::vector<bool> differentiable_outputs(const Program& program) {
  std::vector<bool> mask;
  for (ValueId id : program.outputs) mask.push_back(is_differentiable(program.type_of(id).dtype));
  return mask;
}

}  // namespace

ClosurePtr region_vjp(const Program& program, const std::vector<bool>& wanted,
                      TensorList cotangents_like) {
  const std::vector<bool> varying = differentiable_outputs(program);
  const size_t count = program.inputs.size();
  const auto function = [&](TensorList given) {
    const GradMode on(true);
    std::vector<Tensor> inputs(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(count));
    std::vector<Tensor> sources, roots, cotangents;
    for (size_t i = 0; i < count; ++i) {
      if (!wanted[i]) continue;
      set_stop_gradient(inputs[i], false);
      sources.push_back(inputs[i]);
    }
    const std::vector<Tensor> outputs = replay_region(program, inputs);
    size_t next = count;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!varying[i]) continue;
      const Tensor& cotangent = given[next++];
      if (!outputs[i].has(kRecording)) continue;
      roots.push_back(is_leaf(outputs[i]) ? assign(outputs[i]) : outputs[i]);
      cotangents.push_back(in_shape(cotangent, outputs[i].shape()));
    }
    std::vector<Tensor> gradients(sources.size());
    if (!roots.empty() && !sources.empty()) gradients = grad(roots, sources, cotangents, {}, true);
    for (size_t i = 0; i < sources.size(); ++i)
      if (!gradients[i].defined()) gradients[i] = zeros_like(sources[i]);
    return gradients;
  };
  std::vector<Tensor> like = types_of(program, program.inputs);
  const std::vector<Tensor> of_outputs = types_of(program, program.outputs, &varying);
  if (cotangents_like.empty()) cotangents_like = of_outputs;
  like.insert(like.end(), cotangents_like.begin(), cotangents_like.end());
  return trace_closure(function, like, program.name + "_vjp");
}

ClosurePtr region_jvp(const Program& program, const std::vector<bool>& active) {
  const std::vector<bool> varying = differentiable_outputs(program);
  const size_t count = program.inputs.size();
  const auto function = [&](TensorList given) {
    const TensorList primals = given.first(count);
    std::vector<Tensor> tangents(count);
    size_t next = count;
    for (size_t i = 0; i < count; ++i)
      if (active[i]) tangents[i] = given[next++];
    const auto run = [&](const std::vector<Tensor>& inputs) {
      return replay_region(program, inputs);
    };
    const auto [outputs, made] = jvp(run, primals, tangents);
    std::vector<Tensor> results = outputs;
    for (size_t i = 0; i < made.size(); ++i)
      if (varying[i]) results.push_back(in_shape(made[i], outputs[i].shape()));
    return results;
  };
  std::vector<Tensor> like = types_of(program, program.inputs);
  for (Tensor& t : types_of(program, program.inputs, &active)) like.push_back(std::move(t));
  return trace_closure(function, like, program.name + "_jvp");
}

}  // namespace oar
