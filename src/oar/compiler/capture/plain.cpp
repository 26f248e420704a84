#include "oar/compiler/capture/plain.h"

#include "oar/compiler/capture/capture.h"
#include "oar/ops/core/run.h"

namespace oar {
namespace {

bool same_place(const Tensor& a, const Tensor& b) {
  return a->data == b->data && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::equal(a.strides().begin(), a.strides().end(), b.strides().begin());
}

// The same elements in the same order in another shape.
bool same_elements(const Tensor& a, const Tensor& b) {
  return a->data == b->data && a.dtype() == b.dtype() && a->numel == b->numel &&
         a.is_contiguous() && b.is_contiguous();
}

Tensor strided_layout(const Tensor& t) {
  Tensor layout = Tensor::meta(Dims{}, DType::Float32);
  layout->set_layout(t.dims(), t.strides());
  return layout;
}

// Aliases created by an op or the tape have none of these flags.
int permanence(const Tensor& t) {
  return t.has(kParameter | kPersistable) ? 2 : t.has(kRecording) ? 1 : 0;
}

[[noreturn]] void refuse_overlap(const Tensor& t) {
  fail(
      ErrorKind::Unsupported,
      "a tensor from outside the captured function ({}) shares part of its memory with another one "
      "that the function has written.\nhint: Take the view inside the captured function, or "
      "clone() it before.",
      t.describe());
}

}  // namespace

Intrusive<Cell> PlainTensors::cell_of(const Tensor& t) {
  if (auto it = by_tensor_.find(t.impl()); it != by_tensor_.end()) {
    const Entry& entry = entries_[it->second];
    if (entry.overwritten) refuse_overlap(t);
    return entry.cell;
  }
  if (!t.is_dense()) return imported(t);
  if (Intrusive<Cell> cell = cell_by_memory(t)) {
    if (permanence(t) > 0 && !by_tensor_.contains(t.impl())) adopt(t, cell);
    return cell;
  }
  const ValueId value = capture_.add_source(t);
  auto cell = make_intrusive<Cell>(value, strided_layout(t));
  return add(t, std::move(cell), value).cell;
}

// A tensor of the outer capture. Its cell there identifies tensors that are the same, and those that are
// views; a view is derived again here, so that writes to its base are seen.
Intrusive<Cell> PlainTensors::imported(const Tensor& t) {
  Capture& around = *capture_.around();
  const Intrusive<Cell> theirs = [&] {
    const Capture::Scope scope(around);
    return around.cell_of(t);
  }();
  if (const auto it = by_cell_.find(theirs.get()); it != by_cell_.end()) {
    Intrusive<Cell> cell = entries_[it->second].cell;
    if (!cell->was_written() || cell->is_view()) return cell;
    user_check(around.is_follower(t), ErrorKind::Unsupported,
               "a tensor ({}) that was saved for the gradient, or detached, has been changed in "
               "place since.\nhint: Use the out-of-place op, or clone() the tensor before changing "
               "it.",
               t.describe());
    make_symbolic(add(t, cell, kNoValue));
    return cell;
  }
  const ValueId value = theirs->is_view() ? kNoValue : capture_.add_source(t);
  auto cell = make_intrusive<Cell>(value, theirs->layout);
  by_cell_[theirs.get()] = static_cast<uint32_t>(entries_.size());
  Entry& entry = add(t, cell, value);
  entry.around = theirs;
  if (!theirs->is_view()) return cell;
  cell->base = theirs->base;
  cell->op = theirs->op;
  cell->args = theirs->args.clone();
  cell->seen = cell->tape_seen = capture_.cell_of(cell->base)->version - 1;  // to be derived
  return cell;
}

// Aliases are short-lived (the tape saves some for every call), so they are found by their memory and
// kept only if they must be restored.
Intrusive<Cell> PlainTensors::cell_by_memory(const Tensor& t) {
  const auto it = by_storage_.find(t->storage.get());
  if (it == by_storage_.end()) return {};
  for (uint32_t i : it->second)
    if (same_place(entries_[i].original, t)) {
      if (entries_[i].overwritten) refuse_overlap(t);
      return entries_[i].cell;
    }
  for (uint32_t i : it->second) {
    const Entry& entry = entries_[i];
    if (!same_elements(entry.original, t) || entry.overwritten) continue;
    auto cell = make_intrusive<Cell>(kNoValue, strided_layout(t));
    cell->base = entry.tensor;
    static const Op& reshape_op = get_op("reshape");
    cell->op = &reshape_op;
    const Shape shape = t.shape();
    cell->args.push(Value());
    cell->args.push(Value(Dims(shape)));
    cell->seen = cell->tape_seen = entry.cell->version - 1;  // to be derived when it is read
    return add(t, std::move(cell), kNoValue).cell;
  }
  for (uint32_t i : it->second) {
    const Entry& entry = entries_[i];
    if ((entry.cell->was_written() || entry.overwritten) && overlaps_partially(entry.original, t))
      refuse_overlap(t);
  }
  return {};
}

// A tensor whose alias was used before it (p.detach(), then p): it has its own gradient, and the program follows
// the tensor rather than the alias, which may be freed.
PlainTensors::Entry& PlainTensors::adopt(const Tensor& t, const Intrusive<Cell>& cell) {
  Entry& entry = add(t, cell, kNoValue);
  entry.adopted = true;
  for (uint32_t i : cell->plain) {
    Entry& holder = entries_[i];
    if (holder.value != kNoValue && permanence(t) > permanence(holder.tensor))
      entry.value = std::exchange(holder.value, kNoValue);
  }
  capture_.add_handle(t);
  if (cell->was_written()) make_symbolic(entry);
  return entry;
}

PlainTensors::Entry* PlainTensors::own_entry(const Tensor& t, const Entry* inner) {
  if (const auto it = by_tensor_.find(t.impl()); it != by_tensor_.end())
    return &entries_[it->second];
  if (!t.is_dense()) return nullptr;
  if (const Intrusive<Cell> cell = cell_of(t); !by_tensor_.contains(t.impl())) adopt(t, cell);
  Entry& entry = entries_[by_tensor_.at(t.impl())];
  if (inner) entry.grad = inner->grad;
  return &entry;
}

PlainTensors::Entry* PlainTensors::find(const Tensor& t) {
  if (auto it = by_tensor_.find(t.impl()); it != by_tensor_.end()) return &entries_[it->second];
  if (!t.is_dense()) return nullptr;
  const auto it = by_storage_.find(t->storage.get());
  if (it == by_storage_.end()) return nullptr;
  for (uint32_t i : it->second)
    if (same_place(entries_[i].original, t)) return &entries_[i];
  return nullptr;
}

bool PlainTensors::Entry::has_other_gradient() const {
  const History* h = maybe_history(tensor);
  if (!h) return grad.defined();
  if (h->grad.is_same(grad)) return false;
  return !shown_zeros.defined() || !h->grad.tensor().is_same(shown_zeros);
}

PlainTensors::Entry& PlainTensors::add(const Tensor& t, Intrusive<Cell> cell, ValueId value) {
  const auto index = static_cast<uint32_t>(entries_.size());
  cell->plain.push_back(index);
  Entry& entry = entries_.emplace_back();
  entry.tensor = t;
  entry.original = Tensor(t->alias());
  entry.cell = std::move(cell);
  entry.value = value;
  entry.recording = t.has(kRecording);
  if (const History* h = maybe_history(t)) {
    entry.node = h->node;
    entry.index = h->index;
    entry.grad = h->grad;
  }
  by_tensor_[t.impl()] = index;
  if (t.is_dense()) by_storage_[t->storage.get()].push_back(index);
  return entry;
}

// Does anything besides this capture hold the tensor?
bool PlainTensors::is_outside(const Tensor& t) const {
  return t.is_dense() ||
         (t.kind() == Kind::Symbolic && symbolic_payload(t).capture != capture_.serial());
}

void PlainTensors::make_symbolic(Entry& entry) {
  if (!is_outside(entry.tensor)) return;
  const Tensor& like = entry.original;
  const Tensor symbolic = Tensor::with_payload(
      Kind::Symbolic, like.dims(), like.dtype(), like.device(), kFunctionalise | kCapture,
      make_intrusive<SymbolicPayload>(capture_.serial(), entry.cell->value, entry.cell));
  entry.tensor->become(*symbolic.impl());
  capture_.follow(entry.tensor);
}

void PlainTensors::note_write(Cell& cell, const Tensor& t) {
  if (cell.plain.empty()) return;
  if (is_outside(t) && !by_tensor_.contains(t.impl())) add(t, Intrusive<Cell>(&cell), kNoValue);
  for (uint32_t i : cell.plain) make_symbolic(entries_[i]);
  const Entry& first = entries_[cell.plain[0]];
  if (!first.original->storage) return;  // of the outer capture
  // Tensors saved by the tape are checked against this, as in eager mode.
  first.original->storage->bump_version();
  for (uint32_t i : by_storage_[first.original->storage.get()]) {
    Entry& other = entries_[i];
    if (other.cell.get() == &cell || other.cell->is_view() || cell.is_view()) continue;
    other.overwritten |= overlaps_partially(first.original, other.original);
  }
}

std::vector<std::string> PlainTensors::restore() {
  std::vector<std::string> leaking;
  if (std::exchange(restored_, true)) return leaking;
  for (Entry& entry : entries_) {
    const Tensor& t = entry.tensor;
    if (t->payload || t->data != entry.original->data) t->become(*entry.original.impl());
    t->flags = entry.recording ? t->flags | kRecording : t->flags & ~uint32_t{kRecording};
    if (History* h = maybe_history(t)) {
      if (h->grad.is_tensor() && h->grad.get().kind() == Kind::Symbolic)
        leaking.push_back(h->name.empty() ? t.describe() : h->name);
      h->grad = std::move(entry.grad);
      if (h->node != entry.node || h->index != entry.index) {
        h->forget_retained();
        h->node = std::move(entry.node);
        h->index = entry.index;
        if (h->retains && h->node) h->node->keep_grad(h->index, h->retains);
      }
    }
  }
  return leaking;
}

}  // namespace oar
