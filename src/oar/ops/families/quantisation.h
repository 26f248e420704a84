// The layer for tensors that are packed below a byte or carry scales.
#pragma once

namespace oar {

// From here on: ops with Trait::Packed and views take packed tensors; a cast to a float applies the scales of
// a tensor that has some; everything else is rejected, because it would compute with the wrong numbers.
void install_quantised_layer();

}  // namespace oar
