#include "oar/ops/sharding/plan.h"

namespace oar {

const char* name_of(Join join) {
  static constexpr const char* kNames[] = {"",    "same", "sum",   "max",
                                           "min", "mean", "again", "inside"};
  return kNames[static_cast<int>(join)];
}

}  // namespace oar
