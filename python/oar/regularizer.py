"""Weight decay that enters through the gradient: ``L1Decay`` and ``L2Decay``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oar import Tensor

__all__ = ["L1Decay", "L2Decay"]


class WeightDecayRegularizer:
    """Base class: adds a term to the gradient of a parameter."""

    def __call__(self, param: Tensor, grad: Tensor, block: Any = None) -> Tensor:
        """The term that is added to ``grad``."""
        raise NotImplementedError


class L1Decay(WeightDecayRegularizer):
    """``loss + coeff * sum(|param|)``: adds ``coeff * sign(param)`` to the gradient."""

    def __init__(self, coeff: float = 0.0) -> None:
        self._coeff = coeff

    def __call__(self, param: Tensor, grad: Tensor, block: Any = None) -> Tensor:
        import oar

        return oar.sign(param) * self._coeff

    def __str__(self) -> str:
        return f"L1Decay, coeff={self._coeff:f}"


class L2Decay(WeightDecayRegularizer):
    """``loss + coeff / 2 * sum(param ** 2)``: adds ``coeff * param`` to the gradient."""

    def __init__(self, coeff: float = 0.0) -> None:
        self._coeff = coeff

    def __call__(self, param: Tensor, grad: Tensor, block: Any = None) -> Tensor:
        return param * self._coeff

    def __str__(self) -> str:
        return f"L2Decay, coeff={self._coeff:f}"
