// What `plan` and `localise` rules of records share.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {
namespace sharding {

// The result's axes are the first operand's, and each of them is a factor except those in `whole`.
void keep_axes(ShardPlan& plan, Ints whole = {});
// Each axis of the results is a separate factor: for results computed from attributes.
void made_axes(const PlanCall& call);
// "(ab)c -> a(bc)": the leading parts that axes have in common.
void reshaped(const PlanCall& call);
// x is broadcast to the shape of the result; new and broadcast axes are factors as well.
void stretched(const PlanCall& call);
// A reduction of the first operand over axes (None: all), kept or not.
void reduced(ShardPlan& plan, std::optional<Ints> axes, Join join);
// Updates of parameters: the tensors at one index of all the lists are cut in the same way.
void like_parameters(const PlanCall& call);
// The axes of the positions replace one axis of the table, which is a masked sum.
void looked_up(ShardPlan& plan, size_t table, size_t positions, size_t axis);

// Is this tensor of the plan cut?
bool cuts(const PieceCall& piece, const PlanTensor& tensor);
// The piece's size along an axis of a result, with the spare place of written positions.
Dim local_size(const PieceCall& piece, const PlanTensor& tensor, size_t axis);
// The parameter of this name holds the result's shape.
void set_result_shape(const PieceCall& piece, const char* parameter);
// … as a localise rule. A record's initialiser calls it, also in a deployed library, which drops the rule.
#if defined(OAR_DEPLOY)
inline LocaliseRule result_shape(const char*) { return {}; }
#else
LocaliseRule result_shape(const char* parameter);
#endif

}  // namespace sharding
}  // namespace oar
