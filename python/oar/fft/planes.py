"""Transforms over two axes."""

from __future__ import annotations

from collections.abc import Sequence

from oar._C import Tensor
from oar._spelling import spelled
from oar.fft._calls import check_plane, complex_axes, hermitian_axes, real_axes, written


@spelled
def fft2(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward",
         name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform over two axes.

    Args:
        x: the input; real or complex.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the two axes to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.fft2(oar.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
        Tensor(shape=[2, 2], dtype=complex64, place=Place(cpu), stop_gradient=True,
               [[(10.+0.j), (-2.+0.j)],
                [(-4.+0.j),  (0.+0.j)]])
    """
    check_plane("fft2", x, s, axes)
    return written(out, complex_axes("fft2", x, s, axes, norm, True))


@spelled
def ifft2(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward",
          name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`fft2`.

    Args:
        x: the input; real or complex.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the two axes to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> oar.fft.ifft2(oar.fft.fft2(x)).real().tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    check_plane("ifft2", x, s, axes)
    return written(out, complex_axes("ifft2", x, s, axes, norm, False))


@spelled
def rfft2(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward",
          name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Half of the discrete Fourier transform of real numbers over two axes: n // 2 + 1 coefficients along the last of them.

    Args:
        x: the input; real.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the two axes to transform. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.rfft2(oar.ones([2, 4]))
        Tensor(shape=[2, 3], dtype=complex64, place=Place(cpu), stop_gradient=True,
               [[(8.+0.j), (0.+0.j), (0.+0.j)],
                [(0.+0.j), (0.+0.j), (0.+0.j)]])
    """
    check_plane("rfft2", x, s, axes)
    return written(out, real_axes("rfft2", x, s, axes, norm, True))


@spelled
def irfft2(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward",
           name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`rfft2`. An odd length of the last axis must be given by s.

    Args:
        x: the coefficients: half of the spectrum along the last axis.
        s: the lengths of the result; as many coefficients as it needs are cut or filled with zeros. None keeps them, but for the
            last, which becomes 2 (m - 1), for m coefficients.
        axes: the two axes to transform. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a real tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> oar.fft.irfft2(oar.fft.rfft2(x)).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    check_plane("irfft2", x, s, axes)
    return written(out, hermitian_axes("irfft2", x, s, axes, norm, False))


@spelled
def hfft2(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward",
          name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform over two axes of a signal of which only half is given along the last of them. The result is real.

    Args:
        x: the first half of the signal.
        s: the lengths of the result; as many coefficients as it needs are cut or filled with zeros. None keeps them, but for the
            last, which becomes 2 (m - 1), for m coefficients.
        axes: the two axes to transform. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a real tensor.

    Examples:
        >>> import oar
        >>> oar.fft.hfft2(oar.to_tensor([[2 + 2j, 2 + 2j, 3 + 3j]])).tolist()
        [[9.0, 3.0, 1.0, -5.0]]
    """
    check_plane("hfft2", x, s, axes)
    return written(out, hermitian_axes("hfft2", x, s, axes, norm, True))


@spelled
def ihfft2(x: Tensor, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward",
           name: str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`hfft2`.

    Args:
        x: the input; real.
        s: the lengths of the axes; longer ones are cut, shorter ones are filled with zeros. None keeps them.
        axes: the two axes to transform. The last of them has half of the spectrum.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.ihfft2(oar.ones([1, 4])).real().tolist()
        [[1.0, 0.0, 0.0]]
    """
    check_plane("ihfft2", x, s, axes)
    return written(out, real_axes("ihfft2", x, s, axes, norm, False))
