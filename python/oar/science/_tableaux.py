"""Coefficients of the Runge-Kutta methods."""

from __future__ import annotations

from fractions import Fraction as Q

# Dormand and Prince 1980: order 5, with an error estimate of order 4. The last row is the step itself.
DOPRI5_C = [0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0]
DOPRI5_A = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]
DOPRI5_ERROR = [71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]
# The last coefficient of the interpolant of order 4: Hairer, Norsett and Wanner, Solving ODEs I, section II.6.
DOPRI5_DENSE = [-12715105075 / 11282082432, 0.0, 87487479700 / 32700410799, -10690763975 / 1880347072,
                701980252875 / 199316789632, -1453857185 / 822651844, 69997945 / 29380423]

# Kennedy and Carpenter 2003, ARK4(3)6L[2]SA: the implicit part. Order 4, L-stable; each stage after the first solves one
# equation with the same factor on the diagonal, and the last stage is the step.
ESDIRK_DIAGONAL = 1 / 4
ESDIRK_C = [0.0, 1 / 2, 83 / 250, 31 / 50, 17 / 20, 1.0]
_ESDIRK_ROWS = [
    [],
    [Q(1, 4)],
    [Q(8611, 62500), Q(-1743, 31250)],
    [Q(5012029, 34652500), Q(-654441, 2922500), Q(174375, 388108)],
    [Q(15267082809, 155376265600), Q(-71443401, 120774400), Q(730878875, 902184768), Q(2285395, 8070912)],
    [Q(82889, 524892), Q(0), Q(15625, 83664), Q(69875, 102672), Q(-2260, 8211)],
]
ESDIRK_A = [[float(entry) for entry in row] for row in _ESDIRK_ROWS]
_EMBEDDED = [Q(4586570599, 29645900160), Q(0), Q(178811875, 945068544), Q(814220225, 1159782912),
             Q(-3700637, 11593932), Q(61727, 225920)]
ESDIRK_ERROR = [float(b - e) for b, e in zip([*_ESDIRK_ROWS[5], Q(1, 4)], _EMBEDDED)]
