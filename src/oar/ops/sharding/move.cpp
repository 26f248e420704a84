// From one placement to another: calls of the collective ops on pieces.
#include <algorithm>

#include "oar/base/string_util.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/collective.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/sharded.h"

namespace oar {
namespace {

using Axis = MeshAxisPlacement;

Tensor range_of(const Tensor& x, size_t axis, int64_t start, int64_t size) {
  if (start == 0 && x.dims()[axis] == Dim(size)) return x;
  SliceIndex index;
  index.skip(static_cast<int64_t>(axis)).range(start, start + size);
  return slice_view(x, index);
}

// With zeros after the last element of an axis.
Tensor extended(const Tensor& x, size_t axis, int64_t size) {
  Shape more = x.shape();
  if (more[axis] == Dim(size)) return x;
  more[axis] = Dim(size) - more[axis];
  return concat(std::vector{x, zeros(more, x.dtype())}, static_cast<int64_t>(axis));
}

// One part for each process, in a new first axis.
Tensor in_parts(const Tensor& x, size_t axis, int64_t count, int64_t step) {
  const Tensor full = extended(x, axis, count * step);
  Shape shape = full.shape();
  shape[axis] = step;
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), Dim(count));
  return moveaxis(reshape(full, shape), {static_cast<int64_t>(axis)}, {0});
}

// … one after the other along an axis, without what was added.
Tensor from_parts(const Tensor& parts, size_t axis, int64_t size) {
  const Tensor moved = moveaxis(parts, {0}, {static_cast<int64_t>(axis)});
  Shape shape = parts.shape();
  shape[axis + 1] = shape[0] * shape[axis + 1];
  shape.erase(shape.begin());
  return range_of(reshape(moved, shape), axis, 0, size);
}

int64_t step_of(int64_t size, int64_t count) { return (size + count - 1) / count; }

const char* reduction_by(PartialBy by) { return by == PartialBy::Mean ? "avg" : name_of(by); }

// What the other processes have of a value that one of them keeps.
Tensor neutral(const Tensor& x, PartialBy by) {
  if (by == PartialBy::Sum) return zeros_like(x);
  return by == PartialBy::Prod ? ones_like(x) : x;
}

class Move {
 public:
  Move(const Tensor& local, Dims whole, const ProcessMesh& mesh, Placement from)
      : local_(local), whole_(whole), mesh_(mesh), now_(std::move(from)) {}

  Tensor run(const Placement& to) {
    const std::vector<bool> undone = conflicts(to);
    const bool any = std::find(undone.begin(), undone.end(), true) != undone.end();
    const Axis replicate;
    for (size_t m = mesh_.rank(); m-- > 0;)
      if (any ? undone[m] : !alike(now_.axes[m], to.axes[m])) step(m, any ? replicate : to.axes[m]);
    for (size_t m = 0; m < mesh_.rank(); ++m)
      if (!alike(now_.axes[m], to.axes[m])) step(m, to.axes[m]);
    return local_;
  }

 private:
  static bool alike(const Axis& a, const Axis& b) {
    return a.kind == b.kind && (a.kind != Axis::Shard || a.axis == b.axis) &&
           (a.kind != Axis::Partial || a.by == b.by);
  }
  static bool cuts(const Axis& a, const Axis& other) {
    return a.kind == Axis::Shard && other.kind == Axis::Shard && a.axis == other.axis;
  }

  // A later axis of the mesh cuts pieces that an earlier one makes. So if the placement along the earlier one
  // changes, the later one has to be whole meanwhile; and then both change in two steps.
  std::vector<bool> conflicts(const Placement& to) const {
    std::vector<bool> undone(mesh_.rank());
    bool any = false;
    for (size_t m = 0; m < mesh_.rank(); ++m) {
      if (alike(now_.axes[m], to.axes[m]) && !undone[m]) continue;
      for (size_t k = m + 1; k < mesh_.rank(); ++k)
        for (const Axis& mine : {now_.axes[m], to.axes[m]})
          for (const Axis& theirs : {now_.axes[k], to.axes[k]})
            if (cuts(mine, theirs)) undone[k] = any = true;
    }
    for (size_t m = 0; m < mesh_.rank() && any; ++m)
      undone[m] = undone[m] || !alike(now_.axes[m], to.axes[m]);
    return undone;
  }

