// Images as inputs of a model.
#pragma once

#include <string>

#include "oar/cli/model_inputs.h"

namespace oar::cli {

// The image of a JPEG or PNG file, with the size, layout, channels and dtype that the input has: a batch of one if it takes batches.
Tensor image_input(const std::string& file, const interop::Port& input,
                   const InputOptions& options);

}  // namespace oar::cli
