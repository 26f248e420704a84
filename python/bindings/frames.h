// Python frames: which of them are the user's, and under which name the user called an op.
#pragma once

#include <string>
#include <string_view>

#include "common.h"
#include "oar/compiler/segments/segment.h"

namespace oar::python {

// Whether code of this file is the user's: not of the package, not of Python.
bool is_users_file(std::string_view path);

// The innermost Python line of the user; none if the interpreter lock is not held.
SourceLine users_line();
// All of them, outermost first.
std::vector<SourceLine> users_lines();

// An op as the user called it: functions of the package call other ops than their names say.
struct CalledOp {
  std::string name;
  std::string signature;
};
CalledOp called_as(const Op& op);
// The same before any op is called; `otherwise` if the user's own code called directly.
std::string called_function(const char* otherwise);

}  // namespace oar::python
