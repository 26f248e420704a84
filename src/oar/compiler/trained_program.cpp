#include "oar/compiler/trained_program.h"

#include <algorithm>

#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// The function without what is saved for its derivative.
Program alone(const Program& forward, size_t outputs) {
  Program program = forward;
  program.outputs.resize(outputs);
  optimise(program);
  return program;
}

Program optimised(Program program) {
  optimise(program);
  return program;
}

// As in eager mode, the gradient of a sparse embedding is the slices that were looked up, not a table full
// of zeros: the program returns the slices instead, and their row numbers after all other outputs.
std::vector<RowsOutput> give_back_rows(Program& backward) {
  std::vector<RowsOutput> rows;
  const Makers makers(backward);
  const size_t count = backward.outputs.size();
  for (size_t k = 0; k < count; ++k) {
    const Instruction* maker = makers(backward.outputs[k]);
    if (!maker || !maker->op->def().rows) continue;
    const std::optional<RowsSpec> spec = maker->op->def().rows(maker->attributes.args());
    const Shape& shape = backward.type_of(backward.outputs[k]).shape;
    if (!spec || !spec->as_given || !shape.is_known()) continue;
    rows.push_back({k, backward.outputs.size(), shape});
    backward.outputs.push_back(operand(*maker, spec->numbers));
    backward.outputs[k] = operand(*maker, spec->slices);
  }
  if (!rows.empty()) remove_dead(backward);
  return rows;
}

Tensor selected(const Tensor& values, const Tensor& numbers, const Shape& full) {
  Shape slices{numbers.numel()};
  for (size_t i = 1; i < full.size(); ++i) slices.push_back(full[i]);
  const Tensor rows = numbers.dtype() == DType::Int64 ? numbers : cast(numbers, DType::Int64);
  return make_selected_rows(reshape(rows, {rows.numel()}), reshape(values, slices), full);
}

// Tuned before it is cut, so that the halves exchange values in the layout that both use.
Halves halves_of(JointProgram joint) {
  remove_stops(joint.program);
  tune(joint.program);
  return cut(joint);
}

}  // namespace

TrainedProgram::Parts::Parts(const JointProgram& j) : Parts(j, halves_of(j)) {}

TrainedProgram::Parts::Parts(JointProgram j, Halves halves)
    : joint(std::move(j)),
      with_stops(function_with_stops(joint)),
      rows(give_back_rows(halves.backward)),
      whole(alone(halves.forward, joint.outputs)),
      forward(optimised(halves.forward)),
      backward(optimised(halves.backward)) {}

TrainedProgram::TrainedProgram(const JointProgram& joint)
    : parts_(std::make_shared<const Parts>(joint)) {}

// What a run saves for its backward: tensors, and the versions that they must still have.
class TrainedProgram::Saved {
 public:
  Saved(std::shared_ptr<const Parts> parts, TensorList inputs)
      : parts_(std::move(parts)), inputs_(inputs.begin(), inputs.end()) {}

  std::vector<Tensor> forward() {
    std::vector<Tensor> made = parts_->forward.run(inputs_);
    const auto own = made.begin() + static_cast<std::ptrdiff_t>(parts_->joint.outputs);
    kept_.assign(own, made.end());
    made.erase(own, made.end());
    for (
        Tensor& t :
        made)  // an input that is returned gets a new handle on the tape; the caller's own does not
      if (std::any_of(inputs_.begin(), inputs_.end(),
                      [&](const Tensor& i) { return t.is_same(i); }))
        t = Tensor(t->alias());
    for (const Tensor& t : kept_) versions_.emplace_back(t->storage, t->storage->version());
    for (const State& s : parts_->backward.program().states)
      versions_.emplace_back(s.tensor->storage, s.tensor->storage->version());
    return made;
  }

