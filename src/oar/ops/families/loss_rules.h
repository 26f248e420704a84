// What losses share.
#pragma once

#include <string_view>

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/samples.h"
#include "oar/ops/gen/control.h"
#include "oar/tensor/tensor.h"

namespace oar {

void check_reduction(std::string_view reduction);
// The loss of each element, averaged, summed or unchanged.
Tensor reduce_loss(const Tensor& loss, std::string_view reduction);

// An operand that gets no gradient from the loss. A plain tensor needs no detach.
inline Tensor without_tape(const Tensor& t) {
  const bool plain = !(t->flags & kDispatchMask) && !(t_layers.on & ~t_layers.off);
  return plain ? t : without_gradient(t);
}

// … as a sample.
inline TensorSpec fixed(TensorSpec spec) {
  spec.differentiable = false;
  return spec;
}

inline Samples pair_samples() {
  return Samples()
      .add(t({4, 3}), t({4, 3}))
      .add(t({2, 3}), t({2, 3}), "none")
      .add(t({2, 3}), t({3}), "sum")
      .add(t({}), t({}));
}

inline void check_alike(const Tensor& input, const Tensor& label) {
  user_check(same(input.shape(), label.shape()), ErrorKind::InvalidArgument,
             "input has shape {} and label {}; they must be equal.", to_string(input.dims()),
             to_string(label.dims()));
}

}  // namespace oar
