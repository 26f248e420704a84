#include "oar/ops/sharding/placement.h"

#include <algorithm>

#include "oar/base/format.h"
#include "oar/base/string_util.h"

namespace oar {
namespace {

std::string text_of(const MeshAxisPlacement& a) {
  if (a.kind == MeshAxisPlacement::Replicate) return a.mesh_axis + ": replicate";
  if (a.kind == MeshAxisPlacement::Shard) return format("{}: shard {}", a.mesh_axis, a.axis);
  return format("{}: partial {}", a.mesh_axis, name_of(a.by));
}

}  // namespace

const char* name_of(PartialBy by) {
  switch (by) {
    case PartialBy::Max:
      return "max";
    case PartialBy::Min:
      return "min";
    case PartialBy::Mean:
      return "mean";
    case PartialBy::Prod:
      return "prod";
    default:
      return "sum";
  }
}

std::optional<PartialBy> partial_named(std::string_view word) {
  for (PartialBy by :
       {PartialBy::Sum, PartialBy::Max, PartialBy::Min, PartialBy::Mean, PartialBy::Prod})
    if (word == name_of(by)) return by;
  return std::nullopt;
}

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
  }
  return {};
}

}  // namespace oar
