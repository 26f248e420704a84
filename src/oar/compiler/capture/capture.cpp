#include "oar/compiler/capture/capture.h"

#include <algorithm>
#include <atomic>

#include "oar/base/host_language.h"
#include "oar/base/string_util.h"
#include "oar/compiler/capture/builder.h"
#include "oar/compiler/capture/functionalise.h"
#include "oar/compiler/capture/recomputed.h"
#include "oar/compiler/capture/regions.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

thread_local Capture* t_current = nullptr;
std::atomic<uint64_t> g_serial{0};

// "file:line" of the user's code; empty if the host language does not know it.
std::string users_line() {
  const auto current = host_language().current_line;
  const SourceLine line = current ? current() : SourceLine();
  return line.file ? format("{}:{}", line.file, line.line) : std::string();
}

// x gets the history of r on the tape.
void take_history(const Tensor& x, const Tensor& r) {
  if (r.has(kRecording)) {
    const History& h = *maybe_history(r);
    set_history(x, h.node, h.index);
    return;
  }
  x->flags &= ~uint32_t{kRecording};
  if (History* h = maybe_history(x)) {
    h->forget_retained();
    h->node = {};
  }
}

// The sizes that are known only at run time: those for which the rule created a symbol that no
// operand has, or else the first (a rule may return an upper bound there).
std::vector<size_t> unknown_axes(const Shape& shape, Args args) {
  std::vector<Dim> known;
  for_each_tensor(args, [&](const Tensor& t) {
    for (Dim d : t.dims())
      for (Dim symbol : d.symbols()) known.push_back(symbol);
  });
  std::vector<size_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::vector<Dim> symbols = shape[i].symbols();
    if (std::any_of(symbols.begin(), symbols.end(),
                    [&](Dim s) { return std::find(known.begin(), known.end(), s) == known.end(); }))
      axes.push_back(i);
  }
  if (axes.empty() && !shape.empty()) axes.push_back(0);
  return axes;
}

// The call without contents: inference must not depend on the current content of a constant.
Frame without_content(Args args) {
  const auto bare = [](const Tensor& t) {
    return t.defined() ? Tensor::meta(t.dims(), t.dtype(), t.device()) : Tensor();
  };
  Frame frame(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) frame.set_tensor(i, bare(args[i].as_tensor()));
    if (!args[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : args[i].as_tensors()) list.push_back(bare(t));
    frame.set_tensors(i, std::move(list));
  }
  return frame;
}

}  // namespace

Capture* Capture::current() { return t_current; }

Capture& Capture::require() {
  user_check(t_current != nullptr, ErrorKind::Runtime,
             "a tensor of a captured function is used after its capture has ended.\nhint: Return "
             "it from the function, and use the result of the program's run.");
  return *t_current;
}

void refuse_nested_capture() {
  user_check(t_current == nullptr, ErrorKind::Unsupported,
             "a capture is already running on this thread.\nhint: Call the function directly: "
             "its ops then become part of the running capture.");
}

Capture::Capture(std::string name)
    : plain_(*this), serial_(++g_serial), payloads_(std::make_shared<std::atomic<int64_t>>(0)) {
  program_.name = std::move(name);
}

Capture::Capture(std::string name, Capture* around)
    : plain_(*this),
      serial_(++g_serial),
      around_(around),
      flow_(std::make_unique<Flow>()),
      payloads_(std::make_shared<std::atomic<int64_t>>(0)) {
  program_.name = std::move(name);
}

Capture::~Capture() { plain_.restore(); }

Capture::Scope::Scope(Capture& capture)
    : capture_(capture),
      outer_(t_current),
      outer_count_(t_payload_count),
      outer_hook_(t_read_hook),
      layers_(kFunctionalise | kCapture) {
  t_current = &capture;
  t_payload_count = capture.payloads_;
  t_read_hook = note_content_read;
}

Capture::Scope::~Scope() {
  for (const DimAssumption& a : assumptions_.learnt()) capture_.learnt_.push_back(a);
  t_read_hook = outer_hook_;
  t_payload_count = outer_count_;
  t_current = outer_;
}

