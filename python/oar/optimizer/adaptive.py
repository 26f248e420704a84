"""Steps scaled by the gradients seen so far: Adagrad, Adadelta, Adamax, RMSProp."""

from __future__ import annotations

from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.optimizer._plan import Bucket, number_dtype, single, singles
from oar.optimizer.lr import LRScheduler
from oar.optimizer.optimizer import Optimizer

__all__ = ["Adadelta", "Adagrad", "Adamax", "RMSProp"]


def _check_given(**values: Any) -> None:
    for name, value in values.items():
        if value is None:
            raise ValueError(f"{name} is not set.")


def _check_share(name: str, value: float, below: float = 1.0) -> float:
    if not 0 <= float(value) < below:
        raise ValueError(f"Invalid value of {name}, expect {name} in [0,{below:g}), but received {value}.")
    return float(value)


class Adagrad(Optimizer):
    """``moment += grad ** 2``; ``param -= lr * grad / (sqrt(moment) + epsilon)``.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        epsilon: added to the divisor.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.
        initial_accumulator_value: what the moment begins with.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Adagrad(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("moment",)

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        epsilon: float = 1e-6,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        initial_accumulator_value: float = 0.0,
    ) -> None:
        _check_given(learning_rate=learning_rate, epsilon=epsilon)
        self.initial_accumulator_value = float(initial_accumulator_value)
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name,
            epsilon=epsilon, initial_accumulator_value=initial_accumulator_value,
        )  # fmt: skip

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        return super()._initial_state(name, param) + self.initial_accumulator_value

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        _C.ops.adagrad_(
            params, grads, bucket.state["moment"], self._lr_tensor(bucket.factor),
            single(bucket.options["epsilon"]), bucket.decay,
        )  # fmt: skip


class Adadelta(Optimizer):
    """Steps of the size of former steps, after Zeiler.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        epsilon: added to both means.
        rho: how much of the means is kept.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Adadelta(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("_avg_squared_grad", "_avg_squared_update")

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        _check_given(learning_rate=learning_rate, epsilon=epsilon, rho=rho)
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name, epsilon=epsilon, rho=rho)

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state, options = bucket.state, bucket.options
        _C.ops.adadelta_(
            params, grads, state["_avg_squared_grad"], state["_avg_squared_update"], self._lr_tensor(bucket.factor),
            single(options["rho"]), single(options["epsilon"]), bucket.decay,
        )  # fmt: skip


class Adamax(Optimizer):
    """Adam with the largest gradient, fading, in place of the mean square.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        beta1: how much of the mean of gradients is kept.
        beta2: how much of the largest gradient is kept.
        epsilon: added to the divisor.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Adamax(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("moment", "inf_norm", "beta1_pow_acc")

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        _check_given(learning_rate=learning_rate, epsilon=epsilon)
        beta1, beta2 = _check_share("beta1", beta1), _check_share("beta2", beta2)
        if not 0 <= epsilon:
            raise ValueError(f"Invalid value of epsilon, expect epsilon >= 0, but received {epsilon}.")
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name, beta1=beta1, beta2=beta2, epsilon=epsilon
        )

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        if name != "beta1_pow_acc":
            return super()._initial_state(name, param)
        return oar.full([1], self._option(param, "beta1"), dtype=number_dtype(param))

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state, options = bucket.state, bucket.options
        _C.ops.adamax_(
            params, grads, state["moment"], state["inf_norm"], state["beta1_pow_acc"],
            self._lr_tensor(bucket.factor), *singles(options), bucket.decay,
        )  # fmt: skip


class RMSProp(Optimizer):
    """Steps divided by the root of a mean of squared gradients, with momentum.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        rho: how much of the means is kept.
        epsilon: added under the root.
        momentum: how much of the velocity is kept.
        centered: divide by the standard deviation instead.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.RMSProp(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("momentum", "mean_square", "mean_grad")

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        _check_given(learning_rate=learning_rate, rho=rho, epsilon=epsilon, momentum=momentum)
        for what, value in (("rho", rho), ("epsilon", epsilon), ("momentum", momentum)):
            if not 0.0 <= value:
                raise ValueError(f"Invalid value of {what}, expect {what} >= 0, but received {value}.")
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name,
            rho=rho, epsilon=epsilon, momentum=momentum, centered=centered,
        )  # fmt: skip

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state, options = bucket.state, bucket.options
        _C.ops.rmsprop_(
            params, grads, state["mean_square"], state["mean_grad"], state["momentum"],
            self._lr_tensor(bucket.factor), single(options["rho"]), single(options["epsilon"]), single(options["momentum"]),
            options["centered"], bucket.decay,
        )  # fmt: skip
