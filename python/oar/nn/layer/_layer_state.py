"""State dictionaries, casting and copying of a ``Layer``: the parts of it that move values about."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import oar
from oar.framework._misfits import Misfits, shape_of
from oar.framework.parameter import dtype_name
from oar.nn.layer._entries import LayerEntries

_DTYPES = frozenset(
    "bfloat16 float16 float32 float64 int8 int16 int32 int64 uint8 complex64 complex128 bool".split()
)
_FLOATING = frozenset({"bfloat16", "float16", "float32", "float64"})
_REGISTRIES = ("_parameters", "_buffers", "_sub_layers")


class LayerStateMixin:
    """What ``Layer`` does with its values as a whole. Kept apart only for the length of the file."""

    # What ``Layer`` itself has.
    _parameters: LayerEntries
    _buffers: LayerEntries
    _sub_layers: LayerEntries
    _non_persistable_buffer_names_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _dtype: Any
    apply: Callable[..., Any]
    sublayers: Callable[..., list[Any]]

    # state dictionaries ------------------------------------------------------------------------

    def _own_state(self, with_transient: bool) -> list[tuple[str, Any]]:
        transient = () if with_transient else self._non_persistable_buffer_names_set
        items = [(key, value) for key, value in self._parameters.items() if value is not None]
        items += [(k, v) for k, v in self._buffers.items() if v is not None and k not in transient]
        return items

    def _state_dict_impl(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        include_non_persistable_buffer: bool = False,
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        state = OrderedDict() if destination is None else destination
        for name, value in self._own_state(include_non_persistable_buffer):
            state[structured_name_prefix + name] = value if keep_vars else value.detach()
        if include_sublayers:
            for name, layer in self._sub_layers.items():
                if layer is not None:
                    prefix = f"{structured_name_prefix}{name}."
                    state = layer._state_dict_impl(
                        state, True, prefix, include_non_persistable_buffer, use_hook, keep_vars
                    )
        if use_hook:
            for hook in self._state_dict_hooks.values():
                replaced = hook(state)
                if replaced is not None:
                    state = replaced
        return state

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """Parameters and persistable buffers by structured name (``'encoder.fc.weight'``).

        The values are the layer's own tensors; with ``keep_vars=False`` they are detached.
        """
        return self._state_dict_impl(
            destination, include_sublayers, structured_name_prefix, False, use_hook, keep_vars
        )

    def to_static_state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
        keep_vars: bool = True,
    ) -> dict[str, Any]:
        """Like ``state_dict``, with the buffers that are not persistable."""
        return self._state_dict_impl(
            destination, include_sublayers, structured_name_prefix, True, use_hook, keep_vars
        )

    def set_state_dict(
        self, state_dict: dict[str, Any], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        """Copy values from ``state_dict`` into this layer.

        Args:
            state_dict: tensors or arrays by structured name, or by ``Tensor.name`` when
                ``use_structured_name`` is False.

        Returns:
            The keys that are missing or do not fit in shape, and the keys that nothing wanted. One warning
            lists all of them.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"set_state_dict() takes a dictionary of tensors by name, as state_dict() returns, not "
                            f"{type(state_dict).__name__}.")
        misfits = self._misfits_of(state_dict, use_structured_name)
        if misfits:
            warnings.warn(f"[set_state_dict] the state dict does not fit {type(self).__name__}: {misfits}. What fits is loaded.",
                          stacklevel=2)
        wrong = {*misfits.missing, *misfits.mismatched}
        wanted = self._wanted_state(use_structured_name)
        with oar.no_grad():
            for key, target in wanted.items():
                if key not in wrong:
                    target.set_value(state_dict[key])
        return [key for key in wanted if key in wrong], [key for key in state_dict if key not in wanted or key in wrong]

    def _wanted_state(self, use_structured_name: bool) -> dict[str, Any]:
        own = self._state_dict_impl(use_hook=False)
        return own if use_structured_name else {target.name: target for target in own.values()}

    def _misfits_of(self, state_dict: Mapping[str, Any], use_structured_name: bool = True) -> Misfits:
        """What of a state dict does not fit this layer."""
        wanted = self._wanted_state(use_structured_name)
        problems = {key: _misfit(target, state_dict[key]) for key, target in wanted.items() if state_dict.get(key) is not None}
        return Misfits(
            [key for key in wanted if state_dict.get(key) is None],
            [str(key) for key in state_dict if key not in wanted],
            {key: problem for key, problem in problems.items() if problem},
        )

    set_dict = set_state_dict
    load_dict = set_state_dict

    # casting -----------------------------------------------------------------------------------

    def to(self, device: Any = None, dtype: Any = None, blocking: bool | None = None,
           non_blocking: bool | None = None) -> Any:
        """Move parameters and buffers to a device and/or cast them to ``dtype``, in place."""
        if blocking is not None and not isinstance(blocking, bool):
            raise AssertionError(f"[Layer.to] blocking is {blocking!r}; it must be True, False or None.")
        if device is None and dtype is None:
            return self
        return self._convert(device, dtype, floating_only=False)

    def astype(self, dtype: Any = None) -> Any:
        """Cast every parameter and buffer to ``dtype``, in place."""
        if dtype is None or dtype_name(dtype) not in _DTYPES:
            raise ValueError(f"dtype must be one of {', '.join(sorted(_DTYPES))}, but received {dtype!r}.")
        return self._convert(None, dtype, floating_only=False)

    def float(self, excluded_layers: Any = None) -> Any:
        """Cast floating-point parameters and buffers to float32, except in ``excluded_layers``."""
        return self._float_to("float32", _layer_types(excluded_layers, []))

    def float16(self, excluded_layers: Any = None) -> Any:
        """Cast floating-point parameters and buffers to float16; batch norms stay unless listed."""
        return self._float_to("float16", _layer_types(excluded_layers, _batch_norms()))

    def bfloat16(self, excluded_layers: Any = None) -> Any:
        """Cast floating-point parameters and buffers to bfloat16; batch norms stay unless listed."""
        return self._float_to("bfloat16", _layer_types(excluded_layers, _batch_norms()))

    def _float_to(self, dtype: str, excluded: list[type]) -> Any:
        def cast(layer: Any) -> None:
            if type(layer) not in excluded:
                layer._convert(None, dtype, floating_only=True, include_sublayers=False)

        return self.apply(cast)

    def _convert(
        self, device: Any, dtype: Any, floating_only: bool, include_sublayers: bool = True
    ) -> Any:
        layers = self.sublayers(include_self=True) if include_sublayers else [self]
        with oar.no_grad():
            for layer in layers:
                for registry in (layer._parameters, layer._buffers):
                    for value in registry.values():
                        if value is not None:
                            _convert_tensor(value, device, dtype, floating_only)
                if dtype is not None:
                    layer._dtype = dtype
        return self

    # copying -----------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        for registry in _REGISTRIES:
            for key in state.get(registry, ()):
                state.pop(key, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        own = self.__dict__
        own.update(state)
        for registry in _REGISTRIES:
            if registry in own:
                own[registry] = LayerEntries(self, own[registry])


def _misfit(target: Any, value: Any) -> str:
    """Why ``value`` cannot be loaded into ``target``; empty when it can."""
    if isinstance(value, (dict, list)):
        return "" if len(value) == len(target) else f"has length {len(value)}, expected {len(target)}"
    if not hasattr(value, "shape"):
        return f"is a {type(value).__name__}, expected a tensor of shape {list(target.shape)}"
    shape = shape_of(value)
    return "" if shape == list(target.shape) else f"has shape {shape}, expected {list(target.shape)}"


def _layer_types(excluded: Any, default: list[type]) -> list[type]:
    if excluded is None:
        return default
    if isinstance(excluded, type):
        return [excluded]
    if isinstance(excluded, (list, tuple)):
        return list(excluded)
    raise TypeError(
        f"excluded_layers should be a Layer class or a list of them, but got {type(excluded).__name__}."
    )


def _batch_norms() -> list[type]:
    from oar.nn.layer import norm

    return [norm.BatchNorm, norm.BatchNorm1D, norm.BatchNorm2D]


def _convert_tensor(value: Any, device: Any, dtype: Any, floating_only: bool) -> None:
    """Give ``value`` a new dtype or place and keep the Python object."""
    if floating_only and dtype_name(value.dtype) not in _FLOATING:
        return
    for tensor in (value, value.grad):
        if tensor is None:
            continue
        changed = tensor.detach()
        if dtype is not None and dtype_name(dtype) != dtype_name(changed.dtype):
            changed = changed.astype(dtype)
        if device is not None:
            changed = changed.to(device)
        if changed is not tensor:
            tensor._share_data_with(changed)
