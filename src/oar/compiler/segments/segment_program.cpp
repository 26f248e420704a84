#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>

#include "oar/base/fork_mutex.h"
#include "oar/base/hash.h"
#include "oar/compiler/executor.h"
#include "oar/compiler/segments/segment.h"

namespace oar {

struct SegmentProgram::Parts {
  std::shared_ptr<const Instance> instance;
  std::vector<int32_t> inputs;  // places
};

namespace {

// Fewer calls do not pay for a walk over a program.
constexpr size_t kFewestCalls = 3;
constexpr size_t kMostPrograms = 256;
constexpr size_t kMostArenaBytes = size_t{1} << 30;
constexpr size_t kMostCallsKept = 32768;  // in all of them: a call takes a kilobyte or two

// The smallest contiguous piece of memory that contains a tensor, and the offset of its first element.
std::pair<Tensor, int64_t> hull_of(const Tensor& t) {
  int64_t low = 0, high = 1;
  for (int i = 0; i < t.rank(); ++i) {
    const int64_t reach = (t->shape[i] - 1) * t->strides[i];
    (reach < 0 ? low : high) += reach;
  }
  const int64_t size[] = {high - low}, stride[] = {1};
  char* data = static_cast<char*>(t->data) + byte_offset(low, t.dtype());
  return {Tensor::view_of(t->storage, as_dims(Ints(size, 1)), Ints(stride, 1), data, t.dtype()),
          -low};
}

Tensor as_input(const Tensor& t) { return t.is_contiguous() ? t : hull_of(t).first; }

// Thrown if a program cannot express the calls.
struct NotSaid {};

class Building {
 public:
  explicit Building(const Segment& segment)
      : segment_(segment),
        place_values_(segment.places.size(), kNoValue),
        memory_values_(segment.memories.size(), kNoValue) {
    program_.name = "segment";
    for (size_t i = 0; i < segment.places.size(); ++i)
      places_[segment.places[i].tensor.impl()] = static_cast<int32_t>(i);
  }

  std::unique_ptr<SegmentProgram::Parts> run() {
    for (const SegmentCall& call : segment_.calls) add(call);
    for (int32_t i : segment_.wanted)
      program_.outputs.push_back(memory_values_[static_cast<size_t>(i)]);
    for (int32_t i : segment_.written)
      program_.outputs.push_back(place_values_[static_cast<size_t>(i)]);
    prepare_to_run(program_);
    parts_->instance = Instance::make(std::move(program_));
    return parts_->instance ? std::move(parts_) : nullptr;
  }

 private:
  const SegmentPlace& place(int32_t index) const {
    return segment_.places[static_cast<size_t>(index)];
  }

  ValueId strided(ValueId base, const Tensor& like, int64_t offset) {
    static const Op& as_strided_op = get_op("as_strided");
    Instruction view;
    view.op = &as_strided_op;
    view.operands.resize(4);
    view.operands[0].kind = Operand::One;
    view.operands[0].ids.push_back(base);
    view.attributes.push(Value());
    view.attributes.push(Value(like.dims()));
    view.attributes.push(Value(like.strides()));
    view.attributes.push(Value(offset));
    const ValueId made = program_.add_value({like.dtype(), like.shape(), like.device()});
    view.results.push_back(made);
    program_.body.instructions.push_back(std::move(view));
    return made;
  }

  ValueId input(int32_t index, const Tensor& t) {
    const auto given = t.is_contiguous() ? std::pair(t, int64_t{0}) : hull_of(t);
    const ValueId id = program_.add_value({t.dtype(), given.first.shape(), t.device()});
    program_.inputs.push_back(id);
    parts_->inputs.push_back(index);
    return t.is_contiguous() ? id : strided(id, t, given.second);
  }

  ValueId value_of(const Tensor& t) {
    const int32_t index = places_.at(t.impl());
    ValueId& known = place_values_[static_cast<size_t>(index)];
    const SegmentPlace& p = place(index);
    if (p.memory < 0) {
      if (known == kNoValue) known = input(index, t);
      return known;
    }
    // Not cached: a write gives the memory another value.
    const ValueId whole = memory_values_[static_cast<size_t>(p.memory)];
    const int32_t made_as = segment_.memories[static_cast<size_t>(p.memory)].whole;
    if (made_as == index) return whole;
    if (place(made_as).tensor.dtype() != t.dtype()) throw NotSaid{};
    return strided(whole, t, p.offset);
  }

  // t has this value from now on.
  void set_value(const Tensor& t, ValueId value) {
    const int32_t index = places_.at(t.impl());
    const int32_t memory = place(index).memory;
    (memory < 0 ? place_values_[static_cast<size_t>(index)]
                : memory_values_[static_cast<size_t>(memory)]) = value;
  }

  void add(const SegmentCall& call) {
    if (call.op->stores()) {
      const auto from = static_cast<size_t>(call.op->copied());
      return set_value(call.outputs[0], value_of(call.args[from].as_tensor()));
    }
    Instruction made;
    made.op = call.op->inplace_of() ? call.op->inplace_of() : call.op;
    for (size_t i = 0; i < call.args.size(); ++i) {
      const Value& v = call.args[i];
      Operand& operand = made.operands.emplace_back();
      const Parameter& p = made.op->schema().parameters[i];
      made.attributes.push(p.is_tensor() ? Value() : v);
      if (!p.is_tensor()) continue;
      operand.kind = p.list ? Operand::List : Operand::One;
      const auto id_of = [&](const Tensor& t) { return t.defined() ? value_of(t) : kNoValue; };
      if (v.is_tensors())
        for (const Tensor& t : v.as_tensors()) operand.ids.push_back(id_of(t));
      else if (!p.list)
        operand.ids.push_back(id_of(v.as_tensor()));
    }
    for (const Tensor& t : call.outputs) {
      const ValueId id = program_.add_value({t.dtype(), t.shape(), t.device()});
      made.results.push_back(id);
      set_value(t, id);
    }
    program_.body.instructions.push_back(std::move(made));
  }

