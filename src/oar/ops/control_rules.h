// Derivatives of the loops and branches of `control.cpp`: loops and branches again, whose programs are
// made from the derivatives of the given ones.
#pragma once

#include "oar/ops/op_def.h"
#include "oar/tensor/closure.h"

namespace oar {

// Both kinds of loop: a while_loop has no sequences.
struct Loop {
  TensorList carried, sequences, captured;
  const Closure& body;
  bool reverse = false;
};

// `outputs` and `cotangents` stand for the final values, the results of each round, and the values that
// each round began with. The gradients of carried, sequences, captured.
Grads loop_vjp(const Loop& loop, Dim rounds, TensorList trace, const VjpCall& call);

Grads switch_vjp(const Tensor& index, TensorList captured, ClosureList branches,
                 const VjpCall& call);
Made switch_jvp(const JvpCall& call);
Made while_jvp(const JvpCall& call);
Made scan_jvp(const JvpCall& call);

// Will the tape see a call on these? Then a loop hands out what its gradient needs.
bool is_recorded(std::initializer_list<TensorList> lists);

std::vector<Tensor> joined(std::initializer_list<TensorList> lists);

}  // namespace oar