Tensor Capture::input(const InputSpec& spec) {
  const Device device = spec.device            ? *spec.device
                        : spec.given.defined() ? spec.given.device()
                                               : devices::current();
  const ValueId id = add_value({spec.dtype, spec.shape, device});
  program_.values[static_cast<size_t>(id)].name = spec.name;
  program_.inputs.push_back(id);
  Tensor t = make_tensor(id);
  if (!spec.stop_gradient) set_stop_gradient(t, false);
  if (spec.given.defined()) given_.push_back(Tensor(spec.given->alias()));
  if (flow()) flow_->add_source(id, t);
  if (flow() && !spec.stop_gradient) flow_->asking_inputs.insert(id);
  return t;
}

ValueId Capture::add_source(const Tensor& t) {
  const ValueId id = add_value({t.dtype(), t.shape(), t.device()});
  if (flow()) flow_->add_source(id, t);
  return id;
}

void Capture::add_handle(const Tensor& t) {
  if (flow() && is_differentiable(t.dtype())) flow_->handles.insert(t.impl());
}

Tensor Capture::make_tensor(ValueId value) {
  const ValueType& type = program_.type_of(value);
  auto cell = make_intrusive<Cell>(value, fresh_layout(type.shape));
  Tensor t = Tensor::with_payload(Kind::Symbolic, type.shape, type.dtype, type.device,
                                  kFunctionalise | kCapture,
                                  make_intrusive<SymbolicPayload>(serial_, value, std::move(cell)));
  follow(t);
  return t;
}

// Raises the errors that only the parts of a call find: in a program that a user writes, at the line of the call. Open sizes that the
// call assumes to be equal would differ in its parts, so those are left to the run.
static void check_parts(const Op& op, Args args) {
  const Op& rules = op.inplace_of() ? *op.inplace_of() : op;
  if (!rules.def().infer || !rules.def().decompose || op.has(Trait::Random)) return;
  bool sizes_known = true;
  for_each_tensor(args, [&](const Tensor& t) { sizes_known &= t.shape().is_known(); });
  if (!sizes_known) return;
  for (const Parameter& p : rules.schema().parameters)
    if (p.type == ArgType::Program) return;
  rules.def().decompose(args);
}

Outputs Capture::record(const Op& op, Args args) {
  OpScope scope(op.name().c_str());
  const Device device = moved_to(op, args).value_or(device_of(op, args));
  Instruction instruction;
  instruction.op = &op;
  for (size_t i = 0; i < args.size(); ++i) {
    const Parameter& p = op.schema().parameters[i];
    Operand& operand = instruction.operands.emplace_back();
    instruction.attributes.push(p.is_tensor() ? Value() : args[i]);
    if (!p.is_tensor()) continue;
    operand.kind = p.list ? Operand::List : Operand::One;
    const auto id_of = [&](const Tensor& t) { return t.defined() ? value_of(t) : kNoValue; };
    if (args[i].is_tensors())
      for (const Tensor& t : args[i].as_tensors()) operand.ids.push_back(id_of(t));
    else if (!p.list)
      operand.ids.push_back(id_of(args[i].as_tensor()));
  }
  if (flow()) stop_flow(instruction);
  Metas metas;
  {
    const LayersOff off(kDispatchMask);
    const Frame bare = without_content(args);
    metas = infer_types(op, bare.args());
    if (is_open()) check_parts(op, bare.args());
  }
  if (is_update(op)) {
    metas.clear();
    for (size_t i = 0; i < args.size(); ++i)
      if (op.schema().parameters[i].written)
        for_each_tensor(args.subspan(i, 1),
                        [&](const Tensor& t) { metas.push_back({t.dtype(), t.shape(), false}); });
  }
  Outputs outputs;
  for (TensorMeta& m : metas) {
    if (m.data_dependent)
      for (size_t axis : unknown_axes(m.shape, args))
        m.shape[axis] = size_told_by_runs(format("u{}", (*unknown_sizes_)++), m.shape[axis].hint(),
                                          Builder::current() != nullptr);
    const ValueId id = add_value({m.dtype, m.shape, device});
    instruction.results.push_back(id);
    outputs.push_back(make_tensor(id));
  }
  instruction.location = users_line();
  instruction.layer = current_layer();
  instruction.called = t_called_name;
  if (flow()) go_on_flowing(instruction);
  program_.body.instructions.push_back(std::move(instruction));
  return outputs;
}

ValueId Capture::value_of(const Tensor& t) { return cell_of(t)->value; }

