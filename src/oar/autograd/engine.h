// Running the tape backwards.
#pragma once

#include "oar/autograd/node.h"
#include "oar/base/api.h"

namespace OAR_API oar {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;  // record the backward pass itself, for higher derivatives
};

// Adds the gradients of the roots to the leaves' `grad`. An undefined cotangent means ones.
void backward(TensorList roots, TensorList cotangents = {}, BackwardOptions options = {});
// Does the backward pass of this thread retain the graph? Otherwise what a node has saved may
// be freed while it runs.
bool keeps_graph();
// How often this thread has called `backward`.
uint64_t backward_calls();

// Gradients of the outputs with respect to the inputs; leaves are not changed. For an input that the
// outputs do not depend on, an undefined tensor if `allow_unused`, else an error. Gradients do not pass
// through `no_grad_vars`.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList cotangents = {},
                         BackwardOptions options = {}, bool allow_unused = false,
                         TensorList no_grad_vars = {});

}  // namespace oar
