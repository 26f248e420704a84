"""Transforms over several axes."""

from __future__ import annotations

from collections.abc import Sequence

from oar._C import Tensor
from oar._spelling import spelled
from oar.fft._calls import complex_axes, hermitian_axes, real_axes, written


@spelled
def fftn(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward",
         name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform over several axes.

    Args:
        x: the input; real or complex.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the axes to transform; None takes as many of the last as s has, or all.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.fftn(oar.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
        Tensor(shape=[2, 2], dtype=complex64, place=Place(cpu), stop_gradient=True,
               [[(10.+0.j), (-2.+0.j)],
                [(-4.+0.j),  (0.+0.j)]])
    """
    return written(out, complex_axes("fftn", x, s, axes, norm, True))


@spelled
def ifftn(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward",
          name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`fftn`.

    Args:
        x: the input; real or complex.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the axes to transform; None takes as many of the last as s has, or all.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> oar.fft.ifftn(oar.fft.fftn(x)).real().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return written(out, complex_axes("ifftn", x, s, axes, norm, False))


@spelled
def rfftn(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward",
          name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Half of the discrete Fourier transform of real numbers over several axes: n // 2 + 1 coefficients along the last of them.

    Args:
        x: the input; real.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the axes to transform; None takes as many of the last as s has, or all. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.rfftn(oar.ones([2, 4]))
        Tensor(shape=[2, 3], dtype=complex64, place=Place(cpu), stop_gradient=True,
               [[(8.+0.j), (0.+0.j), (0.+0.j)],
                [(0.+0.j), (0.+0.j), (0.+0.j)]])
    """
    return written(out, real_axes("rfftn", x, s, axes, norm, True))


@spelled
def irfftn(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward",
           name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`rfftn`. An odd length of the last axis must be given by s.

    Args:
        x: the coefficients: half of the spectrum along the last axis.
        s: the lengths of the result; as many coefficients as it needs are cut or filled with zeros. None keeps them, but for the
            last, which becomes 2 (m - 1), for m coefficients.
        axes: the axes to transform; None takes as many of the last as s has, or all. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a real tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> oar.fft.irfftn(oar.fft.rfftn(x)).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    return written(out, hermitian_axes("irfftn", x, s, axes, norm, False))


@spelled
def hfftn(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward",
          name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform over several axes of a signal of which only half is given along the last of them. The result is real.

    Args:
        x: the first half of the signal.
        s: the lengths of the result; as many coefficients as it needs are cut or filled with zeros. None keeps them, but for the
            last, which becomes 2 (m - 1), for m coefficients.
        axes: the axes to transform; None takes as many of the last as s has, or all. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a real tensor.

    Examples:
        >>> import oar
        >>> oar.fft.hfftn(oar.to_tensor([[2 + 2j, 2 + 2j, 3 + 3j]])).tolist()
        [[9.0, 3.0, 1.0, -5.0]]
    """
    return written(out, hermitian_axes("hfftn", x, s, axes, norm, True))


@spelled
def ihfftn(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward",
           name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`hfftn`.

    Args:
        x: the input; real.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the axes to transform; None takes as many of the last as s has, or all. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.ihfftn(oar.ones([1, 4])).real().tolist()
        [[1.0, 0.0, 0.0]]
    """
    return written(out, real_axes("ihfftn", x, s, axes, norm, False))
