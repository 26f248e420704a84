// What normalisations share.
#pragma once

#include <string_view>

#include "oar/ops/families/count.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/gen/shape.h"
#include "oar/tensor/tensor.h"

namespace oar {

// The dtype that statistics of x are kept in: at least float32.
DType wide_type(DType dtype);
// A statistic of an x of this dtype, as an operand of a derivative: in that precision, or in x's own.
void check_statistic(const Tensor& t, const char* argument, const Shape& shape, DType x);
// The axis of the channels of x in a format such as NCHW or NLC.
int64_t channel_axis_of(const Tensor& x, std::string_view data_format);

inline void check_channels(const Tensor& t, const char* name, Dim size) {
  if (!t.defined()) return;
  user_check(same(t.numel(), size), ErrorKind::InvalidArgument,
             "{} has shape {}; it must hold one number for each of {} channels.", name,
             to_string(t.dims()), size.str());
  user_check(is_floating(t.dtype()), ErrorKind::InvalidType, "{} has dtype {}; it must be a float.",
             name, name_of(t.dtype()));
}

// One number per channel, to be broadcast over x; and the other axes.
inline Tensor spread(const Tensor& t, const Tensor& x, int64_t axis) {
  Shape shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = x.dim(axis);
  return reshape(widened(t), shape);
}

inline SmallVector<int64_t, 6> other_axes(const Tensor& x, int64_t axis) {
  SmallVector<int64_t, 6> axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) axes.push_back(i);
  return axes;
}

// A gradient in the shape and dtype of its operand.
inline Tensor fitted(const Tensor& grad, const Tensor& like) {
  return like.defined() ? narrowed(reshape(grad, like.dims()), like.dtype()) : Tensor();
}

inline void check_affine(const Tensor& x, const Tensor& t, const char* name, Dim size,
                         const char* what) {
  if (!t.defined()) return;
  check_norm_parameter(x, t, name);
  user_check(same(t.numel(), size), ErrorKind::InvalidArgument,
             "{} has shape {}; it must hold one number for each of the {} {}.", name,
             to_string(t.dims()), size.str(), what);
  user_check(is_floating(t.dtype()), ErrorKind::InvalidType, "{} has dtype {}; it must be a float.",
             name, name_of(t.dtype()));
}

}  // namespace oar
