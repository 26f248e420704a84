// Passes rewrite programs into equivalent ones that run faster. docs/adding-a-pass.md shows how to add one.
#pragma once

#include <span>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

class PassContext;

enum class PassUse : uint8_t {
  Always,     // exact: results do not change, to the bit
  Running,    // for the available kernels; results may differ by rounding
  Inference,  // for constant weights; results may differ by rounding
  Cutting,    // exact: on a function with its derivative, before it is cut into halves
  Lowering,   // exact: at known sizes, last, for the device's kernels
};

struct Pass {
  const char* name;
  const char* brief;
  bool (*run)(Program& program, PassContext& context);  // returns whether it changed anything
  PassUse use = PassUse::Always;
};

// All of them, in the order of the pipeline.
std::span<const Pass> passes();
const Pass& pass_named(std::string_view name);

// Runs one pass, unless the options disable it, and verifies what it has changed. Returns whether it changed anything.
bool run_pass(const Pass& pass, Program& program, PassContext& context);
bool run_pass(const Pass& pass, Program& program);

// Runs the exact passes until nothing changes. The flag passes_off names passes to
// disable. Returns whether anything changed.
bool optimise(Program& program);
// … of a program inside another one, which knows its open sizes.
bool optimise_region(Program& program);

// For a program that will run: the passes for the available kernels, then the exact ones. A second call changes
// nothing.
void tune(Program& program);

// A program whose weights are frozen: states that no run writes become constants, and
// the passes for inference run too.
Program for_inference(const Program& program);

// A program at known sizes for the device's kernels: the passes for lowering.
void expand_for_kernels(Program& program);

// Runs the passes for a function with its derivative (backward.h) that is about to be cut.
void prepare_cut(Program& program);

// One each; the file of the pass says what it does.
bool canonicalise(Program& program, PassContext& context);
bool fold_constants(Program& program, PassContext& context);
bool merge_common(Program& program, PassContext& context);
bool remove_dead(Program& program, PassContext& context);
bool fold_batch_norm(Program& program, PassContext& context);
bool simplify_regions(Program& program, PassContext& context);
bool drop_traces(Program& program, PassContext& context);
bool choose_layout(Program& program, PassContext& context);
bool fuse_epilogues(Program& program, PassContext& context);
bool recompute(Program& program, PassContext& context);
bool expand(Program& program, PassContext& context);
bool fuse(Program& program, PassContext& context);

// Without a context: they need none.
bool remove_dead(Program& program);
// For files of other frameworks, which have the channels of images first.
bool put_channels_first(Program& program);

}  // namespace oar
