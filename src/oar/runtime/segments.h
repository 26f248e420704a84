// Segments: the kernel calls of a thread wait, and run as one program when a content is asked for.
//
//   SegmentScope scope;
//   Tensor y = relu(matmul(x, w));        // waits
//   if (y.item_double() > 0) y = y * 2;   // runs the first two, then the product waits
//   scope.finish();
//
// The tape is the usual one: its nodes keep tensors whose content may not be there yet. Memory outside
// is never written late: a call that writes it has all that waits run first.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "oar/runtime/segment.h"
#include "oar/tensor/read_hook.h"

namespace oar {

// Where the user's code stands; a language binding may install one. It may answer nothing, and then the
// line before counts.
using SourceLines = SourceLine (*)();
void set_source_lines(SourceLines lines);

// Since the start of the process.
struct SegmentCounts {
  uint64_t calls = 0;     // that waited
  uint64_t segments = 0;  // that ran
  uint64_t programs = 0;  // … as a program
};
SegmentCounts segment_counts();

class SegmentQueue final : public LaunchQueue {
 public:
  bool take(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs) override;
  void settle() override { settle("the end of the calls"); }
  // The content of t is about to be looked at.
  void settle_for(const Tensor& t);
  // An error where a tensor lives on whose content could not be made.
  void check_lost() const;
  // What is told of every segment that runs; none if empty.
  std::string title;

 private:
  bool may_wait(const Op& op, Args args, const Outputs& outputs) const;
  void settle_for_call(const Op& op, Args args);
  void settle(const char* why);
  void run(Segment& segment, const char* why);
  void make_one_by_one(const Segment& segment);
  void lose(const Segment& segment, size_t from, std::exception_ptr error);
  void check_lost(const Tensor& t) const;
  void tell(const Segment& segment, const char* why, bool program) const;

  // Memory whose content could not be made; whoever asks for it gets the error again.
  struct Lost {
    StoragePtr storage;
    std::exception_ptr error;
  };
  Segment segment_;
  std::vector<Lost> lost_;
};

// While one lives, the calls of this thread wait. Inside another scope it does nothing.
class SegmentScope {
 public:
  explicit SegmentScope(std::string title = {});
  // Makes what still waits; an error is kept to itself.
  ~SegmentScope();
  SegmentScope(const SegmentScope&) = delete;
  SegmentScope& operator=(const SegmentScope&) = delete;

  // Makes what still waits; nothing waits behind it. A function that `returned` and leaves tensors behind
  // whose content could not be made has failed; one that has failed already has said so.
  void finish(bool returned = true);

 private:
  void leave();

  std::unique_ptr<SegmentQueue> queue_;
  ReadHook outer_hook_ = nullptr;
};

}  // namespace oar
