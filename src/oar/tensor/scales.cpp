#include "oar/tensor/scales.h"

#include "oar/base/error.h"

namespace oar {
namespace {

void check_fit(const Tensor& x, const Tensor& companion, const char* name) {
  user_check(
      companion.rank() == x.rank(), ErrorKind::InvalidArgument,
      "{} has shape {}, but x of shape {} has {} axes.\nhint: {} needs a size for each axis of x: "
      "1 for one value along the whole axis.",
      name, to_string(companion.dims()), to_string(x.dims()), x.rank(), name);
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t parts = companion->shape[i], size = x->shape[i];
    user_check(
        parts > 0 ? size % parts == 0 : size == 0, ErrorKind::InvalidArgument,
        "{} has {} values along axis {}, which do not divide its {} elements into equal blocks.",
        name, parts, i, size);
  }
}

}  // namespace

Tensor with_scales(const Tensor& x, const Tensor& scale, const Tensor& zero_point) {
  user_check(x.defined() && x.is_dense() && scale.defined() && scale.is_dense() &&
                 is_floating(scale.dtype()),
             ErrorKind::InvalidArgument,
             "scales are dense floats on a dense tensor; x is {} and scale is {}.", x.describe(),
             scale.describe());
  check_fit(x, scale, "scale");
  if (zero_point.defined()) {
    user_check(zero_point.shape() == scale.shape(), ErrorKind::InvalidArgument,
               "zero_point has shape {} and scale {}; they must be equal.",
               to_string(zero_point.dims()), to_string(scale.dims()));
    check_fit(x, zero_point, "zero_point");
  }
  Tensor t(x->alias());
  const auto scales = make_intrusive<Scales>(scale, zero_point);
  t->scales = scales.get();
  t->payload = scales;
  t->flags |= kQuantised;
  return t;
}

Tensor without_scales(const Tensor& x) {
  Tensor t(x->alias());
  t->scales = nullptr;
  t->payload = {};
  if (!is_packed(t.dtype())) t->flags &= ~uint32_t{kQuantised};
  return t;
}

const Scales* scales_of(const Tensor& x) {
  return x->scales ? static_cast<const Scales*>(x->scales) : nullptr;
}

}  // namespace oar
