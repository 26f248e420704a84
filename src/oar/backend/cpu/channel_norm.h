// Batch normalisation and scales of channels.
#pragma once

#include "oar/device/device.h"

namespace oar::cpu {

void batch_norm_train(KernelCall& call);
void batch_norm_train_grad(KernelCall& call);
void channel_affine(KernelCall& call);
void channel_affine_grad(KernelCall& call);

}  // namespace oar::cpu
