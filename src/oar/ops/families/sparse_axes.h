// Forms of ops that change, cut or reduce the axes of sparse tensors.
#pragma once

#include "oar/ops/core/registry.h"

namespace oar {

// A form of an op: the call with sparse tensors.
using Form = Outputs (*)(const Op&, Args);

Outputs transpose_form(const Op& op, Args args);
Outputs reshape_form(const Op& op, Args args);
Outputs slice_form(const Op& op, Args args);
Outputs sum_form(const Op& op, Args args);
Outputs softmax_form(const Op& op, Args args);

inline Outputs one(Tensor t) {
  Outputs outputs;
  outputs.push_back(std::move(t));
  return outputs;
}

}  // namespace oar
