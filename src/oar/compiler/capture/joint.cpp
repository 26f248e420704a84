#include "oar/compiler/capture/joint.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/compiler/passes/backward.h"
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

// The hooks of leaves see the gradients of a run; the program must not call them too. (Those that
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

// Has a backward() already freed the graph of the tensor?
bool has_freed_graph(const Tensor& t) {
  const History* history = maybe_history(t);
  const auto* node = history ? dynamic_cast<const OpNode*>(history->node.get()) : nullptr;
  return node && node->is_freed();
}

// From the last step to the first, each with the results that it leads to.
std::vector<std::vector<bool>> find_common_steps(const std::vector<Tensor>& roots) {
  using Results = std::vector<bool>;
  std::map<uint64_t, std::pair<const Node*, Results>, std::greater<>> open;
  const auto add = [&](const Node* node, const Results& from) {
    if (!node) return;
    auto& [known, results] = open.try_emplace(node->sequence(), node, from).first->second;
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i]) results[i] = true;
  };
  for (size_t i = 0; i < roots.size(); ++i) {
    Results only(roots.size());
    only[i] = true;
    if (const History* history = maybe_history(roots[i])) add(history->node.get(), only);
  }
  std::set<Results> groups;
  while (!open.empty()) {
    const auto [node, results] = open.extract(open.begin()).mapped();
    for (const Edge& e : node->edges) add(e.node.get(), results);
    groups.insert(results);
  }
  std::vector<Results> common(roots.size(), Results(roots.size()));
  for (const Results& group : groups)
    for (size_t i = 0; i < roots.size(); ++i)
      for (size_t j = 0; group[i] && j < roots.size(); ++j)
        if (group[j]) common[i][j] = true;
  return common;
}

}  // namespace

bool has_leaf_hooks(const Tensor& leaf) {
  const History* history = maybe_history(leaf);
  return history && !history->leaf_hooks.empty();
}

