#include "oar/ops/families/reduce_rules.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/samples.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/shape.h"

namespace oar {

Metas reduced(const Tensor& x, std::optional<Ints> axis, bool keepdim, DType dtype) {
  return TensorMeta{dtype, reduced_shape(x.shape(), Ints(normalise_axes(axis, x.rank())), keepdim)};
}

Tensor stretch(const Tensor& kept, const Tensor& x, std::optional<Ints> axis) {
  const Shape shape = reduced_shape(x.shape(), Ints(normalise_axes(axis, x.rank())), true);
  return broadcast_to(reshape(kept, shape), x.dims());
}

}  // namespace oar
