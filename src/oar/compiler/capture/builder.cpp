#include "oar/compiler/capture/builder.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "oar/base/fork_mutex.h"
#include "oar/compiler/capture/functionalise.h"
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"
#include "oar/ops/gen/copy.h"

namespace oar {
namespace {

std::string name_of(const Tensor& t) {
  const History* h = maybe_history(t);
  return h ? h->name : std::string();
}

const Cell& cell_behind(const Tensor& handle) { return *symbolic_payload(handle).cell; }

// By value: is it defined by an input, a state, a constant or an instruction?
std::vector<bool> defined_values(const Program& program) {
  std::vector<bool> defined(program.values.size(), false);
  const auto define = [&](ValueId id) { defined[static_cast<size_t>(id)] = true; };
  for (ValueId id : program.inputs) define(id);
  for (const State& s : program.states) define(s.value);
  for (const Constant& c : program.constants) define(c.value);
  for (const Instruction& i : program.body.instructions)
    for (ValueId id : i.results) define(id);
  return defined;
}

void add_symbols(Dims dims, std::vector<Dim>& list) {
  for (Dim d : dims)
    for (Dim symbol : d.symbols()) list.push_back(symbol);
}

// Assumptions about symbols that no input has any more cannot be checked and have no effect.
void drop_idle_assumptions(Program& program) {
  std::vector<Dim> known;
  for (const ProgramValue& v : program.values) add_symbols(v.type.shape, known);
  const auto idle = [&](Dim d) {
    for (Dim symbol : d.symbols())
      if (std::find(known.begin(), known.end(), symbol) == known.end()) return true;
    return false;
  };
  std::erase_if(program.assumptions,
                [&](const DimAssumption& a) { return idle(a.left) || idle(a.right); });
}

// Removes inputs that nothing reads, unless only they determine a size that is needed.
void drop_idle_inputs(Program& program, const std::vector<int>& uses) {
  const auto used = [&](ValueId id) { return uses[static_cast<size_t>(id)] > 0; };
  std::vector<Dim> known, needed;
  for (ValueId id : program.inputs)
    if (used(id)) add_symbols(program.type_of(id).shape, known);
  for (const Instruction& i : program.body.instructions)
    for_each_size(*i.op, i.attributes.args(), [&](Dim d) { add_symbols({{d}}, needed); });
  const auto has = [](const std::vector<Dim>& list, Dim d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  };
  std::erase_if(program.inputs, [&](ValueId id) {
    if (used(id)) return false;
    std::vector<Dim> brings;
    add_symbols(program.type_of(id).shape, brings);
    const bool tells = std::any_of(brings.begin(), brings.end(),
                                   [&](Dim d) { return has(needed, d) && !has(known, d); });
    if (tells) known.insert(known.end(), brings.begin(), brings.end());
    return !tells;
  });
}

}  // namespace

namespace {

struct Living {
  ForkMutex mutex;
  std::unordered_map<uint64_t, Builder*> by_serial;
};
Living& living() {
  static auto* all = new Living;  // outlives every builder
  return *all;
}

}  // namespace

Builder::Builder(std::string name) : Capture(std::move(name)) {
  open_ = true;
  const std::lock_guard lock(living().mutex);
  living().by_serial[serial()] = this;
}

Builder::~Builder() {
  const std::lock_guard lock(living().mutex);
  living().by_serial.erase(serial());
}

Builder* Builder::of(const Tensor& t) {
  if (!t.defined() || t.kind() != Kind::Symbolic) return nullptr;
  const std::lock_guard lock(living().mutex);
  const auto it = living().by_serial.find(symbolic_payload(t).capture);
  return it == living().by_serial.end() ? nullptr : it->second;
}

Builder::Builder(Program program) : Builder(std::string(program.name)) {
  std::vector<State> states = std::exchange(program.states, {});
  const std::vector<ValueId> outputs = std::exchange(program.outputs, {});
  learnt_ = std::exchange(program.assumptions, {});
  program_ = std::move(program);
  const Scope scope(*this);
  for (const State& s : states) {
    const std::string name = program_.label(s.value).substr(1);
    if (s.tensor.defined()) {  // it belongs to outside code
      program_.states.push_back(s);
      continue;
    }
    Tensor handle = make_tensor(s.value);
    history_of(handle).name = name;
    handle->flags |= kPersistable;
    if (s.written != kNoValue) {
      Cell& cell = *symbolic_payload(handle).cell;
      cell.value = s.written;
      ++cell.version;
    }
    slots_.push_back({name, s.value, std::move(handle)});
  }
  for (ValueId id : program_.inputs)
    history_of(make_tensor(id)).name = program_.label(id).substr(1);
  for (ValueId id : outputs) outputs_.push_back(make_tensor(id));
}

Builder* Builder::current() {
  Capture* capture = Capture::current();
  while (capture && !capture->is_open()) capture = capture->around();
  return static_cast<Builder*>(capture);
}

Tensor Builder::state(const ValueType& type, const std::string& name) {
  for (const Slot& slot : slots_) {
    if (slot.name != name) continue;
    const ValueType& there = program_.type_of(slot.value);
    user_check(there.dtype == type.dtype && there.shape == type.shape, ErrorKind::InvalidArgument,
               "the program has a variable '{}' of type {} already; it cannot be {} too.\nhint: "
               "Give one of them another name.",
               name, there.str(), type.str());
    return slot.handle;
  }
  const ValueId id = add_value(type);
  program_.values[static_cast<size_t>(id)].name = name;
  Tensor handle = make_tensor(id);
  history_of(handle).name = name;
  handle->flags |= kPersistable;
  slots_.push_back({name, id, handle});
  return handle;
}

template <class F>
std::vector<Tensor> Builder::handles(F&& chosen) const {
  std::map<ValueId, Tensor> found;
  for (const auto& [impl, t] : followers_)
    if (chosen(t)) found.emplace(symbolic_payload(t).value, t);
  std::vector<Tensor> list;
  for (auto& [id, t] : found) list.push_back(t);
  return list;
}

std::vector<Tensor> Builder::named() const {
  return handles([](const Tensor& t) { return !name_of(t).empty(); });
}

std::vector<Tensor> Builder::held() const {
  return handles([](const Tensor& t) { return t->python != nullptr; });
}

std::vector<Tensor> Builder::trained_variables() const {
  return handles([](const Tensor& t) { return t.has(kPersistable) && t.has(kRecording); });
}

Tensor Builder::find(const std::string& name) {
  // Of several handles of one cell (a state and its parameter), the one that Python holds.
  Tensor found;
  for (const auto& [impl, t] : followers_)
    if (name_of(t) == name && (!found.defined() || t->python)) found = t;
  return found;
}

ValueId Builder::resolve(const Tensor& t) {
  user_check(t.kind() == Kind::Symbolic, ErrorKind::InvalidType,
             "{} is not a variable of a program.", t.describe());
  const SymbolicPayload& payload = symbolic_payload(t);
  if (payload.capture == serial()) return value_of(t);
  const std::string name = name_of(t);
  if (!name.empty())
    if (const Tensor here = find(name); here.defined()) return value_of(here);
  const bool akin = std::find(origins_.begin(), origins_.end(), payload.capture) != origins_.end();
  const auto id = static_cast<size_t>(payload.value);
  const ValueId value = akin && id < alias_.size() ? alias_[id] : kNoValue;
  user_check(value != kNoValue, ErrorKind::InvalidArgument,
             "the variable {} is not part of this program.\nhint: Run the program that it was "
             "created in, or a clone created after it.",
             name.empty() ? t.describe() : "'" + name + "'");
  return value;
}

ValueId Builder::written_value(const Slot& slot) {
  const Cell& cell = cell_behind(slot.handle);
  return cell.was_written() ? cell.value : kNoValue;
}

uint64_t Builder::version() const {
  uint64_t sum = program_.body.instructions.size() + slots_.size();
  for (const Slot& slot : slots_) sum += cell_behind(slot.handle).version;
  return sum;
}

void Builder::note_leaf(const Tensor& t) {
  leaf_since_[symbolic_payload(t).value] = program_.body.instructions.size();
}

bool Builder::is_late(const Tensor& t) {
  const auto since = leaf_since_.find(symbolic_payload(t).value);
  if (since == leaf_since_.end()) return false;
  const std::vector<Instruction>& all = program_.body.instructions;
  for (size_t i = 0; i < since->second && i < all.size(); ++i) {
    bool reads = false;
    for_each_operand(all[i], [&](ValueId id) { reads |= id == since->first; });
    if (reads) return true;
  }
  return false;
}

std::vector<bool> Builder::calls_between(const std::vector<Tensor>& sources,
                                         const std::vector<Tensor>& targets, bool random) {
  const std::vector<Instruction>& calls = program_.body.instructions;
  std::vector<bool> depends(program_.values.size(), false), needed(program_.values.size(), false);
  for (const Tensor& t : sources) depends[static_cast<size_t>(value_of(t))] = true;
  for (const Tensor& t : targets) needed[static_cast<size_t>(value_of(t))] = true;
  const auto repeatable = [&](const Instruction& call) {
    if (is_update(*call.op)) return false;
    const bool draws = call.op->has(Trait::Random) && !call.op->has(Trait::DataDependent);
    return is_pure(call) || (random && draws);
  };
  std::vector<bool> repeated(calls.size(), false);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!repeatable(calls[i])) continue;
    for_each_operand(calls[i], [&](ValueId id) {
      repeated[i] = repeated[i] || depends[static_cast<size_t>(id)];
    });
    for (ValueId id : calls[i].results)
      if (repeated[i]) depends[static_cast<size_t>(id)] = true;
  }
  for (size_t i = calls.size(); i-- > 0;) {
    bool wanted = false;
    for (ValueId id : calls[i].results) wanted |= needed[static_cast<size_t>(id)];
    repeated[i] = repeated[i] && wanted;
    if (repeated[i])
      for_each_operand(calls[i], [&](ValueId id) { needed[static_cast<size_t>(id)] = true; });
  }
  return repeated;
}

