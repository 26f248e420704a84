"""Transforms along one axis."""

from __future__ import annotations

from oar._C import Tensor
from oar._spelling import spelled
from oar.fft._calls import complex_axis, hermitian_axis, real_axis, written


@spelled
def fft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
        out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along an axis.

    Args:
        x: the input; real or complex.
        n: the length of the axis; a longer one is cut, a shorter one is filled with zeros. None keeps it.
        axis: the axis to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.fft(oar.to_tensor([1.0, 2.0, 3.0, 4.0]))
        Tensor(shape=[4], dtype=complex64, place=Place(cpu), stop_gradient=True,
               [(10.+0.j), (-2.+2.j), (-2.+0.j), (-2.-2.j)])
    """
    return written(out, complex_axis("fft", x, n, axis, norm, True))


@spelled
def ifft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`fft`.

    Args:
        x: the input; real or complex.
        n: the length of the axis; a longer one is cut, a shorter one is filled with zeros. None keeps it.
        axis: the axis to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 2.0, 3.0, 4.0])
        >>> oar.fft.ifft(oar.fft.fft(x)).real().tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    return written(out, complex_axis("ifft", x, n, axis, norm, False))


@spelled
def rfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """Half of the discrete Fourier transform of real numbers along an axis: n // 2 + 1 coefficients. The others are their mirror
    image, conjugate.

    Args:
        x: the input; real.
        n: the length of the axis; a longer one is cut, a shorter one is filled with zeros. None keeps it.
        axis: the axis to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.rfft(oar.to_tensor([1.0, 2.0, 3.0, 4.0]))
        Tensor(shape=[3], dtype=complex64, place=Place(cpu), stop_gradient=True,
               [(10.+0.j), (-2.+2.j), (-2.+0.j)])
    """
    return written(out, real_axis("rfft", x, n, axis, norm, True))


@spelled
def irfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`rfft`. An odd length must be given by n.

    Args:
        x: the coefficients: half of the spectrum.
        n: the length of the result; as many coefficients as it needs are cut or filled with zeros. None: 2 (m - 1), for m
            coefficients.
        axis: the axis to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a real tensor.

    Examples:
        >>> import oar
        >>> oar.fft.irfft(oar.to_tensor([10 + 0j, -2 + 2j, -2 + 0j])).tolist()
        [1.0, 2.0, 3.0, 4.0]
    """
    return written(out, hermitian_axis("irfft", x, n, axis, norm, False))


@spelled
def hfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
         out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform of a signal that is its own mirror image, conjugate, from its first half. The result is real.

    Args:
        x: the first half of the signal.
        n: the length of the result; as many coefficients as it needs are cut or filled with zeros. None: 2 (m - 1), for m
            coefficients.
        axis: the axis to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a real tensor.

    Examples:
        >>> import oar
        >>> oar.fft.hfft(oar.to_tensor([1 + 0j, -1j, -1 + 0j])).tolist()
        [0.0, 0.0, 0.0, 4.0]
    """
    return written(out, hermitian_axis("hfft", x, n, axis, norm, True))


@spelled
def ihfft(x: Tensor, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None, *,
          out: Tensor | None = None) -> Tensor:
    """The inverse of :func:`hfft`: the first half of the inverse transform of real numbers.

    Args:
        x: the input; real.
        n: the length of the axis; a longer one is cut, a shorter one is filled with zeros. None keeps it.
        axis: the axis to transform.
        norm: which direction is divided by n: "backward" the inverse, "forward" the forward one, "ortho" both, by the square root.
        out: a tensor to write to, or None.

    Returns:
        a complex tensor.

    Examples:
        >>> import oar
        >>> oar.fft.ihfft(oar.to_tensor([1.0, 2.0, 3.0, 8.0])).abs().tolist()
        [3.5, 1.5811388492584229, 1.5]
    """
    return written(out, real_axis("ihfft", x, n, axis, norm, False))
