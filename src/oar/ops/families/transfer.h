// Copies of tensors from one device to another.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

// The tensor on the device: itself if it is already there, else a copy that autograd records.
Tensor to_device(const Tensor& x, Device device);

}  // namespace oar
