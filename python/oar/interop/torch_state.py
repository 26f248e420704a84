"""State dicts of PyTorch's modules under the names that Oar's layers have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oar._C import Tensor
from oar.nn.layer.common import Linear
from oar.nn.layer.layers import Layer

__all__ = ["torch_state"]

_BUFFERS = {"running_mean": "_mean", "running_var": "_variance"}
_ATTENTION = {"multihead_attn": "cross_attn"}
_THIRDS = ("q_proj", "k_proj", "v_proj")


def torch_state(state: Mapping[str, Any], layer: Layer) -> dict[str, Any]:
    """A state dict of PyTorch as a layer of Oar reads it.

    The running values of batch norms get Oar's names, the projections of transformer layers are taken apart and transposed, weights of
    ``oar.nn.Linear`` whose axes are the other way round are transposed. What has Oar's names already stays as it is, so states that
    Oar saved can be passed too. ``oar.compat.nn.Linear`` keeps its weight as PyTorch does and needs no change.

    Args:
        state: tensors or arrays by name, for example from ``oar.load("model.pt")``.
        layer: the layer that will read them.

    Returns:
        a dictionary for ``layer.load_state_dict`` or ``layer.set_state_dict``.

    Examples:
        >>> import oar
        >>> norm = oar.nn.BatchNorm1D(2)
        >>> zeros, ones = oar.zeros([2]), oar.ones([2])
        >>> state = {"weight": ones, "bias": zeros, "running_mean": ones, "running_var": ones, "num_batches_tracked": oar.zeros([])}
        >>> list(oar.interop.torch_state(state, norm))
        ['weight', 'bias', '_mean', '_variance']
    """
    own = layer.state_dict()
    made: dict[str, Any] = {}
    of_torch = {name.rpartition(".")[0] for name in state if name.rpartition(".")[2] == "in_proj_weight" and name not in own}
    parents = {home.rpartition(".")[0] for home in of_torch}
    for name, value in state.items():
        home, _, last = _renamed(name, own).rpartition(".")
        path = f"{home}.{last}" if home else last
        torch_home = name.rpartition(".")[0]
        if torch_home in of_torch and last in ("in_proj_weight", "in_proj_bias"):
            made.update(_projections(home, last, value))
        elif last == "num_batches_tracked" and path not in own:
            continue
        elif last == "weight" and _is_torch_linear(torch_home, of_torch, parents):
            made[path] = _transposed(value)
        else:
            made[path] = value
    _turn_linear(made, layer)
    _add_second_names(made, own)
    return made


def _renamed(name: str, own: Mapping[str, Any]) -> str:
    """The name of a buffer or of an attention layer in Oar."""
    if name in own:
        return name
    parts = name.split(".")
    parts[-1] = _BUFFERS.get(parts[-1], parts[-1])
    parts = [_ATTENTION.get(part, part) for part in parts]
    home = ".".join(parts[:-1])
    known = ".".join(parts) in own or f"{home}.q_proj.weight" in own
    return ".".join(parts) if known or any(key.startswith(f"{home}.") for key in own) else name


def _is_torch_linear(home: str, attentions: set[str], parents: set[str]) -> bool:
    """Whether a weight is of a linear layer within a transformer layer that PyTorch saved."""
    parent, _, last = home.rpartition(".")
    return (last == "out_proj" and parent in attentions) or (last in ("linear1", "linear2") and parent in parents)


def _projections(home: str, last: str, value: Any) -> dict[str, Any]:
    """The parts of ``in_proj_weight`` or ``in_proj_bias``."""
    array = _array(value)
    kind = last.rpartition("_")[2]
    parts = np.split(array, 3)
    prefix = f"{home}." if home else ""
    return {f"{prefix}{name}.{kind}": Tensor(np.ascontiguousarray(part.T)) for name, part in zip(_THIRDS, parts)}


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


def _transposed(value: Any) -> Any:
    return value.t() if isinstance(value, Tensor) else np.asarray(value).T


def _turn_linear(made: dict[str, Any], layer: Layer) -> None:
    for name, part in layer.named_sublayers(include_self=True):
        path = f"{name}.weight" if name else "weight"
        if type(part) is Linear and path in made:
            wanted, found = list(part.weight.shape), list(made[path].shape)
            if found != wanted and found == wanted[::-1]:
                made[path] = _transposed(made[path])


def _add_second_names(made: dict[str, Any], own: Mapping[str, Any]) -> None:
    """Parameters that a layer of Oar lists twice, as LSTM does, are in PyTorch's file once."""
    first = {id(own[name]): value for name, value in made.items() if name in own}
    for name, tensor in own.items():
        if name not in made and id(tensor) in first:
            made[name] = first[id(tensor)]
