"""The frequencies of a spectrum, and spectra with frequency 0 in the middle."""

from __future__ import annotations

from collections.abc import Sequence

from oar import _C
from oar._C import Tensor, ops
from oar._creation import arange
from oar._spelling import finished, spelled
from oar.fft._calls import check_axis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _scaled(name: str, first: int, last: int, n: int, d: float, dtype: Any) -> Tensor:
    if n * d == 0:
        raise ValueError(f"[{name}] n is {n} and d is {d}; neither may be 0.")
    return arange(first, last, dtype=dtype or _C.get_default_dtype()) * (1.0 / (n * d))


def fftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None, *, out: Tensor | None = None,
            device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of the coefficients that :func:`fft` returns: 0, 1, ... then the negative ones, divided by n d.

    Args:
        n: the length of the transform.
        d: the time from one sample to the next.
        dtype: the dtype of the result; None is the default one.
        out: a tensor to write to, or None.
        device: the device; None is the current one.
        requires_grad: whether the result takes part in derivatives.

    Returns:
        a tensor [n].

    Examples:
        >>> import oar
        >>> oar.fft.fftfreq(5, d=0.5).tolist()
        [0.0, 0.4000000059604645, 0.800000011920929, -0.800000011920929, -0.4000000059604645]
    """
    frequencies = _scaled("fftfreq", -(n // 2), (n + 1) // 2, n, d, dtype)
    return finished(ops.roll(frequencies, [-(n // 2)], [0]), "fftfreq", out, device, requires_grad or None)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None, *, out: Tensor | None = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """The frequencies of the coefficients that :func:`rfft` returns: 0, 1, ... n // 2, divided by n d.

    Args:
        n: the length of the transform.
        d: the time from one sample to the next.
        dtype: the dtype of the result; None is the default one.
        out: a tensor to write to, or None.
        device: the device; None is the current one.
        requires_grad: whether the result takes part in derivatives.

    Returns:
        a tensor [n // 2 + 1].

    Examples:
        >>> import oar
        >>> oar.fft.rfftfreq(4, d=0.5).tolist()
        [0.0, 0.5, 1.0]
    """
    return finished(_scaled("rfftfreq", 0, n // 2 + 1, n, d, dtype), "rfftfreq", out, device, requires_grad or None)


def _shifted(name: str, x: Tensor, axes: int | Sequence[int] | None, extra: int) -> Tensor:
    given = range(x.ndim) if axes is None else axes if isinstance(axes, Sequence) else (axes,)
    chosen = [check_axis(name, x, axis) for axis in given]
    return ops.roll(x, [(x.shape[axis] + extra) // 2 for axis in chosen], chosen) if chosen else ops.assign(x)


@spelled
def fftshift(x: Tensor, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """The halves of each axis exchanged, so that frequency 0 is in the middle.

    Args:
        x: the input.
        axes: the axes to shift; None means all.

    Returns:
        a tensor of the shape of x.

    Examples:
        >>> import oar
        >>> oar.fft.fftshift(oar.to_tensor([0, 1, 2, -2, -1])).tolist()
        [-2, -1, 0, 1, 2]
    """
    return _shifted("fftshift", x, axes, 0)


@spelled
def ifftshift(x: Tensor, axes: int | Sequence[int] | None = None, name: str | None = None) -> Tensor:
    """The inverse of :func:`fftshift`; for axes of odd length they differ.

    Args:
        x: the input.
        axes: the axes to shift; None means all.

    Returns:
        a tensor of the shape of x.

    Examples:
        >>> import oar
        >>> oar.fft.ifftshift(oar.to_tensor([-2, -1, 0, 1, 2])).tolist()
        [0, 1, 2, -2, -1]
    """
    return _shifted("ifftshift", x, axes, 1)