  const Segment& segment_;
  Program program_;
  std::unique_ptr<SegmentProgram::Parts> parts_ = std::make_unique<SegmentProgram::Parts>();
  std::unordered_map<const TensorImpl*, int32_t> places_;
  std::vector<ValueId> place_values_, memory_values_;
};

// A segment that was seen before: its program, built when it is seen again.
struct Met {
  size_t hash = 0;
  size_t calls = 0;
  std::vector<int64_t> words;
  std::shared_ptr<const SegmentProgram> program;
  bool tried = false;
};

class Programs {
 public:
  std::shared_ptr<const SegmentProgram> find(const Segment& segment) {
    const size_t hash = hash_range(segment.words);
    {
      std::list<Met> dropped;  // destroyed after the lock is free
      const std::lock_guard lock(mutex_);
      Met* const met = meet(segment, hash, dropped);
      if (!met || std::exchange(met->tried, true)) return met ? met->program : nullptr;
    }
    return keep(segment, hash, made_of(segment));
  }

 private:
  static std::shared_ptr<const SegmentProgram> made_of(const Segment& segment) {
    try {
      auto parts = Building(segment).run();
      return parts ? std::make_shared<const SegmentProgram>(std::move(parts)) : nullptr;
    } catch (const NotSaid&) {
      return nullptr;
    }
  }

  // The segment, if it was seen before.
  Met* meet(const Segment& segment, size_t hash, std::list<Met>& dropped) {
    const auto found = by_hash_.find(hash);
    if (found != by_hash_.end() && found->second->words == segment.words) {
      met_.splice(met_.begin(), met_, found->second);
      return &met_.front();
    }
    if (found != by_hash_.end()) forget(found->second, dropped);
    calls_ += segment.calls.size();
    while (!met_.empty() && (met_.size() >= kMostPrograms || calls_ > kMostCallsKept))
      forget(std::prev(met_.end()), dropped);
    met_.push_front({hash, segment.calls.size(), segment.words});
    by_hash_[hash] = met_.begin();
    return nullptr;
  }

  std::shared_ptr<const SegmentProgram> keep(const Segment& segment, size_t hash,
                                             std::shared_ptr<const SegmentProgram> program) {
    std::list<Met> dropped;
    const std::lock_guard lock(mutex_);
    const auto found = by_hash_.find(hash);
    if (!program || found == by_hash_.end() || found->second->words != segment.words)
      return program;
    met_.splice(met_.begin(), met_, found->second);
    met_.front().program = program;
    arena_bytes_ += program->arena_bytes();
    while (arena_bytes_ > kMostArenaBytes && met_.size() > 1)
      forget(std::prev(met_.end()), dropped);
    return program;
  }

  void forget(std::list<Met>::iterator met, std::list<Met>& dropped) {
    if (met->program) arena_bytes_ -= met->program->arena_bytes();
    calls_ -= met->calls;
    by_hash_.erase(met->hash);
    dropped.splice(dropped.begin(), met_, met);
  }

  ForkMutex mutex_;
  std::list<Met> met_;  // the most recently seen first
  std::unordered_map<size_t, std::list<Met>::iterator> by_hash_;
  size_t arena_bytes_ = 0;
  size_t calls_ = 0;
};

Programs& programs() {
  static auto* const kept = new Programs();  // threads may end after main
  return *kept;
}

}  // namespace

SegmentProgram::SegmentProgram(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
SegmentProgram::~SegmentProgram() = default;

size_t SegmentProgram::arena_bytes() const {
  return static_cast<size_t>(parts_->instance->arena_bytes());
}

std::shared_ptr<const SegmentProgram> SegmentProgram::find(const Segment& segment) {
  if (segment.calls.size() < kFewestCalls) return nullptr;
  return programs().find(segment);
}

void SegmentProgram::run(const Segment& segment) const {
  std::vector<Tensor> inputs, outputs;
  for (int32_t i : parts_->inputs)
    inputs.push_back(as_input(segment.places[static_cast<size_t>(i)].tensor));
  for (int32_t i : segment.wanted) {
    const SegmentMemory& memory = segment.memories[static_cast<size_t>(i)];
    outputs.push_back(segment.places[static_cast<size_t>(memory.whole)].tensor);
  }
  // The run may read memory that existed before, which stays unchanged if the run fails.
  for (int32_t i : segment.written) {
    const Tensor& t = segment.places[static_cast<size_t>(i)].tensor;
    outputs.push_back(Tensor::empty(t.dims(), t.dtype(), t.device()));
  }
  parts_->instance->run_into(inputs, outputs);
  for (size_t k = 0; k < segment.written.size(); ++k) {
    const Tensor& t = segment.places[static_cast<size_t>(segment.written[k])].tensor;
    const Tensor& content = outputs[segment.wanted.size() + k];
    devices::copy(t.device(), t->data, content.device(), content->data, content->storage->bytes(),
                  current_stream(t.device()));
  }
}

}  // namespace oar
