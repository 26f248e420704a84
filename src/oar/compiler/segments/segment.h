// What a segment holds: queued calls, in order, and the memory that they read and allocate.
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

// A tensor that calls read or compute, by where its elements are.
struct SegmentPlace {
  Tensor tensor;        // our own handle
  int32_t memory = -1;  // allocated by a call of the segment; none: it existed before
  int64_t offset = 0;   // in that memory, in elements
  int32_t next = -1;    // another place in the same storage
};

// A storage that a call of the segment allocates.
struct SegmentMemory {
  int32_t whole = -1;  // the place that it was allocated for
  uint32_t held = 0;   // our own handles to it: does anything else hold it?
};

// What a segment knows about storages. A special table: it is queried for every operand of every call,
// and cleared with every segment.
class SegmentStorages {
 public:
  struct Entry {
    const Storage* storage = nullptr;
    uint32_t round = 0;    // of the table; others are empty
    int32_t memory = -1;   // that the segment allocates there
    int32_t place = -1;    // the last one seen
    bool written = false;  // existed before, and the segment writes it
  };
  Entry* find(const Storage* storage);
  const Entry* find(const Storage* storage) const {
    return const_cast<SegmentStorages*>(this)->find(storage);
  }
  Entry& add(const Storage* storage);  // or the existing one
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
  // The key: equal words mean equal programs. Places and memories are numbered in order of
  // appearance.
  std::vector<int64_t> words;
  std::vector<int32_t> wanted;   // memories that something besides the segment holds
  std::vector<int32_t> written;  // places that existed before and are written
  size_t bytes = 0;              // that it allocates
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
  // Does a call compute or overwrite its content?
  bool makes(const Storage* storage) const {
    const SegmentStorages::Entry* entry = storages_.find(storage);
    return entry && (entry->memory >= 0 || entry->written);
  }
  // Is it memory that the segment writes but does not allocate?
  bool was_there(const Tensor& t) const {
    const SegmentStorages::Entry* entry = storages_.find(t->storage.get());
    return entry && entry->memory < 0;
  }
  // May a call that reads it be added? Memory that existed before and is written must be one place: a program
  // cannot express that others overlap it.
  bool can_read(const Tensor& t) const;
  bool can_write(const Tensor& t) const;
  // No more calls are added: determines what is `wanted`.
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

// A segment as a program, cached for the next one of the same structure.
class SegmentProgram {
 public:
  // Null if the calls should run one by one: few, or not seen before.
  static std::shared_ptr<const SegmentProgram> find(const Segment& segment);
  // Its wanted results are then in their memory.
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

}  // namespace oar
