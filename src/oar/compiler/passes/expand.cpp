// Replaces calls that no kernel accepts by their decomposition, until kernels accept them all. A call with neither a kernel nor
// a decomposition stays: a user's op, or one that reads values.
// A program that is to be deployed may have open sizes: kernels are asked at the sizes of the capture, and the calls hold for
// all that the program allows.
#include "oar/compiler/passes/expand.h"

#include <optional>
#include <unordered_map>

#include "oar/backend/cpu/cpu.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/deploy.h"
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"
#include "oar/device/generator.h"
#include "oar/ir/region.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/runtime/layout.h"
#include "oar/runtime/lower.h"
#include "oar/runtime/region_runs.h"

namespace oar {
namespace {

// The type at the sizes that the capture saw.
ValueType seen(const ValueType& type) {
  ValueType known = type;
  for (Dim& d : known.shape) d = d.hint();
  return known;
}

}  // namespace

std::optional<Program> parts_of(const Program& program, const Instruction& call, Device target) {
  if (!call.op->def().decompose || has_regions(call)) return std::nullopt;
  std::vector<InputSpec> specs;
  for_each_operand(call, [&](ValueId id) {
    const ValueType& type = program.type_of(id);
    specs.push_back({.dtype = type.dtype, .shape = type.shape, .device = type.device});
  });
  const auto parts = [&](const std::vector<Tensor>& inputs) {
    size_t next = 0;
    const Frame frame = with_operands(call.attributes.clone(), call,
                                      [&](size_t, ValueId) { return inputs[next++]; });
    const Outputs made = call.op->def().decompose(frame.args());
    const Outputs results = is_update(*call.op) ? written_arguments(*call.op, frame.args()) : made;
    return std::vector<Tensor>(results.begin(), results.end());
  };
  const generator::Places before;
  Program inner;
  try {
    const devices::Scope scope(target);  // what it makes out of nothing
    inner = capture(parts, specs, call.op->name());
  } catch (const Error&) {
    return std::nullopt;  // the run will raise the error
  }
  if (!(generator::Places() == before)) {
    before.restore();
    return std::nullopt;
  }
  if (!inner.states.empty()) return std::nullopt;
  for (const ProgramValue& value : inner.values)
    if (!can_be_laid_out(seen(value.type))) return std::nullopt;
  for (Instruction& part : inner.body.instructions) {
    part.location = call.location;
    part.layer = call.layer;
    part.called = call.called ? call.called : call.op->name().c_str();
  }
  optimise(inner);
  return inner;
}

namespace {

class Expansion {
 public:
  // Who will run the program: this process, at sizes that are known, or the runtime library on any machine.
  enum class For : uint8_t { Run, Deployment };
  Expansion(Program& program, PassContext& context, For use = For::Run)
      : program_(program), context_(context), deployed_(use == For::Deployment) {}
  // … or someone who knows the calls that `stays` accepts.
  Expansion(Program& program, PassContext& context, const Stays& stays)
      : program_(program), context_(context), deployed_(true), stays_(&stays) {}

  bool run() {
    for (const ProgramValue& value : program_.values) {
      const ValueType type = deployed_ ? seen(value.type) : value.type;
      if (!can_be_laid_out(type)) return false;
      layouts_.push_back(layout_of(type));
    }
    for (Instruction& call : std::exchange(program_.body.instructions, {})) add(std::move(call));
    program_.body.instructions = std::move(calls_);
    if (!expanded_) return false;
    Aliases aliases(program_);
    for (const auto& [from, to] : same_) aliases.set(from, to);
    aliases.apply_to_results(program_);
    remove_dead(program_);
    program_.renumber();
    return true;
  }

 private:
  void add(Instruction call);
  bool may_stay(const Instruction& call);
  bool has_kernel(const Instruction& call);
  void lay_out_view(const Instruction& call);
  void add_parts(const Instruction& call, const Program& parts);

  Frame arguments(const Instruction& call) const {
    Frame attributes =
        replace_dims(*call.op, call.attributes.args(), [](Dim d) { return d.hint(); });
    return with_operands(std::move(attributes), call,
                         [&](size_t, ValueId id) { return layouts_[static_cast<size_t>(id)]; });
  }
  ValueId add_value(const ValueType& type) {
    layouts_.push_back(layout_of(seen(type)));
    return program_.add_value(type);
  }
  ValueId resolved(ValueId id) const {
    const auto found = same_.find(id);
    return found == same_.end() ? id : found->second;
  }

