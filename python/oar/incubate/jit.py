"""Functions for inference that are captured."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

from oar._grad_mode import no_grad
from oar._places import unavailable
from oar.nn.layer.layers import Layer

__all__ = ["inference", "is_inference_mode"]

_MARK = "_oar_for_inference"
_PRECISIONS = ("float32", "float16", "bfloat16")


def is_inference_mode(function: Any) -> bool:
    """Whether a function or a layer was given to ``inference``.

    Args:
        function: the function or layer.

    Examples:
        >>> import oar
        >>> net = oar.nn.Linear(2, 2)
        >>> oar.incubate.jit.is_inference_mode(net)
        False
        >>> oar.incubate.jit.is_inference_mode(oar.incubate.jit.inference(net))
        True
    """
    return hasattr(function.forward if isinstance(function, Layer) else function, _MARK)


def _captured(function: Any, precision: str) -> Any:
    from oar.amp import auto_cast
    from oar.jit import to_static

    static = to_static(function)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with no_grad(), auto_cast(dtype=precision) if precision != "float32" else contextlib.nullcontext():
            return static(*args, **kwargs)

    setattr(run, _MARK, static)
    return run


def inference(
    function: Any = None,
    cache_static_model: bool = False,
    save_model_dir: str | None = None,
    memory_pool_init_size_mb: int = 1000,
    precision_mode: str = "float32",
    switch_ir_optim: bool = True,
    switch_ir_debug: bool = False,
    enable_cinn: bool = False,
    with_trt: bool = False,
    trt_precision_mode: str = "float32",
    trt_use_static: bool = False,
    collect_shape: bool = False,
    enable_new_ir: bool = False,
    exp_enable_use_cutlass: bool = False,
    delete_pass_lists: list[str] | None = None,
    skip_prune_program: bool = False,
) -> Any:
    """Lets a function or a layer run as a captured program without gradients. A decorator, with or without arguments.

    Args:
        function: a function, a method, or a ``Layer``, whose ``forward`` is replaced.
        cache_static_model, save_model_dir: accepted for compatibility; programs live as long as the function.
        memory_pool_init_size_mb: accepted for compatibility.
        precision_mode: ``'float32'``, or ``'float16'`` or ``'bfloat16'`` to compute in mixed precision.
        switch_ir_optim, switch_ir_debug, enable_cinn, enable_new_ir, exp_enable_use_cutlass, delete_pass_lists,
            skip_prune_program, collect_shape: accepted for compatibility.
        with_trt, trt_precision_mode, trt_use_static: for TensorRT, which is not available.

    Returns:
        the function that runs as a program; the layer itself for a layer.

    Examples:
        >>> import oar
        >>> @oar.incubate.jit.inference
        ... def double(x):
        ...     return x * 2
        ...
        >>> double(oar.to_tensor([1.0, 2.0])).tolist()
        [2.0, 4.0]
    """
    if with_trt:
        raise unavailable("inference", "TensorRT")
    if precision_mode not in _PRECISIONS:
        raise ValueError(f"[inference] precision_mode is {precision_mode!r}; it can be {', '.join(_PRECISIONS)}.")

    def decorate(target: Any) -> Any:
        if is_inference_mode(target):
            return target
        if isinstance(target, Layer):
            target.forward = _captured(target.forward, precision_mode)  # type: ignore[method-assign]
            return target
        return _captured(target, precision_mode)

    return decorate if function is None else decorate(function)
