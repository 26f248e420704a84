#include <chrono>
#include <cstdio>

#include "oar/base/flags.h"
#include "oar/base/string_util.h"
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/print.h"
#include "oar/ir/verify.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/launch_queue.h"

namespace oar {
namespace {

// Constants are folded before calls are compared, so that equal constants are found; dead calls are removed last.
constexpr Pass kPasses[] = {
    {"canonicalise", "simplifies calls; removes calls that change nothing", canonicalise},
    {"fold_batch_norm", "folds batch norms of constants into the convolutions before them",
     fold_batch_norm, PassUse::Inference},
    {"fold_constants", "runs calls on constants alone once, now", fold_constants},
    {"simplify_regions",
     "runs passes inside branches and loops; replaces a branch with a constant index by its choice",
     simplify_regions},
    {"merge_common", "merges equal calls", merge_common},
    {"remove_dead", "removes calls whose results nothing reads", remove_dead},
    {"drop_traces", "removes what loops record for derivatives if nothing reads it", drop_traces,
     PassUse::Running},
    {"choose_layout", "puts the channels of images between convolutions last in memory",
     choose_layout, PassUse::Running},
    {"fuse_epilogues", "fuses elementwise calls with the product or convolution before them",
     fuse_epilogues, PassUse::Running},
    {"recompute", "recomputes cheap values in the derivative if memory is short", recompute,
     PassUse::Cutting},
    {"expand", "decomposes calls that no kernel accepts", expand, PassUse::Lowering},
    {"fuse", "makes one generated kernel of calls that are one loop", fuse, PassUse::Lowering},
};

// Every pass leaves fewer or simpler calls, so few rounds suffice; the bound is for a faulty pass.
constexpr int kMostRounds = 8;

bool run_rounds(Program& program, PassUse also, PassContext& context) {
  const LaunchNow now;  // passes read constants
  bool changed = true, any = false;
  for (int round = 0; changed && round < kMostRounds; ++round) {
    changed = false;
    for (const Pass& pass : kPasses)
      if (pass.use == PassUse::Always || pass.use == also)
        changed |= run_pass(pass, program, context);
    any |= changed;
  }
  return any;
}

bool run_rounds(Program& program, PassUse also) {
  PassContext context(program);
  return run_rounds(program, also, context);
}

void run_once(Program& program, PassUse use) {
  PassContext context(program);
  for (const Pass& pass : kPasses)
    if (pass.use == use) run_pass(pass, program, context);
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

bool run_pass(const Pass& pass, Program& program, PassContext& context) {
  if (context.options.is_off(pass.name)) return false;
  const auto begin = std::chrono::steady_clock::now();
  const bool changed = pass.run(program, context);
  if (changed) {
    program.renumber();
    context.changed();
  }
  if (tracing(Trace::Passes)) {
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "passes: %s: %s (%.0f us): %s\n", program.name.c_str(), pass.name,
                 taken.count(), changed ? to_text(program).c_str() : "nothing changed");
  }
  if (changed && context.options.verify)
    check_verified(program, ErrorKind::Internal,
                   format("the program {} after the pass {}", program.name, pass.name),
                   context.kind);
  return changed;
}

bool run_pass(const Pass& pass, Program& program) {
  PassContext context(program);
  return run_pass(pass, program, context);
}

const Pass& pass_named(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Pass& pass : kPasses) {
    if (pass.name == name) return pass;
    names.emplace_back(pass.name);
  }
  fail(ErrorKind::InvalidArgument, "there is no pass '{}'.\nhint: There are {}.", name,
       join(names, ", "));
}

bool optimise(Program& program) { return run_rounds(program, PassUse::Always); }

bool optimise_region(Program& program) {
  PassContext context(program);
  context.kind = ProgramKind::Region;
  return run_rounds(program, PassUse::Always, context);
}

void tune(Program& program) { run_rounds(program, PassUse::Running); }

void prepare_cut(Program& program) { run_once(program, PassUse::Cutting); }
void expand_for_kernels(Program& program) { run_once(program, PassUse::Lowering); }

Program for_inference(const Program& program) {
  Program copy = program;
  std::erase_if(copy.states, [&](const State& s) {
    if (s.written != kNoValue) return false;
    copy.constants.push_back({s.value, s.tensor});
    return true;
  });
  copy.renumber();
  run_rounds(copy, PassUse::Inference);
  return copy;
}

}  // namespace oar
