// Passes: rewriting programs into equal ones that run faster.
#pragma once

#include <span>

#include "oar/ir/program.h"

namespace oar {

struct Pass {
  const char* name;
  const char* brief;
  bool (*run)(Program& program);  // answers whether it changed anything
  bool exact = true;              // false: results may differ by rounding
};

// All of them, in the order of the pipeline.
std::span<const Pass> passes();
const Pass& pass_named(std::string_view name);

// Runs the exact passes until nothing changes any more. The flag passes_off names passes to leave
// out. Answers whether anything changed.
bool optimise(Program& program);

// A program whose weights will not change any more: states that no run writes become constants, and
// all passes run.
Program for_inference(const Program& program);

// One each; the file of the pass says what it does.
bool canonicalise(Program& program);
bool fold_constants(Program& program);
bool merge_common(Program& program);
bool remove_dead(Program& program);
bool fold_batch_norm(Program& program);
bool simplify_regions(Program& program);

}  // namespace oar
