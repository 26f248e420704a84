// A text rule bound to one call, and plans from decompositions: the parts of plan_of.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/sharding/plan.h"
#include "oar/ops/sharding/rule.h"

namespace OAR_API oar {

// Assigns factors to the axes of `plan`, by the rule bound to this call.
void bind_rule(const ShardRule& rule, const PlanCall& call);
// … by the decomposition of the op.
void derive_plan(const PlanCall& call);
// A piece of an op with such a plan, call by call (PlanFactor::by_calls). Its operands are cut already; `whole`
// tells their whole shapes.
struct Piece;
Outputs run_calls(const Op& op, Args whole, const Frame& cut_call, const ShardPlan& plan,
                  const Piece& piece);
// A piece of one call whose operands are cut already.
Outputs run_cut(const Op& op, const Frame& cut_call, const ShardPlan& plan, const Piece& piece);
// One value from those of the pieces; `place`, of the value, is for Concat, op and args for Again.
Tensor joined_parts(Join join, const PlanTensor* place, std::span<const Piece> pieces, Dim size,
                    std::vector<Tensor> parts, const Op& op, Args args);
// Does the record have its own rule?
bool states_plan(const Op& op);
// … applies it to the axes of `plan`.
void stated_plan(const PlanCall& call);
// The tensors of a call with every axis whole.
ShardPlan whole_plan(const Op& op, Args args, TensorList results);

// The same call on tensors without content.
Frame bare_call(Args args);
// … of a piece.
Frame bare_piece(const Op& op, Args args, const ShardPlan& plan, const Piece& piece);

void install_planning_layer();

}  // namespace oar
