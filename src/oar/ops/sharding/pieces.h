// One piece of a call that is cut along a factor of its plan, and the whole from all pieces.
#pragma once

#include <functional>
#include <vector>

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
// … if its operands are cut already. Of `whole`, only shapes, dtypes and attributes are read.
Outputs run_cut_piece(const Op& op, Args whole, const Frame& cut_call, const ShardPlan& plan,
                      const Piece& piece);
// The attributes of a piece, in a call with its operands cut.
Frame localised(const Op& op, const Frame& cut_call, const ShardPlan& plan, const Piece& piece);
// A reduction of what it gave for the pieces (Join::Again).
Tensor reduced_again(const Op& op, Args args, const std::vector<Tensor>& parts);

// One value from those that the pieces have at place `result` of what run_piece returns; op and args computed it.
using JoinPart = std::function<Tensor(Join join, size_t result, const Op& op, Args args)>;
// The results with Join::Inside, by the calls that follow the joining.
void finish_calls(const Op& op, Args whole, const ShardPlan& plan, size_t factor,
                  const JoinPart& join, Outputs& joined);
// The whole call's results from those of its pieces, in order.
Outputs join_pieces(const Op& op, Args args, const ShardPlan& plan, std::span<const Piece> pieces,
                    std::span<const Outputs> results);

}  // namespace oar
