"""A place in a model where values can be observed."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.nn.layer import Layer

__all__ = ["QuanterStub", "Stub"]


class Stub(Layer):
    """Returns its input. It marks a place where ``QAT`` or ``PTQ`` puts a quanter or an observer.

    Args:
        observer: a factory of what to put there; None for the one of the configuration.

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


class QuanterStub(Layer):
    """What replaces a ``Stub``: the quanter or observer, if there is one.

    Args:
        layer: the stub; its own observer is preferred.
        q_config: a ``SingleLayerConfig``.

    Examples:
        >>> import oar
        >>> from oar.quantization import PTQ, QuantConfig
        >>> from oar.quantization.observers import AbsmaxObserver
        >>> model = oar.nn.Sequential(oar.nn.quant.Stub())
        >>> _ = model.eval()
        >>> print(PTQ(QuantConfig(AbsmaxObserver(), None)).quantize(model))
        Sequential(
          (0): QuanterStub(
            (_observer): AbsmaxObserverLayer()
          )
        )
    """

    def __init__(self, layer: Stub, q_config: Any) -> None:
        super().__init__()
        factory = layer._observer if layer._observer is not None else q_config.activation
        self._observer = None if factory is None else factory._instance(layer)

    def forward(self, input: Tensor) -> Tensor:
        return input if self._observer is None else self._observer(input)
