"""Stochastic gradient descent, with and without momentum."""

from __future__ import annotations

from typing import Any

from oar import _C
from oar._C import Tensor
from oar.optimizer._plan import Bucket, single
from oar.optimizer.lr import LRScheduler
from oar.optimizer.optimizer import Optimizer

__all__ = ["SGD", "Momentum"]


class SGD(Optimizer):
    """``param -= lr * grad``.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.
        multi_precision: keep float32 copies of parameters in 16-bit floats and update those.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.SGD(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _sparse = True

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name, multi_precision=multi_precision
        )

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        _C.ops.sgd_(params, grads, self._lr_tensor(bucket.factor), bucket.decay)


class Momentum(Optimizer):
    """``velocity = momentum * velocity + grad``; ``param -= lr * velocity``.

    With ``use_nesterov`` the step is ``lr * (grad + momentum * velocity)``.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        momentum: how much of the velocity is kept.
        parameters: parameters or parameter groups.
        use_nesterov: look ahead, after Nesterov.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.
        multi_precision: keep float32 copies of parameters in 16-bit floats and update those.
        rescale_grad: factor on every gradient.
        use_multi_tensor: accepted for compatibility; updates are always multi-tensor.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Momentum(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("velocity",)

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        momentum: float = 0.9,
        parameters: Any = None,
        use_nesterov: bool = False,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        rescale_grad: float = 1.0,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        if momentum is None:
            raise ValueError("momentum is not set")
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name,
            multi_precision=multi_precision, momentum=momentum, use_nesterov=use_nesterov,
            rescale_grad=rescale_grad,
        )  # fmt: skip

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        options = bucket.options
        if options["rescale_grad"] != 1.0:
            grads = [grad * options["rescale_grad"] for grad in grads]
        _C.ops.momentum_(
            params, grads, bucket.state["velocity"], self._lr_tensor(bucket.factor),
            single(options["momentum"]), options["use_nesterov"], single(bucket.decay),
        )  # fmt: skip
