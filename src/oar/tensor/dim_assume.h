// Equalities that a rule requires, and sizes about which nothing can be assumed.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/dim.h"

namespace OAR_API oar {

// As `same`, for sizes that a call requires to be equal: if a capture records its assumptions, a possible equality
// is assumed regardless of the hints, and checked when the program runs. Sizes that a static
// program leaves open have no better hints.
bool assume_same(Dim a, Dim b);

// The hint of a size that a static program leaves open: no size that people write down.
inline constexpr int64_t kOpenHint = 97;
// Is one a known size and the other made of such sizes only, so that they can be assumed to be equal? Then this is assumed. To
// be asked before anything else about them: `same` would record that they differ, since hints say nothing here.
bool assume_open_beside_known(Dim a, Dim b);

// A size that depends on the values of tensors: it is known only at run time, so no assumption about it could be checked
// before.
Dim size_told_by_runs(std::string_view name, int64_t hint);
// Does the size depend on one of these?
bool is_told_by_runs(Dim d);

}  // namespace oar
