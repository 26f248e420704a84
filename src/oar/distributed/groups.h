// The groups of this process, by their numbers. Group 0 is all processes.
#pragma once

#include <memory>

#include "oar/base/api.h"
#include "oar/distributed/process_group.h"

namespace OAR_API oar {
namespace distributed {

void add_group(int64_t number, std::shared_ptr<ProcessGroup> group);
// Null if there is none.
std::shared_ptr<ProcessGroup> find_group(int64_t number);
void remove_group(int64_t number);

// Registers the kernels of the collective ops.
void install_collectives();

}  // namespace distributed
}  // namespace oar
