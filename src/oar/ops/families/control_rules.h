// Derivatives of the loops and branches of `control.cpp`: loops and branches again, whose programs are
// made from the derivatives of the given ones.
#pragma once

#include "oar/ops/core/op_def.h"
#include "oar/tensor/closure.h"

namespace oar {

// ---- sizes -------------------------------------------------------------------------------------

// The axes of a loop's variable whose sizes change from round to round: the body gives others than it
// is given.
std::vector<int> changing_axes(const Closure& body, size_t variable);

// t, of which it is known that a run gives it this shape.
Tensor in_shape(const Tensor& t, const Shape& shape);

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
  Tensor random;  // [round, 2]: the place in the random stream
};

// `call.outputs` and `call.cotangents` stand for the final values, the results of each round, and the
// trace. The gradients of carried, sequences, captured, random.
Grads loop_vjp(const Loop& loop, Dim rounds, const LoopTrace& trace, const VjpCall& call);

Grads switch_vjp(const Tensor& index, TensorList captured, ClosureList branches,
                 const Tensor& random, const VjpCall& call);
Made switch_jvp(const JvpCall& call);
Made while_jvp(const JvpCall& call);
Made scan_jvp(const JvpCall& call);

// Will the tape see a call on these? Then a loop hands out what its gradient needs.
bool is_recorded(std::initializer_list<TensorList> lists);

std::vector<Tensor> joined(std::initializer_list<TensorList> lists);

}  // namespace oar
