// How a call on sharded tensors is cut along the axes of their mesh: so that least is sent.
#pragma once

#include <optional>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/sharding/pieces.h"
#include "oar/ops/sharding/sharded.h"

namespace OAR_API oar {

struct Choice {
  std::vector<std::vector<size_t>>
      factors;  // of the plan, by axis of the mesh; more than one if no tensor has two
  std::vector<std::optional<PartialBy>>
      parts;                        // by axis of the mesh: operands stay partial, so results are
  std::vector<Placement> operands;  // where each operand of the plan has to be
};

// The same on all processes of the mesh: it depends on what they all know.
Choice choose_cut(const Op& op, Args args, const ShardPlan& plan, int64_t mesh);
// Every operand whole.
Choice uncut(const ShardPlan& plan, int64_t mesh);

}  // namespace oar
