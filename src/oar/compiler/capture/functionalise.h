// Functionalisation: writes and views of a captured function become values.
#pragma once

#include "oar/base/api.h"
#include "oar/ir/program.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

class Capture;

// A call from within a layer: through every layer except those that have seen the call already.
inline Outputs call_below_casts(const Op& op, Args args) {
  return proceed(op, args, kDispatchMask & ~uint32_t{kProfile | kAutocast});
}

// A call that writes: its functional counterpart, then new values for what is written.
Outputs functionalise_write(Capture& capture, const Op& op, Args args);

// The base after `view` has been written to the part that `op` selects.
Tensor put_view(const Op& op, const Frame& args, const Tensor& base, const Tensor& view);

}  // namespace oar
