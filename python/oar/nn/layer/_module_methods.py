"""Methods of ``Layer`` that PyTorch's modules have."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from oar._C import Tensor
from oar._places import unavailable
from oar._spelling import respelled

if TYPE_CHECKING:
    from oar.framework.parameter import Parameter
    from oar.nn.layer.layers import Layer

__all__ = ["ModuleMethods"]


class LoadedKeys(NamedTuple):
    """What ``load_state_dict`` returns."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"LoadedKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


class ModuleMethods:
    """What ``Layer`` has for PyTorch's users. Kept apart for the length of the file."""

    # What ``Layer`` itself has.
    add_sublayer: Any
    add_parameter: Any
    set_state_dict: Any
    named_sublayers: Any
    parameters: Any
    register_forward_post_hook: Any
    to: Any
    _float_to: Any
    _misfits_of: Any

    _sub_layers: Any

    @property
    def _modules(self) -> Any:
        """The layers directly below, by name."""
        return self._sub_layers

    # other layers ------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Layer] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Layer]]:
        """This layer and its sublayers with their names; a layer that occurs again comes once, unless asked otherwise."""
        return self.named_sublayers(prefix, True, memo, remove_duplicate)

    def modules(self) -> Iterator[Layer]:
        """This layer and its sublayers."""
        return (layer for _, layer in self.named_modules())

    def get_sublayer(self, target: str) -> Layer:
        """The sublayer of a name such as ``'encoder.0.linear'``; the layer itself for an empty one."""
        found: Any = self
        for part in target.split(".") if target else ():
            held = found._sub_layers.get(part)
            if held is None:
                raise AttributeError(f"{type(found).__name__} has no sublayer {part!r}, of {target!r}.")
            found = held
        return found

    get_submodule = get_sublayer

    @respelled
    def set_sublayer(self, target: str, layer: Layer, strict: bool = False) -> None:
        """Puts a layer at a name such as ``'encoder.0.linear'``; with ``strict`` only where there is one."""
        if not target:
            raise ValueError("[set_sublayer] target must not be empty.")
        path, _, last = target.rpartition(".")
        parent: Any = self.get_sublayer(path)
        if strict and last not in parent._sub_layers:
            raise AttributeError(f"{type(parent).__name__} has no sublayer {last!r}, of {target!r}.")
        parent.add_sublayer(last, layer)

    set_submodule = set_sublayer

    def add_module(self, name: str, module: Layer | None) -> None:
        """``add_sublayer`` without a result."""
        self.add_sublayer(name, module)

    register_module = add_module

    # parameters --------------------------------------------------------------------------------

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a name such as ``'encoder.0.weight'``."""
        return self._member("_parameters", target, "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a name such as ``'norm._mean'``."""
        return self._member("_buffers", target, "buffer")

    def _member(self, registry: str, target: str, kind: str) -> Any:
        path, _, last = target.rpartition(".")
        owner = self.get_sublayer(path)
        held = getattr(owner, registry).get(last)
        if held is None:
            raise AttributeError(f"{type(owner).__name__} has no {kind} {last!r}, of {target!r}.")
        return held

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """``add_parameter`` without a result."""
        self.add_parameter(name, param)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Says whether gradients are computed for all parameters; returns the layer."""
        for parameter in self.parameters():
            parameter.stop_gradient = not requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters, or sets them to zero."""
        for parameter in self.parameters():
            if set_to_none:
                parameter.grad = None
            else:
                parameter.clear_gradient(True)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> LoadedKeys:
        """Copies values into the layer. With ``strict`` all names must be the same, and nothing is copied otherwise."""
        if assign:
            raise NotImplementedError("[load_state_dict] assign=True is not available; values are copied.")
        misfits = self._misfits_of(state_dict)
        if strict and misfits:
            raise RuntimeError(f"[load_state_dict] the state dict does not fit {type(self).__name__}: {misfits}. Nothing was loaded. "
                               "Build the network as it was when the state was saved, or pass strict=False to load what fits.")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is missing is returned
            missing, unexpected = self.set_state_dict(state_dict)
        return LoadedKeys(missing, unexpected)

    def register_forward_hook(
        self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Any:
        """``register_forward_post_hook`` under another name."""
        return self.register_forward_post_hook(hook, prepend=prepend, with_kwargs=with_kwargs, always_call=always_call)

    # dtypes and devices ------------------------------------------------------------------------

    def double(self) -> Any:
        """Casts floating-point parameters and buffers to float64; returns the layer."""
        return self._float_to("float64", [])

    def half(self) -> Any:
        """Casts floating-point parameters and buffers to float16; returns the layer."""
        return self._float_to("float16", [])

    def type(self, dst_type: Any) -> Any:
        """Casts parameters and buffers to a dtype; returns the layer."""
        return self.to(dtype=dst_type)

    def cpu(self) -> Any:
        """Moves parameters and buffers to the CPU; returns the layer."""
        return self.to("cpu")

    def cuda(self, device: Any = None) -> Any:
        """Moves parameters and buffers to a GPU. There is no GPU here, so it raises."""
        raise unavailable("cuda", "GPU")

    def xpu(self, device: Any = None) -> Any:
        """Moves parameters and buffers to an XPU. There is no XPU here, so it raises."""
        raise unavailable("xpu", "XPU")