JointProgram capture_joint(const CapturedFunction& function, const std::vector<InputSpec>& inputs,
                           const std::string& name) {
  refuse_nested_capture();
  JointProgram joint;
  joint.inputs = inputs.size();
  Capture under_way(name);
  under_way.follow_outside();
  under_way.follow_flow();
  const uint64_t calls = backward_calls();
  std::vector<Tensor> results;
  {
    const Capture::Scope scope(under_way);
    std::vector<Tensor> symbolic, sources;
    for (const InputSpec& spec : inputs) symbolic.push_back(under_way.input(spec));
    const std::vector<ValueId> values = under_way.values_of(symbolic);
    results = function(symbolic);
    joint.outputs = joint.results = results.size();
    user_check(!under_way.value_asked(), ErrorKind::Unsupported,
               "the captured function reads the value of a tensor and catches the error.");
    // Its graph is freed, and the gradients are where the function put them.
    const bool own_backward = backward_calls() != calls;
    for (const Tensor& t : symbolic) {
      const History* h = maybe_history(t);
      user_check(!h || !h->grad.defined(), ErrorKind::Unsupported,
                 "the captured function leaves a gradient in one of its inputs.");
    }
    under_way.check_unwritten(symbolic, values);
    std::vector<Tensor> roots, cotangents;
    under_way.end_flow(!own_backward && grad_enabled());
    for (size_t i = 0; i < results.size(); ++i) {
      user_check(results[i].defined(), ErrorKind::InvalidType,
                 "the captured function returned an undefined tensor.");
      if (stop_gradient(results[i]) || !grad_enabled()) continue;
      if (own_backward) {
        user_check(has_freed_graph(results[i]), ErrorKind::Unsupported,
                   "the captured function calls backward(), and one of its results requires a "
                   "gradient.\nhint: Return it detached, or leave backward() to the caller.");
        continue;
      }
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
    joint.common_steps = find_common_steps(roots);
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
  for (const OutsideGradient& g : joint.gradients)
    user_check(
        !has_leaf_hooks(g.leaf), ErrorKind::Unsupported,
        "the captured function calls backward(), and an outside tensor has a gradient hook.");
  user_check(joint.gradients.empty() || !joint.differentiable(), ErrorKind::Unsupported,
             "the captured function reads or changes gradients, and its results require a "
             "gradient.\nhint: Return detached results, or leave backward() to the caller.");
  if (!joint.differentiable()) {
    joint.inputs = joint.program.inputs.size();
    joint.outputs = joint.program.outputs.size();
  }
  if (joint.differentiable())
    joint.presence = find_presence(joint.program, joint.inputs, joint.outputs, &joint.flags);
  joint.reads = under_way.reads();
  joint.kept = under_way.payloads();
  for (const State& s : joint.program.states)
    joint.asked.emplace_back(s.tensor, s.tensor.has(kRecording));
  return joint;
}

namespace {
// x itself, without a derivative: it only stops gradients.
bool is_stop(const Instruction& call) {
  return call.op->has(Trait::View) && call.op->has(Trait::NoGrad) && call.op->copied() == 0;
}
}  // namespace

void remove_stops(Program& program) {
  if (std::none_of(program.body.instructions.begin(), program.body.instructions.end(), is_stop))
    return;
  Aliases same(program);
  for (Instruction& call : program.body.instructions) {
    same.apply(call);
    if (is_stop(call)) same.set(call.results[0], operand(call, 0));
  }
  same.apply_to_results(program);
  std::erase_if(program.body.instructions, is_stop);
}

namespace {

// Every reader of a cotangent reads it through the marker of the backward half.
void mark_cotangents(Program& program, size_t first) {
  Aliases through(program);
  std::vector<Instruction> calls;
  for (size_t i = first; i < program.inputs.size(); ++i) {
    const ValueId given = program.inputs[i];
    const ValueId marked = program.add_value(program.type_of(given));
    through.set(given, marked);
    calls.push_back(marker(given, marked));
  }
  for (Instruction& call : program.body.instructions) {
    through.apply(call);
    calls.push_back(std::move(call));
  }
  program.body.instructions = std::move(calls);
  through.apply_to_results(program);
}

// The marks of a derivative that the function computes itself (recomputed.h) belong to its forward half. They become other
// identities, which keep repeated calls apart from the first ones just as well.
void keep_own_marks(Program& program, size_t outputs) {
  std::vector<bool> needed(program.values.size(), false);
  const auto need = [&](ValueId id) { needed[static_cast<size_t>(id)] = true; };
  for (size_t i = 0; i < outputs; ++i) need(program.outputs[i]);
  for (const State& s : program.states)
    if (s.written != kNoValue) need(s.written);
  std::vector<Instruction>& calls = program.body.instructions;
  for (size_t i = calls.size(); i-- > 0;) {
    Instruction& call = calls[i];
    if (std::none_of(call.results.begin(), call.results.end(),
                     [&](ValueId id) { return needed[static_cast<size_t>(id)]; }))
      continue;
    for_each_operand(call, need);
    if (is_marker(call))
      call = NewCall(get_op("without_gradient"), call.results[0])
                 .operand("x", operand(call, 0))
                 .take();
  }
}

class Cutting {
 public:
  explicit Cutting(const JointProgram& joint) : joint_(joint), program_(joint.program) {
    keep_own_marks(program_, joint.outputs);
    mark_cotangents(program_, joint.inputs);
    prepare_cut(program_);
    late_ = depends_on_backward(program_);
    const std::vector<ValueId> gradients(after(program_.outputs, joint.outputs));
    kept_ = kept_for_backward(program_, late_, gradients,
                              std::vector<bool>(program_.body.instructions.size(), false));
    const std::vector<ValueId> cotangents(after(program_.inputs, joint.inputs));
    std::erase_if(kept_.values, [&](ValueId id) {
      return std::find(cotangents.begin(), cotangents.end(), id) != cotangents.end();
    });
  }

  Halves run() {
    Halves halves;
    halves.forward = half("", false);
    halves.backward = half("_backward", true);
    for (size_t i = 0; i < joint_.inputs; ++i) halves.forward.inputs.push_back(program_.inputs[i]);
    for (size_t i = 0; i < joint_.outputs; ++i)
      halves.forward.outputs.push_back(program_.outputs[i]);
    for (ValueId id : kept_.values) {
      halves.forward.outputs.push_back(id);
      halves.backward.inputs.push_back(id);
    }
    for (ValueId id : after(program_.inputs, joint_.inputs)) halves.backward.inputs.push_back(id);
    for (ValueId id : after(program_.outputs, joint_.outputs))
      halves.backward.outputs.push_back(id);
    remove_markers(halves.backward);
    hand_over_sizes(halves, static_cast<std::ptrdiff_t>(program_.inputs.size() - joint_.inputs));
    finish(halves.forward);
    finish(halves.backward);
    return halves;
  }

 private:
  static std::vector<ValueId> after(const std::vector<ValueId>& list, size_t first) {
    return {list.begin() + static_cast<std::ptrdiff_t>(first), list.end()};
  }

  static void remove_markers(Program& part) {
    Aliases same(part);
    for (Instruction& call : part.body.instructions) {
      same.apply(call);
      if (is_marker(call)) same.set(call.results[0], operand(call, 0));
    }
    same.apply_to_results(part);
    std::erase_if(part.body.instructions, is_marker);
  }

  Program half(const char* suffix, bool backward) const {
    Program part = program_;
    part.name += suffix;
    part.inputs.clear();
    part.outputs.clear();
    part.body.instructions.clear();
    const auto& instructions = program_.body.instructions;
    for (size_t i = 0; i < instructions.size(); ++i) {
      const auto& made = instructions[i].results;
      const bool late = !made.empty() && late_[static_cast<size_t>(made[0])];
      if (backward ? kept_.calls[i] : !late) part.body.instructions.push_back(instructions[i]);
    }
    // A state that the forward half writes has other content by then: the old one is passed on.
    if (backward) std::erase_if(part.states, [](const State& s) { return s.written != kNoValue; });
    return part;
  }

  // Open sizes that the backward half uses and that none of its inputs has as a size: the gradient
  // of a sum gets only its cotangent. An empty tensor with these sizes passes them.
  static void hand_over_sizes(Halves& halves, std::ptrdiff_t cotangents) {
    std::vector<Dim> untold = untold_symbols(halves.backward);
    // Others are sizes inside loops, and sizes that the backward half determines itself.
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
    internal_check(halves.backward.add_value(type) == id,
                   "the halves number values in the same way");
    empty.results.push_back(id);
    halves.forward.body.instructions.push_back(std::move(empty));
    halves.forward.outputs.push_back(id);
    // Before the cotangents, with the other values from the forward half.
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
      static_cast<void>(replace_dims(*instruction.op, instruction.attributes.args(), use));
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
  Program program_;
  std::vector<bool> late_;  // by value: part of the backward half
  KeptForBackward kept_;
};

}  // namespace

Halves cut(const JointProgram& joint) { return Cutting(joint).run(); }

std::optional<Program> function_with_stops(const JointProgram& joint) {
  const auto& calls = joint.program.body.instructions;
  if (std::none_of(calls.begin(), calls.end(), is_stop)) return std::nullopt;
  Program program = joint.program;
  program.inputs.resize(joint.inputs);
  program.outputs.resize(joint.outputs);
  remove_dead(program);
  program.renumber();
  program.collect_symbols();
  return program;
}

}  // namespace oar
