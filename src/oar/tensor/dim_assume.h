// Equalities that a rule requires, and sizes about which nothing can be assumed.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/dim.h"

namespace OAR_API oar {

// As `same`, for sizes that a call requires to be equal: if a capture records its assumptions, a possible equality
// is assumed regardless of the hints, and checked when the program runs. Sizes that a static
// program leaves open have no better hints.
bool assume_same(Dim a, Dim b);

// A size that depends on the values of tensors: it is known only at run time, so no assumption about it could be checked
// before.
Dim size_told_by_runs(std::string_view name, int64_t hint);
// Does the size depend on one of these?
bool is_told_by_runs(Dim d);

}  // namespace oar
