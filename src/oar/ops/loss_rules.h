// What losses share.
#pragma once

#include <string_view>

#include "oar/tensor/tensor.h"

namespace oar {

void check_reduction(std::string_view reduction);
// The loss of each element, averaged, summed or as it is.
Tensor reduce_loss(const Tensor& loss, std::string_view reduction);

}  // namespace oar
