// What losses share.
#pragma once

#include <string_view>

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/samples.h"
#include "oar/ops/gen/control.h"
#include "oar/tensor/tensor.h"

namespace oar {

void check_reduction(std::string_view reduction);
// The loss of each element, averaged, summed or as it is.
Tensor reduce_loss(const Tensor& loss, std::string_view reduction);

// An operand that the loss gives no gradient to. A plain tensor has none that would have to be kept away.
inline Tensor without_tape(const Tensor& t) {
  const bool plain = !(t->flags & kDispatchMask) && !(t_layers.on & ~t_layers.off);
  return plain ? t : without_gradient(t);
}

// … as a sample.
inline TensorSpec fixed(TensorSpec spec) {
  spec.differentiable = false;
  return spec;
}

}  // namespace oar
