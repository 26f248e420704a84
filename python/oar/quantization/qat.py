"""Training that expects to be quantised."""

from __future__ import annotations

import copy
from typing import TypeVar

from oar.nn.layer import Layer
from oar.quantization.quantize import Quantization

__all__ = ["QAT"]

_Model = TypeVar("_Model", bound=Layer)


class QAT(Quantization):
    """Prepares a model for training with rounded weights and activations.

    Args:
        config: which layers get which quanters.

    Examples:
        >>> import oar
        >>> from oar.quantization import QAT, QuantConfig
        >>> from oar.quantization.quanters import FakeQuanterWithAbsMaxObserver
        >>> quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
        >>> qat = QAT(QuantConfig(activation=quanter, weight=quanter))
        >>> model = qat.quantize(oar.nn.Sequential(oar.nn.Linear(4, 2)))
        >>> model(oar.ones([3, 4])).sum().backward()     # train it like any other
        >>> model[0].weight.grad.shape
        [4, 2]
        >>> ready = qat.convert(model)                   # then save it
        >>> bool((ready[0].weight == ready[0].weight.round()).all())
        True
    """

    def quantize(self, model: _Model, inplace: bool = False) -> _Model:
        """The model with quanters that simulate rounding while it trains.

        Args:
            model: a model in training mode.
            inplace: whether the model itself is changed; else a copy is.
        """
        if not model.training:
            raise AssertionError("[QAT.quantize] the model is in evaluation mode. Call model.train() first.")
        model = model if inplace else copy.deepcopy(model)
        self._insert_quanters(model)
        return model
