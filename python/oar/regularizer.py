"""Weight decay that enters through the gradient: ``L1Decay`` and ``L2Decay``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oar import Tensor

__all__ = ["L1Decay", "L2Decay"]


class WeightDecayRegularizer:
    """Base class: adds a term to the gradient of a parameter.

    Examples:
        >>> import oar
        >>> isinstance(oar.regularizer.L2Decay(0.1), oar.regularizer.WeightDecayRegularizer)
        True
    """

    def __call__(self, param: Tensor, grad: Tensor, block: Any = None) -> Tensor:
        """The term that is added to ``grad``."""
        raise NotImplementedError


class L1Decay(WeightDecayRegularizer):
    """``loss + coeff * sum(|param|)``: adds ``coeff * sign(param)`` to the gradient.

    Args:
        coeff: the weight of the penalty.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = oar.create_parameter([1], 'float32', default_initializer=nn.initializer.Constant(2.0))
        >>> sgd = oar.optimizer.SGD(0.1, parameters=[w], weight_decay=oar.regularizer.L1Decay(1.0))
        >>> (w * 0).sum().backward()
        >>> sgd.step()
        >>> w.tolist()
        [1.899999976158142]
    """

    def __init__(self, coeff: float = 0.0) -> None:
        self._coeff = coeff

    def __call__(self, param: Tensor, grad: Tensor, block: Any = None) -> Tensor:
        import oar

        return oar.sign(param) * self._coeff

    def __str__(self) -> str:
        return f"L1Decay, coeff={self._coeff:f}"


class L2Decay(WeightDecayRegularizer):
    """``loss + coeff / 2 * sum(param ** 2)``: adds ``coeff * param`` to the gradient.

    Args:
        coeff: the weight of the penalty.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = oar.create_parameter([1], 'float32', default_initializer=nn.initializer.Constant(2.0))
        >>> sgd = oar.optimizer.SGD(0.1, parameters=[w], weight_decay=oar.regularizer.L2Decay(1.0))
        >>> (w * 0).sum().backward()
        >>> sgd.step()
        >>> w.tolist()
        [1.7999999523162842]
    """

    def __init__(self, coeff: float = 0.0) -> None:
        self._coeff = coeff

    def __call__(self, param: Tensor, grad: Tensor, block: Any = None) -> Tensor:
        return param * self._coeff

    def __str__(self) -> str:
        return f"L2Decay, coeff={self._coeff:f}"