  // The size of an axis of the piece that the axes of the mesh before `m` leave.
  int64_t size_before(size_t m, size_t axis) const {
    return held_part(mesh_, now_, axis, specialised(whole_[axis]), m).size;
  }

  void step(size_t m, const Axis& to) {
    const Axis from = now_.axes[m];
    if (mesh_.sizes[m] > 1) {
      if (from.kind == Axis::Partial && to.kind == Axis::Shard) {
        scatter(m, to, from.by);
      } else if (from.kind == Axis::Shard && to.kind == Axis::Shard) {
        exchange(m, static_cast<size_t>(from.axis), static_cast<size_t>(to.axis));
      } else {
        if (from.kind == Axis::Partial) local_ = reduced_along(local_, from.by, mesh_, m);
        if (from.kind == Axis::Shard) gather(m, static_cast<size_t>(from.axis));
        if (to.kind == Axis::Shard) keep_part(m, static_cast<size_t>(to.axis));
        if (to.kind == Axis::Partial && mesh_.place[m] > 0) local_ = neutral(local_, to.by);
      }
    }
    const std::string name = now_.axes[m].mesh_axis;
    now_.axes[m] = to;
    now_.axes[m].mesh_axis = name;
  }

  void gather(size_t m, size_t axis) {
    const int64_t count = mesh_.sizes[m], size = size_before(m, axis);
    const Tensor mine = extended(local_, axis, step_of(size, count));
    local_ = from_parts(all_gather(mine, mesh_.groups[m], count), axis, size);
  }

  void keep_part(size_t m, size_t axis) {
    const Part part = part_of(size_before(m, axis), mesh_.sizes[m], mesh_.place[m]);
    local_ = range_of(local_, axis, part.start, part.size);
  }

  void scatter(size_t m, const Axis& to, PartialBy by) {
    const auto axis = static_cast<size_t>(to.axis);
    const int64_t count = mesh_.sizes[m], size = size_before(m, axis);
    const Tensor parts = in_parts(local_, axis, count, step_of(size, count));
    local_ = range_of(reduce_scatter(parts, reduction_by(by), mesh_.groups[m], count), axis, 0,
                      part_of(size, count, mesh_.place[m]).size);
  }

  void exchange(size_t m, size_t from, size_t to) {
    const int64_t count = mesh_.sizes[m];
    const int64_t given = size_before(m, from), wanted = size_before(m, to);
    const Tensor rows = extended(local_, from, step_of(given, count));
    const Tensor parts = in_parts(rows, to, count, step_of(wanted, count));
    const Tensor got = from_parts(all_to_all(parts, mesh_.groups[m], count), from, given);
    local_ = range_of(got, to, 0, part_of(wanted, count, mesh_.place[m]).size);
  }

  Tensor local_;
  const Shape whole_;
  const ProcessMesh& mesh_;
  Placement now_;
};

}  // namespace

Tensor reduced_along(const Tensor& local, PartialBy by, const ProcessMesh& mesh, size_t mesh_axis) {
  const int64_t count = mesh.sizes[mesh_axis];
  return count == 1 ? local : all_reduce(local, reduction_by(by), mesh.groups[mesh_axis], count);
}

std::vector<Tensor> pieces_along(const Tensor& local, const ProcessMesh& mesh, size_t mesh_axis) {
  const int64_t count = mesh.sizes[mesh_axis];
  if (count == 1) return {local};
  const Tensor all = all_gather(local, mesh.groups[mesh_axis], count);
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < count; ++i) pieces.push_back(slice_view(all, SliceIndex().at(i)));
  return pieces;
}

Tensor moved_piece(const Tensor& x, int64_t mesh, const Placement& to) {
  const LayersOff above(kAboveSharding);
  if (!is_sharded(x)) return Move(x, x.dims(), mesh_of(mesh), replicated_on(mesh)).run(to);
  const Sharded& from = sharded(x);
  const bool same_mesh = from.mesh == mesh;
  const Tensor moved = Move(from.local, x.dims(), mesh_of(from.mesh), from.placement)
                           .run(same_mesh ? to : replicated_on(from.mesh));
  return same_mesh ? moved : Move(moved, x.dims(), mesh_of(mesh), replicated_on(mesh)).run(to);
}

}  // namespace oar
