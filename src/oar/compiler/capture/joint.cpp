#include "oar/compiler/capture/joint.h"

#include <algorithm>
#include <utility>

#include "oar/autograd/engine.h"
#include "oar/compiler/capture/recompute.h"
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

// The hooks of leaves see the gradients that a run gives them; the program is not to call them too. (Those that
// the function puts on its inputs are part of the program.)
class WithoutLeafHooks {
 public:
  explicit WithoutLeafHooks(const std::vector<Tensor>& leaves) {
    for (const Tensor& t : leaves)
      if (History* h = maybe_history(t); h && !h->leaf_hooks.empty())
        taken_.emplace_back(t, std::exchange(h->leaf_hooks, {}));
  }
  ~WithoutLeafHooks() {
    for (auto& [leaf, hooks] : taken_) history_of(leaf).leaf_hooks = std::move(hooks);
  }
  WithoutLeafHooks(const WithoutLeafHooks&) = delete;
  WithoutLeafHooks& operator=(const WithoutLeafHooks&) = delete;

 private:
  std::vector<std::pair<Tensor, decltype(History::leaf_hooks)>> taken_;
};

}  // namespace

JointProgram capture_joint(const CapturedFunction& function, const std::vector<InputSpec>& inputs,
                           const std::string& name) {
  refuse_nested_capture();
  JointProgram joint;
  joint.inputs = inputs.size();
  Capture under_way(name);
  under_way.follow_outside();
  const uint64_t calls = backward_calls();
  std::vector<Tensor> results;
  {
    const Capture::Scope scope(under_way);
    std::vector<Tensor> symbolic, sources;
    for (const InputSpec& spec : inputs) symbolic.push_back(under_way.input(spec));
    results = function(symbolic);
    joint.outputs = joint.results = results.size();
    user_check(!under_way.value_asked(), ErrorKind::Unsupported,
               "the captured function asks for the value of a tensor and catches the error.");
    // Its graph is gone, and the gradients are where the function wanted them.
    const bool own_backward = backward_calls() != calls;
    for (const Tensor& t : symbolic) {
      const History* h = maybe_history(t);
      user_check(!h || !h->grad.defined(), ErrorKind::Unsupported,
                 "the captured function leaves a gradient behind in one of its inputs.");
      user_check(!under_way.cell_of(t)->was_written(), ErrorKind::Unsupported,
                 "the captured function writes to one of its inputs.\nhint: Write to a copy, x = "
                 "x.clone(), and return it.");
    }
    std::vector<Tensor> roots, cotangents;
    for (size_t i = 0; i < results.size(); ++i) {
      user_check(results[i].defined(), ErrorKind::InvalidType,
                 "the captured function returned an undefined tensor.");
      if (stop_gradient(results[i]) || !grad_enabled() || own_backward) continue;
      joint.cotangents.push_back(i);
      roots.push_back(results[i]);
      cotangents.push_back(
          under_way.input({results[i].dtype(), results[i].shape(), format("grad_{}", i)}));
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].stop_gradient || roots.empty()) continue;
      joint.of_inputs.push_back(i);
      sources.push_back(symbolic[i]);
    }
    if (!roots.empty())
      for (const Tensor& t : under_way.trained()) {
        joint.of_states.push_back(t);
        sources.push_back(t);
      }
    for (Tensor& t : results) t = detach(t);
    size_t next = 0;
    const WithoutLeafHooks quiet(joint.of_states);
    const std::vector<Tensor> gradients =
        sources.empty() ? std::vector<Tensor>() : grad(roots, sources, cotangents, {}, true);
    const auto unused = [&](const auto&) { return !gradients[next++].defined(); };
    std::erase_if(joint.of_inputs, unused);
    std::erase_if(joint.of_states, unused);
    for (const Tensor& g : gradients)
      if (g.defined()) results.push_back(g);
  }
  joint.program = under_way.finish(std::move(results), &joint.gradients);
  user_check(joint.gradients.empty() || !joint.differentiable(), ErrorKind::Unsupported,
             "the captured function reads or changes gradients, and its results have a gradient of "
             "their own.\nhint: Return detached results, or leave backward() to the caller.");
  if (!joint.differentiable()) {
    joint.inputs = joint.program.inputs.size();
    joint.outputs = joint.program.outputs.size();
  }
  joint.reads = under_way.reads();
  joint.kept = under_way.payloads();
  for (const State& s : joint.program.states)
    joint.asked.emplace_back(s.tensor, s.tensor.has(kRecording));
  return joint;
}

