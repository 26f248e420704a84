// The activations that fused ops do to each element behind their sums. gelu is none of them: oneDNN's is good to 1e-6,
// ours to some units in the last place.
#pragma once

#include <span>
#include <string_view>

#include "oar/tensor/tensor.h"

namespace oar {

// Their names; the empty one leaves x as it is.
std::span<const char* const> activation_names();
Tensor activated(const Tensor& x, std::string_view name);

}  // namespace oar
