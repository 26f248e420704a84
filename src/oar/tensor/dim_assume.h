// Equalities that a rule cannot do without, and sizes about which nothing can be assumed.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/dim.h"

namespace OAR_API oar {

// As `same`, for sizes that a call needs to be equal: where a capture records its assumptions, an equality that is
// possible is taken for granted whatever the hints say, and checked when the program is run. Sizes that a static
// program leaves open have no better hints.
bool assume_same(Dim a, Dim b);

// A size that depends on the values of tensors: only a run tells it, so that no assumption about it could be checked
// before.
Dim size_told_by_runs(std::string_view name, int64_t hint);
// Does the size depend on such a one?
bool is_told_by_runs(Dim d);

}  // namespace oar