namespace {

class Cutting {
 public:
  explicit Cutting(const JointProgram& joint)
      : joint_(joint), program_(joint.program), late_(program_.values.size(), false) {}

  Halves run(int64_t most_kept) {
    find_late();
    std::vector<bool> recomputed(program_.body.instructions.size(), false);
    const auto kept = [this](const std::vector<bool>& again) {
      mark_needed(again);
      return handed_over_;
    };
    if (most_kept > 0) recomputed = choose_recomputed(program_, kept, most_kept);
    mark_needed(recomputed);
    Halves halves;
    halves.forward = half("", false);
    halves.backward = half("_backward", true);
    for (size_t i = 0; i < joint_.inputs; ++i) halves.forward.inputs.push_back(program_.inputs[i]);
    for (size_t i = 0; i < joint_.outputs; ++i)
      halves.forward.outputs.push_back(program_.outputs[i]);
    for (ValueId id : handed_over_) {
      halves.forward.outputs.push_back(id);
      halves.backward.inputs.push_back(id);
    }
    for (size_t i = joint_.inputs; i < program_.inputs.size(); ++i)
      halves.backward.inputs.push_back(program_.inputs[i]);
    for (size_t i = joint_.outputs; i < program_.outputs.size(); ++i)
      halves.backward.outputs.push_back(program_.outputs[i]);
    hand_over_sizes(halves, static_cast<std::ptrdiff_t>(program_.inputs.size() - joint_.inputs));
    finish(halves.forward);
    finish(halves.backward);
    return halves;
  }

 private:
  bool is_late(ValueId id) const { return late_[static_cast<size_t>(id)]; }

  // What depends on a cotangent.
  void find_late() {
    for (size_t i = joint_.inputs; i < program_.inputs.size(); ++i)
      late_[static_cast<size_t>(program_.inputs[i])] = true;
    for (const Instruction& instruction : program_.body.instructions) {
      bool late = false;
      for_each_operand(instruction, [&](ValueId id) { late |= is_late(id); });
      for (ValueId id : instruction.results) late_[static_cast<size_t>(id)] = late;
    }
  }

