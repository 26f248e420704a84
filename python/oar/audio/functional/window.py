"""Windows: weights that let a piece of a signal fade in and out. They are computed in float64."""

from __future__ import annotations

import math

import oar
from oar._C import Tensor, ops
from oar._spelling import finished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _places(m: int) -> Tensor:
    return oar.arange(m, dtype="float64")


def _from_middle(m: int) -> Tensor:
    return _places(m) - (m - 1) / 2


def _cosines(m: int, *weights: float) -> Tensor:
    """A sum of cosines of multiples of an angle that runs from -pi to pi."""
    angle = _from_middle(m) * (2 * math.pi / (m - 1))
    window = ops.full([m], 0.0, "float64")
    for k, weight in enumerate(weights):
        window = window + ops.cos(angle * k) * weight
    return window


def _general_hamming(m: int, alpha: float) -> Tensor:
    return _cosines(m, alpha, 1.0 - alpha)


def _hamming(m: int) -> Tensor:
    return _general_hamming(m, 0.54)


def _hann(m: int) -> Tensor:
    return _general_hamming(m, 0.5)


def _blackman(m: int) -> Tensor:
    return _cosines(m, 0.42, 0.5, 0.08)


def _nuttall(m: int) -> Tensor:
    return _cosines(m, 0.3635819, 0.4891775, 0.1365995, 0.0106411)


def _general_cosine(m: int, a: Any) -> Tensor:
    return _cosines(m, *(a.tolist() if isinstance(a, Tensor) else a))


def _bartlett(m: int) -> Tensor:
    return 1.0 - ops.abs(_from_middle(m)) * (2 / (m - 1))


def _triang(m: int) -> Tensor:
    return 1.0 - ops.abs(_from_middle(m)) * (2 / (m + m % 2))


def _bohman(m: int) -> Tensor:
    far = ops.clip(ops.abs(_from_middle(m)) * (2 / (m - 1)), 0.0, 1.0)
    window = (1.0 - far) * ops.cos(far * math.pi) + ops.sin(far * math.pi) / math.pi
    return ops.where(far < 1.0, window, ops.zeros_like(window))


def _cosine(m: int) -> Tensor:
    return ops.sin((_places(m) + 0.5) * (math.pi / m))


def _gaussian(m: int, std: float) -> Tensor:
    return ops.exp(ops.square(_from_middle(m)) * (-0.5 / (std * std)))


def _general_gaussian(m: int, p: float, sig: float) -> Tensor:
    return ops.exp(-0.5 * ops.abs(_from_middle(m) / sig) ** (2 * p))


def _exponential(m: int, center: float | None = None, tau: float = 1.0) -> Tensor:
    middle = (m - 1) / 2 if center is None else center
    return ops.exp(-ops.abs(_places(m) - middle) / tau)


def _kaiser(m: int, beta: float) -> Tensor:
    far = _from_middle(m) * (2 / (m - 1))
    top = ops.i0(ops.full([], beta, "float64"))
    return ops.i0(ops.sqrt(ops.clip(1.0 - far * far, 0.0, 1.0)) * beta) / top


def _tukey(m: int, alpha: float = 0.5) -> Tensor:
    if alpha <= 0:
        return ops.full([m], 1.0, "float64")
    if alpha >= 1:
        return _hann(m)
    # 1 in the middle; half a wave of the cosine over alpha / 2 of the length at either end.
    depth = ops.clip((1.0 - ops.abs(_from_middle(m)) * (2 / (m - 1))) / alpha, 0.0, 1.0)
    return 0.5 - 0.5 * ops.cos(depth * math.pi)


def _taylor(m: int, nbar: int = 4, sll: float = 30, norm: bool = True) -> Tensor:
    a2 = (math.acosh(10 ** (sll / 20)) / math.pi) ** 2
    s2 = nbar**2 / (a2 + (nbar - 0.5) ** 2)

    def coefficient(k: int) -> float:
        above = math.prod(1 - k * k / s2 / (a2 + (j - 0.5) ** 2) for j in range(1, nbar))
        below = math.prod(1 - k * k / (j * j) for j in range(1, nbar) if j != k)
        return (-1) ** (k + 1) * above / below / 2

    coefficients = [coefficient(k) for k in range(1, nbar)]
    window = ops.full([m], 1.0, "float64")
    for k, weight in enumerate(coefficients, 1):
        window = window + ops.cos(_from_middle(m) * (2 * math.pi * k / m)) * (2 * weight)
    return window / (1 + 2 * sum(coefficients)) if norm else window


_WINDOWS: dict[str, Callable[..., Tensor]] = {
    "bartlett": _bartlett, "blackman": _blackman, "bohman": _bohman, "cosine": _cosine, "exponential": _exponential,
    "gaussian": _gaussian, "general_cosine": _general_cosine, "general_gaussian": _general_gaussian,
    "general_hamming": _general_hamming, "hamming": _hamming, "hann": _hann, "kaiser": _kaiser, "nuttall": _nuttall,
    "taylor": _taylor, "triang": _triang, "tukey": _tukey,
}  # fmt: skip
_NEED_PARAMETERS = ("gaussian", "exponential", "kaiser", "general_gaussian", "general_cosine", "general_hamming")