Frame Builder::frame_of(const Instruction& instruction,
                        const std::unordered_map<ValueId, Tensor>& now, bool as_recorded) {
  return with_operands(instruction.attributes.clone(), instruction, [&](size_t, ValueId id) {
    const auto it = now.find(id);
    if (it == now.end()) return make_tensor(id);
    const DType recorded = program_.type_of(id).dtype;
    return as_recorded && it->second.dtype() != recorded ? cast(it->second, recorded) : it->second;
  });
}

Builder::Taped Builder::taped(const std::vector<Tensor>& sources,
                              const std::vector<Tensor>& targets) {
  const Scope scope(*this);
  const GradMode on(true);
  std::unordered_map<ValueId, Tensor> now;
  for (const Tensor& t : sources) now[value_of(t)] = t;
  const std::vector<bool> repeated = calls_between(sources, targets, false);
  for (size_t i = 0; i < repeated.size(); ++i) {
    if (!repeated[i]) continue;
    const Instruction instruction = program_.body.instructions[i];  // the list grows below
    const Frame frame = frame_of(instruction, now, false);
    const Outputs made = call_below_casts(*instruction.op, frame.args());
    for (size_t k = 0; k < made.size(); ++k) now[instruction.results[k]] = made[k];
  }
  Taped taped;
  for (const Tensor& t : sources) taped.sources.push_back(now[value_of(t)]);
  for (const Tensor& t : targets)
    taped.targets.push_back(now.contains(value_of(t)) ? now[value_of(t)] : t);
  return taped;
}

