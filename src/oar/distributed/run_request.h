// One request, carried out by an engine.
#pragma once

#include "oar/distributed/backend.h"
#include "oar/distributed/process_group.h"

namespace oar::distributed {

// An Error if the pieces of a request do not fit each other.
void check_request(const Request& request, int size);
void run_request(Backend& backend, const Request& request, int rank, int size,
                 Milliseconds timeout);
// … in a group of one.
void run_alone(const Request& request);

// "all_reduce of float32[4, 7]"
std::string describe(const Request& request);
// The same, with all that must be the same on all ranks and nothing else.
std::string describe_for_check(const Request& request);

}  // namespace oar::distributed
