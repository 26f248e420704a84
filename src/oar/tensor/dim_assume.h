// Equalities that a rule requires, and sizes about which nothing can be assumed.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/dim.h"

namespace OAR_API oar {

// As `same`, for sizes that a call requires to be equal: if a capture records its assumptions, a possible equality
// is assumed regardless of the hints, and checked when the program runs. Sizes that a static
// program leaves open have no better hints.
bool assume_same(Dim a, Dim b);
bool assume_same(const Shape& a, const Shape& b);

// As `same`, for a question of the user: an open size differs from every number, as Paddle's -1 does.
bool same_by_hints(Dim a, Dim b);

// A size that a static program leaves open: its hint says nothing, so it is assumed to equal the first number above 1 that a
// rule compares it with, as a -1 of Paddle does. That is checked when the program runs.
Dim open_size(std::string_view name, int64_t hint);

// A size that depends on the values of tensors: it is known only at run time, so no assumption about it could be checked
// before. `left_open`: of a static program, which takes it as it does the sizes that it leaves open.
Dim size_told_by_runs(std::string_view name, int64_t hint, bool left_open = false);
// Does the size depend on one of these?
bool is_told_by_runs(Dim d);

}  // namespace oar