  // Early values that late instructions read. Views are made again: they cost nothing, and what they
  // show is often handed over anyway. So are those that are cheaper to make than to keep.
  void mark_needed(const std::vector<bool>& recomputed) {
    handed_over_.clear();
    std::vector<bool> wanted(program_.values.size(), false);
    const auto want = [&](ValueId id) { wanted[static_cast<size_t>(id)] = true; };
    for (size_t i = joint_.outputs; i < program_.outputs.size(); ++i) want(program_.outputs[i]);
    const auto& instructions = program_.body.instructions;
    again_.assign(instructions.size(), false);
    for (size_t i = instructions.size(); i-- > 0;) {
      const Instruction& instruction = instructions[i];
      const bool read = std::any_of(instruction.results.begin(), instruction.results.end(),
                                    [&](ValueId id) { return wanted[static_cast<size_t>(id)]; });
      if (!read) continue;
      const bool late = is_late(instruction.results[0]);
      again_[i] =
          late || recomputed[i] || instruction.op->has(Trait::View) || !reads_tensors(instruction);
      if (draws_random(instruction)) again_[i] = late;
      if (again_[i]) {
        for_each_operand(instruction, want);
        for (ValueId id : instruction.results) wanted[static_cast<size_t>(id)] = false;
      }
    }
    std::vector<bool> outside(program_.values.size(), false);
    for (const State& s : program_.states)
      if (s.written == kNoValue) outside[static_cast<size_t>(s.value)] = true;
    for (const Constant& c : program_.constants) outside[static_cast<size_t>(c.value)] = true;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i] && !outside[i] && !late_[i]) handed_over_.push_back(static_cast<ValueId>(i));
  }

  static bool reads_tensors(const Instruction& instruction) {
    bool reads = false;
    for_each_operand(instruction, [&](ValueId) { reads = true; });
    return reads;
  }

  Program half(const char* suffix, bool backward) const {
    Program part = program_;
    part.name += suffix;
    part.inputs.clear();
    part.outputs.clear();
    part.body.instructions.clear();
    const auto& instructions = program_.body.instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      const bool late = !instructions[i].results.empty() && is_late(instructions[i].results[0]);
      if (backward ? again_[i] : !late) part.body.instructions.push_back(instructions[i]);
    }
    // A state that the forward half writes has another content by then: it is handed over.
    if (backward) std::erase_if(part.states, [](const State& s) { return s.written != kNoValue; });
    return part;
  }

  // Open sizes that the backward half works with and that none of its inputs has as a size: the
  // gradient of a sum is told only its cotangent. An empty tensor with these sizes tells them.
  static void hand_over_sizes(Halves& halves, std::ptrdiff_t cotangents) {
    std::vector<Dim> untold = untold_symbols(halves.backward);
    // Others are sizes inside of loops, and what the backward half finds by itself.
    const std::vector<Dim> known = sizes_in(halves.forward);
    std::erase_if(untold,
                  [&](Dim d) { return std::find(known.begin(), known.end(), d) == known.end(); });
    if (untold.empty()) return;
    Shape shape{Dims(untold)};
    shape.push_back(0);
    Instruction empty;
    empty.op = &get_op("full");
    empty.operands.resize(3);
    const Scalar zero(0);
    empty.attributes.push(Value(Dims(shape)));
    empty.attributes.push(Value(zero));
    empty.attributes.push(Value(DType::Float32));
    const ValueType type{DType::Float32, shape, Device{}};
    const ValueId id = halves.forward.add_value(type);
    internal_check(halves.backward.add_value(type) == id, "the halves number values alike");
    empty.results.push_back(id);
    halves.forward.body.instructions.push_back(std::move(empty));
    halves.forward.outputs.push_back(id);
    // In front of the cotangents, where what the forward half hands over stands.
    halves.backward.inputs.insert(halves.backward.inputs.end() - cotangents, id);
  }

  static std::vector<Dim> sizes_in(const Program& part) {
    std::vector<Dim> symbols;
    const auto add = [&](ValueId id) {
      for (const Dim d : part.type_of(id).shape)
        for (const Dim symbol : d.symbols()) symbols.push_back(symbol);
    };
    for (const ValueId id : part.inputs) add(id);
    for (const Instruction& instruction : part.body.instructions)
      for (const ValueId id : instruction.results) add(id);
    return symbols;
  }

  static std::vector<Dim> untold_symbols(Program part) {
    remove_dead(part);
    part.renumber();
    std::vector<Dim> told, untold;
    const auto add = [](std::vector<Dim>& to, Dim d) {
      if (std::find(to.begin(), to.end(), d) == to.end()) to.push_back(d);
    };
    for (const ValueId id : part.inputs)
      for (const Dim d : part.type_of(id).shape)
        if (const std::vector<Dim> symbols = d.symbols(); symbols.size() == 1 && symbols[0] == d)
          add(told, d);
    const auto use = [&](Dim d) {
      for (const Dim symbol : d.symbols())
        if (std::find(told.begin(), told.end(), symbol) == told.end()) add(untold, symbol);
      return d;
    };
    for (const ProgramValue& value : part.values)
      for (const Dim d : value.type.shape) use(d);
    for (const Instruction& instruction : part.body.instructions)
      static_cast<void>(replace_dims(instruction.attributes.args(), use));
    return untold;
  }

  static void finish(Program& part) {
    remove_dead(part);
    const std::vector<int> uses = count_uses(part);
    std::erase_if(part.states, [&](const State& s) {
      return s.written == kNoValue && uses[static_cast<size_t>(s.value)] == 0;
    });
    part.renumber();
    part.collect_symbols();
  }

  const JointProgram& joint_;
  const Program& program_;
  std::vector<bool> late_;
  std::vector<bool> again_;  // by instruction: part of the backward half
  std::vector<ValueId> handed_over_;
};

}  // namespace

Halves cut(const JointProgram& joint, int64_t most_kept) { return Cutting(joint).run(most_kept); }

}  // namespace oar
