// Samples of labels and of their lengths.
#pragma once

#include <vector>

#include "oar/ops/core/registry.h"

namespace oar {

inline TensorSpec given(const std::vector<double>& values, const Shape& shape,
                        DType dtype = DType::Int64) {
  return fixed_values(values, shape, dtype);
}

}  // namespace oar
