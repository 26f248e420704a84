#include "oar/compiler/segments/segment.h"

#include <cstring>

#include "oar/base/hash.h"
#include "oar/runtime/instance.h"

namespace oar {
namespace {

bool same_layout(const Tensor& a, const Tensor& b) {
  return a->data == b->data && a->dtype == b->dtype && a->ndim == b->ndim &&
         std::equal(a->shape, a->shape + a->ndim, b->shape) &&
         std::equal(a->strides, a->strides + a->ndim, b->strides);
}

}  // namespace

SegmentStorages::Entry& SegmentStorages::slot(const Storage* storage) {
  const size_t mask = entries_.size() - 1;
  for (size_t i = hash_mix(reinterpret_cast<uintptr_t>(storage)) & mask;; i = (i + 1) & mask)
    if (entries_[i].round != round_ || entries_[i].storage == storage) return entries_[i];
}

SegmentStorages::Entry* SegmentStorages::find(const Storage* storage) {
  Entry& entry = slot(storage);
  return entry.round == round_ ? &entry : nullptr;
}

SegmentStorages::Entry& SegmentStorages::add(const Storage* storage) {
  if (2 * used_ >= entries_.size()) grow();
  Entry& entry = slot(storage);
  if (entry.round != round_) {
    entry = {storage, round_, -1, -1, false};
    ++used_;
  }
  return entry;
}

void SegmentStorages::grow() {
  std::vector<Entry> before(2 * entries_.size());
  before.swap(entries_);
  for (const Entry& entry : before)
    if (entry.round == round_) slot(entry.storage) = entry;
}

void SegmentStorages::clear() {
  used_ = 0;
  if (++round_ == 0) entries_.assign(entries_.size(), Entry{}), round_ = 1;
}

void Segment::describe(const Tensor& t) {
  words.push_back(t->dtype | t->ndim << 8 | int64_t{t.is_contiguous()} << 32 |
                  int64_t{t->device_type} << 40 | int64_t{t->device_index} << 48);
  words.insert(words.end(), t->shape, t->shape + t->ndim);
  if (!t.is_contiguous()) words.insert(words.end(), t->strides, t->strides + t->ndim);
}

void Segment::describe(const Value& v) {
  words.push_back(int64_t{v.tag} << 32 | v.count);
  switch (v.tag) {
    case OAR_TAG_NONE:
      break;
    case OAR_TAG_INTS:
    case OAR_TAG_DOUBLES:
    case OAR_TAG_COMPLEX:
      words.insert(words.end(), v.integers, v.integers + v.count);
      break;
    case OAR_TAG_STRING: {
      const size_t at = words.size(), bytes = static_cast<size_t>(v.count);
      words.resize(at + (bytes + 7) / 8, 0);
      if (bytes) std::memcpy(words.data() + at, v.string, bytes);
      break;
    }
    default:
      words.push_back(v.integer);  // a double's bits too
  }
}

int32_t Segment::add_place(const Tensor& t, SegmentStorages::Entry& entry) {
  const auto index = static_cast<int32_t>(places.size());
  SegmentPlace& place = places.emplace_back();
  place.tensor = Tensor(t->alias());
  place.memory = entry.memory;
  place.next = std::exchange(entry.place, index);
  if (entry.memory >= 0) {
    SegmentMemory& made = memories[static_cast<size_t>(entry.memory)];
    ++made.held;
    if (made.whole < 0) made.whole = index;
    const Tensor& whole = places[static_cast<size_t>(made.whole)].tensor;
    place.offset =
        (static_cast<char*>(t->data) - static_cast<char*>(whole->data)) * 8 / bits_of(t.dtype());
  }
  words.push_back(entry.memory);
  words.push_back(place.offset);
  describe(t);
  return index;
}

int32_t Segment::place_of(const Tensor& t) {
  SegmentStorages::Entry& entry = storages_.add(t->storage.get());
  for (int32_t i = entry.place; i >= 0; i = places[static_cast<size_t>(i)].next)
    if (same_layout(places[static_cast<size_t>(i)].tensor, t)) return i;
  return add_place(t, entry);
}

void Segment::add(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
                  Device on, SourceLine line) {
  if (calls.empty() && !on.is_cpu()) stream = Stream::current(on);
  device = on;
  SegmentCall& call = calls.emplace_back();
  call.op = &op;
  call.kernel = &kernel;
  call.called = t_called_name ? t_called_name : op.name().c_str();
  call.line = line;
  random |= op.has(Trait::Random);
  words.push_back(static_cast<int64_t>(reinterpret_cast<intptr_t>(&op)));
  const auto named = [&](const Tensor& t) {
    const int32_t place = t.defined() ? place_of(t) : -1;
    words.push_back(place);
    return place < 0 ? Tensor() : places[static_cast<size_t>(place)].tensor;
  };
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) {
      call.args.push(Value());
      call.args.set_tensor(i, named(args[i].as_tensor()));
    } else if (args[i].is_tensors()) {
      words.push_back(args[i].count);
      std::vector<Tensor> list;
      for (const Tensor& t : args[i].as_tensors()) list.push_back(named(t));
      call.args.push(Value());
      call.args.set_tensors(i, std::move(list));
    } else {
      call.args.push(args[i]);
      describe(args[i]);
    }
  }
  const bool writes = op.has(Trait::Inplace);
  for (const Tensor& t : outputs) {
    if (writes && storages_.add(t->storage.get()).memory < 0) {
      bool& noted = storages_.add(t->storage.get()).written;
      if (!std::exchange(noted, true)) written.push_back(place_of(t));
    }
    if (!writes) {
      storages_.add(t->storage.get()).memory = static_cast<int32_t>(memories.size());
      memories.emplace_back();
      bytes += t->storage->bytes();
    }
    call.outputs.push_back(named(t));
  }
}

bool Segment::can_read(const Tensor& t) const {
  const SegmentStorages::Entry* entry = storages_.find(t->storage.get());
  return !entry || !entry->written ||
         same_layout(places[static_cast<size_t>(entry->place)].tensor, t);
}

bool Segment::can_write(const Tensor& t) const {
  if (!t.is_contiguous()) return false;
  const SegmentStorages::Entry* entry = storages_.find(t->storage.get());
  if (!entry) return true;
  if (entry->memory >= 0) {  // all of it, as it was allocated
    const SegmentMemory& made = memories[static_cast<size_t>(entry->memory)];
    return same_layout(places[static_cast<size_t>(made.whole)].tensor, t);
  }
  const SegmentPlace& place = places[static_cast<size_t>(entry->place)];
  return place.next < 0 && same_layout(place.tensor, t);
}

void Segment::close() {
  for (size_t i = 0; i < memories.size(); ++i) {
    const Tensor& whole = places[static_cast<size_t>(memories[i].whole)].tensor;
    if (whole->storage->reference_count() > memories[i].held)
      wanted.push_back(static_cast<int32_t>(i));
  }
  words.push_back(kernel_flags());
  words.insert(words.end(), wanted.begin(), wanted.end());
}

void Segment::clear() {
  calls.clear();
  places.clear();
  memories.clear();
  words.clear();
  wanted.clear();
  written.clear();
  bytes = 0;
  random = false;
  stream.reset();
  storages_.clear();
}

}  // namespace oar
