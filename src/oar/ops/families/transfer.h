// Tensors from one device to another.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// The tensor on the device: itself where it is there already, else a copy that autograd follows.
Tensor to_device(const Tensor& x, Device device);

}  // namespace oar
