"""Small functions that several distributions need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oar
from oar._C import ops
from oar.distribution._limits import smallest

if TYPE_CHECKING:
    from oar._C import Tensor

__all__ = ["gamma_sample", "log_gamma_sample", "sum_rightmost", "xlogy"]


def sum_rightmost(value: Tensor, count: int) -> Tensor:
    """The sum over the last ``count`` axes."""
    return value.sum(list(range(-count, 0))) if count else value


def xlogy(x: Tensor, y: Tensor) -> Tensor:
    """``x * log(y)``, and 0 where both are 0; the derivative by x stays log(y)."""
    return x * oar.where((x == 0) & (y == 0), oar.ones_like(y), y).log()


def gamma_sample(concentration: Tensor) -> Tensor:
    """Draw from gamma distributions of rate 1. Gradients flow to the concentration.

    The cumulative distribution F(a, z) of a draw z does not depend on a, hence dz/da = -F_a / F_z.
    """
    with oar.no_grad():
        drawn = oar.standard_gamma(concentration)
        if concentration.stop_gradient:
            return drawn
    if not oar.is_grad_enabled():
        return drawn
    with oar.no_grad():
        tiny = smallest(drawn.dtype)
        density = ((concentration - 1) * drawn.clip(min=tiny).log() - drawn - concentration.lgamma()).exp().clip(min=tiny)
    reached = oar.gammainc(concentration, drawn)
    return drawn - (reached - reached.detach()) / density


def log_gamma_sample(concentration: Tensor) -> Tensor:
    """The logarithm of what ``gamma_sample`` draws, which stays finite where a tiny concentration gives 0.

    A draw of concentration a is one of a + 1 times U^(1 / a), with a uniform U.
    """
    exponent = ops.exponential(concentration.shape, 1.0, concentration.dtype)
    return gamma_sample(concentration + 1).log() - exponent / concentration
