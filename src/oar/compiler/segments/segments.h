// Segments: the kernel calls of a thread are queued, and run as one program when a value is read.
//
//   SegmentScope scope;
//   Tensor y = relu(matmul(x, w));        // queued
//   if (y.item_double() > 0) y = y * 2;   // runs the first two, then queues the product
//   scope.finish();
//
// Calls of any device are queued; a segment has those of one device and stream. The tape works as usual: its nodes keep
// tensors whose content may not be computed yet. A write to all of a tensor is queued too. Other writes to memory that is older than
// the segment flush the queue first.
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
  uint64_t calls = 0;     // that were queued
  uint64_t segments = 0;  // that ran
  uint64_t programs = 0;  // … as a program
};
SegmentCounts segment_counts();

// Its thread adds to it; others may flush it, if they use a tensor whose content is queued there.
class SegmentQueue final : public LaunchQueue {
 public:
  bool take(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
            Device device) override;
  void settle() override { settle("the function ends, or a program runs"); }
  // The content of t is about to be read, or written.
  void settle_for(const Tensor& t, bool written, const char* why);
  // An error if a signal handler, which runs in the middle of a segment, reads one of its results.
  void check_running(const Tensor& t, bool written);
  // An error if a tensor is still alive whose content could not be computed.
  void check_lost() const;
  // Drops lost memory that nothing else holds. Is any left?
  bool forget_lost();
  // The title in the trace of every segment that runs; no trace if empty.
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

  // Memory whose content could not be computed; reading it raises the error again, after the scope too.
  struct Lost {
    StoragePtr storage;
    std::exception_ptr error;
  };
  using Mutex = FreedByFork<std::recursive_mutex>;
  class Busy;
  Mutex busy_;  // held while calls are added or run
  FreedByFork<std::mutex>
      names_;  // … only while what the segments know changes, so that others may query it
  Segment segment_;
  Segment running_;
  std::vector<Lost> lost_;
};

// While alive, the calls of this thread are queued. Inside another scope, or a capture, it does nothing.
class SegmentScope {
 public:
  explicit SegmentScope(std::string title = {});
  // Flushes the queue; errors are ignored.
  ~SegmentScope();
  SegmentScope(const SegmentScope&) = delete;
  SegmentScope& operator=(const SegmentScope&) = delete;

  // Flushes the queue; nothing is queued afterwards. A function that `returned` and leaves tensors
  // whose content could not be computed has failed; one that has failed already has raised its error.
  void finish(bool returned = true);

 private:
  std::shared_ptr<SegmentQueue> queue_;
};

}  // namespace oar
