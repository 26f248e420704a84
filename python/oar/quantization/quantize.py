"""What preparing a model for training and for calibration share."""

from __future__ import annotations

import abc
import copy
from typing import TypeVar

from oar.nn.layer import Layer
from oar.nn.quant.format import ConvertibleQuantedLayer, LinearQuanterDequanter
from oar.quantization.base_quanter import BaseQuanter
from oar.quantization.config import QuantConfig

__all__ = ["Quantization"]

_Model = TypeVar("_Model", bound=Layer)


def _replace(model: Layer, found: dict[str, Layer]) -> None:
    for name, layer in found.items():
        model._sub_layers[name] = layer


class Quantization(metaclass=abc.ABCMeta):
    """Puts quanters into a model.

    Args:
        config: which layers get which quanters.
    """

    def __init__(self, config: QuantConfig) -> None:
        self._config = copy.deepcopy(config)

    @abc.abstractmethod
    def quantize(self, model: _Model, inplace: bool = False) -> _Model:
        """The model with quanters.

        Args:
            model: the model.
            inplace: whether the model itself is changed; else a copy is.
        """

    def convert(self, model: _Model, inplace: bool = False, remain_weight: bool = False) -> _Model:
        """The model ready for use: quanters become fixed scales, weights become integers (in their dtype of float).

        ``jit.save`` and ``onnx.export`` write it with its rounding. A layer whose quanter has seen no data stays as it is.

        Args:
            model: a model that ``quantize`` returned, after training or calibration.
            inplace: whether the model itself is changed; else a copy is.
            remain_weight: whether weights stay floats, which are rounded at each run.
        """
        model = model if inplace else copy.deepcopy(model)
        found: dict[str, Layer] = {}
        for name, child in model.named_children():
            if isinstance(child, ConvertibleQuantedLayer):
                weight_quanter = getattr(child, "weight_quanter", None)
                if not child.converted and weight_quanter is not None and weight_quanter.scales() is not None:
                    child._convert(remain_weight=remain_weight)
            elif isinstance(child, BaseQuanter):
                found[name] = LinearQuanterDequanter.from_quanter(child)
            else:
                self.convert(child, inplace=True, remain_weight=remain_weight)
        _replace(model, found)
        return model

    def _insert_quanters(self, model: Layer) -> None:
        self._config._specify(model)
        self._replace_layers(model)
        self._insert_observers(model)

    def _replace_layers(self, model: Layer) -> None:
        found: dict[str, Layer] = {}
        for name, child in model.named_children():
            if self._config._is_quantifiable(child) and type(child) in self._config.qat_layer_mappings:
                found[name] = self._config._get_qat_layer(child)
            else:
                self._replace_layers(child)
        _replace(model, found)

    def _insert_observers(self, model: Layer) -> None:
        replacements = set(self._config.qat_layer_mappings.values())
        found: dict[str, Layer] = {}
        for name, child in model.named_children():
            if self._config._need_observe(child):
                found[name] = self._config._get_observe_wrapper(child)
            elif type(child) not in replacements:
                self._insert_observers(child)
        _replace(model, found)

    def __str__(self) -> str:
        return self._config.details()

    __repr__ = __str__