Intrusive<Cell> Capture::cell_of(const Tensor& t) {
  if (t.kind() == Kind::Symbolic) {
    refresh(t);
    const SymbolicPayload& payload = symbolic_payload(t);
    return payload.capture == serial_ ? payload.cell : plain_.cell_of(t);
  }
  user_check(t.is_dense(), ErrorKind::Unsupported,
             "a tensor of this kind ({}) cannot be captured.\nhint: Use dense tensors, "
             "for example sparse=False for an embedding's gradient.",
             t.describe());
  Intrusive<Cell> cell = plain_.cell_of(t);
  rederive(*cell, nullptr);
  return cell;
}

void Capture::refresh(const Tensor& t) {
  if (t.kind() != Kind::Symbolic) return;
  const SymbolicPayload& payload = symbolic_payload(t);
  if (payload.capture != serial_ && around_) {
    const Intrusive<Cell> imported = plain_.cell_of(t);
    rederive(*imported, around_->is_follower(t) ? &t : nullptr);
    return;
  }
  user_check(payload.capture == serial_, ErrorKind::Runtime,
             "a tensor of another captured function ({}) is used here.\nhint: Return it from that "
             "function and pass it in as an input.",
             t.describe());
  const Intrusive<Cell> cell = payload.cell;
  const bool follows = followers_.contains(t.impl());
  rederive(*cell, follows ? &t : nullptr);
  if (payload.value == cell->value) return;
  // A handle that was not created here is an alias, saved by the tape or by detach(). Eager mode
  // rejects the former by its version; the latter would need to see the write.
  user_check(follows, ErrorKind::Unsupported,
             "a tensor ({}) that was saved for the gradient, or detached, has been changed in "
             "place since.\nhint: Use the out-of-place op, or clone() the tensor before changing "
             "it.",
             t.describe());
  t->payload = make_intrusive<SymbolicPayload>(serial_, cell->value, cell);
}

// `handle`: the tensor that is read, if its history may be updated.
void Capture::rederive(Cell& cell, const Tensor* handle) {
  if (!cell.is_view()) return;
  const Intrusive<Cell> base = cell_of(cell.base);
  const bool tape = handle && grad_enabled() && cell.tape_seen != base->version;
  if (cell.seen == base->version && !tape) return;
  Frame frame = cell.args.clone();
  frame.set_tensor(0, cell.base);
  const OnTape taped(flow(), true);  // it is the same memory for every reader
  const Outputs made = call_below_casts(*cell.op, frame.args());
  if (cell.seen != base->version) {
    cell.value = value_of(made[0]);
    cell.seen = base->version;
    ++cell.version;
  }
  if (!tape) return;
  take_history(*handle, made[0]);
  cell.tape_seen = base->version;
}

Tensor Capture::snapshot(const Tensor& t) {
  Tensor copy = make_tensor(value_of(t));
  if (const History* h = maybe_history(t); grad_enabled() && t.has(kRecording) && h && h->node)
    set_history(copy, h->node, h->index);
  return copy;
}

void Capture::write(const Tensor& x, const Tensor& given) {
  const Intrusive<Cell> cell = cell_of(x);
  user_check(x.numel() == Dim(0) || is_injective(cell->layout), ErrorKind::InvalidArgument,
             "a broadcast tensor of shape {} shares memory between elements and cannot be written "
             "in place.\nhint: Write to a copy: x = x.clone().",
             to_string(x.dims()));
  // A leaf has no node that x could take over.
  const bool leaf = grad_enabled() && given.has(kRecording) && is_leaf(given);
  const Tensor value = leaf ? assign(given) : given;
  cell->value = value_of(value);
  ++cell->version;
  plain_.note_write(*cell, x);
  x->payload = make_intrusive<SymbolicPayload>(serial_, cell->value, cell);
  follow(x);
  if (grad_enabled()) take_history(x, value);
  if (cell->is_view()) write_base(*cell, value);
}

void Capture::write_base(Cell& cell, const Tensor& value) {
  const Tensor base = cell.base;
  write(base, put_view(*cell.op, cell.args, snapshot(base), value));
  cell.seen = cell.tape_seen = cell_of(base)->version;
}

