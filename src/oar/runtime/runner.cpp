#include "oar/runtime/runner.h"

#include <algorithm>

#include "oar/base/interrupt.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/core/profile.h"
#include "oar/ops/core/program_args.h"
#include "oar/ops/core/watch.h"
#include "oar/ops/gen/copy.h"
#include "oar/runtime/program_device.h"
#include "oar/tensor/hooks.h"

namespace oar {

class Runner::Run {
 public:
  Run(const Runner& runner, std::vector<Tensor> inputs, SymbolValues sizes)
      : runner_(runner),
        program_(runner.program_),
        tensors_(program_.values.size()),
        values_(std::move(sizes)) {
    for (size_t i = 0; i < inputs.size(); ++i) at(program_.inputs[i]) = std::move(inputs[i]);
    for (const State& s : program_.states) at(s.value) = s.tensor;
    for (const Constant& c : program_.constants) at(c.value) = c.tensor;
  }

  std::vector<Tensor> execute() {
    Patience patience;
    for (size_t i = 0; i < program_.body.instructions.size(); ++i) {
      patience.look();
      step(i);
    }
    std::vector<Tensor> outputs;
    for (ValueId id : program_.outputs) {
      Tensor t = result(id);
      const auto is_given = [&](const Tensor& other) { return other.is_same(t); };
      if (std::any_of(outputs.begin(), outputs.end(), is_given)) t = Tensor(t->alias());
      outputs.push_back(std::move(t));
    }
    write_states(outputs);
    return outputs;
  }

 private:
  Tensor& at(ValueId id) { return tensors_[static_cast<size_t>(id)]; }

  // A new handle: the caller must not get the autograd data of an input or a state, nor
  // the memory of a constant, which it might write.
  Tensor result(ValueId id) {
    const Tensor& t = at(id);
    internal_check(t.kind() != Kind::Meta, "{} has no content in the end: {}", program_.label(id),
                   t.describe());
    for (const Constant& c : program_.constants)
      if (t->storage == c.tensor->storage) return assign(t);
    return t->autograd || t.has(kRecording) ? Tensor(t->alias()) : t;
  }

  // Errors of a part name what the user called; those of regions already do.
  static Outputs run_named(const Instruction& instruction, Args args) try {
    return run_op(*instruction.op, args);
  } catch (Error& error) {
    if (instruction.called && !takes_programs(instruction.op->schema()))
      error.with_op(instruction.called);
    throw;
  }

  void step(size_t index) {
    const Instruction& instruction = program_.body.instructions[index];
    Frame evaluated;
    Args attributes = instruction.attributes.args();
    if (runner_.symbolic_[index]) {
      evaluated =
          replace_dims(*instruction.op, attributes, [&](Dim d) { return values_.evaluate(d); });
      attributes = evaluated.args();
    }
    SmallVector<Value, 6> args(attributes.begin(), attributes.end());
    SmallVector<std::vector<Tensor>, 1> lists;
    lists.reserve(args.size());
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      const Operand& operand = instruction.operands[i];
      if (operand.kind == Operand::Attribute) continue;
      // The value that an update starts from may have other readers.
      const bool written = instruction.op->schema().parameters[i].written;
      std::vector<Tensor>& list = lists.emplace_back();
      for (ValueId id : operand.ids)
        list.push_back(id == kNoValue ? Tensor() : written ? assign(at(id)) : at(id));
      args[i] = operand.kind == Operand::List ? Value(TensorList(list)) : Value(list[0]);
    }
    const InLayer layer(instruction.layer ? instruction.layer : current_layer());
    std::optional<ProfiledCall> timed;
    if (profiling()) timed.emplace(*instruction.op, Args(args.data(), args.size()));
    const WatchedCall watched;
    Outputs made = run_named(instruction, {args.data(), args.size()});
    if (timed) timed->note_results({args.data(), args.size()}, {made.data(), made.size()});
    timed.reset();
    watch_return(watched, instruction, {args.data(), args.size()}, made);
    if (is_update(*instruction.op))
      made = written_arguments(*instruction.op, {args.data(), args.size()});
    if (runner_.binder_.binds_results(index))
      runner_.binder_.bind_results(program_, index, {made.data(), made.size()}, values_);
    for (size_t i = 0; i < made.size(); ++i) at(instruction.results[i]) = std::move(made[i]);
    for (ValueId id : runner_.last_uses_[index]) at(id) = Tensor();
  }

