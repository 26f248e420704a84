"""``decorate``: a network and its optimizer for training whose parameters are in 16 bits."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.framework.parameter import dtype_name

__all__ = ["amp_decorate", "decorate"]

_LEVELS = ("O1", "O2")
_DTYPES = ("float16", "bfloat16")
_SAVED = ("float16", "bfloat16", "float32", "float64")


def decorate(
    models: Any,
    optimizers: Any = None,
    level: str = "O1",
    dtype: str = "float16",
    master_weight: bool | None = None,
    save_dtype: str | None = None,
    master_grad: bool = False,
    excluded_layers: Any = None,
) -> Any:
    """Prepare networks and optimizers for mixed precision. Use it together with ``auto_cast`` of the same level.

    Args:
        models: a ``Layer`` or a list of them.
        optimizers: an ``Optimizer``, a list of them, or None.
        level: ``'O1'`` changes nothing. ``'O2'`` casts the parameters and buffers of the networks to ``dtype``, in place,
            except those of batch norms; in float16 those of layer and instance norms stay in float32, too.
        dtype: ``'float16'`` or ``'bfloat16'``.
        master_weight: whether the optimizers keep float32 copies of the parameters and update those. None means True.
        save_dtype: the dtype of what ``state_dict`` of the networks returns; None leaves it as it is.
        master_grad: whether gradients of parameters are cast to float32 as soon as they are computed.
        excluded_layers: a layer, a class of layers, or a list of those, whose parameters stay in float32. A layer includes
            those inside it.

    Returns:
        the models, or the models and the optimizers: lists where lists were passed.

    Examples:
        >>> import oar
        >>> net = oar.nn.Sequential(oar.nn.Linear(2, 4), oar.nn.BatchNorm1D(4))
        >>> optimizer = oar.optimizer.AdamW(0.1, parameters=net.parameters())
        >>> net, optimizer = oar.amp.decorate(net, optimizer, level='O2', dtype='bfloat16')
        >>> net[0].weight.dtype, net[1].weight.dtype
        (oar.bfloat16, oar.float32)
        >>> with oar.amp.auto_cast(level='O2', dtype='bfloat16'):
        ...     loss = net(oar.ones([4, 2])).mean()
        ...
        >>> loss.backward()
        >>> optimizer.step()
        >>> sorted(optimizer.state_dict()['master_weights']) == sorted([net[0].weight.name, net[0].bias.name])
        True
    """
    if level not in _LEVELS:
        raise ValueError(f"[decorate] level should be 'O1' or 'O2', but received {level!r}. O1 leaves everything as it is, O2 casts "
                         "parameters.")
    if dtype not in _DTYPES:
        raise ValueError(f"[decorate] dtype should be 'float16' or 'bfloat16', but received {dtype!r}.")
    if level == "O2":
        layers, steppers = _listed_models(models), _listed_optimizers(optimizers)
        if save_dtype is not None and save_dtype not in _SAVED:
            raise ValueError(f"[decorate] save_dtype should be one of {', '.join(_SAVED)} or None, but received {save_dtype!r}.")
        _exclude(layers, excluded_layers)
        _cast_parameters(layers, dtype)
        for optimizer in steppers:
            optimizer._multi_precision = master_weight is not False
            optimizer._signature = None  # its plan is made again
        if master_grad:
            _cast_gradients(layers)
        if save_dtype is not None:
            for layer in _all_layers(layers):
                layer.register_state_dict_hook(_StateDictHook(save_dtype))
    return models if optimizers is None else (models, optimizers)


amp_decorate = decorate


def _listed_models(models: Any) -> list[Any]:
    if not isinstance(models, (oar.nn.Layer, list)):
        raise TypeError(f"[decorate] models must be either a single model or a list of models, but received "
                        f"{type(models).__name__}. Pass a Layer.")
    listed = models if isinstance(models, list) else [models]
    parallel = getattr(oar, "DataParallel", None)
    for model in listed:
        if not isinstance(model, oar.nn.Layer):
            raise RuntimeError(f"[decorate] models should be Layers, but received {type(model).__name__}.")
        if parallel is not None and isinstance(model, parallel):
            raise RuntimeError("[decorate] received a DataParallel. Decorate the network first, then pass it to DataParallel.")
    return listed


def _listed_optimizers(optimizers: Any) -> list[Any]:
    if optimizers is None:
        return []
    if not isinstance(optimizers, (oar.optimizer.Optimizer, list)):
        raise TypeError("[decorate] optimizers must be either a single optimizer or a list of optimizers, but received "
                        f"{type(optimizers).__name__}.")
    listed = optimizers if isinstance(optimizers, list) else [optimizers]
    for optimizer in listed:
        if not isinstance(optimizer, oar.optimizer.Optimizer):
            raise RuntimeError(f"[decorate] optimizers should be Optimizers, but received {type(optimizer).__name__}.")
    return listed


def _all_layers(models: list[Any]) -> list[Any]:
    return [layer for model in models for layer in model.sublayers(include_self=True)]


def _exclude(models: list[Any], excluded: Any) -> None:
    """Marks the layers whose parameters stay as they are."""
    listed = [] if excluded is None else list(excluded) if isinstance(excluded, (list, tuple)) else [excluded]
    types: list[type] = []
    for entry in listed:
        if isinstance(entry, oar.nn.Layer):
            for layer in entry.sublayers(include_self=True):
                layer._cast_to_low_precision = False
        elif isinstance(entry, type) and issubclass(entry, oar.nn.Layer):
            types.append(entry)
        else:
            raise TypeError("[decorate] excluded_layers must be either a nn.Layer instance/type or a list of nn.Layer "
                            f"instances/types, but received {entry!r}.")
    for layer in _all_layers(models):
        if isinstance(layer, tuple(types)):
            layer._cast_to_low_precision = False


def _stays(layer: Any, dtype: str) -> bool:
    nn = oar.nn
    if not getattr(layer, "_cast_to_low_precision", True):
        return True
    batch_norms = (nn.BatchNorm, nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D, nn.SyncBatchNorm)
    other_norms = (nn.LayerNorm, nn.InstanceNorm1D, nn.InstanceNorm2D, nn.InstanceNorm3D)
    return isinstance(layer, batch_norms) or (dtype == "float16" and isinstance(layer, other_norms))


def _cast_parameters(models: list[Any], dtype: str) -> None:
    for layer in _all_layers(models):
        if not _stays(layer, dtype):
            layer._convert(None, dtype, floating_only=True, include_sublayers=False)


def _cast_gradients(models: list[Any]) -> None:
    for model in models:
        for param in model.parameters():
            if dtype_name(param.dtype) in _DTYPES and not param.stop_gradient and not hasattr(param, "_master_grad_hook"):
                param._master_grad_hook = param.register_hook(_to_float32)


def _to_float32(grad: Any) -> Any:
    return grad.astype("float32")


class _StateDictHook:
    """Casts what a state dict returns."""

    def __init__(self, save_dtype: str) -> None:
        self._save_dtype = save_dtype

    def __call__(self, state_dict: dict[str, Any]) -> None:
        for key, value in state_dict.items():
            if isinstance(value, Tensor) and oar.is_floating_point(value) and dtype_name(value.dtype) != self._save_dtype:
                with oar.no_grad():
                    saved = value.astype(self._save_dtype)
                saved.name = value.name
                state_dict[key] = saved