std::vector<Tensor> Builder::cast_again(const std::vector<Tensor>& sources,
                                        const std::vector<Tensor>& replaced,
                                        const std::vector<Tensor>& targets,
                                        const std::vector<std::pair<size_t, size_t>>& ranges) {
  const Scope scope(*this);
  std::unordered_map<ValueId, Tensor> now;
  for (size_t i = 0; i < sources.size(); ++i) now[value_of(sources[i])] = replaced[i];
  const std::vector<bool> repeated = calls_between(sources, targets, true);
  const auto keeps_types = [&](size_t i, const Instruction& call) {
    // A branch or loop has the types of its program.
    for (const Parameter& p : call.op->schema().parameters)
      if (p.type == ArgType::Program) return true;
    return std::none_of(ranges.begin(), ranges.end(),
                        [&](const auto& r) { return r.first <= i && i < r.second; });
  };
  for (size_t i = 0; i < repeated.size(); ++i) {
    if (!repeated[i]) continue;
    const Instruction instruction = program_.body.instructions[i];  // the list grows below
    const bool kept = keeps_types(i, instruction);
    const Frame frame = frame_of(instruction, now, kept);
    const Outputs made = kept ? call_below_casts(*instruction.op, frame.args())
                              : dispatch(*instruction.op, frame.args());
    for (size_t k = 0; k < made.size(); ++k) now[instruction.results[k]] = made[k];
  }
  std::vector<Tensor> results;
  for (const Tensor& t : targets)
    results.push_back(now.contains(value_of(t)) ? now[value_of(t)] : t);
  return results;
}

