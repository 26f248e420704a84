"""Which layers are quantised, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oar import nn
from oar.nn.layer import Layer
from oar.nn.quant.qat import QuantedConv2D, QuantedLinear
from oar.nn.quant.stub import QuanterStub, Stub
from oar.quantization.factory import QuanterFactory
from oar.quantization.wrapper import ObserveWrapper

__all__ = ["QuantConfig", "SingleLayerConfig"]

_REPLACEMENTS: dict[type[Layer], Any] = {Stub: QuanterStub, nn.Linear: QuantedLinear, nn.Conv2D: QuantedConv2D}
_LEAVES = (nn.ReLU, nn.AvgPool2D)


class SingleLayerConfig:
    """The quanters of one layer.

    Args:
        activation: a factory of the quanter of its input; or None.
        weight: a factory of the quanter of its weight; or None.
    """

    def __init__(self, activation: QuanterFactory | None, weight: QuanterFactory | None) -> None:
        self._activation = activation
        self._weight = weight

    @property
    def activation(self) -> QuanterFactory | None:
        """The factory for the input."""
        return self._activation

    @property
    def weight(self) -> QuanterFactory | None:
        """The factory for the weight."""
        return self._weight

    def __str__(self) -> str:
        return f"activation: {self._activation}\nweight: {self._weight}"


def _check_layer_type(what: str, value: Any) -> None:
    if not (isinstance(value, type) and issubclass(value, Layer)):
        raise AssertionError(f"[add_qat_layer_mapping] {what} is {value!r}. Pass a subclass of nn.Layer.")


class QuantConfig:
    """Which quanters the layers of a model get. The most specific setting holds: by layer or name, by type, for all.

    Args:
        activation: a factory of quanters for the inputs of all layers; or None.
        weight: a factory of quanters for the weights of all layers; or None.

    Examples:
        >>> import oar
        >>> from oar.quantization import QAT, QuantConfig
        >>> from oar.quantization.quanters import FakeQuanterWithAbsMaxObserver
        >>> config = QuantConfig(activation=None, weight=None)
        >>> config.add_type_config(oar.nn.Linear, weight=FakeQuanterWithAbsMaxObserver(moving_rate=0.9))
        >>> model = QAT(config).quantize(oar.nn.Sequential(oar.nn.Linear(3, 2), oar.nn.ReLU()))
        >>> print(model)
        Sequential(
          (0): QuantedLinear(
            (weight_quanter): FakeQuanterWithAbsMaxObserverLayer()
          )
          (1): ReLU()
        )
    """

    def __init__(self, activation: QuanterFactory | None, weight: QuanterFactory | None) -> None:
        both_missing = activation is None and weight is None
        self._global_config = None if both_missing else SingleLayerConfig(activation, weight)
        self._layer2config: dict[Layer, SingleLayerConfig] = {}
        self._prefix2config: dict[str, SingleLayerConfig] = {}
        self._type2config: dict[type[Layer], SingleLayerConfig] = {}
        self._model: Layer | None = None
        self._qat_layer_mapping = dict(_REPLACEMENTS)
        self._customized_qat_layer_mapping: dict[type[Layer], type[Layer]] = {}
        self._customized_leaves: list[type[Layer]] = []

    def add_layer_config(
        self, layer: Layer | Sequence[Layer], activation: QuanterFactory | None = None, weight: QuanterFactory | None = None
    ) -> None:
        """Sets the quanters of one or several layers, and of all layers in them.

        Args:
            layer: a layer of the model, or a list of them.
            activation: a factory of quanters for inputs.
            weight: a factory of quanters for weights.
        """
        for one in [layer] if isinstance(layer, Layer) else layer:
            self.add_name_config(one.full_name(), activation, weight)

    def add_name_config(
        self, layer_name: str | Sequence[str], activation: QuanterFactory | None = None, weight: QuanterFactory | None = None
    ) -> None:
        """Sets the quanters of layers by their ``full_name()``.

        Args:
            layer_name: a name, or a list of them.
            activation: a factory of quanters for inputs.
            weight: a factory of quanters for weights.
        """
        for name in [layer_name] if isinstance(layer_name, str) else layer_name:
            self._prefix2config[name] = SingleLayerConfig(activation, weight)

    def add_type_config(
        self, layer_type: type[Layer] | Sequence[type[Layer]], activation: QuanterFactory | None = None,
        weight: QuanterFactory | None = None,
    ) -> None:  # fmt: skip
        """Sets the quanters of all layers of a type.

        Args:
            layer_type: a subclass of ``nn.Layer``, or a list of them.
            activation: a factory of quanters for inputs.
            weight: a factory of quanters for weights.
        """
        for one in [layer_type] if isinstance(layer_type, type) else layer_type:
            self._type2config[one] = SingleLayerConfig(activation, weight)

    def add_qat_layer_mapping(self, source: type[Layer], target: type[Layer]) -> None:
        """Sets what replaces the layers of a type: a class that is created with the layer and a ``SingleLayerConfig``.

        Args:
            source: the type of the layers.
            target: the class that replaces them.
        """
        _check_layer_type("source", source)
        _check_layer_type("target", target)
        self._qat_layer_mapping[source] = target
        self._customized_qat_layer_mapping[source] = target

    def add_customized_leaf(self, layer_type: type[Layer]) -> None:
        """Layers of this type are observed as a whole, not layer by layer.

        Args:
            layer_type: a subclass of ``nn.Layer``.
        """
        self._customized_leaves.append(layer_type)

    @property
    def customized_leaves(self) -> list[type[Layer]]:
        """The types that ``add_customized_leaf`` was called with."""
        return self._customized_leaves

    @property
    def qat_layer_mappings(self) -> dict[type[Layer], Any]:
        """What replaces layers, by their type."""
        return self._qat_layer_mapping

    @property
    def default_qat_layer_mapping(self) -> dict[type[Layer], Any]:
        """The same without what ``add_qat_layer_mapping`` added."""
        return _REPLACEMENTS

    @property
    def global_config(self) -> SingleLayerConfig | None:
        """The quanters of all layers."""
        return self._global_config

    # What QAT and PTQ ask -------------------------------------------------------------------------------

    def _get_config_by_layer(self, layer: Layer) -> SingleLayerConfig | None:
        return self._layer2config.get(layer)

    def _is_quantifiable(self, layer: Layer) -> bool:
        return layer in self._layer2config

    def _has_observer_config(self, layer: Layer) -> bool:
        config = self._get_config_by_layer(layer)
        return config is not None and config.activation is not None

    def _is_default_leaf(self, layer: Layer) -> bool:
        return type(layer) in _LEAVES

    def _is_real_leaf(self, layer: Layer) -> bool:
        return not layer._sub_layers

    def _is_customized_leaf(self, layer: Layer) -> bool:
        return type(layer) in self._customized_leaves

    def _is_leaf(self, layer: Layer) -> bool:
        return self._is_default_leaf(layer) or self._is_real_leaf(layer) or self._is_customized_leaf(layer)

    def _need_observe(self, layer: Layer) -> bool:
        return self._is_leaf(layer) and self._has_observer_config(layer)

    def _get_qat_layer(self, layer: Layer) -> Layer:
        return self._qat_layer_mapping[type(layer)](layer, self._get_config_by_layer(layer))

    def _get_observer(self, layer: Layer) -> Any:
        config = self._get_config_by_layer(layer)
        return None if config is None or config.activation is None else config.activation._instance(layer)

    def _get_observe_wrapper(self, layer: Layer) -> ObserveWrapper:
        return ObserveWrapper(self._get_observer(layer), layer)

    def _specify(self, model: Layer) -> None:
        """Finds the quanters of each layer of a model."""
        self._model = model
        self._specify_children(model)

    def _specify_children(self, parent: Layer) -> None:
        for child in parent.children():
            config = self._layer2config.get(parent, self._global_config)
            config = self._type2config.get(type(child), config)
            config = self._prefix2config.get(child.full_name(), config)
            if config is not None:
                self._layer2config[child] = config
            self._specify_children(child)

    # Text -----------------------------------------------------------------------------------------------

    def details(self) -> str:
        """The model with the quanters of each layer, or the settings if no model was seen yet."""
        return str(self) if self._model is None else self._details_of(self._model)

    def _details_of(self, layer: Layer) -> str:
        lines = []
        for name, child in layer.named_children():
            config = self._layer2config.get(child)
            inner = self._details_of(child).replace("\n", "\n  ")
            lines.append(f"  ({name}): {inner}" + ("" if config is None else f", {config}".replace("\n", ", ")))
        text = type(layer).__name__
        return f"{text}(\n" + "\n".join(lines) + "\n)" if lines else f"{text}({layer.extra_repr()})"

    def __str__(self) -> str:
        text = f"Global config:\n{self._global_config}\n"
        for title, settings in (("Layer prefix", self._prefix2config), ("Layer type", self._type2config)):
            if settings:
                text += f"{title} config:\n" + "".join(f"{key}: {config}\n" for key, config in settings.items())
        return text
