// Equalities that a rule cannot do without.
#pragma once

#include "oar/tensor/dim.h"

namespace oar {

// As `same`, for sizes that a call needs to be equal: where a capture records its assumptions, an equality that is
// possible is taken for granted whatever the hints say, and checked when the program is run. Sizes that a static
// program leaves open have no better hints.
bool assume_same(Dim a, Dim b);

}  // namespace oar
