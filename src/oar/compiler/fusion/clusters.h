// Which calls of a program become one: groups that are one loop together, and that no other call stands between.
#pragma once

#include "oar/base/api.h"
#include "oar/compiler/fusion/loop.h"

namespace OAR_API oar {
namespace fusion {

struct Group {
  std::vector<size_t> calls;  // instructions that compute, in order
  Program region;             // they, and the views between them
  std::vector<ValueId> inputs, outputs;
  std::shared_ptr<const FusedLoop> loop;
  double bytes_saved = 0, seconds_saved = 0;  // in a run
};

// At known sizes. Groups of at least two calls.
std::vector<Group> find_groups(const Program& program);

// Puts a call in place of each group, and sorts the instructions so that each comes after what it reads.
void replace_groups(Program& program, const std::vector<Group>& groups);

}  // namespace fusion
}  // namespace oar
