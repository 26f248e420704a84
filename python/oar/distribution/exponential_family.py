"""Distributions whose log-density is linear in functions of the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import oar
from oar.distribution._sums import sum_rightmost
from oar.distribution.distribution import Distribution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oar._C import Tensor

__all__ = ["ExponentialFamily", "with_gradients"]


def with_gradients(family: ExponentialFamily) -> tuple[list[Tensor], Tensor, list[Tensor]]:
    """The natural parameters, the log-normaliser at them, and its gradient, through which gradients flow in turn."""
    with oar.enable_grad():
        natural = [part if not part.stop_gradient else _requiring(part) for part in family._natural_parameters]
        normaliser = family._log_normalizer(*natural)
        gradients = oar.grad(normaliser.sum(), natural, create_graph=True)
    return natural, normaliser, [gradient for gradient in gradients if gradient is not None]


def _requiring(parameter: Tensor) -> Tensor:
    copy = parameter.detach()
    copy.stop_gradient = False
    return copy


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
        """The entropy in nats, from the log-normaliser and its gradient."""
        known = all(parameter.stop_gradient for parameter in self._natural_parameters)
        natural, normaliser, gradients = with_gradients(self)
        rank = len(self._event_shape)
        entropy = normaliser - self._mean_carrier_measure
        for parameter, gradient in zip(natural, gradients):
            entropy = entropy - sum_rightmost(parameter * gradient, rank)
        return entropy.detach() if known else entropy
