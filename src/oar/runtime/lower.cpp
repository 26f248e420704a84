#include "oar/runtime/lower.h"

#include <algorithm>

#include "oar/backend/cpu/cpu.h"
#include "oar/ir/region.h"
#include "oar/ops/core/run.h"
#include "oar/ops/core/work.h"
#include "oar/runtime/cluster.h"
#include "oar/runtime/layout.h"
#include "oar/runtime/program_device.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

// Thrown if the program needs the interpreter.
struct NotLowerable {};

// Updates, and what reads their results, after everything else. So nothing that may fail comes after
// a write, and all readers of what an update overwrites come before it.
Program with_updates_last(const Program& program) {
  std::vector<bool> late(program.values.size(), false);
  std::vector<Instruction> early, later;
  for (const Instruction& instruction : program.body.instructions) {
    bool waits = is_update(*instruction.op);
    for_each_operand(instruction, [&](ValueId id) { waits |= late[static_cast<size_t>(id)]; });
    // Random ops keep their order, and so do calls that processes make together: in another process others may wait.
    if (waits && (draws_random(instruction) || exchanges(instruction))) return program;
    for (ValueId id : instruction.results) late[static_cast<size_t>(id)] = waits;
    (waits ? later : early).push_back(instruction);
  }
  Program ordered = program;
  ordered.body.instructions = std::move(early);
  for (Instruction& instruction : later)
    ordered.body.instructions.push_back(std::move(instruction));
  return ordered;
}

// Can a call of it fail, its shapes and dtypes being right? An elementwise op cannot, unless it is a user's function, or its
// record says so and it computes integers.
bool can_fail(const Op& op, bool of_integers) {
  if (is_update(op)) return false;
  if (!op.is_built_in()) return true;
  if (op.has(Trait::MayFail)) return of_integers;
  return !op.has(Trait::Elementwise) && !op.def().view;
}

class Lowering {
 public:
  explicit Lowering(const Program& program)
      : program_(with_updates_last(program)), device_(device_of(program)) {}
  Lowered run();

 private:
  using Ids = std::vector<int32_t>;  // a place per value

  int32_t add_root(Root::Kind kind, int64_t index, const ValueType& like);
  int32_t add_place(int32_t root, int64_t offset, Tensor layout);
  int32_t fresh(const ValueType& type);
  const Tensor& layout(int32_t place) const {
    return out_.places[static_cast<size_t>(place)].layout;
  }
  bool may_fail(const Instruction& call) const {
    return can_fail(*call.op,
                    std::any_of(call.results.begin(), call.results.end(), [&](ValueId id) {
                      return !is_differentiable(program_.type_of(id).dtype);
                    }));
  }
  bool may_fail(const Launch& launch) const {
    return !launch.kernel ||
           can_fail(*launch.op,
                    std::any_of(launch.results.begin(), launch.results.end(), [&](int32_t id) {
                      return !is_differentiable(layout(id).dtype());
                    }));
  }
  const Root& root_of(int32_t place) const {
    return out_.roots[static_cast<size_t>(out_.places[static_cast<size_t>(place)].root)];
  }

  void find_updates_in_place();
  void add_constants(Ids& ids);
  void emit_all(Ids& ids);
  bool emit_cluster(const Cluster& cluster, Ids& ids);
  void emit(const Instruction& instruction, Ids& ids);
  void emit_view(const Instruction& call, Ids& ids);
  void emit_update(const Instruction& call, Ids& ids);
  bool launch(const Instruction& call, const Ids& ids, const std::vector<int32_t>& results);
  void append(const Instruction& call, const oar_kernel* kernel, const Ids& ids,
              const std::vector<int32_t>& results);
  int32_t copy(int32_t place);
  int32_t moved(int32_t place);
  Frame arguments(const Instruction& call, const Ids& ids) const;

  void finish_outputs(const Ids& ids);
  void finish_states(const Ids& ids);
  bool lands_in_state(int32_t place, size_t state);

