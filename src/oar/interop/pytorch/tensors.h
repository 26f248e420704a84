// Tensors from their bytes, as archives describe them.
#pragma once

#include <string_view>
#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::pytorch {

struct Layout {
  DType dtype = DType::Float32;
  std::vector<int64_t> sizes, strides;  // in elements
  int64_t offset = 0;
};

// A copy in C order; an error if an element is outside of the bytes.
Tensor tensor_in(std::string_view bytes, const Layout& layout);

}  // namespace oar::pytorch
