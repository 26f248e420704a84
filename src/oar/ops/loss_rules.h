// What losses share.
#pragma once

#include <string_view>

#include "oar/ops/samples.h"
#include "oar/tensor/tensor.h"

namespace oar {

void check_reduction(std::string_view reduction);
// The loss of each element, averaged, summed or as it is.
Tensor reduce_loss(const Tensor& loss, std::string_view reduction);

// An operand that the loss gives no gradient to.
inline TensorSpec fixed(TensorSpec spec) {
  spec.differentiable = false;
  return spec;
}

}  // namespace oar
