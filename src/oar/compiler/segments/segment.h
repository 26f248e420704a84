// What a segment holds: calls that wait, in order, and the memory they read and make.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/host_language.h"
#include "oar/device/stream.h"
#include "oar/ops/core/launch_queue.h"

namespace OAR_API oar {

struct SegmentCall {
  const Op* op = nullptr;
  const oar_kernel* kernel = nullptr;
  Frame args;  // its tensors are the places'
  Outputs outputs;
  const char* called = nullptr;  // by the user; `op` may be a part of it
  SourceLine line;
};

// A tensor that calls read or make, by where its elements lie.
struct SegmentPlace {
  Tensor tensor;        // a handle of our own
  int32_t memory = -1;  // that a call of the segment makes; none: it was there before
  int64_t offset = 0;   // in that memory, in elements
  int32_t next = -1;    // another place in the same storage
};

// A storage that a call of the segment makes.
struct SegmentMemory {
  int32_t whole = -1;  // the place that it was made as
  uint32_t held = 0;   // handles of our own on it: who has it beside us?
};

// What a segment knows of storages. A table of its own: it is asked about every operand of every call,
// and emptied with every segment.
class SegmentStorages {
 public:
  struct Entry {
    const Storage* storage = nullptr;
    uint32_t round = 0;    // of the table; others are empty
    int32_t memory = -1;   // that the segment makes there
    int32_t place = -1;    // the last one met
    bool written = false;  // was there before, and the segment writes it
  };
  Entry* find(const Storage* storage);
  const Entry* find(const Storage* storage) const {
    return const_cast<SegmentStorages*>(this)->find(storage);
  }
  Entry& add(const Storage* storage);  // or the one that is there
  void clear();

 private:
  Entry& slot(const Storage* storage);
  void grow();
  std::vector<Entry> entries_ = std::vector<Entry>(64);
  size_t used_ = 0;
  uint32_t round_ = 1;
};

class Segment {
 public:
  std::vector<SegmentCall> calls;
  std::vector<SegmentPlace> places;
  std::vector<SegmentMemory> memories;
  // All of the structure: equal words are equal programs. Places and memories are numbered as they are
  // met.
  std::vector<int64_t> words;
  std::vector<int32_t> wanted;   // memories that somebody beside the segment holds
  std::vector<int32_t> written;  // places that were there before and are written
  size_t bytes = 0;              // of what it makes
  bool random = false;           // does it draw random numbers?
  Device device;                 // of all its calls
  std::optional<Stream> stream;  // … where they run; none: the CPU has one

  void add(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs, Device on,
           SourceLine line);
  // Are its calls, if there are any, made on this device, in the stream that this thread uses now?
  bool is_on(Device on) const {
    return calls.empty() || (device == on && (!stream || stream->handle() == current_stream(on)));
  }
  // Does a call read or make something in this memory?
  bool knows(const Storage* storage) const { return storages_.find(storage) != nullptr; }
  // Does a call make or write its content?
  bool makes(const Storage* storage) const {
    const SegmentStorages::Entry* entry = storages_.find(storage);
    return entry && (entry->memory >= 0 || entry->written);
  }
  // Is it memory that the segment writes but does not make?
  bool was_there(const Tensor& t) const {
    const SegmentStorages::Entry* entry = storages_.find(t->storage.get());
    return entry && entry->memory < 0;
  }
  // May a call of it be added? What was there before and is written stands for one place: a program
  // cannot say that others overlap it.
  bool can_read(const Tensor& t) const;
  bool can_write(const Tensor& t) const;
  // No call is added any more: finds out what is `wanted`.
  void close();
  // Empties it, ready for the next one.
  void clear();

 private:
  int32_t place_of(const Tensor& t);
  int32_t add_place(const Tensor& t, SegmentStorages::Entry& entry);
  void describe(const Tensor& t);
  void describe(const Value& attribute);

  SegmentStorages storages_;
};

// A segment as a program, kept for the next one of the same structure.
class SegmentProgram {
 public:
  // None where the calls are better made one by one: few, or not met before.
  static std::shared_ptr<const SegmentProgram> find(const Segment& segment);
  // What is wanted of it is then in its memory.
  void run(const Segment& segment) const;

  size_t arena_bytes() const;

  struct Parts;
  explicit SegmentProgram(std::unique_ptr<Parts> parts);
  ~SegmentProgram();
  SegmentProgram(const SegmentProgram&) = delete;
  SegmentProgram& operator=(const SegmentProgram&) = delete;

 private:
  const std::unique_ptr<Parts> parts_;
};

}  // namespace OAR_API oar
