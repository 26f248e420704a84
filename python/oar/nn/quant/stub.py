"""A place in a model where values can be observed."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn.layer import Layer

__all__ = ["Stub"]


class Stub(Layer):
    """Returns its input. It marks a place where quantisation puts an observer.

    Args:
        observer: what to put there; or None.

    Examples:
        >>> import oar
        >>> oar.nn.quant.Stub()(oar.to_tensor([1.0, 2.0])).tolist()
        [1.0, 2.0]
    """

    def __init__(self, observer: Any = None) -> None:
        super().__init__()
        self._observer = observer

    def forward(self, input: Tensor) -> Tensor:
        """The input.

        Args:
            input: any tensor.
        """
        return input
