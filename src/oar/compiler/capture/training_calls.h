// Calls for training, while a program that stays open is written. Such a call has its counterpart for inference beside it,
// which a copy for inference takes. A branch or loop that contains some is written twice.
#pragma once

#include <optional>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"
#include "oar/compiler/capture/builder.h"

namespace OAR_API oar {

// The call of an op by the user, as a static graph has it. Nothing: it is like any other; dispatch it.
std::optional<Outputs> call_in_builder(Builder& builder, const Op& op, Args args);

// A branch or loop of the user: `write` calls the op that stands for it.
std::vector<Tensor> write_region_call(FunctionRef<std::vector<Tensor>()> write);

}  // namespace oar