  static void watch_return(const WatchedCall& watched, const Instruction& instruction, Args args,
                           const Outputs& made) {
    if (watched.is_outermost()) [[unlikely]]
      watched.returned({.name = instruction.op->name(),
                        .op = instruction.op,
                        .args = args,
                        .results = {made.data(), made.size()}});
  }

  // New contents may be in the memory that they are written to, or in that of another state (a
  // view of it, or two states that are swapped); so may outputs. Those are copied first.
  void write_states(std::vector<Tensor>& outputs) {
    std::vector<const Storage*> targets;
    for (const State& s : program_.states)
      if (s.written != kNoValue) targets.push_back(s.tensor->storage.get());
    if (targets.empty()) return;
    const auto safe = [&](const Tensor& t) {
      for (const Storage* s : targets)
        if (t->storage.get() == s) return assign(t);
      return t;
    };
    for (Tensor& t : outputs) t = safe(t);
    std::vector<std::pair<Tensor, Tensor>> writes;
    for (const State& s : program_.states)
      if (s.written != kNoValue && s.written != s.value)
        writes.emplace_back(s.tensor, safe(at(s.written)));
    static const Op& copy_into_op = get_op("copy_into");
    for (const auto& [target, content] : writes) {
      const Value args[] = {Value(target), Value(content)};
      run_op(copy_into_op, Args(args, 2));
    }
  }

  const Runner& runner_;
  const Program& program_;
  std::vector<Tensor> tensors_;
  SymbolValues values_;
};

Runner::Runner(Program program, Prepare prepare)
    : program_(std::move(program)),
      prepare_(prepare),
      binder_(program_),
      device_(oar::device_of(program_)) {
  const std::vector<Instruction>& instructions = program_.body.instructions;
  last_uses_.resize(instructions.size());
  std::vector<bool> needed(program_.values.size(), false);
  for (ValueId id : program_.outputs) needed[static_cast<size_t>(id)] = true;
  for (const State& s : program_.states)
    if (s.written != kNoValue) needed[static_cast<size_t>(s.written)] = true;
  for (size_t i = instructions.size(); i-- > 0;) {
    const auto ends_here = [&](ValueId id) {
      if (needed[static_cast<size_t>(id)]) return;
      needed[static_cast<size_t>(id)] = true;
      last_uses_[i].push_back(id);
    };
    for_each_operand(instructions[i], ends_here);
    for (ValueId id : instructions[i].results) ends_here(id);
  }
  for (const Instruction& instruction : instructions)
    symbolic_.push_back(has_symbolic_attributes(*instruction.op, instruction.attributes.args()));
}

std::vector<Tensor> Runner::run_on(std::vector<Tensor> inputs) const {
  const LaunchNow now;
  for (const Tensor& t : inputs) note_read(t);
  for (const State& s : program_.states) note_read(s.tensor);
  SymbolValues sizes = binder_.bind(program_, inputs);
  check_states();
  const std::optional<Device> device = device_of_run(inputs);
  const std::shared_ptr<const Instance> ready = instance_for(sizes, inputs, device);
  const LayersOff off(kDispatchMask & ~uint32_t{kProfile});
  std::optional<timeline::Span> span;
  if (profiling()) span.emplace(timeline::Kind::Range, timeline::kept("program " + program_.name));
  if (ready) return ready->run(std::move(inputs));
  const devices::Scope scope(device.value_or(device_));
  return Run(*this, std::move(inputs), std::move(sizes)).execute();
}

std::vector<Tensor> Runner::interpret(TensorList inputs) const {
  SymbolValues sizes = binder_.bind(program_, inputs);
  const LayersOff off(kDispatchMask & ~uint32_t{kProfile});
  const devices::Scope scope(device_of_run(inputs).value_or(device_));
  return Run(*this, {inputs.begin(), inputs.end()}, std::move(sizes)).execute();
}

