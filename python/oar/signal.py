"""Short-time Fourier transforms, and the frames of a signal."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar._framework import in_dynamic_mode
from oar._questions import is_complex
from oar._spelling import spelled

__all__ = ["istft", "stft"]


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise AssertionError(text)  # as Paddle


def _check_axis(name: str, axis: int) -> None:
    if axis not in (0, -1):
        raise ValueError(f"[{name}] Unexpected axis: {axis}. It should be 0 or -1.")


def _check_positive(name: str, argument: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise ValueError(f"[{name}] Unexpected {argument}: {value!r}. It should be a positive integer.")


@spelled
def frame(x: Tensor, frame_length: int, hop_length: int, axis: int = -1, name: str | None = None) -> Tensor:
    """Overlapping pieces of a signal.

    Args:
        x: the signals; each is along the first or the last axis.
        frame_length: the length of a piece.
        hop_length: the distance from the start of a piece to that of the next.
        axis: 0 or -1, the axis of the signals.

    Returns:
        a tensor [..., frame_length, pieces], or [pieces, frame_length, ...] if axis is 0.

    Examples:
        >>> import oar
        >>> oar.signal.frame(oar.arange(8), frame_length=4, hop_length=2).tolist()
        [[0, 2, 4], [1, 3, 5], [2, 4, 6], [3, 5, 7]]
    """
    _check_axis("frame", axis)
    _check_positive("frame", "frame_length", frame_length)
    _check_positive("frame", "hop_length", hop_length)
    pieces = ops.unfold(x, axis, frame_length, hop_length)
    return ops.assign(ops.swapaxes(pieces, -1, -2) if axis == -1 else ops.moveaxis(pieces, [-1], [1]))


@spelled
def overlap_add(x: Tensor, hop_length: int, axis: int = -1, name: str | None = None) -> Tensor:
    """Signals from overlapping pieces, which are added where they overlap.

    Args:
        x: the pieces: [..., frame_length, pieces], or [pieces, frame_length, ...] if axis is 0.
        hop_length: the distance from the start of a piece to that of the next.
        axis: 0 or -1, the axis of the signals in the result.

    Returns:
        a tensor with one axis less.

    Examples:
        >>> import oar
        >>> oar.signal.overlap_add(oar.ones([4, 3]), hop_length=2).tolist()
        [1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 1.0, 1.0]
    """
    _check_axis("overlap_add", axis)
    _check_positive("overlap_add", "hop_length", hop_length)
    if x.ndim < 2:
        raise ValueError(f"[overlap_add] x has shape {list(x.shape)}; it should have at least 2 axes.")
    if axis == -1:
        return _added(ops.swapaxes(x, -1, -2), hop_length)
    rest = list(x.shape[2:])
    if not rest:
        return _added(x, hop_length)
    pieces = ops.reshape(x, [x.shape[0], x.shape[1], -1])
    return ops.reshape(ops.transpose(_added(ops.transpose(pieces, [2, 0, 1]), hop_length), [1, 0]), [-1, *rest])


def _added(x: Tensor, hop_length: int) -> Tensor:
    """Pieces [..., pieces, length] as signals."""
    *before, pieces, length = x.shape
    size = (pieces - 1) * hop_length + length
    steps = [hop_length, 1]
    step = size
    for count in reversed(before):
        steps.insert(0, step)
        step = step * count
    return ops.as_strided_grad(x, [*before, size], steps)


def _whole_window(window: Tensor | None, win_length: int, n_fft: int, dtype: str) -> Tensor:
    """The window in the middle of n_fft elements."""
    if window is None:
        window = ops.full([win_length], 1, dtype)
    _require(window.ndim == 1 and window.shape[0] == win_length,
             f"expected a 1D window tensor of size equal to win_length({win_length}), but got window with shape {list(window.shape)}.")
    left = (n_fft - win_length) // 2
    return ops.pad_constant(window, [left, n_fft - win_length - left]) if win_length < n_fft else window


def _real_name(x: Tensor) -> str:
    return "float64" if x.dtype.name in ("float64", "complex128") else "float32"


@spelled
def stft(x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
         center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
         name: str | None = None) -> Tensor:
    """The short-time Fourier transform: the transforms of overlapping pieces of a signal, each multiplied by a window.

    Args:
        x: one signal, or a batch [n, length]; real or complex.
        n_fft: the length of a piece.
        hop_length: the distance from a piece to the next; None is n_fft // 4.
        win_length: the length of the window; None is n_fft.
        window: the window, of win_length elements; a shorter one is put in the middle of n_fft elements. None is all ones.
        center: whether the signal is padded by n_fft // 2 on both sides, so that piece t has element t * hop_length in its middle.
        pad_mode: how: "reflect" or "constant".
        normalized: whether the result is divided by the square root of n_fft.
        onesided: whether to return half of the spectrum; None does so for real signals and windows.

    Returns:
        a complex tensor [..., n_fft // 2 + 1 or n_fft, pieces].

    Examples:
        >>> import oar
        >>> oar.signal.stft(oar.randn([8, 48000]), n_fft=512).shape
        [8, 257, 376]
    """
    _require(x.ndim in (1, 2), f"x should be a 1D or 2D tensor, but got rank of x is {x.ndim}")
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    _require(hop_length > 0, f"hop_length should be > 0, but got {hop_length}.")
    if in_dynamic_mode():
        _require(0 < n_fft <= x.shape[-1], f"n_fft should be in (0, seq_length({x.shape[-1]})], but got {n_fft}.")
    _require(0 < win_length <= n_fft, f"win_length should be in (0, n_fft({n_fft})], but got {win_length}.")
    window = _whole_window(window, win_length, n_fft, _real_name(x))
    _require(not center or pad_mode in ("constant", "reflect"), f'pad_mode should be "reflect" or "constant", but got "{pad_mode}".')
    one = x.ndim == 1
    signals = ops.unsqueeze(x, [0]) if one else x
    if center:
        from oar.nn.functional import pad

        signals = ops.squeeze(pad(ops.unsqueeze(signals, [1]), [n_fft // 2, n_fft // 2], pad_mode, data_format="NCL"), [1])
    pieces = ops.multiply(ops.unfold(signals, -1, n_fft, hop_length), window)
    _require(not (onesided and is_complex(pieces)), "onesided should be False when input or window is a complex Tensor.")
    norm = "ortho" if normalized else "backward"
    if is_complex(pieces):
        spectra = ops.fft_c2c(pieces, [-1], norm, True)
    else:
        spectra = ops.fft_r2c(pieces, [-1], norm, True, onesided is not False)
    spectra = ops.transpose(spectra, [0, 2, 1])
    return ops.squeeze(spectra, [0]) if one else spectra


@spelled
def istft(x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
          center: bool = True, normalized: bool = False, onesided: bool = True, length: int | None = None,
          return_complex: bool = False, name: str | None = None) -> Tensor:
    """The inverse of :func:`stft`: the signal whose short-time transform is nearest to x in the sense of least squares.

    Args:
        x: one transform, or a batch of them: complex, [..., n_fft // 2 + 1 or n_fft, pieces].
        n_fft: the length of a piece.
        hop_length: the distance from a piece to the next; None is n_fft // 4.
        win_length: the length of the window; None is n_fft.
        window: the window that stft was called with.
        center: whether the signal was padded.
        normalized: whether the transform was divided by the square root of n_fft.
        onesided: whether x has half of the spectrum.
        length: the length of the signal; None is all that the pieces cover.
        return_complex: whether the signal is complex; then x has the whole spectrum.

    Returns:
        a tensor [..., length].

    Examples:
        >>> import oar
        >>> x = oar.randn([2, 4096])
        >>> spectra = oar.signal.stft(x, n_fft=512)
        >>> bool(oar.allclose(oar.signal.istft(spectra, n_fft=512), x, atol=1e-5))
        True
    """
    if not is_complex(x):
        raise TypeError(f"[istft] x has dtype {x.dtype.name}; it should be complex, as the result of stft is.")
    _require(x.ndim in (2, 3), f"x should be a 2D or 3D complex tensor, but got rank of x is {x.ndim}")
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    _require(0 < hop_length <= win_length, f"hop_length should be in (0, win_length({win_length})], but got {hop_length}.")
    _require(0 < win_length <= n_fft, f"win_length should be in (0, n_fft({n_fft})], but got {win_length}.")
    if in_dynamic_mode():
        _require(0 not in x.shape, "x should not be an empty tensor.")
        expected = n_fft // 2 + 1 if onesided else n_fft
        _require(x.shape[-2] == expected,
                 f"x has {x.shape[-2]} coefficients for each piece; with n_fft={n_fft} and onesided={onesided} it should have {expected}.")
    window = _whole_window(window, win_length, n_fft, _real_name(x))
    norm = "ortho" if normalized else "backward"
    spectra = ops.transpose(ops.unsqueeze(x, [0]) if x.ndim == 2 else x, [0, 2, 1])
    if return_complex:
        _require(not onesided, "onesided should be False when input(output of istft) or window is a complex Tensor.")
        pieces = ops.fft_c2c(spectra, [-1], norm, False)
    else:
        _require(not is_complex(window), "Data type of window should not be complex when return_complex is False.")
        pieces = ops.fft_c2r(spectra[:, :, : n_fft // 2 + 1], [-1], norm, False, n_fft)
    signals = _added(ops.multiply(pieces, window), hop_length)
    weights = _added(ops.expand(ops.multiply(window, window), [x.shape[-1], n_fft]), hop_length)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else signals.shape[-1] - start
    signals, weights = signals[:, start:stop], weights[start:stop]
    if in_dynamic_mode() and ops.min(ops.abs(weights)).item() < 1e-11:
        raise ValueError("[istft] Nonzero Overlap Add (NOLA) condition failed: the windows leave a gap where their squares sum to 0. "
                         "Choose a smaller hop_length, or a window that is not 0 at its ends.")
    signals = ops.divide(signals, weights)
    return ops.squeeze(signals, [0]) if x.ndim == 2 else signals
