// The pass `fuse`: calls that together are one loop become one call of `fused`, which the code generator compiles.
#include <cstdio>

#include "oar/base/flags.h"
#include "oar/base/string_util.h"
#include "oar/compiler/fusion/clusters.h"
#include "oar/compiler/fusion/code.h"
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

void say(const Program& program, const fusion::Group& group) {
  std::vector<std::string> names;
  for (const size_t call : group.calls) names.push_back(program.body.instructions[call].op->name());
  std::fprintf(stderr, "fusion: %s: %s: one loop over %s, %.1f KiB less to move\n",
               program.name.c_str(), join(names, ", ").c_str(),
               to_string(group.loop->domain).c_str(), group.bytes_saved / 1024);
}

bool at_known_sizes(const Program& program) {
  for (const ProgramValue& value : program.values)
    if (!value.type.shape.is_known()) return false;
  return true;
}

}  // namespace

bool fuse(Program& program, PassContext& context) {
  static const FlagHandle<bool> on("fusion");
  if (!on.get() || !context.target.device.is_cpu() || !at_known_sizes(program)) return false;
  // The code generator is large, so it is loaded for a program that has work for it.
  if (fusion::is_known_missing()) return false;
  const std::vector<fusion::Group> groups = fusion::find_groups(program);
  std::string why;
  if (groups.empty() || !fusion::can_compile(&why)) {
    if (tracing(Trace::Fusion) && !why.empty()) std::fprintf(stderr, "fusion: %s\n", why.c_str());
    return false;
  }
  if (tracing(Trace::Fusion))
    for (const fusion::Group& group : groups) say(program, group);
  fusion::replace_groups(program, groups);
  remove_dead(program);
  return true;
}

}  // namespace oar
