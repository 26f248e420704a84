// Derivatives of the loops and branches of `control.cpp`: again loops and branches, whose programs are
// the derivatives of the original ones.
#pragma once

#include "oar/ops/core/op_def.h"
#include "oar/tensor/closure.h"

namespace oar {

// ---- sizes -------------------------------------------------------------------------------------

// The axes of a loop's variable whose sizes change between iterations: the body returns other sizes
// than it takes.
std::vector<int> changing_axes(const Closure& body, size_t variable);

// t, asserted to have this shape at run time.
Tensor in_shape(const Tensor& t, const Shape& shape);

// The type of one slice of t along its first axis.
Tensor row_like(const Tensor& t);

// ---- loops -------------------------------------------------------------------------------------

// Both kinds of loop: a while_loop has no sequences.
struct Loop {
  TensorList carried, sequences, captured;
  const Closure& body;
  bool reverse = false;
};

// What every round began with. The values of a variable are stacked. Where its size changes along an axis
// they stand one after another along it, and `rounds` has an entry for each variable of that kind:
// the round that every slice belongs to. Of a variable that changes along several axes there is nothing.
struct LoopTrace {
  // Of what a loop that was called with `trace` gives after its results.
  LoopTrace(const Closure& body, TensorList behind_results, size_t carried);
  TensorList values, rounds;
  Tensor random;  // [iteration, 2]: the position in the random stream
};

// `call.outputs` and `call.cotangents` stand for the final values, the results of each round, and the
// trace. The gradients of carried, sequences, captured, random.
Grads loop_vjp(const Loop& loop, Dim rounds, const LoopTrace& trace, const VjpCall& call);

Grads switch_vjp(const Tensor& index, TensorList captured, ClosureList branches,
                 const Tensor& random, const VjpCall& call);
Made switch_jvp(const JvpCall& call);
Made while_jvp(const JvpCall& call);
Made scan_jvp(const JvpCall& call);

// Will the tape record a call on these? Then a loop returns what its gradient needs.
bool is_recorded(std::initializer_list<TensorList> lists);

std::vector<Tensor> joined(std::initializer_list<TensorList> lists);

}  // namespace oar