  std::vector<Tensor> backward(TensorList cotangents) {
    const JointProgram& joint = parts_->joint;
    check_unfreed(cotangents);
    std::vector<Tensor> given = grad_enabled() ? inputs_ : kept_;
    std::vector<bool> arrived;
    for (size_t k = 0; k < joint.cotangents.size(); ++k) {
      const Tensor& t = cotangents[joint.cotangents[k]];
      const ValueType& type = joint.program.type_of(joint.program.inputs[joint.inputs + k]);
      arrived.push_back(t.defined());
      given.push_back(t.defined() ? t : zeros(shapes_[joint.cotangents[k]], type.dtype));
    }
    if (grad_enabled()) return present(differentiable(given), arrived);
    for (const auto& [storage, version] : versions_)
      user_check(storage->version() == version, ErrorKind::Runtime,
                 "a tensor that the gradient of the program {} needs has been changed in place "
                 "since it ran.\nhint: Call backward() before changing inputs or parameters, or "
                 "clone() them.",
                 joint.program.name);
    if (!keeps_graph()) let_go(arrived);
    std::vector<Tensor> made = parts_->backward.run_on(std::move(given));
    for (const RowsOutput& r : parts_->rows)
      made[r.values] = selected(made[r.values], made[r.numbers], r.shape);
    made.resize(made.size() - parts_->rows.size());
    return present(std::move(made), arrived);
  }

  void remember_shapes(TensorList outputs) {
    for (const Tensor& t : outputs) shapes_.push_back(t.shape());
  }

 private:
  // For a derivative that will be differentiated again: its calls, on the tape.
  std::vector<Tensor> differentiable(TensorList given) const {
    Program program = parts_->joint.program;
    for (State& s : program.states) s.written = kNoValue;
    for (const Instruction& instruction : program.body.instructions)
      user_check(!draws_random(instruction), ErrorKind::Unsupported,
                 "the program {} draws random numbers ({}), so its derivative cannot be recorded "
                 "for a higher one.\nhint: Call the function itself, not its program, where "
                 "create_graph=True.",
                 program.name, instruction.op->name());
    std::vector<Tensor> made = replay(program, given);
    made.erase(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(parts_->joint.outputs));
    return made;
  }

  // As in eager mode, what no result depends on has no gradient. The flags are the last outputs.
  std::vector<Tensor> present(std::vector<Tensor> made, const std::vector<bool>& arrived) const {
    const JointProgram& joint = parts_->joint;
    const size_t count = made.size() - joint.flags;
    const auto is_true = [&](size_t flag) {
      const Tensor& t = made[count + flag];
      return !t.is_dense() || t.item_int() != 0;  // inside a capture it is unknown
    };
    for (size_t k = 0; k < count; ++k)
      if (!joint.presence[k].holds(arrived, is_true)) made[k] = Tensor();
    made.resize(count);
    return made;
  }

  // As in eager mode a backward frees the steps that it runs, and other results that need one of them have lost it.
  bool has_freed(size_t cotangent) const {
    for (size_t k = 0; k < done_.size(); ++k)
      if (done_[k] && parts_->joint.common_steps[cotangent][k]) return true;
    return false;
  }
  void check_unfreed(TensorList cotangents) const {
    const JointProgram& joint = parts_->joint;
    for (size_t k = 0; k < joint.cotangents.size(); ++k)
      if (cotangents[joint.cotangents[k]].defined() && has_freed(k)) fail_freed(joint.program.name);
  }
  // If no result is left, the run of the backward half holds the last references to the saved tensors and frees them as it
  // proceeds.
  void let_go(const std::vector<bool>& arrived) {
    done_.resize(arrived.size());
    for (size_t k = 0; k < arrived.size(); ++k)
      if (arrived[k]) done_[k] = true;
    for (size_t k = 0; k < done_.size(); ++k)
      if (!has_freed(k)) return;
    inputs_.clear();
    kept_.clear();
    versions_.clear();
  }

  std::shared_ptr<const Parts> parts_;
  std::vector<bool> done_;  // cotangents whose backward has freed its steps
  std::vector<Tensor> inputs_;
  std::vector<Tensor> kept_;
  std::vector<Shape> shapes_;
  std::vector<std::pair<StoragePtr, uint32_t>> versions_;
};

namespace {
// Other holders of the gradient see the new content too.
void rewrite(Gradient& grad, const Tensor& value) {
  const Tensor& t = grad.get();
  if (t->reference_count() == 1 && t->storage->reference_count() == 1) return grad.set(value);
  const NoGrad off;
  copy_into(t, value);
}
}  // namespace

