"""What the functions of the package share: checks, lengths, and calls of the three ops."""

from __future__ import annotations

from collections.abc import Sequence

from oar import _C
from oar._C import Dim, Tensor, ops
from oar._questions import is_complex, is_floating_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NORMS = ("forward", "backward", "ortho")


def written(out: Tensor | None, result: Tensor) -> Tensor:
    return result if out is None else ops.copy_into(out, result)


def _check_norm(name: str, norm: Any) -> None:
    if norm not in _NORMS:
        raise ValueError(f"[{name}] Unexpected norm: {norm!r}. It can be 'forward', 'backward' or 'ortho'.")


def _check_length(name: str, argument: str, n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, Dim)):
        raise ValueError(f"[{name}] {argument} has the length {n!r}; it should be an integer.")
    if isinstance(n, int) and n <= 0:
        raise ValueError(f"[{name}] {argument} has the length {n}; it should be positive.")


def check_axis(name: str, x: Tensor, axis: Any) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ValueError(f"[{name}] Invalid axis {axis!r}; it should be an integer.")
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"[{name}] Invalid axis {axis}; it should be in the range [-{x.ndim}, {x.ndim}).")
    return axis % x.ndim


def _checked_axes(name: str, x: Tensor, s: Any, axes: Any) -> tuple[list[int], list[int] | None]:
    """The axes, not negative, and the lengths that are requested."""
    if s is not None:
        if not isinstance(s, Sequence):
            raise ValueError(f"[{name}] s is {s!r}; it should be a sequence of integers.")
        if len(s) > x.ndim:
            raise ValueError(f"[{name}] s has {len(s)} lengths, but x has {x.ndim} axes.")
        for n in s:
            _check_length(name, f"s {s!r}", n)
    if axes is None:
        first = 0 if s is None else x.ndim - len(s)
        return list(range(first, x.ndim)), None if s is None else list(s)
    if not isinstance(axes, Sequence):
        raise ValueError(f"[{name}] axes is {axes!r}; it should be a sequence of integers.")
    if len(axes) > x.ndim:
        raise ValueError(f"[{name}] axes names {len(axes)} axes, but x has {x.ndim}.")
    chosen = [check_axis(name, x, axis) for axis in axes]
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"[{name}] axes {axes!r} names an axis twice.")
    if s is not None and len(s) != len(chosen):
        raise ValueError(f"[{name}] s has {len(s)} lengths and axes names {len(chosen)} axes; there should be as many.")
    return chosen, None if s is None else list(s)


def check_plane(name: str, x: Tensor, s: Any, axes: Any) -> None:
    """Two axes, and lengths of two."""
    if x.ndim < 2:
        raise ValueError(f"[{name}] x has rank {x.ndim}; it should have at least 2 axes.")
    for argument, given in (("s", s), ("axes", axes)):
        if given is not None and (not isinstance(given, Sequence) or len(given) != 2):
            raise ValueError(f"[{name}] {argument} is {given!r}; it should be a sequence of 2 integers.")


def _resized(x: Tensor, lengths: list[int], axes: list[int]) -> Tensor:
    paddings = [0] * (2 * x.ndim)
    for n, axis in zip(lengths, axes):
        paddings[2 * axis + 1] = n - x.shape[axis]
    return ops.pad_constant(x, paddings) if any(p != 0 for p in paddings) else x


def _as_float(name: str, x: Tensor) -> Tensor:
    if x.dtype == _C.bool:
        raise _C.ArgumentTypeError(f"[{name}] x has dtype bool; {name} takes numbers. Cast it first, for example x.astype('float32').")
    return x if is_floating_point(x) or is_complex(x) else ops.cast(x, _C.get_default_dtype())


def _as_complex(name: str, x: Tensor) -> Tensor:
    if is_complex(x):
        return x
    x = _as_float(name, x)
    return ops.cast(x, "complex128" if x.dtype == _C.float64 else "complex64")


def _checked_real(name: str, x: Tensor) -> Tensor:
    if is_complex(x):
        for_complex = name.removeprefix("r") if name.startswith("r") else name.replace("ih", "i")
        raise _C.ArgumentTypeError(f"[{name}] x has dtype {x.dtype.name}; {name} takes real numbers. Use {for_complex}, or x.real().")
    return _as_float(name, x)


def _complex_to_complex(name: str, x: Tensor, lengths: list[int] | None, axes: list[int], norm: str, forward: bool) -> Tensor:
    real = not is_complex(x)
    x = _as_float(name, x) if real and axes else _as_complex(name, x)
    if lengths is not None:
        x = _resized(x, lengths, axes)
    # Half of the work for real numbers: the other half of the spectrum is a mirror image.
    return ops.fft_r2c(x, axes, norm, forward, False) if real and axes else ops.fft_c2c(x, axes, norm, forward)


def _real_to_complex(x: Tensor, lengths: list[int] | None, axes: list[int], norm: str, forward: bool) -> Tensor:
    if lengths is not None:
        x = _resized(x, lengths, axes)
    return ops.fft_r2c(x, axes, norm, forward, True)


def _complex_to_real(name: str, x: Tensor, lengths: list[int] | None, axes: list[int], norm: str, forward: bool) -> Tensor:
    x = _as_complex(name, x)
    if lengths is None:
        return ops.fft_c2r(x, axes, norm, forward)
    x = _resized(x, [*lengths[:-1], lengths[-1] // 2 + 1], axes)
    return ops.fft_c2r(x, axes, norm, forward, lengths[-1])


def _one(name: str, x: Tensor, n: Any, axis: Any, norm: Any) -> tuple[list[int] | None, list[int]]:
    _check_norm(name, norm)
    chosen = check_axis(name, x, -1 if axis is None else axis)
    if n is not None:
        _check_length(name, "n", n)
    return None if n is None else [n], [chosen]


def _several(name: str, x: Tensor, s: Any, axes: Any, norm: Any, needs_one: bool) -> tuple[list[int] | None, list[int]]:
    _check_norm(name, norm)
    chosen, lengths = _checked_axes(name, x, s, axes)
    if needs_one and not chosen:
        raise ValueError(f"[{name}] x of shape {list(x.shape)} with axes {axes!r} has no axis to transform.")
    return lengths, chosen


def complex_axis(name: str, x: Tensor, n: Any, axis: Any, norm: Any, forward: bool) -> Tensor:
    return _complex_to_complex(name, x, *_one(name, x, n, axis, norm), norm, forward)


def real_axis(name: str, x: Tensor, n: Any, axis: Any, norm: Any, forward: bool) -> Tensor:
    return _real_to_complex(_checked_real(name, x), *_one(name, x, n, axis, norm), norm, forward)


def hermitian_axis(name: str, x: Tensor, n: Any, axis: Any, norm: Any, forward: bool) -> Tensor:
    return _complex_to_real(name, x, *_one(name, x, n, axis, norm), norm, forward)


def complex_axes(name: str, x: Tensor, s: Any, axes: Any, norm: Any, forward: bool) -> Tensor:
    return _complex_to_complex(name, x, *_several(name, x, s, axes, norm, False), norm, forward)


def real_axes(name: str, x: Tensor, s: Any, axes: Any, norm: Any, forward: bool) -> Tensor:
    return _real_to_complex(_checked_real(name, x), *_several(name, x, s, axes, norm, True), norm, forward)


def hermitian_axes(name: str, x: Tensor, s: Any, axes: Any, norm: Any, forward: bool) -> Tensor:
    return _complex_to_real(name, x, *_several(name, x, s, axes, norm, True), norm, forward)
