// A program at concrete sizes, ready to run: kernels chosen, memory laid out. A run is a walk over a
// flat list of launches, without dispatch, and without allocation except for its results. Parts of the list may run
// in several lanes at once (schedule.h).
#pragma once

#include <memory>
#include <mutex>

#include "oar/base/api.h"
#include "oar/base/fork_mutex.h"
#include "oar/device/stream.h"
#include "oar/runtime/lower.h"
#include "oar/runtime/memory_plan.h"
#include "oar/runtime/schedule.h"

namespace OAR_API oar {

// Flags that decide which kernels accept a call and how launches are scheduled: an instance is valid for the flags it was created under.
int64_t kernel_flags();
// Is every single op observed (check_nan_inf, OAR_TRACE=dispatch)? Then they are called one by
// one.
bool watches_ops();

class Instance {
 public:
  // Null if the program, all of whose sizes are known, has to be interpreted.
  static std::shared_ptr<const Instance> make(Program program);

  // The inputs and states have the program's types. May be called by several threads at once, unless
  // the program writes states. A large input is freed after the last launch that reads it, and a
  // large result gets its memory when it is first written: inputs that the caller moves here make room.
  std::vector<Tensor> run(std::vector<Tensor> inputs) const { return run(std::move(inputs), {}); }
  // … with the results in existing memory: contiguous, and not read by the run.
  void run_into(TensorList inputs, TensorList outputs) const;

  // Whether inputs on these devices are what it was made for.
  bool is_for(TensorList inputs) const;
  Device device() const { return lowered_.device; }
  size_t launches() const { return lowered_.launches.size(); }
  const Schedule& schedule() const { return schedule_; }
  int64_t arena_bytes() const { return memory_.bytes; }

 private:
  struct WorkingSet;
  class Borrowed;
  class Held;

  Instance(Program program, Lowered lowered);
  std::vector<Tensor> run(std::vector<Tensor> given, TensorList into) const;
  void run_launches(WorkingSet& set, Held& held) const;
  void run_lanes(const Fork& fork, WorkingSet& set) const;
  void launch(size_t index, WorkingSet& set) const;
  StoragePtr memory_for(const Root& root, TensorList into) const;
  Tensor readable(const Tensor& input) const;
  void share_buffers();
  void plan();
  void find_first_write();
  void plan_turns(const std::vector<Lifetime>& lives);
  std::unique_ptr<WorkingSet> make_working_set() const;
  void bind(WorkingSet& set, int32_t root, void* data) const;
  bool is_lasting(int32_t place) const;
  bool writes_state(int32_t index) const;
  bool is_unchanged(WorkingSet& set) const;

  const Program program_;
  Lowered lowered_;
  const Schedule schedule_;
  MemoryPlan memory_;
  std::vector<int64_t> arena_offsets_;                // by root
  std::vector<std::vector<int32_t>> places_of_root_;  // of roots outside the arena
  // Large results by the launch that first writes them, large inputs by the one that last reads them.
  struct Turn {
    int32_t launch, root;
  };
  std::vector<Turn> begins_, ends_;
  size_t first_write_ =
      0;  // the first launch that writes a state: from there on a run is not interrupted
  std::vector<Tensor> lasting_;  // constants and states that launches read and no run writes
  // Working sets that no run is using: each thread that runs at the same time has one of its own, and so has each stream,
  // whose work on the arena may not be done when a run returns.
  mutable ForkMutex mutex_;
  mutable std::vector<std::unique_ptr<WorkingSet>> idle_;
};

}  // namespace oar
