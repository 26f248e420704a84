"""Brent's method on floats and on arrays."""

from __future__ import annotations

import math
from collections.abc import Callable

from oar._lazy import np


def brent_number(f: Callable[[float], float], a: float, b: float, fa: float, fb: float, xtol: float) -> float:
    """A zero of a function of a float between a and b, where its values fa and fb differ in sign."""
    c, fc = a, fa
    step = before = b - a
    for _ in range(200):
        if fb * fc > 0:
            c, fc, step, before = a, fa, b - a, b - a
        if abs(fc) < abs(fb):
            a, b, c, fa, fb, fc = b, c, b, fb, fc, fb
        tolerance = 2 * 2.0**-52 * abs(b) + xtol / 2
        middle = (c - b) / 2
        if abs(middle) <= tolerance or fb == 0:
            return b
        if abs(before) >= tolerance and abs(fa) > abs(fb):
            s = fb / fa
            if a == c:
                p, q = 2 * middle * s, 1 - s
            else:
                q, r = fa / fc, fb / fc
                p, q = s * (2 * middle * q * (q - r) - (b - a) * (r - 1)), (q - 1) * (r - 1) * (s - 1)
            p, q = (p, -q) if p > 0 else (-p, q)
            if 2 * p < min(3 * middle * q - abs(tolerance * q), abs(before * q)):
                before, step = step, p / q
            else:
                before = step = middle
        else:
            before = step = middle
        a, fa = b, fb
        b += step if abs(step) > tolerance else math.copysign(tolerance, middle)
        fb = f(b)
    return b


def brent_array(f, a, b, fa, fb, xtol: float, limit: int):
    """Brent's method on arrays: every element takes its own decisions, and f is called once for all."""
    c, fc = a.copy(), fa.copy()
    step = b - a
    before = step.copy()
    where = np.where
    for _ in range(limit):
        reset = fb * fc > 0
        c, fc = where(reset, a, c), where(reset, fa, fc)
        step, before = where(reset, b - a, step), where(reset, b - a, before)
        swap = np.abs(fc) < np.abs(fb)
        a, b, c, fa, fb, fc = (where(swap, b, a), where(swap, c, b), where(swap, b, c),
                               where(swap, fb, fa), where(swap, fc, fb), where(swap, fb, fc))
        tolerance = 2 * np.finfo(b.dtype).eps * np.abs(b) + xtol / 2
        middle = (c - b) / 2
        done = (np.abs(middle) <= tolerance) | (fb == 0)
        if done.all():
            return b
        with np.errstate(all="ignore"):
            s, secant = fb / fa, a == c
            q3, r3 = fa / fc, fb / fc
            p = where(secant, 2 * middle * s, s * (2 * middle * q3 * (q3 - r3) - (b - a) * (r3 - 1)))
            q = where(secant, 1 - s, (q3 - 1) * (r3 - 1) * (s - 1))
            p, q = np.abs(p), where(p > 0, -q, q)
            fits = (np.abs(before) >= tolerance) & (np.abs(fa) > np.abs(fb))
            fits &= 2 * p < np.minimum(3 * middle * q - np.abs(tolerance * q), np.abs(before * q))
            before, step = where(fits, step, middle), where(fits, p / q, middle)
        a, fa = b, fb
        move = where(np.abs(step) > tolerance, step, np.copysign(tolerance, middle))
        b = where(done, b, b + move).astype(a.dtype)
        fb = where(done, fb, f(b))
    raise RuntimeError(f"[brentq] not every zero was found in {limit} iterations: the widest bracket has "
                       f"{float(np.abs(c - b).max()):.3g}. Raise maxiter or xtol.")
