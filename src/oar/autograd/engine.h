// Running the tape backwards.
#pragma once

#include "oar/autograd/node.h"
#include "oar/base/api.h"

namespace OAR_API oar {

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;  // record the backward itself, for derivatives of derivatives
};

// Adds the gradients of the roots into the leaves' `grad`. An undefined cotangent is ones.
void backward(TensorList roots, TensorList cotangents = {}, BackwardOptions options = {});
// Does the backward that this thread is in leave the graph for another? What a node has saved may
// otherwise be freed while it works.
bool keeps_graph();
// How often this thread has called it.
uint64_t backward_calls();

// Gradients of the outputs with respect to the inputs; leaves stay as they are. An input that does
// not take part gives an undefined tensor if `allow_unused`, else an error. Gradients do not pass
// through `no_grad_vars`.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList cotangents = {},
                         BackwardOptions options = {}, bool allow_unused = false,
                         TensorList no_grad_vars = {});

}  // namespace oar
