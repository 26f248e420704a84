// Sizes as divisors of tensors.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// The product of some sizes: a literal if they are known, else the result of an op that computes it
// when the program runs.
Tensor count_of(Dims sizes, DType dtype);
// … of the axes of x that a reduction sums over.
Tensor count_along(const Tensor& x, Ints axes);

// 16- and 8-bit floats as float32, for rules that would overflow or round between their steps.
Tensor widened(const Tensor& x);
// Back to the result's dtype.
Tensor narrowed(const Tensor& x, DType dtype);

}  // namespace oar
