// Which values of a decomposition are partial results if one class of axes is cut, where they are joined,
// and which calls follow on what was joined.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/sharding/classes.h"

namespace OAR_API oar {

// A value that the pieces hand over to the calls after the joining.
struct Handed {
  int value;
  Join join;
  int call = -1;  // that computed it, for Join::Again
};

struct CutCalls {
  SmallVector<Join, 3> joins;  // of the op's results
  std::vector<bool> late;      // by call: it runs once, after the joining
  std::vector<Handed> handed;  // what the late calls read of the others
};

// May operands that are only part of a sum (or a maximum) pass through a call, so that its result is one, too?
// `partial` marks them.
bool passes_partial(const Op& op, const ShardPlan& plan, const std::vector<bool>& partial,
                    Join join);

// None if the pieces of the class cannot be joined.
std::optional<CutCalls> cut_calls(const ShardTrace& trace, const Classes& classes, int cls);

}  // namespace oar