  // A number of the CPU beside tensors of another device.
  bool is_guest(const ValueType& type) const {
    return type.device != device_ && type.device.is_cpu() && type.shape.rank() == 0;
  }
  void check_device(const ValueType& type, bool may_be_guest) const {
    if (type.device != device_ && !(may_be_guest && is_guest(type))) throw NotLowerable{};
  }

  const Program program_;
  const Device device_;
  Lowered out_;
  std::vector<bool> in_place_;        // by value: a state that its update may overwrite
  std::vector<bool> goes_elsewhere_;  // by state: its old content is written to another one
};

// ---- places ------------------------------------------------------------------------------------

int32_t Lowering::add_root(Root::Kind kind, int64_t index, const ValueType& like) {
  out_.roots.push_back(
      {kind, static_cast<int32_t>(index), bytes_of(like.shape, like.dtype).value()});
  return static_cast<int32_t>(out_.roots.size()) - 1;
}

int32_t Lowering::add_place(int32_t root, int64_t offset, Tensor layout) {
  out_.places.push_back({root, offset, std::move(layout)});
  return static_cast<int32_t>(out_.places.size()) - 1;
}

Tensor checked_layout(const ValueType& type) {
  if (!can_be_laid_out(type)) throw NotLowerable{};
  return layout_of(type);
}

int32_t Lowering::fresh(const ValueType& type) {
  check_device(type, false);
  Tensor layout = checked_layout(type);
  const int32_t root = add_root(Root::Arena, -1, type);
  return add_place(root, 0, std::move(layout));
}

// ---- instructions ------------------------------------------------------------------------------

// A state may be overwritten by the update whose result is written back to it, if nothing reads the old
// content, or a view of it, afterwards.
void Lowering::find_updates_in_place() {
  const size_t count = program_.values.size();
  in_place_.assign(count, false);
  std::vector<ValueId> seen_through(count);  // the base of a view
  std::vector<size_t> last_read(count, 0);
  for (size_t i = 0; i < count; ++i) seen_through[i] = static_cast<ValueId>(i);
  const auto& instructions = program_.body.instructions;
  size_t last_risk = 0;
  for (size_t i = 0; i < instructions.size(); ++i) {
    for_each_operand(instructions[i], [&](ValueId id) {
      last_read[static_cast<size_t>(seen_through[static_cast<size_t>(id)])] = i;
    });
    if (may_fail(instructions[i])) last_risk = i;
    if (instructions[i].op->has(Trait::View))
      seen_through[static_cast<size_t>(instructions[i].results[0])] =
          seen_through[static_cast<size_t>(instructions[i].operands[0].ids[0])];
  }
  for (ValueId id : program_.outputs)
    last_read[static_cast<size_t>(seen_through[static_cast<size_t>(id)])] = instructions.size();
  for (const State& from : program_.states)
    goes_elsewhere_.push_back(
        std::any_of(program_.states.begin(), program_.states.end(), [&](const State& to) {
          return to.written != kNoValue && to.value != from.value &&
                 seen_through[static_cast<size_t>(to.written)] == from.value;
        }));
  for (size_t i = 0; i < instructions.size(); ++i) {
    if (!is_update(*instructions[i].op) || last_risk > i) continue;
    size_t result = 0;
    for_each_updated(instructions[i], [&](ValueId id) {
      const ValueId after = instructions[i].results[result++];
      for (size_t k = 0; k < program_.states.size(); ++k)
        if (program_.states[k].value == id && program_.states[k].written == after &&
            last_read[static_cast<size_t>(id)] <= i && !goes_elsewhere_[k])
          in_place_[static_cast<size_t>(id)] = true;
    });
  }
}

Frame Lowering::arguments(const Instruction& call, const Ids& ids) const {
  return with_operands(call.attributes.clone(), call,
                       [&](size_t, ValueId id) { return layout(ids[static_cast<size_t>(id)]); });
}

