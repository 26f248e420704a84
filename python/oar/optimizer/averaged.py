"""ASGD, which averages the gradients of several batches, and Rprop, which uses their signs."""

from __future__ import annotations

from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.optimizer._plan import Bucket
from oar.optimizer.lr import LRScheduler
from oar.optimizer.optimizer import Optimizer

__all__ = ["ASGD", "Rprop"]


class ASGD(Optimizer):
    """Steps along the average of the last gradients, one from each of ``batch_num`` batches.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        batch_num: the number of batches in a pass over the data.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.
        multi_precision: keep float32 copies of parameters in 16-bit floats and update those.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.ASGD(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _by_element = False
    _state_names = ("d", "y", "m")

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        batch_num: int = 1,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if learning_rate is None:
            raise ValueError("learning_rate should not be none")
        if batch_num is None or batch_num <= 0:
            raise ValueError(f"batch_num should be greater than 0, but received {batch_num}.")
        self._batch_num = int(batch_num)
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name, multi_precision=multi_precision
        )

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        if name == "m":
            return oar.zeros([1], "int64")
        like = super()._initial_state(name, param)
        return like if name == "d" else oar.zeros([self._batch_num, *param.shape], like.dtype)

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state = bucket.state
        _C.ops.asgd_(
            params, grads, state["d"], state["y"], state["m"], self._lr_tensor(bucket.factor), bucket.decay
        )


class Rprop(Optimizer):
    """Steps by the sign of the gradient, each element with its own rate, after Riedmiller and Braun.

    Args:
        learning_rate: the rate to begin with.
        learning_rate_range: the smallest and the largest rate.
        parameters: parameters or parameter groups.
        etas: factors by which a rate shrinks and grows.
        grad_clip: a gradient clip from ``oar.nn``.
        multi_precision: keep float32 copies of parameters in 16-bit floats and update those.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Rprop(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("prevs", "learning_rates")

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        learning_rate_range: tuple[float, float] = (1e-5, 50),
        parameters: Any = None,
        etas: tuple[float, float] = (0.5, 1.2),
        grad_clip: Any = None,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if learning_rate is None:
            raise ValueError("learning_rate is not set")
        first = float(learning_rate() if isinstance(learning_rate, LRScheduler) else learning_rate)
        if not 0.0 < learning_rate_range[0] <= first <= learning_rate_range[1]:
            raise ValueError("'0.0 < learning_rate_range[0] <= learning_rate <= learning_rate_range[1]' must be true")
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError("'0.0 < etas[0] < 1.0 < etas[1]' must be true")
        self._initial_learning_rate = first
        super().__init__(
            learning_rate, parameters, None, grad_clip, name,
            multi_precision=multi_precision, learning_rate_range=tuple(learning_rate_range), etas=tuple(etas),
        )  # fmt: skip

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        like = super()._initial_state(name, param)
        return like if name == "prevs" else like + self._initial_learning_rate

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state, options = bucket.state, bucket.options
        _C.ops.rprop_(
            params, grads, state["prevs"], state["learning_rates"], *options["learning_rate_range"], *options["etas"]
        )
