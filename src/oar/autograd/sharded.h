// Tensors that become sharded, are moved or taken apart. These record their gradients, which are the same the other way
// round. All processes of the mesh call them. See ops/sharding/sharded.h.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/sharding/sharded.h"

namespace OAR_API oar {

// x in a placement on a mesh. A plain x is what all processes have. On kAlone the result is the whole, as a plain tensor.
Tensor lay_out(const Tensor& x, int64_t mesh, const Placement& placement);
// The tensor of the shape `whole` whose piece in this process is x.
Tensor from_pieces(const Tensor& x, int64_t mesh, const Placement& placement, Dims whole);
// The piece of this process, as a plain tensor. The gradients of the processes are pieces of the gradient of x; those of
// one piece that several have must be equal.
Tensor piece_here(const Tensor& x);

// A gradient of t where t is: in the placement of t, and replicated where that is partial; plain if t is.
Tensor placed_like(const Tensor& t, Tensor gradient);

}  // namespace oar