// False if no kernel accepts the call.
bool Lowering::launch(const Instruction& call, const Ids& ids,
                      const std::vector<int32_t>& results) {
  const Frame frame = arguments(call, ids);
  std::vector<Tensor> made;
  for (int32_t place : results) made.push_back(layout(place));
  const oar_kernel* kernel = kernel_for(*call.op, frame.args(), made, device_);
  if (!kernel) return false;
  append(call, kernel, ids, results);
  Launch& launch = out_.launches.back();
  launch.plan = plan_for(*kernel, frame.args(), made, device_);
  launch.time = guessed_time(*call.op, frame.args(), made);
  launch.sums_by_threads = cpu::is_onednn(*kernel) && sums_by_threads(*call.op, frame.args());
  return true;
}

void Lowering::append(const Instruction& call, const oar_kernel* kernel, const Ids& ids,
                      const std::vector<int32_t>& results) {
  Launch& made = out_.launches.emplace_back();
  made.op = call.op;
  made.kernel = kernel;
  made.operands = call.operands;
  for (Operand& operand : made.operands)
    for (ValueId& id : operand.ids)
      if (id != kNoValue) id = ids[static_cast<size_t>(id)];
  made.attributes = call.attributes.clone();
  made.results = results;
  made.location = call.location;
  made.layer = call.layer;
  made.called = call.called ? call.called : call.op->name().c_str();
}

int32_t Lowering::copy(int32_t place) {
  Instruction call;
  call.op = &get_op("assign");
  call.operands.push_back({Operand::One, {0}});
  call.attributes.push(Value());
  const Tensor& like = layout(place);
  const int32_t result = fresh({like.dtype(), like.shape(), device_});
  if (!launch(call, {place}, {result})) throw NotLowerable{};
  return result;
}

// A number of the CPU, brought to the device in every run.
int32_t Lowering::moved(int32_t place) {
  Instruction call;
  call.op = &get_op("copy_to_device");
  call.operands.push_back({Operand::One, {0}});
  call.operands.emplace_back();
  call.attributes.push(Value());
  const std::string target = devices::to_string(device_);
  call.attributes.push(Value(std::string_view(target)));
  const Tensor& like = layout(place);
  const int32_t result = fresh({like.dtype(), like.shape(), device_});
  append(call, nullptr, {place}, {result});
  return result;
}

void Lowering::emit_view(const Instruction& call, Ids& ids) {
  int32_t base = ids[static_cast<size_t>(call.operands[0].ids[0])];
  if (layout(base).device() != program_.type_of(call.results[0]).device) {
    base = moved(base);
    ids[static_cast<size_t>(call.operands[0].ids[0])] = base;
  }
  Frame frame = arguments(call, ids);
  int32_t shown = base;
  std::optional<ViewSpec> spec = call.op->def().view(frame.args());
  if (!spec) {  // the layout does not allow a view of the base: copy it first
    shown = copy(base);
    frame.set_tensor(0, layout(shown));
    spec = call.op->def().view(frame.args());
    if (!spec) throw NotLowerable{};
  }
  const Place place = out_.places[static_cast<size_t>(shown)];
  check_device(program_.type_of(call.results[0]), true);
  ids[static_cast<size_t>(call.results[0])] =
      add_place(place.root, place.offset + byte_offset(spec->offset, place.layout.dtype()),
                layout_of(*spec, place.layout));
}

// The kernel writes its operands: those that are still needed are copied first.
void Lowering::emit_update(const Instruction& call, Ids& ids) {
  Instruction written = call;
  Ids with_copies = ids;
  size_t result = 0;
  for_each_updated(call, [&](ValueId id) {
    int32_t& place = with_copies[static_cast<size_t>(id)];
    if (!in_place_[static_cast<size_t>(id)]) place = copy(place);
    ids[static_cast<size_t>(call.results[result++])] = place;
  });
  std::vector<int32_t> results;
  for (ValueId id : written_results(call)) results.push_back(with_copies[static_cast<size_t>(id)]);
  if (!launch(written, with_copies, results)) throw NotLowerable{};
}

