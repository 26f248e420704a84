"""Parameters that are whole only while a layer uses them.

Before a layer runs, the parameters that it has are gathered, and afterwards freed. What the tape would save of them is replaced by
their places: when the derivative needs one, its unit is gathered again.
"""

from __future__ import annotations

from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.autograd.saved_tensors_hooks import saved_tensors_hooks
from oar.distributed.sharding._unit import Unit
from oar.nn.layer._entries import LayerEntries
from oar.nn.layer.layers import Layer

__all__ = ["Gathering"]

_KEPT = 2  # units that stay gathered in the backward pass


class _Place:
    """Stands on the tape for a part of a gathered vector."""

    def __init__(self, unit: Unit, offset: int, like: Tensor) -> None:
        self.unit, self.offset, self.shape, self.strides = unit, offset, list(like.shape), list(like.strides)


class _Watched(LayerEntries):
    """The parameters of a layer. One that is read while another layer runs is gathered for that layer: weights that several layers
    share, and those that a function uses."""

    __slots__ = ("_gathering",)

    def __init__(self, owner: Layer, gathering: Gathering) -> None:
        super().__init__(owner, owner._parameters)
        self._gathering = gathering
        for key in self:
            self._mirror().pop(key, None)  # so that reading the attribute comes here

    def __getitem__(self, key: str) -> Any:
        parameter = super().__getitem__(key)
        self._gathering.read(parameter)
        return parameter


class Gathering:
    """Gathers the units of a network when its layers use them.

    Args:
        network: the network.
        units: its units.
    """

    def __init__(self, network: Layer, units: list[Unit]) -> None:
        self._unit_of = {id(p): unit for unit in units for p in unit.parameters}
        self._running: list[list[Unit]] = []  # for each layer that runs, the units that it holds
        self._holders: dict[int, int] = {}
        self._recent: list[Unit] = []  # in the backward pass
        self._is_hooked = False
        for layer in network.sublayers(include_self=True):
            if any(p is not None and id(p) in self._unit_of for p in layer._parameters.values()):
                layer.__dict__["_parameters"] = _Watched(layer, self)
            layer.register_forward_pre_hook(self._enter, prepend=True)
            layer.register_forward_post_hook(self._leave, always_call=True)

    # forward -----------------------------------------------------------------------------------

    def _enter(self, layer: Layer, inputs: Any) -> None:
        self._running.append([])
        for parameter in layer._parameters.values():
            self.read(parameter)

    def _leave(self, layer: Layer, inputs: Any, outputs: Any) -> None:
        for unit in self._running.pop():
            self._holders[id(unit)] -= 1
            self._release(unit)

    def forget(self) -> None:
        """No layer runs: after an error, too."""
        while self._running:
            self._leave(None, None, None)  # type: ignore[arg-type]

    def read(self, parameter: Any) -> None:
        """A parameter is used by the layer that runs."""
        unit = self._unit_of.get(id(parameter))
        if unit is None or not self._running or unit in self._running[-1]:
            return
        self._running[-1].append(unit)
        self._holders[id(unit)] = self._holders.get(id(unit), 0) + 1
        unit.gather()

    def _release(self, unit: Unit) -> None:
        if unit.whole is not None and not (unit.keeps_whole or self._holders.get(id(unit)) or unit in self._recent):
            unit.release()

    # the tape ----------------------------------------------------------------------------------

    def saving(self) -> saved_tensors_hooks:
        """While active, the tape saves places of parameters."""
        return saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: Tensor) -> Any:
        address = tensor.data_ptr()
        for unit in {id(unit): unit for held in self._running for unit in held}.values():
            assert unit.whole is not None
            offset, rest = divmod(address - unit.whole.data_ptr(), unit.whole.element_size())
            if 0 <= offset < unit.length and rest == 0 and tensor.dtype == unit.dtype:
                return _Place(unit, offset, tensor)
        return tensor

    def _unpack(self, saved: Any) -> Tensor:
        if not isinstance(saved, _Place):
            return saved
        unit = saved.unit
        if unit not in self._recent:
            if not self._is_hooked:
                self._is_hooked = True
                _C.add_backward_final_hook(self._end)
            self._recent.append(unit)
            if len(self._recent) > _KEPT:
                self.done_with(self._recent[0])
        return oar.as_strided(unit.gather(), saved.shape, saved.strides, saved.offset)

    def done_with(self, unit: Unit) -> None:
        """The backward pass has used a unit."""
        if unit in self._recent:
            self._recent.remove(unit)
        self._release(unit)

    def _end(self) -> None:
        self._is_hooked = False
        for unit in list(self._recent):
            self.done_with(unit)
