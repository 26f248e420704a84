// Tensors of which each process of a mesh holds a piece.
//
//   Tensor x = lay_out(whole, mesh, placement);   // autograd/sharded.h: every process has `whole`, and keeps its piece
//   sharded(x).local                              // the piece of this process
//   x.dims()                                      // of the whole
//
// Along the axes of the mesh, in order, each axis of a tensor is cut into pieces of one size, rounded up: the last
// ones are shorter, or empty. An axis of a tensor may be cut along several axes of the mesh; a later one cuts the
// piece that an earlier one made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/sharding/placement.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

// A grid of processes, as this process sees it.
struct ProcessMesh {
  std::string name;
  std::vector<std::string> axes;
  std::vector<int64_t> sizes;
  std::vector<int64_t> place;   // of this process, along each axis
  std::vector<int64_t> groups;  // of the processes along each axis that share the other places
  size_t rank() const { return sizes.size(); }
  int64_t count() const;  // of the processes
};

// Meshes have numbers, by which the attributes of ops name them. Number 0 is this process alone: a tensor on it is
// plain. The number of an equal mesh is given again.
int64_t add_mesh(ProcessMesh mesh);
const ProcessMesh& mesh_of(int64_t number);
constexpr int64_t kAlone = 0;

struct Part {
  int64_t start, size;
};
// The part of `size` elements at one of `count` places.
Part part_of(int64_t size, int64_t count, int64_t place);

class Sharded : public Payload {
 public:
  Sharded(Tensor piece, int64_t mesh_number, Placement where, bool copied)
      : local(std::move(piece)), mesh(mesh_number), placement(std::move(where)), is_copy(copied) {}
  const Tensor local;
  const int64_t mesh;
  const Placement placement;  // one entry for each axis of the mesh, in order
  // A view by its op, but its memory is not that of its base: it must not be written.
  const bool is_copy;
};

inline bool is_sharded(const Tensor& t) { return t.defined() && t.kind() == Kind::Distributed; }
const Sharded& sharded(const Tensor& t);

// "shard 0, replicate, partial sum" as the placement along each axis of a mesh; those left out replicate.
Placement read_placement(std::string_view text, int64_t mesh, int rank);
std::string placement_text(const Placement& placement);
Placement replicated_on(int64_t mesh);

// The part of an axis of a whole tensor that this process holds, by the first `count` axes of the mesh.
Part held_part(const ProcessMesh& mesh, const Placement& placement, size_t axis, int64_t size,
               size_t count);
Shape local_shape(Dims whole, int64_t mesh, const Placement& placement);

Tensor make_sharded(const Tensor& local, Dims whole, int64_t mesh, const Placement& placement,
                    bool is_copy = false);

// The layers that have acted before the pieces are computed.
constexpr uint32_t kAboveSharding = kDispatchMask & ~below(kDistributed);

// The piece of x in another placement on its mesh; a plain x is replicated. Called by all processes of the mesh.
Tensor moved_piece(const Tensor& x, int64_t mesh, const Placement& to);
// The pieces of all processes along one axis of the mesh, in order.
std::vector<Tensor> pieces_along(const Tensor& local, const ProcessMesh& mesh, size_t mesh_axis);
// All of the processes along one axis of the mesh combine what they have.
Tensor reduced_along(const Tensor& local, PartialBy by, const ProcessMesh& mesh, size_t mesh_axis);

void install_distribution_layer();

}  // namespace oar
