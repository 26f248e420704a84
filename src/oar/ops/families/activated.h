// The activations that fused ops apply to each element after their sums. gelu is excluded for accuracy: oneDNN's has
// errors of 1e-6, ours of some units in the last place.
#pragma once

#include <string_view>

#include "oar/tensor/tensor.h"

namespace oar {

// Their names; the empty one leaves x as it is.
inline constexpr const char* kActivations[] = {"", "relu", "hardswish", "silu", "sigmoid", "tanh"};
inline constexpr const char* kOnlyRelu[] = {"relu"};

Tensor activated(const Tensor& x, std::string_view name);

}  // namespace oar
