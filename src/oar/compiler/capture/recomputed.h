// A block of calls whose values the derivative computes again: a program then need not keep them.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "oar/autograd/saved.h"
#include "oar/ir/program.h"

namespace oar {

class Capture;

// What the derivative reads instead of the values of a block.
struct RecomputedValues {
  uint64_t capture = 0;                        // serial number
  size_t first = 0;                            // the first call of the block
  size_t scanned = 0;                          // the calls before it are in `makers`
  std::unordered_map<ValueId, size_t> makers;  // the calls of the block that can be repeated
  std::unordered_map<ValueId, ValueId> again;  // results of repeated calls
  std::unordered_map<ValueId, ValueId> marked;
};

// While alive, the tape keeps none of the values that calls of the capture compute, except those that cannot be computed
// again: random numbers, and sizes that depend on values. They are read from the first run, so no bit changes.
class RecomputedBlock {
 public:
  explicit RecomputedBlock(Capture& capture);

 private:
  const SavedTensorHook hook_;
};

}  // namespace oar
