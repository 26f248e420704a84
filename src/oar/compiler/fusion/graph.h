// The calls of a program, some of them joined to groups, and who depends on whom.
#pragma once

#include <vector>

#include "oar/ir/program.h"

namespace oar::fusion {

class CallGraph {
 public:
  explicit CallGraph(const Program& program);

  size_t size() const { return sources_.size(); }
  // The call that computes a value; -1 for inputs, states and constants.
  int maker(ValueId id) const { return makers_[static_cast<size_t>(id)]; }
  // The call whose result the value shows, through views; -1 for inputs, states and constants.
  int shown(ValueId id) const { return shown_[static_cast<size_t>(id)]; }
  const std::vector<size_t>& readers(ValueId id) const { return readers_[static_cast<size_t>(id)]; }
  bool is_given_back(ValueId id) const { return given_back_[static_cast<size_t>(id)]; }

  size_t group(size_t call) const { return group_[call]; }
  const std::vector<size_t>& members(size_t group) const { return members_[group]; }
  // Could the two groups run as one? Not if one of them waits for a third that waits for the other.
  bool can_join(size_t a, size_t b) const;
  // The group that both are then.
  size_t join(size_t a, size_t b);
  // Groups, each after those that it reads from; otherwise in the order of the program.
  std::vector<size_t> sorted() const;

 private:
  bool shows(size_t call, size_t group) const;
  bool reaches(size_t from, size_t target, size_t without) const;

  std::vector<int> makers_, shown_;
  std::vector<std::vector<size_t>>
      makers_of_;  // calls, views included, that must run before the call
  std::vector<std::vector<size_t>> sources_;  // … where a view stands for the call that it shows
  std::vector<std::vector<size_t>> readers_;
  std::vector<bool> given_back_, is_view_;
  std::vector<size_t> group_;
  std::vector<std::vector<size_t>> members_;
};

}  // namespace oar::fusion