void Lowering::emit(const Instruction& instruction, Ids& ids) {
  const OpScope scope(instruction.op->name().c_str());
  if (instruction.op->has(Trait::DataDependent)) throw NotLowerable{};
  check_types(program_, instruction);
  if (instruction.op->def().view) return emit_view(instruction, ids);
  if (is_update(*instruction.op)) return emit_update(instruction, ids);
  std::vector<int32_t> results;
  for (ValueId id : instruction.results) {
    ValueType type = program_.type_of(id);
    if (is_guest(type)) type.device = device_;  // computed from numbers, for a call on the device
    results.push_back(fresh(type));
  }
  if (!launch(instruction, ids, results))
    append(instruction, nullptr, ids, results);  // no kernel: a call of its function
  for (size_t i = 0; i < results.size(); ++i)
    ids[static_cast<size_t>(instruction.results[i])] = results[i];
}

// False where the device declines.
bool Lowering::emit_cluster(const Cluster& cluster, Ids& ids) {
  std::vector<Tensor> inputs, outputs;
  for (ValueId id : cluster.inputs) inputs.push_back(layout(ids[static_cast<size_t>(id)]));
  for (ValueId id : cluster.outputs) outputs.push_back(checked_layout(program_.type_of(id)));
  std::shared_ptr<const oar_kernel> kernel = compiled(program_, cluster, inputs, outputs, device_);
  if (!kernel) return false;
  Instruction call;
  call.op = &cluster_op();
  call.operands.push_back({Operand::List, {cluster.inputs.begin(), cluster.inputs.end()}});
  call.attributes.push(Value());
  call.location = program_.body.instructions[cluster.begin].location;
  call.layer = program_.body.instructions[cluster.begin].layer;
  std::vector<int32_t> results;
  for (ValueId id : cluster.outputs) {
    results.push_back(fresh(program_.type_of(id)));
    ids[static_cast<size_t>(id)] = results.back();
  }
  append(call, kernel.get(), ids, results);
  out_.launches.back().compiled = std::move(kernel);
  return true;
}

void Lowering::emit_all(Ids& ids) {
  const std::vector<Cluster> clusters = clusters_of(program_, device_);
  const std::vector<Instruction>& calls = program_.body.instructions;
  auto next = clusters.begin();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (next != clusters.end() && next->begin == i) {
      const Cluster& cluster = *next++;
      if (emit_cluster(cluster, ids)) {
        i = cluster.end - 1;
        continue;
      }
    }
    emit(calls[i], ids);
  }
}

void Lowering::add_constants(Ids& ids) {
  for (const Constant& c : program_.constants) {
    const ValueType type{c.tensor.dtype(), c.tensor.shape(), c.tensor.device()};
    if (!c.tensor.is_dense()) throw NotLowerable{};
    check_device(type, true);
    const int32_t root =
        add_root(Root::Constant, static_cast<int64_t>(out_.constants.size()), type);
    out_.constants.push_back(c.tensor);
    ids[static_cast<size_t>(c.value)] = add_place(root, 0, Tensor(c.tensor->alias()));
  }
}

// ---- results -----------------------------------------------------------------------------------

// The memory of a result belongs to the caller: not to the program, and not to a state that a run writes.
void Lowering::finish_outputs(const Ids& ids) {
  for (size_t k = 0; k < program_.outputs.size(); ++k) {
    int32_t place = ids[static_cast<size_t>(program_.outputs[k])];
    const Root& root = root_of(place);
    // A result is where eager mode would put it.
    if (program_.type_of(program_.outputs[k]).device != layout(place).device() ||
        (root.kind == Root::Constant && layout(place).device() != device_))
      throw NotLowerable{};
    const bool writes = root.kind == Root::State &&
                        program_.states[static_cast<size_t>(root.index)].written != kNoValue;
    if (root.kind == Root::Constant || writes) place = copy(place);
    Root& own = out_.roots[static_cast<size_t>(out_.places[static_cast<size_t>(place)].root)];
    if (own.kind == Root::Arena) own = {Root::Output, static_cast<int32_t>(k), own.bytes};
    out_.outputs.push_back(place);
  }
}

