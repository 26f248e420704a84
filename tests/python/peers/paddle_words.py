"""What the expressions of paddle_table may name besides the arguments of the op."""

from __future__ import annotations

import builtins
import math  # noqa: F401

import numpy as np
import paddle
import paddle.nn.functional as F  # noqa: N812


class Absent(NotImplementedError):
    """Paddle has no such case of the function."""


def one(value):
    """A list of one number as the number."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def padded(padding, algorithm):
    return one(padding) if algorithm == "EXPLICIT" else algorithm


def of_rank(name, x, rank=None):
    """F.name1d, 2d or 3d by the number of spatial axes of x."""
    return getattr(F, f"{name}{(rank or x.ndim) - 2}d")


def places(indices):
    return tuple(builtins.slice(None) if i is None else i for i in indices)


def slices(index):
    """Our list of (kind, start, stop, step), as an argument of x[...]."""
    parts = []
    for kind, start, stop, step in zip(*[iter(index)] * 4):
        parts.append(builtins.slice(start, stop, step) if kind == 0 else
                     start if kind == 1 else None if kind == 2 else ...)
    return tuple(parts)


def written(x, index, value):
    out = paddle.assign(x)
    out[index] = value
    return out


def phases(vectors):
    """What makes the leading element of each column real and positive: see ops/families/gauge.h."""
    sizes = paddle.square(paddle.abs(vectors.detach()))
    leads = paddle.cast(sizes >= 0.999 * paddle.max(sizes, -2, True), "int32")
    first = F.one_hot(paddle.argmax(leads, -2), vectors.shape[-2]).swapaxes(-1, -2)
    leading = paddle.sum(vectors * paddle.cast(first, vectors.dtype), -2, keepdim=True)
    return paddle.conj(leading / paddle.cast(paddle.abs(leading), leading.dtype))


def gauged(vectors):
    return vectors * phases(vectors)


def order_of_lapack(x, values):
    """A permutation that puts eigenvalues, or the columns of their vectors, into LAPACK's order, which is NumPy's and ours."""
    if 0 in values.shape:
        raise Absent("an order of no eigenvalues")
    distances = np.abs(values.numpy()[..., :, None] - np.linalg.eigvals(x.numpy())[..., None, :])
    return paddle.to_tensor(np.eye(values.shape[-1])[distances.argmin(-2)].swapaxes(-1, -2)).astype(values.dtype)


def ordered_eigvals(x):
    values = paddle.linalg.eigvals(x)
    return (values.unsqueeze(-2) @ order_of_lapack(x, values)).squeeze(-2)


def ordered_eig(x):
    values, vectors = paddle.linalg.eig(x)
    order = order_of_lapack(x, values)
    return (values.unsqueeze(-2) @ order).squeeze(-2), gauged(vectors @ order)


def gauged_svd(x, full_matrices):
    u, s, vh = paddle.linalg.svd(x, full_matrices)
    turn = paddle.conj(paddle.swapaxes(phases(u), -2, -1))
    if turn.shape[-2] != vh.shape[-2]:
        raise Absent("more vectors than values")
    return gauged(u), s, turn * vh


def leading_spatial(x, axis, count):
    """Whether axis begins the spatial axes of an image [n, c, ...]."""
    if axis % x.ndim != 2 or x.ndim != 2 + count:
        raise Absent("resampling of other axes than an image's")
    return x


def interpolate(x, axis, size, scale, mode, align_corners, align_mode):
    x = leading_spatial(x, axis, len(size))
    names = {"linear": ("linear", "bilinear", "trilinear"), "cubic": (None, "bicubic", None)}.get(mode, (mode,) * 3)
    name = names[len(size) - 1]
    if name is None:
        raise Absent("cubic over other axes than two")
    given = {"size": list(size)} if scale is None else {"scale_factor": list(scale)}
    data_format = ("NCW", "NCHW", "NCDHW")[len(size) - 1]
    return F.interpolate(x, **given, mode=name, align_corners=align_corners, align_mode=align_mode,
                         data_format=data_format)


def pad_edges(x, paddings, mode):
    n = x.ndim - 2
    if not 1 <= n <= 3 or any(paddings[:4]):
        raise Absent("padding of the batch or the channels by its edges")
    pairs = [paddings[2 * i:2 * i + 2] for i in range(x.ndim - 1, 1, -1)]
    data_format = ("NCL", "NCHW", "NCDHW")[n - 1]
    name = {"edge": "replicate", "wrap": "circular"}.get(mode, mode)
    return F.pad(x, [p for pair in pairs for p in pair], mode=name, data_format=data_format)


def with_lengths(reduction):
    return {"reduction": reduction, "norm_by_times": False}
