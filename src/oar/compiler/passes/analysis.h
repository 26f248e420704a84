// Facts about a program for passes. Each describes the program at the time it was computed; PassContext
// (context.h) computes them on demand and drops them when a pass has changed the program.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "oar/base/api.h"
#include "oar/compiler/passes/edit.h"

namespace OAR_API oar {

// The readers of each value.
class Uses {
 public:
  explicit Uses(const Program& program);
  // By instructions, as a result of the program, and as the new value of a state. 0 for a value that was added since.
  int count(ValueId id) const {
    const auto i = static_cast<size_t>(id);
    return i < counts_.size() ? counts_[i] : 0;
  }
  // The instructions that read it, in order; one that reads it twice is listed twice.
  std::span<const size_t> readers(ValueId id) const { return readers_[static_cast<size_t>(id)]; }
  // The only reader of a value that the program neither returns nor writes.
  std::optional<size_t> only_reader(ValueId id) const;
  bool is_returned(ValueId id) const { return returned_[static_cast<size_t>(id)]; }

 private:
  std::vector<int> counts_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> returned_;
};

// The lifetime of each value, in instruction numbers.
class Lives {
 public:
  static constexpr int kBefore = -1;  // inputs, states and constants
  explicit Lives(const Program& program);
  // The instruction that computes it, or kBefore.
  int begin(ValueId id) const { return begin_[static_cast<size_t>(id)]; }
  // The last that reads it; the number of instructions if the program returns or writes it; begin(id) if nothing reads it.
  int end(ValueId id) const { return end_[static_cast<size_t>(id)]; }

 private:
  std::vector<int> begin_, end_;
};

// Which values share memory: a view and its base.
class SharedMemory {
 public:
  explicit SharedMemory(const Program& program);
  // The value that owns the memory; the value itself if it is not a view.
  ValueId owner(ValueId id) const { return owner_[static_cast<size_t>(id)]; }
  bool shares(ValueId a, ValueId b) const { return owner(a) == owner(b); }

 private:
  std::vector<ValueId> owner_;
};

// An estimate of the call's time, in nanoseconds on one thread; open sizes count as their hints.
double time_of(const Program& program, const Instruction& call);

// The arguments of the call, with tensors without content as operands.
Frame meta_arguments(const Program& program, const Instruction& call);

}  // namespace oar
