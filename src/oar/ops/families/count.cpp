#include "oar/ops/families/count.h"

#include "oar/ops/core/operators.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/reduction.h"

namespace oar {

Tensor count_of(Dims sizes, DType dtype) {
  const Dim count = Shape(sizes).numel();
  if (count.is_known()) return literal(static_cast<double>(count.word()));
  return product_of(sizes, dtype);
}

Tensor count_along(const Tensor& x, Ints axes) {
  Shape sizes;
  for (int64_t axis : axes) sizes.push_back(x.dims()[static_cast<size_t>(axis)]);
  return count_of(sizes, real_type_of(x.dtype()));
}

Tensor widened(const Tensor& x) {
  return is_floating(x.dtype()) && size_of(x.dtype()) < 4 ? cast(x, DType::Float32) : x;
}

Tensor narrowed(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

}  // namespace oar
