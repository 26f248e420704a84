"""Quantising a trained model."""

from __future__ import annotations

import copy
from typing import TypeVar

from oar.nn.layer import Layer
from oar.quantization.quantize import Quantization

__all__ = ["PTQ"]

_Model = TypeVar("_Model", bound=Layer)


class PTQ(Quantization):
    """Prepares a trained model for calibration: it runs on some data, and observers remember what they need for scales.

    Args:
        config: which layers get which observers.

    Examples:
        >>> import oar
        >>> from oar.quantization import PTQ, QuantConfig
        >>> from oar.quantization.observers import AbsmaxObserver
        >>> model = oar.nn.Sequential(oar.nn.Linear(4, 2))
        >>> _ = model.eval()
        >>> ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
        >>> observed = ptq.quantize(model)
        >>> x = oar.linspace(-1.0, 1.0, 12).reshape([3, 4])
        >>> _ = observed(x)                              # run it on some data
        >>> ready = ptq.convert(observed)
        >>> bool((ready(x) - model(x)).abs().max() < 0.02)
        True
    """

    def quantize(self, model: _Model, inplace: bool = False) -> _Model:
        """The model with observers.

        Args:
            model: a model in evaluation mode.
            inplace: whether the model itself is changed; else a copy is.
        """
        if model.training:
            raise AssertionError("[PTQ.quantize] the model is in training mode. Call model.eval() first.")
        model = model if inplace else copy.deepcopy(model)
        self._insert_quanters(model)
        return model
