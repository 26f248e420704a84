"""Layers that hold others: Sequential, LayerList, LayerDict, and ParameterList."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oar._spelling import respelled
from oar.framework.parameter import Parameter
from oar.nn.layer.layers import Layer

__all__ = ["LayerDict", "LayerList", "ParameterDict", "ParameterList", "Sequential"]


def _position(index: int, length: int, what: str) -> int:
    """``index`` counted from the front; IndexError outside ``[-length, length)``."""
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range for {what} of length {length}")
    return index % length


def _renumber(registry: Any, values: Iterable[Any]) -> None:
    """Let ``registry`` hold ``values`` under the keys '0', '1', …"""
    values = list(values)
    registry.clear()
    for number, value in enumerate(values):
        registry[str(number)] = value


class Sequential(Layer):
    """Layers called one after the other, each on what the one before returned.

    Takes layers, ``(name, layer)`` pairs, or one ordered dictionary of named layers.

    Args:
        layers: the layers, or ``(name, layer)`` pairs.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> net(oar.ones([3, 4])).shape
        [3, 2]
        >>> len(net.parameters())
        4
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        if len(layers) == 1 and isinstance(layers[0], (Mapping, OrderedDict)):
            layers = tuple(layers[0].items())
        for number, entry in enumerate(layers):
            if isinstance(entry, (tuple, list)):
                if len(entry) != 2 or isinstance(entry[0], Layer):
                    raise ValueError("Sequential takes layers or (name, layer) pairs, each as a separate argument. "
                                     "For a list of layers write Sequential(*layers).")
                name, entry = entry
                self.add_sublayer(str(name), entry)
            else:
                self.add_sublayer(str(number), entry)

    def _key(self, name: int | str) -> str:
        if isinstance(name, str):
            return name
        return list(self._sub_layers)[_position(name, len(self._sub_layers), "Sequential")]

    def __getitem__(self, name: int | slice | str) -> Layer:
        if isinstance(name, slice):
            return type(self)(*list(self._sub_layers.values())[name])
        return self._sub_layers[self._key(name)]

    def __setitem__(self, name: int | str, layer: Layer) -> None:
        known = not isinstance(name, str) and -len(self) <= name < len(self)
        self.add_sublayer(self._key(name) if known else str(name), layer)

    def __delitem__(self, name: int | str) -> None:
        del self._sub_layers[self._key(name)]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    def forward(self, input: Any) -> Any:
        for layer in self._sub_layers.values():
            input = layer(input)
        return input

    def append(self, module: Layer) -> Sequential:
        """Add a layer at the end; returns self."""
        self.add_sublayer(str(len(self)), module)
        return self

    def insert(self, index: int, module: Layer) -> Sequential:
        """Inserts a layer before position ``index``; returns self."""
        if not isinstance(module, Layer):
            raise AssertionError(f"module should be a Layer, but received {type(module).__name__}.")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"index {index} is out of range for Sequential of length {len(self)}")
        layers = list(self._sub_layers.values())
        layers.insert(index, module)
        _renumber(self._sub_layers, layers)
        return self

    def extend(self, sequential: Iterable[Layer]) -> Sequential:
        """Add the layers of another container at the end; returns self."""
        for layer in list(sequential):
            self.append(layer)
        return self


class LayerList(Layer):
    """A list of layers whose parameters are registered. It has no ``forward``.

    Args:
        sublayers: the layers to start with, or None.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layers = nn.LayerList([nn.Linear(2, 2) for _ in range(3)])
        >>> x = oar.ones([1, 2])
        >>> for layer in layers:
        ...     x = layer(x)
        ...
        >>> x.shape, len(layers.parameters())
        ([1, 2], 6)
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        for number, layer in enumerate(sublayers or ()):
            self.add_sublayer(str(number), layer)

    def _key(self, idx: int | str) -> str:
        return idx if isinstance(idx, str) else str(_position(idx, len(self), "LayerList"))

    def __getitem__(self, idx: int | str | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._sub_layers.values())[idx])
        return self._sub_layers[self._key(idx)]

    def __setitem__(self, idx: int | str, sublayer: Layer) -> None:
        self.add_sublayer(self._key(idx), sublayer)

    def __delitem__(self, idx: int | str | slice) -> None:
        layers = list(self._sub_layers.values())
        del layers[list(self._sub_layers).index(idx) if isinstance(idx, str) else idx]
        _renumber(self._sub_layers, layers)

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._sub_layers.values())

    @respelled
    def append(self, sublayer: Layer) -> LayerList:
        """Add a layer at the end; returns self."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def pop(self, key: int | slice) -> Any:
        """Removes a layer, or several, and returns it or a list of them."""
        layer = self[key]
        del self[key]
        return layer

    @respelled
    def insert(self, index: int, sublayer: Layer) -> None:
        """Inserts a layer before position ``index``."""
        if not isinstance(sublayer, Layer) or not -len(self) <= index <= len(self):
            raise AssertionError(
                f"insert({index}, {type(sublayer).__name__}) needs a Layer and an index within {len(self)}."
            )
        layers = list(self._sub_layers.values())
        layers.insert(index, sublayer)
        _renumber(self._sub_layers, layers)

    @respelled
    def extend(self, sublayers: Iterable[Layer]) -> LayerList:
        """Add layers at the end; returns self."""
        for layer in list(sublayers):
            self.append(layer)
        return self