void Capture::link_view(const Tensor& view, const Op& op, Args args) {
  Cell& cell = *symbolic_payload(view).cell;
  const Tensor& base = args[0].as_tensor();
  const Intrusive<Cell> base_cell = cell_of(base);
  Tensor layout = view_layout(op, args, base_cell->layout);
  if (!layout.defined()) return;  // eager mode copies here
  cell.layout = std::move(layout);
  cell.base = base;
  cell.op = &op;
  cell.args = Frame(args);
  cell.args.set(0, Value());
  cell.seen = cell.tape_seen = base_cell->version;
}

void Capture::leave_to_views(const Tensor& t) {
  user_check(t.is_dense() || symbolic_payload(t).capture == serial_, ErrorKind::Unsupported,
             "a tensor from outside a branch or loop ({}) changes its shape in place inside "
             "it.\nhint: Use the op without the underscore.",
             t.describe());
  Tensor old(t->alias());
  if (const History* h = maybe_history(t); h && t.has(kRecording)) {
    if (h->node)
      set_history(old, h->node, h->index);
    else
      set_stop_gradient(old, false);
  }
  for (const auto& [impl, handle] : followers_) {
    if (handle.kind() != Kind::Symbolic || symbolic_payload(handle).capture != serial_) continue;
    Cell& cell = *symbolic_payload(handle).cell;
    if (cell.base.defined() && cell.base.is_same(t)) cell.base = old;
  }
  if (!old.is_dense()) follow(old);
}

// Outside tensors whose shape or memory the function has replaced.
std::vector<Tensor> Capture::replaced_outside() {
  std::vector<Tensor> list;
  for (const PlainTensors::Entry& entry : plain_.entries())
    if (entry.tensor.kind() == Kind::Symbolic && entry.original.is_dense() &&
        symbolic_payload(entry.tensor).cell != entry.cell)
      list.push_back(entry.tensor);
  return list;
}

std::vector<Tensor> Capture::trained() {
  std::vector<Tensor> list;
  for (const PlainTensors::Entry& entry : plain_.entries())
    if (entry.recording && (entry.value != kNoValue || entry.adopted)) list.push_back(entry.tensor);
  return list;
}

void Capture::note_content_read(const Tensor& t) {
  Capture* capture = t_current;
  if (!capture || (t_layers.off & kCapture) || !t.defined()) return;
  if (t.kind() == Kind::Symbolic) capture->value_asked_ = true;
  if (!t.is_dense()) return;
  for (const ContentRead& r : capture->reads_)
    if (r.tensor->storage == t->storage) return;
  capture->reads_.push_back({t, t->storage->version()});
}

void Capture::refuse_writes_to_given() {
  for (const PlainTensors::Entry& entry : plain_.entries()) {
    if (!entry.cell->was_written() || !entry.original->storage) continue;
    for (const Tensor& t : given_)
      user_check(t->storage != entry.original->storage || !shares_elements(t, entry.original),
                 ErrorKind::Unsupported,
                 "the captured function writes an outside tensor ({}) that is also one of its "
                 "arguments, or shares memory with one.\nhint: Pass a copy, x.clone().",
                 entry.original.describe());
  }
}

Program Capture::finish(std::vector<Tensor>&& outputs, std::vector<OutsideGradient>* gradients) {
  {
    const Scope scope(*this);  // views may have to be derived again
    for (const Tensor& t : outputs) {
      user_check(t.defined(), ErrorKind::InvalidType,
                 "the captured function returned an undefined tensor.");
      program_.outputs.push_back(value_of(t));
    }
    outputs.clear();
    if (gradients) collect_gradients(*gradients);
    refuse_writes_to_given();
  }
  const std::vector<Tensor> replaced = open_ ? std::vector<Tensor>() : replaced_outside();
  const std::vector<std::string> leaking = plain_.restore();
  followers_.clear();
  if (flow_) forget_stops(keeps_stops_ ? idle_stops() : flow_->stopped);
  for (const Tensor& t : replaced)  // held here, and by this list
    user_check(t->reference_count() <= 2, ErrorKind::Unsupported,
               "the captured function changes the shape or the memory of an outside tensor ({}) in "
               "place.\nhint: Use the op without the underscore, or call the function uncaptured.",
               t.describe());
  user_check(leaking.empty() || gradients, ErrorKind::Unsupported,
             "the captured function leaves gradients in {}.\nhint: Call clear_grad() inside "
             "the captured step, after the optimiser's update.",
             join(leaking, ", "));
  collect_tensors();
  name_values(program_);
  program_.renumber();
  program_.assumptions = std::move(learnt_);
  program_.collect_symbols();
  return std::move(program_);
}

