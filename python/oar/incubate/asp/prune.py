"""Which parameters are pruned, and pruning them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from oar import nn
from oar._C import Tensor
from oar._creation import to_tensor
from oar.incubate.asp.masks import ALGORITHMS, mask_of
from oar.nn.layer.layers import _convert_camel_to_snake

__all__ = ["add_supported_layer", "prune_model", "reset_excluded_layers", "set_excluded_layers"]

Pruning = Callable[[np.ndarray, int, int, str, str], tuple[np.ndarray, np.ndarray]]

_excluded: set[str] = set()
masks: dict[str, Tensor] = {}  # of the parameters of decorated optimizers, by their names


def _prune_by_default(weight: np.ndarray, m: int, n: int, algorithm: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The pruned weight and its mask."""
    summed = weight.shape[0 if weight.ndim == 2 else 1] if weight.ndim > 1 else 0
    if summed < m:
        warnings.warn(f"{name} is not pruned: the axis that a product sums over has {summed} elements, fewer than {m}.",
                      stacklevel=4)
        return weight, np.ones_like(weight)
    mask = mask_of(weight, n, m, algorithm)
    return weight * mask, mask


_supported: dict[str, Pruning] = {name: _prune_by_default for name in ("fc", "linear", "conv2d")}


def add_supported_layer(layer: nn.Layer | type[nn.Layer] | str, pruning_func: Pruning | None = None) -> None:
    """Adds a kind of layer whose weights are pruned. ``Linear`` and ``Conv2D`` are so from the beginning.

    Args:
        layer: a layer, its class, or the name of a kind, of a layer or of a parameter, such as 'linear', 'linear_0' and
            'linear_0.w_0'.
        pruning_func: called with an array, m, n, mask_algo and the name of the parameter; it returns the pruned array
            and its mask. None for the default, which prunes along the axis that a product sums over.

    Examples:
        >>> import oar
        >>> oar.incubate.asp.add_supported_layer(oar.incubate.nn.FusedLinear)
    """
    if isinstance(layer, nn.Layer):
        layer = type(layer)
    if isinstance(layer, type) and issubclass(layer, nn.Layer):
        layer = _convert_camel_to_snake(layer.__name__)
    if not isinstance(layer, str):
        raise TypeError(f"[add_supported_layer] layer is {layer!r}; it must be a layer, a class of layers or a name.")
    _supported[layer] = pruning_func or _prune_by_default


def _refuse_program(op: str, program: Any) -> None:
    if program is not None:
        raise NotImplementedError(f"[{op}] programs are not pruned. Prune the layer before the program is built from it, "
                                  "and pass no program.")


def set_excluded_layers(param_names: Iterable[str], main_program: Any = None) -> None:
    """Names layers or parameters that are not pruned. Call it before ``decorate``.

    Args:
        param_names: parts of names of parameters, such as the full names of layers.
        main_program: only None.

    Examples:
        >>> import oar
        >>> layer = oar.nn.Linear(8, 4)
        >>> oar.incubate.asp.set_excluded_layers([layer.full_name()])
        >>> oar.incubate.asp.prune_model(layer, with_mask=False)
        {}
        >>> oar.incubate.asp.reset_excluded_layers()
    """
    _refuse_program("set_excluded_layers", main_program)
    if isinstance(param_names, str):
        raise TypeError("[set_excluded_layers] param_names is a string; it must be a list of strings.")
    _excluded.update(param_names)


def reset_excluded_layers(main_program: Any = None) -> None:
    """No layer is excluded any more.

    Args:
        main_program: only None.

    Examples:
        >>> import oar
        >>> oar.incubate.asp.reset_excluded_layers()
    """
    _refuse_program("reset_excluded_layers", main_program)
    _excluded.clear()


def pruning_of(name: str) -> Pruning | None:
    """How the parameter of this name is pruned; None if it is not."""
    if any(part in name for part in _excluded):
        return None
    if name in _supported:
        return _supported[name]
    layer, _, kind = name.partition(".")
    if "w_" not in kind:
        return None
    return _supported.get(layer) or _supported.get(layer.rpartition("_")[0])


def prune_model(
    model: nn.Layer, n: int = 2, m: int = 4, mask_algo: str = "mask_1d", with_mask: bool = True
) -> dict[str, Tensor]:
    """Sets weights to 0 so that each m neighbours have at least n zeros.

    Args:
        model: a layer; the weights of its linear and convolution layers, and of those that were added with
            ``add_supported_layer``, are changed.
        n: the number of zeros.
        m: among how many neighbours, along the axis that a product sums over.
        mask_algo: 'mask_1d': the smallest of m neighbours become 0; 'mask_2d_greedy' and 'mask_2d_best': each row and
            each column of a block of m x m has n zeros; the second is slower and keeps more.
        with_mask: whether the optimizer from ``decorate`` keeps the zeros while it trains.

    Returns:
        the masks by the names of parameters.

    Examples:
        >>> import oar
        >>> layer = oar.nn.Linear(8, 4)
        >>> _ = oar.incubate.asp.prune_model(layer, with_mask=False)
        >>> oar.incubate.asp.calculate_density(layer.weight)
        0.5
    """
    op = "prune_model"
    if not isinstance(model, nn.Layer):
        raise TypeError(f"[{op}] model is a {type(model).__name__}; it must be a Layer. Prune the layer before a program is "
                        "built from it.")
    if not 0 < n < m:
        raise ValueError(f"[{op}] n is {n} and m {m}; n must be from 1 to m - 1.")
    if mask_algo not in ALGORITHMS:
        raise ValueError(f"[{op}] mask_algo is {mask_algo!r}; it can be one of {', '.join(map(repr, ALGORITHMS))}.")
    found = {}
    for parameter in model.parameters():
        pruning = pruning_of(parameter.name)
        if pruning is None:
            continue
        if with_mask and parameter.name not in masks:
            raise RuntimeError(f"[{op}] no decorated optimizer has the parameter {parameter.name}. Call asp.decorate with "
                               "its optimizer first, or pass with_mask=False.")
        weight, mask = pruning(parameter.numpy(), m, n, mask_algo, parameter.name)
        parameter.set_value(weight)
        found[parameter.name] = to_tensor(mask)
        if with_mask:
            masks[parameter.name] = found[parameter.name]
    return found