def get_window(window: str | tuple, win_length: int, fftbins: bool = True, dtype: str = "float64") -> Tensor:
    """A window by name.

    Args:
        window: the name, or a tuple of the name and its parameters: 'hamming', 'hann', 'blackman', 'nuttall', 'bartlett', 'triang',
            'bohman', 'cosine', 'tukey', 'taylor', ('kaiser', beta), ('gaussian', std), ('general_gaussian', p, std),
            ('exponential', center, tau), ('general_cosine', weights), ('general_hamming', alpha).
        win_length: the length.
        fftbins: whether the window is periodic, for spectra; else it is symmetric, for filters.
        dtype: the dtype of the result.

    Returns:
        a tensor [win_length].

    Examples:
        >>> import oar
        >>> oar.audio.functional.get_window('hann', 4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    name, *parameters = window if isinstance(window, tuple) else (window,)
    if not isinstance(name, str):
        raise ValueError(f"[get_window] {type(window)} as window type is not supported. Pass a name, or a tuple that starts with one.")
    if name not in _WINDOWS:
        raise ValueError(f"[get_window] Unknown window type {name!r}. There are {', '.join(sorted(_WINDOWS))}.")
    if name in _NEED_PARAMETERS and not parameters:
        raise ValueError(f"[get_window] The '{name}' window needs one or more parameters -- pass a tuple.")
    if int(win_length) != win_length or win_length < 0:
        raise ValueError(f"[get_window] win_length is {win_length}; it must be a non-negative integer.")
    if name == "exponential" and not fftbins and parameters[0] is not None:
        raise ValueError("[get_window] center must be None for a symmetric window.")
    if win_length <= 1:
        return ops.full([win_length], 1.0, dtype)
    # A periodic window is a symmetric one of one element more, without its last.
    made = _WINDOWS[name](win_length + 1, *parameters)[:-1] if fftbins else _WINDOWS[name](win_length, *parameters)
    return ops.cast(made, dtype)


def hann_window(window_length: int, periodic: bool = True, *, dtype: str = "float32", layout: str | None = None,
                device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Hann's window.

    Args:
        window_length: the length.
        periodic: whether the window is periodic, for spectra; else it is symmetric.
        dtype: the dtype of the result.
        layout: accepted for compatibility.
        device: the device; None is the current one.
        pin_memory: accepted for compatibility; must be False.
        requires_grad: whether the result takes part in derivatives.

    Returns:
        a tensor [window_length].

    Examples:
        >>> import oar
        >>> oar.hann_window(4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    return finished(get_window("hann", window_length, periodic, dtype), "hann_window", None, device, requires_grad, pin_memory)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: str = "float32",
                   layout: str | None = None, device: Any = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Tensor:
    """Hamming's window, alpha - beta cos(2 pi k / n).

    Args:
        window_length: the length.
        periodic: whether the window is periodic, for spectra; else it is symmetric.
        alpha: the constant.
        beta: the factor of the cosine.
        dtype: the dtype of the result.
        layout: accepted for compatibility.
        device: the device; None is the current one.
        pin_memory: accepted for compatibility; must be False.
        requires_grad: whether the result takes part in derivatives.

    Returns:
        a tensor [window_length].

    Examples:
        >>> import oar
        >>> oar.hamming_window(4, alpha=0.5, beta=0.5).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    made = get_window(("general_cosine", [alpha, beta]), window_length, periodic, dtype)
    return finished(made, "hamming_window", None, device, requires_grad, pin_memory)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: str = "float32",
                  layout: str | None = None, device: Any = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Tensor:
    """Kaiser's window.

    Args:
        window_length: the length.
        periodic: whether the window is periodic, for spectra; else it is symmetric.
        beta: the shape: 0 is a rectangle, larger numbers are narrower.
        dtype: the dtype of the result.
        layout: accepted for compatibility.
        device: the device; None is the current one.
        pin_memory: accepted for compatibility; must be False.
        requires_grad: whether the result takes part in derivatives.

    Returns:
        a tensor [window_length].

    Examples:
        >>> import oar
        >>> oar.kaiser_window(3, beta=0.0).tolist()
        [1.0, 1.0, 1.0]
    """
    return finished(get_window(("kaiser", beta), window_length, periodic, dtype), "kaiser_window", None, device, requires_grad, pin_memory)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: str = "float32", layout: str | None = None,
                    device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Blackman's window.

    Args:
        window_length: the length.
        periodic: whether the window is periodic, for spectra; else it is symmetric.
        dtype: the dtype of the result.
        layout: accepted for compatibility.
        device: the device; None is the current one.
        pin_memory: accepted for compatibility; must be False.
        requires_grad: whether the result takes part in derivatives.

    Returns:
        a tensor [window_length].

    Examples:
        >>> import oar
        >>> [round(w, 2) for w in oar.blackman_window(4).tolist()]
        [-0.0, 0.34, 1.0, 0.34]
    """
    return finished(get_window("blackman", window_length, periodic, dtype), "blackman_window", None, device, requires_grad, pin_memory)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: str = "float32", layout: str | None = None,
                    device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """Bartlett's window: a triangle.

    Args:
        window_length: the length.
        periodic: whether the window is periodic, for spectra; else it is symmetric.
        dtype: the dtype of the result.
        layout: accepted for compatibility.
        device: the device; None is the current one.
        pin_memory: accepted for compatibility; must be False.
        requires_grad: whether the result takes part in derivatives.

    Returns:
        a tensor [window_length].

    Examples:
        >>> import oar
        >>> oar.bartlett_window(4).tolist()
        [0.0, 0.5, 1.0, 0.5]
    """
    return finished(get_window("bartlett", window_length, periodic, dtype), "bartlett_window", None, device, requires_grad, pin_memory)
