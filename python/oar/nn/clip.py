"""Gradient clipping, given to an optimizer as ``grad_clip``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor

__all__ = ["ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue"]

Pair = tuple[Tensor, Any]


def _dense(grad: Any) -> Tensor:
    return grad.to_dense() if grad.is_selected_rows() else grad


def _wanted(pair: Pair) -> bool:
    return pair[1] is not None and getattr(pair[0], "need_clip", True)


def squared_norms(grads: Sequence[Tensor]) -> Tensor:
    """The sum of the squares of all elements of all tensors, in float32 or wider."""
    total: Any = None
    for grad in grads:
        wide = grad if str(grad.dtype).endswith(("32", "64", "128")) else grad.astype("float32")
        square = oar.sum(wide * wide)
        total = square if total is None else total + square
    return total


def _squared_l2_norm(x: Tensor) -> Tensor:
    """The sum of the squares of all elements, in float32 or wider; Paddle's name of ``squared_norms`` for one tensor."""
    return squared_norms([x]).reshape([1])


_norm_in_float32: list[bool] = [False]


def _clip_by_global_norm_using_mp_type(*args: bool) -> bool:
    """Whether a global norm is to be scaled in float32, which it is here always. Sets that, if it is given; returns what it was."""
    before = _norm_in_float32[0]
    if args:
        _norm_in_float32[0] = bool(args[0])
    return before


class ClipGradBase:
    """Base class: takes ``(parameter, gradient)`` pairs and returns clipped ones.

    Parameters whose ``need_clip`` is False pass unchanged.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> isinstance(nn.ClipGradByValue(1.0), nn.clip.ClipGradBase)
        True
    """

    def __call__(self, params_grads: Sequence[Pair]) -> list[Pair]:
        with oar.no_grad():
            return self._clip([(p, g if g is None else _dense(g)) for p, g in params_grads])

    def _clip(self, params_grads: list[Pair]) -> list[Pair]:
        raise NotImplementedError


GradientClipBase = ClipGradBase


class ClipGradByValue(ClipGradBase):
    """Cuts every element to ``[min, max]``; ``min`` is ``-max`` when None.

    Args:
        max: the upper bound.
        min: the lower bound; ``-max`` if None.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> sgd = oar.optimizer.SGD(0.1, net.parameters(), grad_clip=nn.ClipGradByValue(0.5))
        >>> clip = nn.ClipGradByValue(0.5)
        >>> clip([(net.bias, oar.to_tensor([3.0]))])[0][1]
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.50000000])
    """

    def __init__(self, max: float, min: float | None = None) -> None:
        if min is None:
            if max <= 0:
                raise AssertionError(f"max should be positive when min is None, but is {max}.")
            min = -max
        self.max = float(max)
        self.min = float(min)

    def __str__(self) -> str:
        return f"Clip Gradient By Value, min = {self.min:f}, max={self.max:f}"

    def _clip(self, params_grads: list[Pair]) -> list[Pair]:
        return [
            (p, oar.clip(g, self.min, self.max)) if _wanted((p, g)) else (p, g) for p, g in params_grads
        ]


class ClipGradByNorm(ClipGradBase):
    """Shortens each gradient on its own to at most ``clip_norm``.

    Args:
        clip_norm: the largest norm.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> clip = nn.ClipGradByNorm(1.0)
        >>> clip([(nn.Linear(1, 2).bias, oar.to_tensor([3.0, 4.0]))])[0][1]
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.60000002, 0.80000001])
    """

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = float(clip_norm)

    def __str__(self) -> str:
        return f"Gradient Clip By Norm, clip_norm={self.clip_norm:f}"

    def _shortened(self, grad: Tensor) -> Tensor:
        norm = oar.sqrt(squared_norms([grad]))
        scale: Tensor = self.clip_norm / oar.clip(norm, min=self.clip_norm)
        return grad * scale.astype(grad.dtype)

    def _clip(self, params_grads: list[Pair]) -> list[Pair]:
        return [(p, self._shortened(g)) if _wanted((p, g)) else (p, g) for p, g in params_grads]


class ClipGradByGlobalNorm(ClipGradBase):
    """Shortens all gradients by one factor, so that together they are at most ``clip_norm`` long.

    Args:
        clip_norm: the bound.
        group_name: a label for the group.
        auto_skip_clip: read the norm's value and leave gradients that are short enough unchanged.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(1, 1)
        >>> clip = nn.ClipGradByGlobalNorm(1.0)
        >>> clipped = clip([(net.weight, oar.to_tensor([[3.0]])), (net.bias, oar.to_tensor([4.0]))])
        >>> [gradient.tolist() for _, gradient in clipped]
        [[[0.6000000238418579]], [0.800000011920929]]
    """

    def __init__(
        self, clip_norm: float, group_name: str = "default_group", auto_skip_clip: bool = False
    ) -> None:
        if not isinstance(auto_skip_clip, bool):
            raise AssertionError("auto_skip_clip should be a bool.")
        self.clip_norm = float(clip_norm)
        self.group_name = group_name
        self.auto_skip_clip = auto_skip_clip

    def __str__(self) -> str:
        return f"Gradient Clip By GlobalNorm, global_norm={self.clip_norm:f}"

    def _squared_norm(self, params_grads: Sequence[Pair]) -> Tensor | None:
        """The sum of the squares of the gradients that are clipped; None if there are none."""
        return squared_norms([grad for _, grad in params_grads]) if params_grads else None

    def _clip(self, params_grads: list[Pair]) -> list[Pair]:
        total = self._squared_norm([pair for pair in params_grads if _wanted(pair)])
        if total is None:
            return params_grads
        norm = oar.sqrt(total)
        if self.auto_skip_clip and float(norm) <= self.clip_norm:
            return params_grads
        scale: Tensor = self.clip_norm / oar.clip(norm, min=self.clip_norm)
        casts: dict[Any, Tensor] = {}

        def scaled(grad: Tensor) -> Tensor:
            key = str(grad.dtype)
            if key not in casts:
                casts[key] = scale.astype(grad.dtype)
            return grad * casts[key]

        return [(p, scaled(g)) if _wanted((p, g)) else (p, g) for p, g in params_grads]
