// Removes what loops and branches record for their derivatives if the program never reads it. Only for
// programs that will run: other programs may still be differentiated.
#include "oar/compiler/passes/context.h"
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

bool drop_trace(Instruction& call, const Uses& uses) {
  if (!is_set(call, "trace")) return false;
  const size_t kept = results_of(call);
  for (size_t i = kept; i < call.results.size(); ++i)
    if (uses.count(call.results[i]) > 0) return false;
  if (kept == 0) return false;  // a program names calls by their results
  call.results.resize(kept);
  set_attribute(call, "trace", Value(false));
  return true;
}

}  // namespace

bool drop_traces(Program& program, PassContext& context) {
  bool changed = false;
  for (Instruction& call : program.body.instructions)
    if (has_regions(call)) changed |= drop_trace(call, context.uses());
  return changed;
}

}  // namespace oar
