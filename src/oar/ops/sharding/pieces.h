// One piece of a call that is cut along a factor of its plan, and the whole from all pieces.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/sharding/plan.h"

namespace OAR_API oar {

struct Piece {
  size_t factor;
  Dim start, size;  // in elements of the factor
};

// The tensor of a call at a place of its plan.
const Tensor& tensor_at(Args args, const PlanTensor& place);
void set_tensor(Frame& frame, const PlanTensor& place, const Tensor& t);

// The piece's part of an operand or result.
Tensor cut(const Tensor& t, const PlanTensor& place, const Piece& piece);
// The call of a piece: operands cut, attributes as the piece needs them. Not for a factor that is cut by calls
// or has positions, whose pieces are more than a call.
Frame piece_call(const Op& op, Args args, const ShardPlan& plan, const Piece& piece);
// The results of a piece: parts of the whole's, or terms of their sum. With Join::Inside they are followed by
// what the last calls of the decomposition need.
Outputs run_piece(const Op& op, Args args, const ShardPlan& plan, const Piece& piece);
// The whole call's results from those of its pieces, in order.
Outputs join_pieces(const Op& op, Args args, const ShardPlan& plan, std::span<const Piece> pieces,
                    std::span<const Outputs> results);

}  // namespace oar
