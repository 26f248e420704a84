"""Kin of Adam: NAdam, RAdam, Lamb."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar.optimizer._plan import Bucket, number_dtype, single, singles
from oar.optimizer.adam import _check_betas
from oar.optimizer.lr import LRScheduler
from oar.optimizer.optimizer import Optimizer

__all__ = ["Lamb", "NAdam", "RAdam"]


class NAdam(Optimizer):
    """Adam with Nesterov's momentum, after Dozat.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        beta1: how much of the mean of gradients is kept.
        beta2: how much of the mean of squared gradients is kept.
        epsilon: added to the divisor.
        momentum_decay: how fast the momentum grows towards beta1.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.NAdam(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("momentum_decay_pow", "beta2_pow", "mu_product", "moment1", "moment2")
    _numbers = ("momentum_decay_pow", "beta2_pow", "mu_product")

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        momentum_decay: float = 0.004,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
    ) -> None:
        _check_betas(beta1, beta2, epsilon)
        if not 0.0 <= momentum_decay:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}, expect momentum_decay >= 0.")
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name,
            beta1=beta1, beta2=beta2, epsilon=epsilon, momentum_decay=momentum_decay,
        )  # fmt: skip

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        return oar.ones([1], number_dtype(param)) if name in self._numbers else super()._initial_state(name, param)

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state, options = bucket.state, bucket.options
        _C.ops.nadam_(
            params, grads, state["moment1"], state["moment2"], state["momentum_decay_pow"], state["beta2_pow"],
            state["mu_product"], self._lr_tensor(bucket.factor), *singles(options),
            single(options["momentum_decay"]), bucket.decay,
        )  # fmt: skip


class RAdam(Optimizer):
    """Adam that rectifies its first steps, after Liu and others.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        beta1: how much of the mean of gradients is kept.
        beta2: how much of the mean of squared gradients is kept.
        epsilon: added to the divisor.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.RAdam(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("beta1_pow", "beta2_pow", "rho", "moment1", "moment2")
    _numbers = ("beta1_pow", "beta2_pow", "rho")

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
        _check_betas(beta1, beta2, epsilon)
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name, beta1=beta1, beta2=beta2, epsilon=epsilon
        )

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        return oar.ones([1], number_dtype(param)) if name in self._numbers else super()._initial_state(name, param)

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state, options = bucket.state, bucket.options
        _C.ops.radam_(
            params, grads, state["moment1"], state["moment2"], state["beta1_pow"], state["beta2_pow"], state["rho"],
            self._lr_tensor(bucket.factor), *singles(options), bucket.decay,
        )  # fmt: skip


class Lamb(Optimizer):
    """Adam's step, scaled for each tensor by the ratio of its norm to the step's, after You and others.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        lamb_weight_decay: the coefficient of decay, which is part of the step.
        beta1: how much of the mean of gradients is kept.
        beta2: how much of the mean of squared gradients is kept.
        epsilon: added to the divisor.
        parameters: parameters or parameter groups.
        grad_clip: a gradient clip from ``oar.nn``.
        exclude_from_weight_decay_fn: maps a parameter to whether it does not decay.
        multi_precision: keep float32 copies of parameters in 16-bit floats and update those.
        always_adapt: scale the step of parameters without decay, too.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Lamb(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _by_element = False
    _state_names = ("moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc")

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        parameters: Any = None,
        grad_clip: Any = None,
        exclude_from_weight_decay_fn: Callable[[Tensor], bool] | None = None,
        multi_precision: bool = False,
        always_adapt: bool = False,
        name: str | None = None,
    ) -> None:
        _check_betas(beta1, beta2, epsilon)
        super().__init__(
            learning_rate, parameters, None, grad_clip, name,
            multi_precision=multi_precision, lamb_weight_decay=lamb_weight_decay, beta1=beta1, beta2=beta2,
            epsilon=epsilon, always_adapt=always_adapt,
            exclude_from_weight_decay_fn=exclude_from_weight_decay_fn,
        )  # fmt: skip

    def _describe(self, param: Tensor, options: dict[str, Any]) -> tuple[float, Any, Hashable]:
        _, regularizer, _ = super()._describe(param, options)
        excluded = options["exclude_from_weight_decay_fn"]
        decays = excluded is None or not excluded(param)
        return 0.0, regularizer, float(options["lamb_weight_decay"]) if decays else 0.0

    _fused_l2 = False

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        if not name.endswith("_pow_acc"):
            return super()._initial_state(name, param)
        return oar.full([1], self._option(param, name.removesuffix("_pow_acc")), dtype=number_dtype(param))

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        state, options = bucket.state, bucket.options
        _C.ops.lamb_(
            params, grads, state["moment1"], state["moment2"], state["beta1_pow_acc"], state["beta2_pow_acc"],
            self._lr_tensor(bucket.factor), *singles(options), single(bucket.extra),
            options["always_adapt"],
        )  # fmt: skip
