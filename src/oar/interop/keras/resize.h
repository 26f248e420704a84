// Sizes of images, as layers of Keras change them.
#pragma once

#include <string_view>

#include "oar/interop/keras/call.h"

namespace oar::keras {

// "nearest" or "bilinear", with pixels that have their place in their middle.
Tensor resize_axis(const Call& c, const Tensor& x, int64_t axis, int64_t to, std::string_view mode);

}  // namespace oar::keras