// A tensor that outlives the capture is a state if it is written or trained; one that only the capture
// still holds was created by the function and starts every run with its initial content.
void Capture::collect_tensors() {
  for (PlainTensors::Entry& entry : plain_.entries()) {
    entry.original = Tensor();
    if (entry.value == kNoValue || entry.is_input) continue;
    const Tensor& t = entry.tensor;
    const bool outside = t->reference_count() > 1 || t->storage->reference_count() > 1;
    const bool written = entry.cell->was_written();
    const bool kept = t.has(kRecording | kParameter | kPersistable) || follow_outside_;
    if (outside && (written || kept))
      program_.states.push_back({entry.value, t, written ? entry.cell->value : kNoValue});
    else
      program_.constants.push_back({entry.value, t});
  }
}

std::vector<Constant> Capture::constants_so_far() {
  std::vector<Constant> constants = program_.constants;
  for (const PlainTensors::Entry& entry : plain_.entries()) {
    if (entry.value == kNoValue || entry.is_input || entry.cell->was_written()) continue;
    const Tensor& t = entry.tensor;
    if (!t.is_dense()) continue;  // of the outer capture
    const int64_t aliases = entry.original.defined() && entry.original->storage == t->storage;
    if (t->reference_count() > 1 || t->storage->reference_count() > 1 + aliases) continue;
    constants.push_back({entry.value, t});
  }
  return constants;
}

void name_values(Program& program) {
  std::unordered_map<std::string, int> taken;
  const auto give = [&](ValueId id, std::string wanted, char otherwise, size_t index) {
    const auto plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
    for (char& c : wanted)
      if (!plain(static_cast<unsigned char>(c))) c = '_';
    if (wanted.empty()) wanted = format("{}{}", otherwise, index);
    if (std::isdigit(static_cast<unsigned char>(wanted[0]))) wanted = format("_{}", wanted);
    std::string name = wanted;
    while (taken.contains(name)) name = format("{}_{}", wanted, ++taken[wanted]);
    taken.emplace(name, 0);
    program.values[static_cast<size_t>(id)].name = std::move(name);
  };
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const ValueId id = program.inputs[i];
    give(id, program.values[static_cast<size_t>(id)].name, 'x', i);
  }
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State& s = program.states[i];
    const History* h = s.tensor.defined() ? maybe_history(s.tensor) : nullptr;
    const std::string& own = program.values[static_cast<size_t>(s.value)].name;
    give(s.value, own.empty() && h ? h->name : own, 's', i);
  }
  for (size_t i = 0; i < program.constants.size(); ++i)
    give(program.constants[i].value, "", 'c', i);
}

std::vector<ValueId> Capture::values_of(const std::vector<Tensor>& tensors) {
  std::vector<ValueId> values;
  for (const Tensor& t : tensors) values.push_back(value_of(t));
  return values;
}

void Capture::check_unwritten(const std::vector<Tensor>& inputs,
                              const std::vector<ValueId>& values) {
  for (size_t i = 0; i < inputs.size(); ++i)
    user_check(value_of(inputs[i]) == values[i] && !cell_of(inputs[i])->was_written(),
               ErrorKind::Unsupported,
               "the captured function writes to one of its inputs.\nhint: Write to a copy, x = "
               "x.clone(), and return it.");
}

Program capture(const CapturedFunction& function, const std::vector<InputSpec>& inputs,
                const std::string& name, bool may_write_inputs) {
  refuse_nested_capture();
  Capture under_way(name);
  std::vector<Tensor> outputs;
  {
    const Capture::Scope scope(under_way);
    std::vector<Tensor> symbolic;
    for (const InputSpec& spec : inputs) symbolic.push_back(under_way.input(spec));
    const std::vector<ValueId> values = under_way.values_of(symbolic);
    outputs = function(symbolic);
    if (!may_write_inputs) under_way.check_unwritten(symbolic, values);
  }
  return under_way.finish(std::move(outputs));
}

}  // namespace oar
