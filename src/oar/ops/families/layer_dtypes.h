// Which dtypes a layer's input and its parameters may have together. Unlike sums and products, a layer does not
// promote: a float64 array from NumPy in a float32 network is a mistake that should be reported.
#pragma once

#include "oar/base/error.h"
#include "oar/tensor/tensor.h"

namespace oar {

inline void check_parameter(const Tensor& x, const Tensor& parameter, const char* name) {
  user_check(
      !parameter.defined() || parameter.dtype() == x.dtype(), ErrorKind::InvalidArgument,
      "x has dtype {} and {} {}; they must be equal.\nhint: Cast the input first, for example "
      "x.astype('{}').",
      name_of(x.dtype()), name, name_of(parameter.dtype()), name_of(parameter.dtype()));
}

// Statistics and scales of inputs in 16 bits may be float32.
inline void check_norm_parameter(const Tensor& x, const Tensor& parameter, const char* name) {
  const bool wider =
      parameter.defined() && size_of(x.dtype()) == 2 && parameter.dtype() == DType::Float32;
  if (!wider) check_parameter(x, parameter, name);
}

}  // namespace oar
