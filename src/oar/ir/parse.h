// Programs from text: the inverse of `to_text`.
//
// Numbers in labels are labels only: values are renumbered in the order of their definitions.
// Whatever the text, the result is a program that `verify` accepts or an
// InvalidArgument error that names line, column and what was expected.
#pragma once

#include <functional>
#include <string_view>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

struct ParseOptions {
  // The tensor of a state, or of a constant whose values the text omits. Without it
  // states start as zeros, and such a constant is an error.
  std::function<Tensor(const std::string& name, const ValueType& type)> tensor;
};

Program parse_program(std::string_view text, const ParseOptions& options = {});

}  // namespace oar