void Builder::begin(Role role) {
  const size_t now = program_.body.instructions.size();
  Stretch stretch{now, now, role, {}};
  for (const Slot& slot : slots_) stretch.states.push_back(cell_behind(slot.handle).value);
  under_way_.push_back(stretches_.size());
  stretches_.push_back(std::move(stretch));
}

void Builder::end() {
  stretches_[under_way_.back()].end = program_.body.instructions.size();
  under_way_.pop_back();
}

void Builder::alternative(const Tensor& training, const Tensor& inference) {
  const ValueId from = value_of(training), to = value_of(inference);
  if (from != to) alternatives_.emplace_back(from, to);
}

// Eager tensors that the program uses: they keep their own memory.
void Builder::add_plain_tensors(Program& program) const {
  for (const PlainTensors::Entry& entry : const_cast<PlainTensors&>(plain_).entries()) {
    if (entry.value == kNoValue) continue;
    const Tensor& t = entry.original;
    const bool written = entry.cell->was_written();
    if (written || entry.tensor.has(kRecording | kParameter | kPersistable))
      program.states.push_back({entry.value, t, written ? entry.cell->value : kNoValue});
    else
      program.constants.push_back({entry.value, t});
  }
}

std::vector<Constant> Builder::constants() const {
  Program program;
  program.constants = program_.constants;
  add_plain_tensors(program);
  return std::move(program.constants);
}

Program Builder::whole() const {
  Program program = program_;
  for (const Slot& slot : slots_)
    program.states.push_back({slot.value, Tensor(), written_value(slot)});
  add_plain_tensors(program);
  program.assumptions = learnt_;
  return program;
}

namespace {

// From now on the value is an input of the program, and calls read that.
void make_input(Program& program, ValueId value, const std::string& name) {
  const auto computes = [&](const Instruction& i) {
    return std::ranges::find(i.results, value) != i.results.end();
  };
  if (std::ranges::none_of(program.body.instructions, computes)) return;
  const auto input = static_cast<ValueId>(program.values.size());
  program.values.push_back({program.type_of(value), name});
  program.inputs.push_back(input);
  for (Instruction& instruction : program.body.instructions)
    for (Operand& operand : instruction.operands) std::ranges::replace(operand.ids, value, input);
  std::ranges::replace(program.outputs, value, input);
}

}  // namespace

