// What the backward half makes again instead of having it kept: memory for time.
#pragma once

#include <functional>

#include "oar/ir/program.h"

namespace oar {

// Bytes of values that are kept between the halves, open sizes at their hints. Inputs are the caller's.
int64_t bytes_kept(const Program& program, const std::vector<ValueId>& values);

// The values that have to be kept if these instructions, by index, run again.
using KeptValues = std::function<std::vector<ValueId>(const std::vector<bool>& again)>;

// Cheap instructions to run again, so that at most `most_bytes` are kept, or as little as there can be.
// Those that save the most bytes for their work come first.
std::vector<bool> choose_recomputed(const Program& program, const KeptValues& kept,
                                    int64_t most_bytes);

}  // namespace oar
