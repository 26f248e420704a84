// Parts of a program that the device's own compiler takes.
#pragma once

#include "oar/base/api.h"
#include "oar/device/device.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// Instructions [begin, end) that may run as one launch: what they read from before, and what is read of them later.
struct Cluster {
  size_t begin = 0, end = 0;
  std::vector<ValueId> inputs, outputs;
};

// The longest stretches of calls that only compute; none for a device without a compiler.
std::vector<Cluster> clusters_of(const Program& program, Device device);

// The cluster as a program of its own, as text.
std::string text_of(const Program& program, const Cluster& cluster);

// The cluster as a kernel on tensors that are laid out like these; null where the device declines.
std::shared_ptr<const oar_kernel> compiled(const Program& program, const Cluster& cluster,
                                           TensorList inputs, TensorList outputs, Device device);

// What launches of clusters are calls of: cluster(Tensor[] operands) -> Tensor[].
const Op& cluster_op();

}  // namespace oar
