// Who is missing when a call fails, and who does something else.
#pragma once

#include <string>
#include <vector>

#include "oar/distributed/process_group.h"

namespace oar::distributed {

struct Failure {
  std::string what;  // the call: "all_reduce of float32[4, 7]"
  Milliseconds waited{0};
  std::string engine;  // what the engine says
  int64_t number = 0;  // of the call in the group
};

// Waits until all members of a group have come; an Error that names the others.
void meet(Store& store, const GroupOptions& options, int rank);

// Tells the others through the store that this rank waits in vain.
void announce(Store* store, int rank, const Failure& failure);
// After that: learns from it which others do.
std::string explain(Store* store, const GroupOptions& options, const Failure& failure);
std::string explain_message(const GroupOptions& options, int peer, const Failure& failure);

// Why the calls of the ranks do not fit each other; empty if they do.
std::string disagreement(const GroupOptions& options, const std::vector<std::string>& calls);

}  // namespace oar::distributed
