// Elementary functions. Polynomials are minimax fits over the interval that a reduction leaves; in double
// they are Taylor series. In float every function is within 2 units in the last place of the true value (erfinv 2.5, stanh 3),
// and exact for infinities, NaN and zeros of either sign (tests/python/test_numerics.py).
#pragma once

#include "oar/backend/cpu/simd/angles.h"
#include "oar/backend/cpu/simd/error_function.h"
#include "oar/backend/cpu/simd/exponentials.h"
#include "oar/backend/cpu/simd/gamma.h"
#include "oar/backend/cpu/simd/gelu.h"
#include "oar/backend/cpu/simd/logarithms.h"
#include "oar/backend/cpu/simd/pieces.h"
