#include "oar/compiler/capture/replay.h"

#include <algorithm>

#include "oar/autograd/engine.h"
#include "oar/compiler/capture/capture.h"
#include "oar/ir/bind.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/gen/copy.h"

namespace oar {
namespace {

class Replay {
 public:
  Replay(const Program& program, TensorList inputs, bool own_sizes = true)
      : program_(program), binder_(program), tensors_(program.values.size()) {
    if (own_sizes)
      values_ = binder_.bind(program, inputs);
    else
      take_sizes(inputs);
    for (size_t i = 0; i < inputs.size(); ++i) at(program.inputs[i]) = inputs[i];
    for (const State& s : program.states) at(s.value) = s.tensor;
    for (const Constant& c : program.constants) at(c.value) = c.tensor;
  }

  void run() {
    for (size_t i = 0; i < program_.body.instructions.size(); ++i) step(i);
  }
  std::vector<Tensor> outputs() {
    std::vector<Tensor> list;
    for (ValueId id : program_.outputs) list.push_back(at(id));
    return list;
  }
  void write_states() {
    const GradMode off(false);
    // All new values first: one of them may be another state's old one.
    std::vector<Tensor> written;
    for (const State& s : program_.states)
      if (s.written != kNoValue) written.push_back(assign(at(s.written)));
    size_t next = 0;
    for (const State& s : program_.states)
      if (s.written != kNoValue) copy_into(s.tensor, written[next++]);
  }
  Tensor& at(ValueId id) { return tensors_[static_cast<size_t>(id)]; }

 private:
  // The open sizes of a region are those of the outer program, or of its inputs.
  void take_sizes(TensorList inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& wanted = program_.type_of(program_.inputs[i]).shape;
      const size_t axes = std::min(wanted.size(), static_cast<size_t>(inputs[i].rank()));
      for (size_t axis = 0; axis < axes; ++axis)
        if (is_symbol(wanted[axis]) && !values_.has(wanted[axis]))
          values_.set(wanted[axis], inputs[i].dims()[axis]);
    }
  }

  void step(size_t index) {
    const Instruction& instruction = program_.body.instructions[index];
    const bool update = is_update(*instruction.op);
    const Frame frame = with_operands(
        replace_dims(*instruction.op, instruction.attributes.args(),
                     [&](Dim d) { return values_.evaluate(d); }),
        instruction, [&](size_t i, ValueId id) {
          return instruction.op->schema().parameters[i].written ? assign(at(id)) : at(id);
        });
    Outputs made = dispatch(*instruction.op, frame.args());
    if (update) made = written_arguments(*instruction.op, frame.args());
    if (binder_.binds_results(index))
      binder_.bind_results(program_, index, {made.data(), made.size()}, values_);
    for (size_t i = 0; i < made.size(); ++i) at(instruction.results[i]) = std::move(made[i]);
  }

  const Program& program_;
  const InputBinder binder_;
  SymbolValues values_;
  std::vector<Tensor> tensors_;
};

// While alive, these plain tensors require gradients.
class WithGradients {
 public:
  ~WithGradients() {
    for (const Tensor& t : changed_) set_stop_gradient(t, true);
  }
  void ask(const Tensor& t) {
    if (!stop_gradient(t)) return;
    set_stop_gradient(t, false);
    changed_.push_back(t);
  }

 private:
  std::vector<Tensor> changed_;
};

}  // namespace

bool must_replay(TensorList inputs) {
  uint32_t layers = t_layers.on;
  for (const Tensor& t : inputs)
    if (t.defined()) layers |= t->flags;
  constexpr uint32_t kInvolved = kWrapped | kDistributed | kFunctionalise | kCapture;
  return (layers & ~t_layers.off & kInvolved) != 0;
}

std::vector<Tensor> replay(const Program& program, TensorList inputs) {
  Replay run(program, inputs);
  run.run();
  std::vector<Tensor> outputs = run.outputs();
  run.write_states();
  return outputs;
}

std::vector<Tensor> replay_on_other_shapes(const Program& program, TensorList inputs) {
  Replay run(program, inputs, false);
  run.run();
  std::vector<Tensor> outputs = run.outputs();
  run.write_states();
  return outputs;
}

std::vector<Tensor> replay_region(const Program& program, TensorList inputs) {
  Replay run(program, inputs, false);
  run.run();
  return run.outputs();
}

Program differentiate(const Program& program, const std::vector<ValueId>& wanted, size_t output) {
  user_check(output < program.outputs.size(), ErrorKind::OutOfRange,
             "output {} does not exist: the program {} has {}.", output, program.name,
             program.outputs.size());
  const ValueType& loss = program.type_of(program.outputs[output]);
  user_check(loss.shape.numel() == Dim(1), ErrorKind::InvalidArgument,
             "only an output with one element can be differentiated; output {} is {}.\nhint: Sum "
             "it, or capture the sum of its product with the direction you want.",
             output, loss.str());
  const auto is_wanted = [&](ValueId id) {
    return std::find(wanted.begin(), wanted.end(), id) != wanted.end();
  };
  std::vector<InputSpec> specs;
  for (ValueId id : program.inputs)
    specs.push_back({.dtype = program.type_of(id).dtype,
                     .shape = program.type_of(id).shape,
                     .name = program.label(id).substr(1),
                     .stop_gradient = !is_wanted(id),
                     .device = program.type_of(id).device});
  WithGradients scope;
  for (const State& s : program.states)
    if (is_wanted(s.value)) scope.ask(s.tensor);
  const auto function = [&](const std::vector<Tensor>& inputs) {
    const GradMode on(true);
    Replay run(program, inputs);
    run.run();
    std::vector<Tensor> outputs = run.outputs(), sources;
    for (ValueId id : wanted) sources.push_back(run.at(id));
    const Tensor root = outputs[output];
    for (Tensor& g : grad({&root, 1}, sources)) outputs.push_back(std::move(g));
    run.write_states();
    return outputs;
  };
  return capture(function, specs, program.name + "_grad");
}

}  // namespace oar
