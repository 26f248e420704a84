// What normalisations share.
#pragma once

#include <string_view>

#include "oar/tensor/tensor.h"

namespace oar {

// The dtype that statistics of x are kept in: at least float32.
DType wide_type(DType dtype);
// A statistic of an x of this dtype, given back to a derivative: in that precision, or in x's own.
void check_statistic(const Tensor& t, const char* argument, const Shape& shape, DType x);
// Where the channels of x stand under a format such as NCHW or NLC.
int64_t channel_axis_of(const Tensor& x, std::string_view data_format);

}  // namespace oar