Builder::Draft Builder::draft(const std::vector<Tensor>& outputs, const Contents& contents,
                              bool pruned, const std::vector<Tensor>& fed) {
  std::vector<ValueId> wanted, given;
  {
    const Scope scope(*this);  // views may have to be derived again
    for (const Tensor& t : outputs) wanted.push_back(resolve(t));
    for (const Tensor& t : fed) given.push_back(resolve(t));
  }
  Draft draft{whole(), {}};
  Program& program = draft.program;
  program.outputs = wanted;
  for (size_t i = 0; i < given.size(); ++i) make_input(program, given[i], history_of(fed[i]).name);
  for (State& s : program.states)
    if (pruned) s.written = kNoValue;
  remove_dead(program);
  const std::vector<int> uses = count_uses(program);
  const auto used = [&](ValueId id) { return uses[static_cast<size_t>(id)] > 0; };
  drop_idle_inputs(program, uses);
  std::erase_if(program.states,
                [&](const State& s) { return s.written == kNoValue && !used(s.value); });
  for (ValueId id : program.inputs)
    draft.inputs.push_back(program.values[static_cast<size_t>(id)].name);
  for (State& s : program.states)
    if (!s.tensor.defined())
      s.tensor = contents(program.values[static_cast<size_t>(s.value)].name,
                          program.type_of(s.value), used(s.value));
  name_values(program);
  program.renumber();
  drop_idle_assumptions(program);
  program.collect_symbols();
  return draft;
}

// Removes what only training does: the states keep the values that they had before it.
void Builder::leave_out_training(Program& program, std::vector<ValueId>& alias) const {
  std::vector<bool> dropped(program.body.instructions.size(), false);
  for (const Stretch& stretch : stretches_)
    if (stretch.role != Role::Forward)
      std::fill(dropped.begin() + static_cast<ptrdiff_t>(stretch.begin),
                dropped.begin() + static_cast<ptrdiff_t>(stretch.end), true);
  std::vector<bool> gone(program.values.size(), false);
  for (size_t i = 0; i < dropped.size(); ++i)
    if (dropped[i])
      for (ValueId id : program.body.instructions[i].results) gone[static_cast<size_t>(id)] = true;
  for (size_t k = 0; k < slots_.size(); ++k) {
    State& s = program.states[program_.states.size() + k];
    for (size_t i = stretches_.size(); s.written != kNoValue && i-- > 0;)
      if (gone[static_cast<size_t>(s.written)] && stretches_[i].role != Role::Forward)
        s.written = k < stretches_[i].states.size() ? stretches_[i].states[k] : s.value;
    if (s.written == s.value) s.written = kNoValue;
  }
  for (const auto& [training, inference] : alternatives_) {
    // An inference form may read what is itself replaced; those come in order.
    const ValueId to = alias[static_cast<size_t>(inference)];
    for (ValueId& id : alias)
      if (id == training) id = to;
  }
  size_t next = 0;
  std::erase_if(program.body.instructions, [&](const Instruction&) { return dropped[next++]; });
  for (Instruction& instruction : program.body.instructions)
    for (Operand& operand : instruction.operands)
      for (ValueId& id : operand.ids)
        if (id != kNoValue) id = alias[static_cast<size_t>(id)];
}

std::shared_ptr<Builder> Builder::clone(bool for_inference) const {
  Program program = whole();
  std::vector<ValueId> alias(program.values.size());
  for (size_t i = 0; i < alias.size(); ++i) alias[i] = static_cast<ValueId>(i);
  if (for_inference) leave_out_training(program, alias);
  const std::vector<bool> defined = defined_values(program);
  for (ValueId& id : alias)
    if (!defined[static_cast<size_t>(id)]) id = kNoValue;
  auto twin = std::make_shared<Builder>(std::move(program));
  const Scope scope(*twin);
  for (const Tensor& t : named()) {
    const ValueId id = alias[static_cast<size_t>(symbolic_payload(t).value)];
    if (id == kNoValue || twin->find(name_of(t)).defined()) continue;
    const Tensor there = twin->make_tensor(id);
    history_of(there).name = name_of(t);
  }
  twin->origins_ = origins_;
  twin->origins_.push_back(serial());
  twin->alias_ = std::move(alias);
  return twin;
}

std::vector<std::string> Builder::state_names() const {
  std::vector<std::string> names;
  for (const Slot& slot : slots_) names.push_back(slot.name);
  return names;
}

}  // namespace oar
