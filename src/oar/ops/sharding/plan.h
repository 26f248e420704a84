// The sharding plan of one call: which axes may be cut together, and how the pieces' results join.
//
//   ShardPlan plan = plan_of(get_op("matmul"), args);   // x [4, 6], y [6, 8]
//   plan.str()  "ab, bc -> ac ; a 4, b 6 sum, c 8"
//
// A *factor* is cut as one: every axis that belongs to it is cut at the same places, and each piece has
// all of every tensor without such an axis. An axis that belongs to no factor stays whole; axes of size 1
// always do. Plans come from the record: its text rule (ops/sharding/rule.h) bound to the call, its `plan`
// function, or else its decomposition. ops/sharding/pieces.h runs a piece.
#pragma once

#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

class Op;

// How a result is joined from the pieces of a factor.
enum class Join : uint8_t {
  Concat,  // the result has the factor: one piece after the other
  Same,    // every piece computes all of it
  Sum,
  Max,
  Min,
  Mean,    // a sum weighted by the pieces' sizes
  Again,   // the op itself, over the pieces stacked: a product of products
  Inside,  // what the decomposition computes of the pieces is joined, and its last calls follow: a sum of products divided by a sum
};

const char* name_of(Join join);  // "sum"; "" for Concat

struct PlanAxis {
  int factor = -1;  // none: stays whole
  // Elements of the axis for one of the factor: "(ab)" has factor a and `inner` b, so that only its
  // leading part is cut.
  Dim inner = 1;
};

struct PlanTensor {
  size_t parameter = 0;  // position in the schema: of a parameter, or of a result
  size_t element = 0;    // … and in its list
  Shape shape;
  SmallVector<PlanAxis, 6> axes;
};

struct PlanFactor {
  Dim size = 0;
  // For results without the factor.
  Join join = Join::Same;
  // One per result, where they differ; else empty.
  SmallVector<Join, 3> joins;
  // The operand that holds positions along the factor, or -1. A piece takes those that fall into it,
  // shifted. If the positions are read ("masked sum"), the others add nothing to its part of the sum. If
  // they are written, results have the factor, and the others go to a spare place after the piece's last.
  int positions = -1;
  // A piece is not one call of the op, but the calls of its decomposition, each as a piece of itself: for
  // calls that need other attributes or masks (random numbers, positions), which the op cannot pass on.
  bool by_calls = false;
};

struct ShardPlan {
  std::vector<PlanTensor> operands, results;  // lists flattened; None is left out
  std::vector<PlanFactor> factors;
  // The operand of a parameter; null if it is None.
  PlanTensor* operand(size_t parameter, size_t element = 0);
  const PlanTensor* operand(size_t parameter, size_t element = 0) const;
  Join join_of(size_t factor, size_t result) const;
  // Are positions along the factor written? Then a piece has a spare place.
  bool writes(size_t factor) const;

  // For rules. `put` ignores an axis of size 1.
  int add(Dim size, Join join = Join::Same);
  void put(PlanTensor& tensor, size_t axis, int factor, Dim inner = 1);
  // A new factor for two axes of one size.
  void pass(PlanTensor& from, size_t axis, PlanTensor& to, size_t to_axis);
  // Removes factors without an axis or with one element, and orders the others.
  void tidy();

  std::string str() const;
};

// A `plan` rule's context: `plan` has the tensors' shapes, with every axis whole.
struct PlanCall {
  const Op& op;
  Args args;
  ShardPlan& plan;
};

// A `localise` rule's context: the call of one piece, with its operands cut and the attributes of the
// whole, to be changed where the piece needs others.
struct PieceCall {
  const Op& op;
  Frame& frame;
  const ShardPlan& plan;  // of the whole call
  size_t factor;
  Dim start, size;  // in elements of the factor
};

// The arguments may be without content and have symbolic sizes.
ShardPlan plan_of(const Op& op, Args args);

}  // namespace oar