class LayerDict(Layer):
    """A dictionary of layers whose parameters are registered. It has no ``forward``.

    Args:
        sublayers: the layers to start with, or None.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layers = nn.LayerDict({'first': nn.Linear(2, 3), 'second': nn.Linear(3, 1)})
        >>> layers['second'](layers['first'](oar.ones([1, 2]))).shape
        [1, 1]
    """

    def __init__(self, sublayers: Any = None) -> None:
        super().__init__()
        if sublayers is not None:
            self.update(sublayers)

    def __getitem__(self, key: str) -> Layer:
        return self._sub_layers[key]

    def __setitem__(self, key: str, sublayer: Layer) -> None:
        self.add_sublayer(key, sublayer)

    def __delitem__(self, key: str) -> None:
        del self._sub_layers[key]

    def __len__(self) -> int:
        return len(self._sub_layers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sub_layers)

    def __contains__(self, key: str) -> bool:
        return key in self._sub_layers

    def clear(self) -> None:
        """Take every layer out."""
        self._sub_layers.clear()

    def pop(self, key: str) -> Layer:
        """Take one layer out and return it."""
        return self._sub_layers.pop(key)

    def keys(self) -> Any:
        """The names."""
        return self._sub_layers.keys()

    def items(self) -> Any:
        """The names and layers."""
        return self._sub_layers.items()

    def values(self) -> Any:
        """The layers."""
        return self._sub_layers.values()

    @respelled
    def update(self, sublayers: Any) -> None:
        """Add the entries of a mapping or of ``(name, layer)`` pairs, in order."""
        if isinstance(sublayers, (Mapping, LayerDict)):
            sublayers = sublayers.items()
        elif not isinstance(sublayers, Iterable):
            raise AssertionError(
                f"sublayers should be a mapping or an iterable of pairs, but received {type(sublayers).__name__}."
            )
        for number, pair in enumerate(sublayers):
            if len(pair) != 2:
                raise ValueError(f"Entry {number} should be a (name, layer) pair, but has length {len(pair)}.")
            self.add_sublayer(pair[0], pair[1])


class ParameterDict(Layer):
    """A dictionary of parameters that are registered with the layer under their keys.

    Args:
        parameters: the parameters.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> parameters = nn.ParameterDict({'scale': oar.create_parameter([2], 'float32')})
        >>> parameters['scale'].shape
        [2]
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Parameter:
        return self._parameters[key]

    def __setitem__(self, key: str, param: Parameter) -> None:
        self.add_parameter(key, param)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def update(self, parameters: Any) -> None:
        """Add the parameters of a mapping, of another ``ParameterDict`` or of pairs (key, parameter)."""
        if isinstance(parameters, ParameterDict):
            parameters = parameters._parameters
        for key, parameter in dict(parameters).items():
            self.add_parameter(key, parameter)


class ParameterList(Layer):
    """A list of parameters that are registered with the layer.

    Args:
        parameters: the parameters.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> parameters = nn.ParameterList([oar.create_parameter([2], 'float32') for _ in range(3)])
        >>> len(parameters)
        3
    """

    def __init__(self, parameters: Iterable[Parameter] | None = None) -> None:
        super().__init__()
        for number, parameter in enumerate(parameters or ()):
            self.add_parameter(str(number), parameter)

    def __getitem__(self, idx: int) -> Parameter:
        return self._parameters[str(_position(idx, len(self), "ParameterList"))]

    def __setitem__(self, idx: int, param: Parameter) -> None:
        self.add_parameter(str(_position(idx, len(self), "ParameterList")), param)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def append(self, parameter: Parameter) -> ParameterList:
        """Add a parameter at the end; returns self."""
        self.add_parameter(str(len(self)), parameter)
        return self
