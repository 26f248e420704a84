"""The base class of initialisers, the gains and fans they share, and lazy initialisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor

__all__ = ["Initializer", "LazyGuard", "calculate_gain", "compute_fans", "set_global_initializer"]


class Initializer:
    """Fills a tensor with first values: ``initializer(tensor)``.

    A subclass writes ``sample(shape, dtype)``, which returns the values, or ``forward(var, block)``, which
    puts them into ``var`` itself.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> class Ramp(nn.initializer.Initializer):
        ...     def __call__(self, param, block=None):
        ...         param.set_value(oar.arange(param.size, dtype='float32').reshape(param.shape))
        ...
        >>> nn.Linear(2, 1, weight_attr=Ramp()).weight.tolist()
        [[0.0], [1.0]]
    """

    def __call__(self, param: Tensor, block: Any = None) -> Any:
        return self.forward(param, block)

    def forward(self, var: Tensor, block: Any = None) -> Any:
        """Put first values into ``var``."""
        with oar.no_grad():
            made = self.sample(list(var.shape), var.dtype)
            var.set_value(made.reshape(var.shape) if made.size == var.size else made)

    def sample(self, shape: Sequence[int], dtype: Any) -> Tensor:
        """First values for a tensor of this shape and dtype."""
        raise NotImplementedError(f"{type(self).__name__} defines neither sample() nor forward().")

    def has_sampler(self) -> bool:
        """Whether values come from ``sample`` alone, so that a parameter can be created from them."""
        kind = type(self)
        plain = kind.forward is Initializer.forward and kind.__call__ is Initializer.__call__
        return plain and kind.sample is not Initializer.sample


def compute_fans(shape: Sequence[int]) -> tuple[int, int]:
    """Inputs and outputs of one unit: a weight is ``[in, out]`` or ``[out, in, *kernel]``."""
    if len(shape) < 2:
        size = shape[0] if shape else 1
        return size, size
    if len(shape) == 2:
        return shape[0], shape[1]
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor for initial weights before a nonlinearity.

    ``param`` is the negative slope of ``leaky_relu``, 0.01 when None.

    Args:
        nonlinearity: its name: 'relu', 'tanh', 'leaky_relu', ...
        param: the slope of 'leaky_relu'.

    Returns:
        a float.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.initializer.calculate_gain('tanh')
        1.6666666666666667
    """
    slope = 0.01 if param is None else float(param)
    gains = {
        "sigmoid": 1.0,
        "linear": 1.0,
        "tanh": 5.0 / 3.0,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1.0 + slope**2)),
        "selu": 3.0 / 4.0,
    }
    if nonlinearity in gains:
        return gains[nonlinearity]
    if nonlinearity.removesuffix("_transpose") in ("conv1d", "conv2d", "conv3d"):
        return 1.0
    raise ValueError(f"There is no gain for nonlinearity '{nonlinearity}'; known: {', '.join(gains)}, conv*d.")


_global: list[Initializer | None] = [None, None]


def set_global_initializer(weight_init: Initializer | None, bias_init: Initializer | None = None) -> None:
    """Use these initialisers for parameters created without one; None resets them.

    Args:
        weight_init: the initialiser of weights, or None.
        bias_init: the initialiser of biases, or None.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.initializer.set_global_initializer(nn.initializer.Constant(2.0))
        >>> nn.Linear(1, 1).weight.item()
        2.0
        >>> nn.initializer.set_global_initializer(None)
    """
    for what, value in (("weight_init", weight_init), ("bias_init", bias_init)):
        if value is not None and not isinstance(value, Initializer):
            raise TypeError(f"{what} should be an Initializer or None, but received {type(value).__name__}.")
    _global[:] = [weight_init, bias_init]


def _global_initializer(is_bias: bool) -> Initializer | None:
    return _global[1 if is_bias else 0]


_lazy_depth = 0


def lazy_init_active() -> bool:
    """Whether a ``LazyGuard`` is open."""
    return _lazy_depth > 0


class LazyGuard:
    """Delays initialisation: parameters created inside are filled by their ``initialize()``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> with oar.LazyGuard():
        ...     net = nn.Linear(2, 1)
        ...
        >>> for parameter in net.parameters():
        ...     parameter.initialize()
        ...
        >>> net.weight.shape
        [2, 1]
    """

    def __enter__(self) -> None:
        global _lazy_depth
        _lazy_depth += 1

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        global _lazy_depth
        _lazy_depth -= 1