  Program& program_;
  PassContext& context_;
  const bool deployed_;
  const Stays* stays_ = nullptr;
  std::vector<Tensor> layouts_;  // by value
  std::vector<Instruction> calls_;
  std::unordered_map<ValueId, ValueId> same_;  // results of calls that were expanded
  bool expanded_ = false;
};

bool Expansion::has_kernel(const Instruction& call) {
  const OpScope scope(call.op->name().c_str());
  if (!deployed_) check_types(program_, call);
  const Frame frame = arguments(call);
  std::vector<Tensor> results;
  const std::vector<ValueId> outputs = is_update(*call.op) ? written_results(call) : call.results;
  for (ValueId id : outputs) results.push_back(layouts_[static_cast<size_t>(id)]);
  if (deployed_)
    return kernel_for(*call.op, frame.args(), results, Device{}, cpu::is_everywhere) != nullptr;
  return context_.target.has_kernel(*call.op, frame.args(), results);
}

// If the layout does not allow a view, lowering copies first, and the copy is row-major.
void Expansion::lay_out_view(const Instruction& call) {
  Frame frame = arguments(call);
  const ValueId base = operand(call, 0);
  std::optional<ViewSpec> spec = call.op->def().view(frame.args());
  if (!spec) {
    frame.set_tensor(0, layout_of(seen(program_.type_of(base))));
    spec = call.op->def().view(frame.args());
  }
  if (spec)
    layouts_[static_cast<size_t>(call.results[0])] =
        layout_of(*spec, layouts_[static_cast<size_t>(base)]);
}

bool Expansion::may_stay(const Instruction& call) {
  if (stays_) return (*stays_)(program_, call);
  const bool sized_by_data =
      call.op->has(Trait::DataDependent) && !(deployed_ && call.op->kernels(Device{}.type).empty());
  return call.op->def().view || sized_by_data || has_kernel(call);
}

void Expansion::add(Instruction call) {
  for (Operand& operand : call.operands)
    for (ValueId& id : operand.ids) id = resolved(id);
  if (call.op->def().view) lay_out_view(call);
  if (!may_stay(call)) {
    const std::optional<Program> parts = parts_of(program_, call, context_.target.device);
    if (parts) return add_parts(call, *parts);
  }
  calls_.push_back(std::move(call));
}

void Expansion::add_parts(const Instruction& call, const Program& parts) {
  expanded_ = true;
  std::vector<ValueId> ids(parts.values.size(), kNoValue);
  const auto at = [&](ValueId id) -> ValueId& { return ids[static_cast<size_t>(id)]; };
  size_t next = 0;
  for_each_operand(call, [&](ValueId id) { at(parts.inputs[next++]) = id; });
  for (const Constant& c : parts.constants) {
    at(c.value) = add_value(parts.type_of(c.value));
    program_.constants.push_back({at(c.value), c.tensor});
  }
  program_.assumptions.insert(program_.assumptions.end(), parts.assumptions.begin(),
                              parts.assumptions.end());
  for (const Instruction& part : parts.body.instructions) {
    Instruction copy = part;
    for (Operand& operand : copy.operands)
      for (ValueId& id : operand.ids)
        if (id != kNoValue) id = at(id);
    for (ValueId& id : copy.results) id = at(id) = add_value(parts.type_of(id));
    add(std::move(copy));
  }
  for (size_t i = 0; i < call.results.size(); ++i)
    same_[call.results[i]] = resolved(at(parts.outputs[i]));
}

}  // namespace

bool expand(Program& program, PassContext& context) { return Expansion(program, context).run(); }

namespace {
// For the runtime library, or until calls stay.
void expand_all(Program& program, ProgramKind kind, const Stays* stays) {
  for (Instruction& call : program.body.instructions)
    replace_regions(call, [&](const Region& region) -> ClosurePtr {
      Program inner = region.program();
      expand_all(inner, ProgramKind::Region, stays);
      return make_intrusive<const Region>(std::move(inner));
    });
  PassContext context(program);
  context.kind = kind;
  if (stays)
    Expansion(program, context, *stays).run();
  else
    Expansion(program, context, Expansion::For::Deployment).run();
  if (kind == ProgramKind::Region)
    program.gather_symbols();
  else
    program.collect_symbols();
}
}  // namespace

Program for_deployment(const Program& program) {
  const FreshLayers fresh;
  const LaunchNow now;
  Program copy = program;
  expand_all(copy, ProgramKind::Whole, nullptr);
  optimise(copy);
  check_verified(copy, ErrorKind::Internal, format("the program {} for deployment", copy.name));
  return copy;
}

Program expanded_until(const Program& program, const Stays& stays) {
  const FreshLayers fresh;
  const LaunchNow now;
  Program copy = program;
  expand_all(copy, ProgramKind::Whole, &stays);
  optimise(copy);
  return copy;
}

}  // namespace oar