std::string Runner::misfit(TensorList inputs) const {
  try {
    check_states();
    binder_.bind(program_, inputs);
    return {};
  } catch (const Error& error) {
    return error.text();
  }
}

void Runner::check_states() const {
  const auto check = [&](ValueId id, const Tensor& t) {
    const ValueType& type = program_.type_of(id);
    user_check(t.is_dense() && t.dtype() == type.dtype && t.shape() == type.shape,
               ErrorKind::Runtime,
               "{} of the program {} was {} when it was captured and is {} now.\nhint: Capture the "
               "function again after changing its parameters' sizes or types.",
               program_.label(id), program_.name, type.str(), t.describe());
  };
  for (const State& s : program_.states) check(s.value, s.tensor);
  for (const Constant& c : program_.constants) check(c.value, c.tensor);
}

std::shared_ptr<const Instance> Runner::instance(TensorList inputs) const {
  SymbolValues sizes = binder_.bind(program_, inputs);
  return instance_for(sizes, inputs, device_of_run(inputs));
}

std::shared_ptr<const Instance> Runner::instance_at_known_sizes() const {
  SymbolValues none;
  std::vector<Tensor> typed;
  for (ValueId id : program_.inputs) {
    const ValueType& type = program_.type_of(id);
    typed.push_back(Tensor::meta(type.shape, type.dtype, type.device));
  }
  return instance_for(none, typed, device_of_run(typed));
}

std::optional<Device> Runner::device_of_run(TensorList inputs) const {
  DeviceOfTensors found;
  for (const Tensor& t : inputs) found.add(t);
  for (const State& s : program_.states) found.add(s.tensor);
  return found.is_one() ? std::optional(found.get(device_)) : std::nullopt;
}

// What an instance is made for.
std::vector<int64_t> Runner::key_of(SymbolValues& sizes, TensorList inputs, Device device) const {
  std::vector<int64_t> key{kernel_flags()};
  for (Dim symbol : program_.symbols) key.push_back(sizes.evaluate(symbol).value());
  if (device.is_cpu()) return key;
  key.push_back(device.type << 8 | device.index);
  for (const Tensor& t : inputs) key.push_back(t.device().type);  // or a number of the CPU
  for (const State& s : program_.states) key.push_back(s.tensor.device().type);
  return key;
}

std::shared_ptr<const Instance> Runner::instance_for(SymbolValues& sizes, TensorList inputs,
                                                     std::optional<Device> device) const {
  if (!device || watches_ops()) return nullptr;
  for (Dim symbol : program_.symbols)
    if (!sizes.covers(symbol)) return nullptr;  // only a run tells
  for (const State& s : program_.states)
    if (!s.tensor.is_contiguous()) return nullptr;
  std::vector<int64_t> key = key_of(sizes, inputs, *device);
  const auto find = [&]() -> const Cached* {
    const auto found = std::find_if(instances_.begin(), instances_.end(),
                                    [&](const Cached& c) { return c.key == key; });
    if (found == instances_.end()) return nullptr;
    std::rotate(found, found + 1, instances_.end());
    return &instances_.back();
  };
  {
    const std::lock_guard lock(mutex_);
    if (const Cached* ready = find()) return ready->instance;
  }
  // Created while runs at other sizes continue. Of two threads that create the same one, the first wins.
  Program program = specialised(program_, [&](Dim d) { return sizes.evaluate(d); });
  place_on(program, inputs, *device);
  if (prepare_) prepare_(program);
  std::shared_ptr<const Instance> made = Instance::make(std::move(program));
  std::shared_ptr<const Instance> dropped;  // destroyed after the lock is free
  const std::lock_guard lock(mutex_);
  if (const Cached* ready = find()) return ready->instance;
  if (instances_.size() == kMostInstances) {
    dropped = std::move(instances_.front().instance);
    instances_.erase(instances_.begin());
  }
  instances_.push_back({std::move(key), made});
  return made;
}

}  // namespace oar
