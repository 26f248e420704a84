// Segments: the kernel calls of a thread wait, and run as one program when a content is asked for.
//
//   SegmentScope scope;
//   Tensor y = relu(matmul(x, w));        // waits
//   if (y.item_double() > 0) y = y * 2;   // runs the first two, then the product waits
//   scope.finish();
//
// Calls of any device wait; a segment has those of one device and stream. The tape is the usual one: its nodes keep tensors whose content may not be there yet. A write to
// all of a tensor waits too; other writes to memory that was there before have all that waits run first.
#pragma once

#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/fork_mutex.h"
#include "oar/compiler/segments/segment.h"

namespace OAR_API oar {

// Since the start of the process.
struct SegmentCounts {
  uint64_t calls = 0;     // that waited
  uint64_t segments = 0;  // that ran
  uint64_t programs = 0;  // … as a program
};
SegmentCounts segment_counts();

// Its thread adds to it; others may have it settled, where they meet a tensor whose content waits there.
class SegmentQueue final : public LaunchQueue {
 public:
  bool take(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
            Device device) override;
  void settle() override { settle("the function ends, or a program runs"); }
  // The content of t is about to be looked at, or written.
  void settle_for(const Tensor& t, bool written, const char* why);
  // An error where a handler of a signal, which runs in the middle of a segment, asks for a content of it.
  void check_running(const Tensor& t, bool written);
  // An error where a tensor lives on whose content could not be computed.
  void check_lost() const;
  // Forgets lost memory that nobody else holds. Is any left?
  bool forget_lost();
  // What is told of every segment that runs; none if empty.
  std::string title;

 private:
  bool may_wait(const Op& op, Args args, const Outputs& outputs) const;
  bool fits(const Op& op, Args args, Device device) const;
  void settle_for_call(const Op& op, Args args);
  void settle(const char* why);
  void run(Segment& segment, const char* why);
  void make_one_by_one(const Segment& segment);
  void lose(const Segment& segment, size_t from, size_t end, const std::exception_ptr& error);
  void lose_interrupted(const Segment& segment, size_t from);
  bool is_held_elsewhere(const StoragePtr& storage) const;
  void check_lost(const Tensor& t) const;
  void tell(const Segment& segment, const char* why, bool program) const;

  // Memory whose content could not be computed; whoever asks for it gets the error again, after the scope too.
  struct Lost {
    StoragePtr storage;
    std::exception_ptr error;
  };
  using Mutex = FreedByFork<std::recursive_mutex>;
  class Busy;
  Mutex busy_;  // held while calls are added or made
  FreedByFork<std::mutex>
      names_;  // … only while what the segments know changes, so that others may ask
  Segment segment_;
  Segment running_;
  std::vector<Lost> lost_;
};

// While one lives, the calls of this thread wait. Inside another scope, or a capture, it does nothing.
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
  std::shared_ptr<SegmentQueue> queue_;
};

}  // namespace OAR_API oar
