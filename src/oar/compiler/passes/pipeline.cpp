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

// Constants are folded before calls are compared, so that equal constants meet; what both leave over is removed last.
constexpr Pass kPasses[] = {
    {"canonicalise", "one form for calls that say the same; calls that change nothing go",
     canonicalise},
    {"fold_batch_norm", "batch norm of constants becomes part of the convolution in front of it",
     fold_batch_norm, PassUse::Inference},
    {"fold_constants", "calls on constants alone are made once", fold_constants},
    {"simplify_regions",
     "passes inside of branches and loops; a branch that is known takes the place of its choice",
     simplify_regions},
    {"merge_common", "of two equal calls one is enough", merge_common},
    {"remove_dead", "calls whose results nobody reads go", remove_dead},
    {"drop_traces", "what loops note for derivatives goes where nobody reads it", drop_traces,
     PassUse::Running},
    {"choose_layout", "images between convolutions have their channels last in memory",
     choose_layout, PassUse::Running},
    {"fuse_epilogues",
     "what is done to each element of a result becomes part of the call that makes it",
     fuse_epilogues, PassUse::Running},
    {"recompute", "cheap values are made again for the derivative where memory is short", recompute,
     PassUse::Cutting},
    {"expand", "calls that no kernel takes become their parts", expand, PassUse::Lowering},
};

// Every pass leaves fewer or simpler calls, so few rounds do; the bound is for a pass that errs.
constexpr int kMostRounds = 8;

bool run_rounds(Program& program, PassUse also, PassContext& context) {
  const LaunchNow now;  // constants are looked at
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
