// What loops and branches note for their derivatives, where the program has none that reads it. Only for
// programs that are to run: a derivative may still be made of others.
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

// How many results the call has before its trace.
size_t results_of(const Instruction& call) {
  size_t count = 0;
  for_each_program(call.attributes.args(), [&](const Closure& c) { count = c.outputs().size(); });
  return count;  // of the last program: a branch, or a loop's body
}

bool drop_trace(Instruction& call, const std::vector<int>& uses) {
  const int trace = call.op->schema().index_of("trace");
  if (trace < 0 || !call.attributes[static_cast<size_t>(trace)].as_bool()) return false;
  const size_t kept = results_of(call);
  for (size_t i = kept; i < call.results.size(); ++i)
    if (uses[static_cast<size_t>(call.results[i])] > 0) return false;
  if (kept == 0) return false;  // a program names calls by their results
  call.results.resize(kept);
  call.attributes.set(static_cast<size_t>(trace), Value(false));
  return true;
}

}  // namespace

bool drop_traces(Program& program) {
  const std::vector<int> uses = count_uses(program);
  bool changed = false;
  for (Instruction& call : program.body.instructions)
    if (has_regions(call)) changed |= drop_trace(call, uses);
  return changed;
}

}  // namespace oar
