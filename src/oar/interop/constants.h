// Constants of a graph, read and rearranged in memory. An op would be captured, and run again in each run.
#pragma once

#include <vector>

#include "oar/tensor/tensor.h"

namespace oar::interop {

// The elements of a dense tensor on the CPU, of an integer or floating dtype, in C order.
std::vector<double> numbers_in(const Tensor& constant);
std::vector<int64_t> integers_in(const Tensor& constant);
// The same elements with their axes in another order, in memory of their own.
Tensor permuted_copy(const Tensor& constant, const std::vector<int64_t>& order);
// In the order of the file, e.g. transposed by an earlier node.
Tensor in_c_order(const Tensor& constant);

}  // namespace oar::interop
