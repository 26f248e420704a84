#include "oar/ir/placement.h"

#include <algorithm>

#include "oar/base/format.h"
#include "oar/base/string_util.h"

namespace oar {
namespace {

std::string text_of(const MeshAxisPlacement& a) {
  if (a.kind == MeshAxisPlacement::Replicate) return a.mesh_axis + ": replicate";
  if (a.kind == MeshAxisPlacement::Shard) return format("{}: shard {}", a.mesh_axis, a.axis);
  return format("{}: partial {}", a.mesh_axis, name_of(a.join));
}

bool joins_partial_results(Join join) {
  return join == Join::Sum || join == Join::Max || join == Join::Min || join == Join::Mean;
}

}  // namespace

std::string Placement::str() const {
  std::vector<std::string> items;
  for (const MeshAxisPlacement& a : axes) items.push_back(text_of(a));
  return format("on {}({})", mesh, join(items, ", "));
}

std::string Placement::problem(int rank) const {
  if (axes.empty()) return format("the mesh {} has no axes", mesh);
  for (size_t i = 0; i < axes.size(); ++i) {
    const MeshAxisPlacement& a = axes[i];
    const auto same = [&](const MeshAxisPlacement& b) { return b.mesh_axis == a.mesh_axis; };
    if (std::any_of(axes.begin(), axes.begin() + static_cast<ptrdiff_t>(i), same))
      return format("the axis {} of the mesh {} is placed twice", a.mesh_axis, mesh);
    if (a.kind == MeshAxisPlacement::Shard && (a.axis < 0 || a.axis >= rank))
      return format("axis {} is cut along {}, but the value has {} axes", a.axis, a.mesh_axis,
                    rank);
    if (a.kind == MeshAxisPlacement::Partial && !joins_partial_results(a.join))
      return format("partial results along {} are not joined by {}", a.mesh_axis, name_of(a.join));
  }
  return {};
}

}  // namespace oar
