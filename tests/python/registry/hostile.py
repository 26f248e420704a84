"""Calls that users make by mistake: odd shapes, other dtypes, huge numbers, nothing at all."""

from __future__ import annotations

import oar

HUGE = (2**63 - 1, -(2**63) + 1, 2**40, -7)


def tensors(x):
    """Tensors like x in all the wrong ways."""
    yield "an axis more", oar.unsqueeze(x, 0)
    yield "0-d", oar.zeros([], dtype=x.dtype)
    if x.ndim:
        yield "an axis less", x[0] if x.shape[0] else x.sum(0).astype(x.dtype)
        yield "empty", oar.zeros([0, *x.shape[1:]], dtype=x.dtype)
        yield "empty at the end", oar.zeros([*x.shape[:-1], 0], dtype=x.dtype)
        yield "a size more", oar.zeros([*x.shape[:-1], x.shape[-1] + 1], dtype=x.dtype)
        yield "all empty", oar.zeros([0] * x.ndim, dtype=x.dtype)
    for dtype in ("bool", "int8", "int64", "float16", "bfloat16", "float64", "complex64"):
        yield dtype, x.astype(dtype)
    if x.dtype in (oar.float32, oar.float64):
        for value in (float("nan"), float("inf"), -float("inf"), 1e38, -0.0):
            yield str(value), oar.full(x.shape, value, dtype=x.dtype)
    if x.dtype in (oar.int32, oar.int64):
        for value in (-1, 2**31 - 1, -(2**31)):
            yield str(value), oar.full(x.shape, value, dtype=x.dtype)


def numbers(value):
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (0, 1, -1, *HUGE)
    elif isinstance(value, float):
        yield from (0.0, -1.0, float("nan"), float("inf"), 1e308)


def lists(value):
    yield []
    yield [*value, *value, 1]
    for i in range(len(value)):
        for other in numbers(value[i]):
            yield [*value[:i], other, *value[i + 1:]]


def calls(args):
    """(what is odd, the arguments), each odd in one place."""
    for i, value in enumerate(args):
        def with_(other, i=i):
            return [*args[:i], other, *args[i + 1:]]

        if isinstance(value, oar.Tensor):
            for what, other in tensors(value):
                yield f"argument {i} {what}", with_(other)
        elif isinstance(value, (list, tuple)) and value and all(isinstance(v, oar.Tensor) for v in value):
            yield f"argument {i} []", with_([])
            for what, other in tensors(value[0]):
                yield f"argument {i}[0] {what}", with_([other, *value[1:]])
        elif isinstance(value, (list, tuple)):
            for other in lists(list(value)):
                yield f"argument {i} {other}", with_(other)
        elif isinstance(value, str):
            yield f"argument {i} 'no such'", with_("no such")
            yield f"argument {i} ''", with_("")
        elif isinstance(value, (bool, int, float)):
            for other in numbers(value):
                yield f"argument {i} {other}", with_(other)
