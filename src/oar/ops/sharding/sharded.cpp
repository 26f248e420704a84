#include "oar/ops/sharding/sharded.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/ops/core/view.h"

namespace oar {
namespace {

struct Meshes {
  std::mutex mutex;
  std::deque<ProcessMesh> all{ProcessMesh{"alone", {}, {}, {}, {}}};  // never moved
};

// Never destroyed: at the exit of the process its threads may still be at work.
Meshes& meshes() {
  static Meshes& table = *new Meshes;
  return table;
}

bool equal(const ProcessMesh& a, const ProcessMesh& b) {
  return a.name == b.name && a.axes == b.axes && a.sizes == b.sizes && a.place == b.place &&
         a.groups == b.groups;
}

}  // namespace

int64_t ProcessMesh::count() const {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  return total;
}

int64_t add_mesh(ProcessMesh mesh) {
  const size_t rank = mesh.sizes.size();
  user_check(mesh.axes.size() == rank && mesh.place.size() == rank && mesh.groups.size() == rank,
             ErrorKind::InvalidArgument,
             "the mesh {} has {} axes, so it needs as many names, places and groups.", mesh.name,
             rank);
  for (size_t i = 0; i < rank; ++i)
    user_check(mesh.sizes[i] > 0 && mesh.place[i] >= 0 && mesh.place[i] < mesh.sizes[i],
               ErrorKind::InvalidArgument,
               "this process has the place {} of {} along the axis {} of {}.", mesh.place[i],
               mesh.sizes[i], mesh.axes[i], mesh.name);
  const std::lock_guard lock(meshes().mutex);
  auto& all = meshes().all;
  for (size_t i = 0; i < all.size(); ++i)
    if (equal(all[i], mesh)) return static_cast<int64_t>(i);
  all.push_back(std::move(mesh));
  return static_cast<int64_t>(all.size()) - 1;
}

const ProcessMesh& mesh_of(int64_t number) {
  const std::lock_guard lock(meshes().mutex);
  const auto& all = meshes().all;
  user_check(number >= 0 && number < static_cast<int64_t>(all.size()), ErrorKind::InvalidArgument,
             "there is no mesh {} in this process.", number);
  return all[static_cast<size_t>(number)];
}

Part part_of(int64_t size, int64_t count, int64_t place) {
  const int64_t step = (size + count - 1) / count;
  const int64_t start = std::min(place * step, size);
  return {start, std::min(step, size - start)};
}

const Sharded& sharded(const Tensor& t) {
  internal_check(is_sharded(t), "{} is not sharded", t.describe());
  return static_cast<const Sharded&>(*t->payload);
}

Placement replicated_on(int64_t mesh) {
  const ProcessMesh& on = mesh_of(mesh);
  Placement placement{on.name, {}};
  for (const std::string& axis : on.axes) placement.axes.push_back({axis});
  return placement;
}

Placement read_placement(std::string_view text, int64_t mesh, int rank) {
  Placement placement = replicated_on(mesh);
  const std::vector<std::string_view> items =
      trim(text).empty() ? std::vector<std::string_view>{} : split(text, ',');
  user_check(items.size() <= placement.axes.size(), ErrorKind::InvalidArgument,
             "there are {} placements, '{}', but the mesh {} has {} axes.", items.size(), text,
             placement.mesh, placement.axes.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const std::vector<std::string_view> words = split(trim(items[i]), ' ');
    MeshAxisPlacement& axis = placement.axes[i];
    if (words.size() == 1 && words[0] == "replicate") continue;
    const std::optional<PartialBy> by = words.size() == 2 ? partial_named(words[1]) : std::nullopt;
    if (words[0] == "partial" && by) {
      axis.kind = MeshAxisPlacement::Partial;
      axis.by = *by;
      continue;
    }
    const std::string number(words.size() == 2 ? words[1] : std::string_view());
    const bool digits =
        !number.empty() && number.size() < 4 &&
        std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
    user_check(words[0] == "shard" && digits, ErrorKind::InvalidArgument,
               "'{}' is no placement; one is 'shard 0', 'replicate' or 'partial sum'.", items[i]);
    axis.kind = MeshAxisPlacement::Shard;
    axis.axis = std::stoi(number);
  }
  if (placement.axes.empty()) return placement;
  const std::string wrong = placement.problem(rank);
  user_check(wrong.empty(), ErrorKind::InvalidArgument, "{}.", wrong);
  return placement;
}

std::string placement_text(const Placement& placement) {
  std::vector<std::string> items;
  for (const MeshAxisPlacement& a : placement.axes)
    items.push_back(a.kind == MeshAxisPlacement::Replicate ? "replicate"
                    : a.kind == MeshAxisPlacement::Shard   ? format("shard {}", a.axis)
                                                           : format("partial {}", name_of(a.by)));
  return join(items, ", ");
}

Part held_part(const ProcessMesh& mesh, const Placement& placement, size_t axis, int64_t size,
               size_t count) {
  Part held{0, size};
  for (size_t m = 0; m < count; ++m) {
    const MeshAxisPlacement& a = placement.axes[m];
    if (a.kind != MeshAxisPlacement::Shard || a.axis != static_cast<int32_t>(axis)) continue;
    const Part inside = part_of(held.size, mesh.sizes[m], mesh.place[m]);
    held = {held.start + inside.start, inside.size};
  }
  return held;
}

Shape local_shape(Dims whole, int64_t mesh, const Placement& placement) {
  const ProcessMesh& on = mesh_of(mesh);
  Shape shape(whole);
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_cut =
        std::any_of(placement.axes.begin(), placement.axes.end(), [&](const auto& a) {
          return a.kind == MeshAxisPlacement::Shard && a.axis == static_cast<int32_t>(i);
        });
    if (is_cut) shape[i] = held_part(on, placement, i, specialised(shape[i]), on.rank()).size;
  }
  return shape;
}

Tensor make_sharded(const Tensor& local, Dims whole, int64_t mesh, const Placement& placement,
                    bool is_copy) {
  internal_check(local.shape() == local_shape(whole, mesh, placement), "a piece {} of {}, {}",
                 local.describe(), to_string(whole), placement.str());
  Tensor t = Tensor::with_payload(Kind::Distributed, whole, local.dtype(), local.device(), 0,
                                  make_intrusive<Sharded>(local, mesh, placement, is_copy));
  t->storage = local->storage;  // its version counts the writes of the tensor, too
  return t;
}

}  // namespace oar
