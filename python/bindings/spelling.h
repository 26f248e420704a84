// PyTorch's names of arguments, which every function of the package takes beside Paddle's.
#pragma once

#include <span>
#include <string_view>

#include "common.h"

namespace oar::python {

// The parameters that a keyword may mean; a function has at most one of them. Empty if it means none.
std::span<const char* const> meanings_of(std::string_view keyword);

// Calls a function in a form that Paddle documents beside the signature: oar._spelling.call. Null if there is no such form.
Ref call_in_other_form(PyObject* function, PyObject* const* args, size_t count, PyObject* keywords);

void init_spelling(PyObject* module);

}  // namespace oar::python
