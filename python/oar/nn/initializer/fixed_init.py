"""Initialisers with given or structured values: Constant, Assign, Dirac, Bilinear, Orthogonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.framework.parameter import dtype_name
from oar.nn.initializer.initializer import Initializer

__all__ = ["Assign", "Bilinear", "Constant", "Dirac", "Orthogonal"]


class Constant(Initializer):
    """The same value everywhere.

    Args:
        value: the value.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Linear(2, 1, weight_attr=nn.initializer.Constant(0.5)).weight.tolist()
        [[0.5], [0.5]]
    """

    def __init__(self, value: float = 0.0) -> None:
        self._value = value

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        return oar.full(list(shape), self._value, dtype=dtype)


class Assign(Initializer):
    """Given values: an array, a list, a number or a tensor.

    A parameter takes the shape of the value. In a static program the parameter keeps its own shape, which must have as many elements.

    Args:
        value: an array, a list, a number or a tensor.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Linear(2, 1, weight_attr=nn.initializer.Assign([[1.0], [2.0]])).weight.tolist()
        [[1.0], [2.0]]
    """

    def __init__(self, value: Any, name: str | None = None) -> None:
        if not isinstance(value, (np.ndarray, list, tuple, int, float, Tensor)):
            raise TypeError(f"Assign takes an array, a list or a Tensor, but received {type(value).__name__}.")
        self._value = value

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        value = self._value
        value = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
        fits = math.prod(value.shape) == math.prod(shape)
        if oar.in_dynamic_mode() and not (fits and isinstance(self._value, (int, float))):
            return _from_array(value, dtype)  # as in Paddle, the parameter takes the shape of the value
        if not fits:
            raise ValueError(
                f"Assign holds a value of shape {list(value.shape)}, which does not fit a parameter of shape "
                f"{list(shape)}."
            )
        return _from_array(value.reshape(tuple(shape)), dtype)


def _from_array(array: np.ndarray, dtype: Any) -> Tensor:
    made = oar.to_tensor(array)
    return made if dtype_name(made.dtype) == dtype_name(dtype) else made.astype(dtype)


class Dirac(Initializer):
    """A convolution that passes its input channels through: one at the kernel's centre, zeros elsewhere.

    Args:
        groups: the number of groups of channels.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.Conv1D(1, 1, 3, weight_attr=nn.initializer.Dirac()).weight.tolist()
        [[[0.0, 1.0, 0.0]]]
    """

    def __init__(self, groups: int = 1, name: str | None = None) -> None:
        if not isinstance(groups, int) or groups <= 0:
            raise AssertionError("'groups' must be a positive integer.")
        self._groups = groups

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        if len(shape) not in (3, 4, 5):
            raise AssertionError(f"Dirac initialises weights of 3, 4 or 5 dimensions, but received {list(shape)}.")
        if shape[0] % self._groups:
            raise AssertionError(f"Dimension 0 ({shape[0]}) must be divisible by groups ({self._groups}).")
        values = np.zeros(shape, dtype="float32")
        per_group = shape[0] // self._groups
        centre = tuple(extent // 2 for extent in shape[2:])
        for group in range(self._groups):
            for channel in range(min(per_group, shape[1])):
                values[(group * per_group + channel, channel, *centre)] = 1.0
        return _from_array(values, dtype)


class Bilinear(Initializer):
    """The weights of a transposed convolution that upsamples bilinearly.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.Conv2DTranspose(1, 1, 2, weight_attr=nn.initializer.Bilinear())
        >>> layer.weight.flatten().tolist()
        [1.0, 0.0, 0.0, 0.0]
    """

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"Bilinear needs a weight of shape [c, k, s, s], but received {list(shape)}.")
        size = shape[3]
        half = math.ceil(size / 2.0)
        centre = (2 * half - 1 - half % 2) / (2.0 * half)
        ramp = 1.0 - np.abs(np.arange(size) / half - centre)
        kernel = np.outer(ramp, ramp).astype("float32")
        return _from_array(np.broadcast_to(kernel, shape).copy(), dtype)


class Orthogonal(Initializer):
    """A random matrix with orthonormal rows or columns, times ``gain``; it follows ``oar.seed``.

    Args:
        gain: a factor.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = nn.Linear(3, 3, weight_attr=nn.initializer.Orthogonal()).weight
        >>> oar.allclose(w @ w.T, oar.eye(3), atol=1e-5).item()
        True
    """

    def __init__(self, gain: float = 1.0, name: str | None = None) -> None:
        if gain is None:
            raise AssertionError("gain should not be None")
        self._gain = gain

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        if len(shape) < 2:
            raise AssertionError(f"Orthogonal needs 2 dimensions or more, but received {list(shape)}.")
        rows, columns = shape[0], math.prod(shape[1:])
        drawn = oar.randn([max(rows, columns), min(rows, columns)], dtype="float64")
        q, r = oar.linalg.qr(drawn)
        q = q * oar.sign(oar.diag(r))
        q = q.t() if rows < columns else q
        return (q.reshape(list(shape)) * self._gain).astype(dtype)
