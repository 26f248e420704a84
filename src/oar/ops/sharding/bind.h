// A text rule bound to one call, and plans from decompositions: what plan_of is made of.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/sharding/plan.h"
#include "oar/ops/sharding/rule.h"

namespace OAR_API oar {

// Gives the axes of `plan` their factors, as the rule says for this call.
void bind_rule(const ShardRule& rule, const PlanCall& call);
// … as the decomposition of the op shows.
void derive_plan(const PlanCall& call);
// A piece of an op with such a plan, call by call (ShardPlan::by_calls).
struct Piece;
Outputs run_calls(const Op& op, Args args, const ShardPlan& plan, const Piece& piece);
// Has the record a rule of its own?
bool states_plan(const Op& op);
// … and gives it to the axes of `plan`.
void stated_plan(const PlanCall& call);
// The tensors of a call with every axis whole.
ShardPlan whole_plan(const Op& op, Args args, TensorList results);

// The same call on tensors without content.
Frame bare_call(Args args);

void install_planning_layer();

}  // namespace oar
