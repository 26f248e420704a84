// Programs from text: the inverse of `to_text`.
//
// Labels of values that are numbers are labels only: values are numbered anew, in the order of their
// definitions. Whatever the text says, the answer is a program that `verify` accepts or an
// InvalidArgument error that names line, column and what was expected.
#pragma once

#include <functional>
#include <string_view>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

struct ParseOptions {
  // The tensor behind a state, or behind a constant whose values the text leaves out. Without it
  // states start as zeros, and such a constant is an error.
  std::function<Tensor(const std::string& name, const ValueType& type)> tensor;
};

Program parse_program(std::string_view text, const ParseOptions& options = {});

}  // namespace oar
