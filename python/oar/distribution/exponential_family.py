"""Distributions whose log-density is linear in functions of the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import oar
from oar.distribution.distribution import Distribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor

__all__ = ["ExponentialFamily", "tangent"]


def tangent(family: ExponentialFamily, direction: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The log-normaliser at the natural parameters, and how fast it changes in a direction."""
    return oar.func.jvp(family._log_normalizer, tuple(family._natural_parameters), tuple(direction))


class ExponentialFamily(Distribution):
    """The base of distributions with the density ``h(x) * exp(<eta, t(x)> - A(eta))``.

    A subclass says what its natural parameters eta and its log-normaliser A are, in ``_natural_parameters`` and
    ``_log_normalizer``, and gets its entropy and the divergence of two of its kind from them.

    Examples:
        >>> import oar
        >>> from oar.distribution import Exponential, ExponentialFamily
        >>> wait = Exponential(oar.to_tensor(2.0))
        >>> isinstance(wait, ExponentialFamily)
        True
        >>> ExponentialFamily.entropy(wait)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.30685282)
    """

    @property
    def _natural_parameters(self) -> Sequence[Tensor]:
        raise NotImplementedError(f"{type(self).__name__} does not say what its natural parameters are.")

    def _log_normalizer(self, *parameters: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no log-normaliser.")

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean of log h(x)."""
        return 0.0

    def entropy(self) -> Tensor:
        """The entropy in nats, from the log-normaliser and its derivative."""
        normaliser, slope = tangent(self, self._natural_parameters)
        return normaliser - slope - self._mean_carrier_measure