// The inputs, followed by the gradients that the function reads.
std::vector<Tensor> TrainedProgram::with_gradients(TensorList inputs) const {
  std::vector<Tensor> given(inputs.begin(), inputs.end());
  for (const OutsideGradient& g : parts_->joint.gradients)
    if (g.read) given.push_back(history_of(g.leaf).grad.content());
  return given;
}

std::vector<Tensor> TrainedProgram::run_and_set_gradients(TensorList inputs) const {
  const JointProgram& joint = parts_->joint;
  std::vector<Tensor> outputs;
  {
    const GradMode off(false);
    outputs = parts_->whole.run(with_gradients(inputs));
  }
  size_t next = joint.results;
  for (const OutsideGradient& g : joint.gradients) {
    using End = OutsideGradient::End;
    if (g.end == End::Same && !g.rewritten) continue;
    Gradient& grad = history_of(g.leaf).grad;
    if (g.rewritten) rewrite(grad, outputs[next++]);
    if (g.end == End::Output) grad.set(outputs[next++]);
    if (g.end == End::None) grad.set(Tensor());
    if (g.end == End::Zeros && !grad.is_same(g.zeros)) grad = g.zeros;
  }
  outputs.resize(joint.results);
  return outputs;
}

bool TrainedProgram::writes() const {
  const std::vector<State>& states = program().states;
  return !parts_->joint.gradients.empty() ||
         std::any_of(states.begin(), states.end(),
                     [](const State& s) { return s.written != kNoValue; });
}

std::string TrainedProgram::misfit(TensorList inputs) const {
  const JointProgram& joint = parts_->joint;
  if (std::string shared = parts_->whole.shared_memory(inputs); !shared.empty()) return shared;
  for (const auto& [tensor, asked] : joint.asked)
    if (tensor.has(kRecording) != asked)
      return format("stop_gradient of {} is {} now", shown_name(tensor), asked ? "True" : "False");
  for (const ContentRead& r : joint.reads)
    if (r.tensor->storage->version() != r.version)
      return format("the content of {}, which the function reads, has changed",
                    shown_name(r.tensor));
  for (const OutsideGradient& g : joint.gradients) {
    const History* h = maybe_history(g.leaf);
    const Gradient* now = h ? &h->grad : nullptr;
    if (!g.fits(now))
      return format("{} has {} gradient now", shown_name(g.leaf),
                    now && now->defined() ? "a" : "no");
    if (has_leaf_hooks(g.leaf)) return format("{} has a gradient hook now", shown_name(g.leaf));
  }
  return parts_->whole.misfit(with_gradients(inputs));
}

std::vector<Tensor> TrainedProgram::run(TensorList inputs) const {
  const JointProgram& joint = parts_->joint;
  parts_->whole.check_apart(inputs);
  if (!joint.gradients.empty()) return run_and_set_gradients(inputs);
  if (must_replay(inputs))
    return replay(parts_->with_stops ? *parts_->with_stops : parts_->whole.program(), inputs);
  std::vector<Tensor> sources;
  for (size_t i : joint.of_inputs) sources.push_back(inputs[i]);
  for (const Tensor& t : joint.of_states) sources.push_back(t);
  const bool recorded =
      grad_enabled() && std::any_of(sources.begin(), sources.end(),
                                    [](const Tensor& t) { return t.has(kRecording); });
  if (!recorded) return parts_->whole.run(inputs);
  auto saved = std::make_shared<Saved>(parts_, inputs);
  std::vector<Tensor> outputs = custom_function(
      sources, [&](TensorList) { return saved->forward(); },
      [saved](TensorList cotangents) { return saved->backward(cotangents); }, joint.program.name,
      Missing::Undefined, Frees::Itself);
  saved->remember_shapes(outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (std::find(joint.cotangents.begin(), joint.cotangents.end(), i) == joint.cotangents.end())
      outputs[i] = detach(outputs[i]);
  return outputs;
}

}  // namespace oar
