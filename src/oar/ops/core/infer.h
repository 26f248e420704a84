// Inference rules that many ops share, and the checks inside them.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {

// NumPy's broadcasting, on dims.
Shape broadcast_shapes(const Shape& a, const Shape& b);

// Axes as a user passes them (None: all), made positive, sorted, without repetition.
SmallVector<int64_t, 6> normalise_axes(std::optional<Ints> axes, int rank,
                                       const char* argument = "axis");
// The shape after reducing these axes.
Shape reduced_shape(const Shape& shape, Ints axes, bool keepdim);
// A list of `count` numbers from one number or a full list: stride=2 means (2, 2).
SmallVector<int64_t, 6> expand_ints(Ints given, size_t count, const char* argument);
// Resolves 0 (copy) and -1 (the rest) of a reshape.
Shape resolve_reshape(const Shape& from, Dims wanted);

namespace infer {
// Shape and dtype of the first tensor.
Metas same_as_first(const Args& args);
// Its shape, as bool.
Metas bool_like_first(const Args& args);
// Its shape, with the float type of a complex input.
Metas real_like_first(const Args& args);
inline TensorMeta like(const Tensor& t) { return {t.dtype(), t.shape(), false}; }

// Checks of an operand that must fit others: a cotangent has the type of its result, a saved result
// the type that inference returned. An optional one that is None fits.
void check_type(const Tensor& t, const char* argument, const TensorMeta& wanted);
void check_shape(const Tensor& t, const char* argument, const Shape& wanted);
void check_dtype(const Tensor& t, const char* argument, DType wanted);
}  // namespace infer

}  // namespace oar
