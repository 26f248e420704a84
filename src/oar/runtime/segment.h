// What a segment holds: calls that wait, in order, and the memory they read and make.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "oar/ops/launch_queue.h"

namespace oar {

// Where the user's code stands. The name of the file lives for ever.
struct SourceLine {
  const char* file = nullptr;
  int line = 0;
};

struct SegmentCall {
  const Op* op = nullptr;
  const oar_kernel* kernel = nullptr;
  Frame args;  // its tensors are the places'
  Outputs outputs;
  SourceLine line;
};

// A tensor that calls read or make, by where its elements lie.
struct SegmentPlace {
  Tensor tensor;        // a handle of our own
  int32_t memory = -1;  // that a call of the segment makes; none: it was there before
  int64_t offset = 0;   // in that memory, in elements
  int32_t next = -1;    // another place that begins at the same address
};

// A storage that a call of the segment makes.
struct SegmentMemory {
  int32_t whole = -1;  // the place that it was made as
  uint32_t held = 0;   // handles of our own on it: who has it beside us?
};

class Segment {
 public:
  std::deque<SegmentCall> calls;
  std::vector<SegmentPlace> places;
  std::vector<SegmentMemory> memories;
  // All of the structure: equal words are equal programs. Places and memories are numbered as they are
  // met.
  std::vector<int64_t> words;
  std::vector<int32_t> wanted;  // memories that somebody beside the segment holds
  size_t bytes = 0;     // of what it makes
  bool random = false;  // does it draw random numbers?

  void add(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
           SourceLine line);
  // Does a call read or make something in this memory?
  bool knows(const Storage* storage) const { return by_storage_.contains(storage); }
  // The memory that the segment makes there; -1 where it makes none.
  int32_t memory_of(const Storage* storage) const {
    const auto it = by_storage_.find(storage);
    return it == by_storage_.end() ? -1 : it->second;
  }
  // Is t all of a memory that the segment makes, as it was made?
  bool is_whole(const Tensor& t) const;
  // No call is added any more: finds out what is `wanted`.
  void close();

 private:
  int32_t place_of(const Tensor& t);
  int32_t add_place(const Tensor& t, int32_t memory);
  void describe(const Tensor& t);
  void describe(const Value& attribute);

  std::unordered_map<const void*, int32_t> by_address_;         // the last place there
  std::unordered_map<const Storage*, int32_t> by_storage_;      // the memory, or -1
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

}  // namespace oar