// May the value be computed in the state's memory? It must be all of its root, and nothing may read the
// state afterwards.
bool Lowering::lands_in_state(int32_t place, size_t state) {
  if (goes_elsewhere_[state]) return false;
  const Place& p = out_.places[static_cast<size_t>(place)];
  Root& root = out_.roots[static_cast<size_t>(p.root)];
  if (root.kind != Root::Arena || p.offset != 0 || !p.layout.is_contiguous() ||
      root.bytes != byte_count(p.layout->numel, p.layout.dtype()))
    return false;
  const auto is_state = [&](int32_t id) {
    return root_of(id).kind == Root::State && root_of(id).index == static_cast<int32_t>(state);
  };
  bool made = false;
  for (const Launch& launch : out_.launches) {
    const bool makes = std::any_of(launch.results.begin(), launch.results.end(), [&](int32_t r) {
      return out_.places[static_cast<size_t>(r)].root == p.root;
    });
    bool reads = false;
    for (size_t i = 0; i < launch.operands.size(); ++i)
      for (ValueId id : launch.operands[i].ids)
        if (id != kNoValue && is_state(id)) {
          // Element by element, the first operand may be overwritten while it is read.
          const bool over = makes && i == 0 && launch.op->has(Trait::HasInplace) &&
                            out_.places[static_cast<size_t>(id)].offset == 0 &&
                            layout(id).is_contiguous() && layout(id)->numel == p.layout->numel;
          reads |= !over;
        }
    if (made && !makes && may_fail(launch)) return false;
    made |= makes;
    if (made && reads) return false;
  }
  if (!made) return false;
  root.kind = Root::State;
  root.index = static_cast<int32_t>(state);
  return true;
}

void Lowering::finish_states(const Ids& ids) {
  std::vector<std::pair<int32_t, size_t>> copies;
  for (size_t k = 0; k < program_.states.size(); ++k) {
    const State& s = program_.states[k];
    if (s.written == kNoValue || s.written == s.value) continue;
    out_.written.push_back(static_cast<int32_t>(k));
    const int32_t place = ids[static_cast<size_t>(s.written)];
    const bool there = root_of(place).kind == Root::State &&
                       root_of(place).index == static_cast<int32_t>(k) &&
                       out_.places[static_cast<size_t>(place)].offset == 0;
    if (!there && !lands_in_state(place, k)) copies.emplace_back(place, k);
  }
  // A state that is written to another one is read before any is written.
  for (auto& [place, k] : copies)
    if (root_of(place).kind == Root::State) place = copy(place);
  for (const auto& [place, k] : copies) {
    Instruction call;
    call.op = &get_op("assign");
    call.operands.push_back({Operand::One, {0}});
    call.attributes.push(Value());
    const int32_t target = ids[static_cast<size_t>(program_.states[k].value)];
    if (!launch(call, {place}, {target})) throw NotLowerable{};
  }
}

Lowered Lowering::run() {
  out_.device = device_;
  Ids ids(program_.values.size(), -1);
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    const ValueType& type = program_.type_of(program_.inputs[i]);
    check_device(type, true);
    Tensor layout = checked_layout(type);
    const int32_t root = add_root(Root::Input, static_cast<int64_t>(i), type);
    ids[static_cast<size_t>(program_.inputs[i])] = add_place(root, 0, std::move(layout));
  }
  for (size_t i = 0; i < program_.states.size(); ++i) {
    const State& s = program_.states[i];
    if (!s.tensor.is_dense() || !s.tensor.is_contiguous()) throw NotLowerable{};
    const ValueType& type = program_.type_of(s.value);
    check_device(type, s.written == kNoValue || s.written == s.value);
    Tensor layout = checked_layout(type);
    const int32_t root = add_root(Root::State, static_cast<int64_t>(i), type);
    ids[static_cast<size_t>(s.value)] = add_place(root, 0, std::move(layout));
  }
  find_updates_in_place();
  add_constants(ids);
  emit_all(ids);
  finish_outputs(ids);
  finish_states(ids);
  return std::move(out_);
}

}  // namespace

std::optional<Lowered> lower(const Program& program) {
  try {
    return Lowering(program).run();
  } catch (const NotLowerable&) {
    return std::nullopt;
  }
}

}  // namespace oar
