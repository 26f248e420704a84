#include "oar/runtime/segment.h"

#include <cstring>

namespace oar {
namespace {

bool same_layout(const Tensor& a, const Tensor& b) {
  return a->storage == b->storage && a->dtype == b->dtype && a->ndim == b->ndim &&
         std::equal(a->shape, a->shape + a->ndim, b->shape) &&
         std::equal(a->strides, a->strides + a->ndim, b->strides);
}

}  // namespace

void Segment::describe(const Tensor& t) {
  words.push_back(t->dtype | t->ndim << 8 | int64_t{t.is_contiguous()} << 32);
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

int32_t Segment::add_place(const Tensor& t, int32_t memory) {
  const auto index = static_cast<int32_t>(places.size());
  SegmentPlace& place = places.emplace_back();
  place.tensor = Tensor(t->alias());
  place.memory = memory;
  const auto [it, fresh] = by_address_.try_emplace(t->data, index);
  if (!fresh) place.next = std::exchange(it->second, index);
  if (memory >= 0) {
    SegmentMemory& made = memories[static_cast<size_t>(memory)];
    ++made.held;
    if (made.whole < 0) made.whole = index;
    const Tensor& whole = places[static_cast<size_t>(made.whole)].tensor;
    place.offset = (static_cast<char*>(t->data) - static_cast<char*>(whole->data)) /
                   static_cast<int64_t>(size_of(t.dtype()));
  }
  words.push_back(memory);
  words.push_back(place.offset);
  describe(t);
  return index;
}

int32_t Segment::place_of(const Tensor& t) {
  if (const auto it = by_address_.find(t->data); it != by_address_.end())
    for (int32_t i = it->second; i >= 0; i = places[static_cast<size_t>(i)].next)
      if (same_layout(places[static_cast<size_t>(i)].tensor, t)) return i;
  return add_place(t, by_storage_.try_emplace(t->storage.get(), -1).first->second);
}

void Segment::add(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
                  SourceLine line) {
  SegmentCall& call = calls.emplace_back();
  call.op = &op;
  call.kernel = &kernel;
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
  for (const Tensor& t : outputs) {
    if (!op.inplace_of()) {
      by_storage_[t->storage.get()] = static_cast<int32_t>(memories.size());
      memories.emplace_back();
      bytes += t->storage->bytes();
    }
    call.outputs.push_back(named(t));
  }
}

bool Segment::is_whole(const Tensor& t) const {
  const int32_t memory = memory_of(t->storage.get());
  if (memory < 0) return false;
  const Tensor& whole =
      places[static_cast<size_t>(memories[static_cast<size_t>(memory)].whole)].tensor;
  return whole->data == t->data && same_layout(whole, t);
}

void Segment::close() {
  for (size_t i = 0; i < memories.size(); ++i) {
    const Tensor& whole = places[static_cast<size_t>(memories[i].whole)].tensor;
    if (whole->storage->reference_count() > memories[i].held)
      wanted.push_back(static_cast<int32_t>(i));
  }
  words.push_back(-1);
  words.insert(words.end(), wanted.begin(), wanted.end());
}

}  // namespace oar
