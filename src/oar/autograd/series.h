// Taylor mode: power series in one variable are propagated through calls, at a cost that is polynomial in the order.
#pragma once

#include <vector>

#include "oar/autograd/transform.h"

namespace OAR_API oar {

// One list of coefficients per tensor: c[0] + c[1] t + c[2] t^2 + ...; an undefined coefficient is zero.
using Coefficients = std::vector<std::vector<Tensor>>;

// The coefficients of f(x(t)) up to `order`, all defined, for the coefficients of x(t).
Coefficients taylor(const TensorFunction& f, const Coefficients& inputs, int order);

}  // namespace oar
