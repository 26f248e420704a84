"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.framework import unique_name
from oar.framework.persistent import persistent
from oar.optimizer._plan import Bucket
from oar.optimizer.lr import LRScheduler
from oar.optimizer.optimizer import Optimizer, _DecoupledDecay, _is_variable

__all__ = ["Adam", "AdamW"]

# So many steps that the corrections of the moments' bias are 1 in any precision.
_FOREVER = 10_000_000


def _check_betas(beta1: Any, beta2: Any, epsilon: Any) -> None:
    for name, value in (("beta1", beta1), ("beta2", beta2)):
        if not 0 <= float(value) < 1:
            raise ValueError(f"Invalid value of {name}, expect {name} in [0,1), but received {value}.")
    if not 0 <= float(epsilon):
        raise ValueError(f"Invalid value of epsilon, expect epsilon >= 0, but received {epsilon}.")


def _steps_from_powers(powers: dict[float, float]) -> int:
    """How many steps were done when ``beta ** (steps + 1)`` is known for each beta.

    The power of the larger beta is the more precise; where both have run into zero, or say nothing, the
    moments' bias is long gone.
    """
    for beta in sorted(powers, reverse=True):
        power = powers[beta]
        if 0.0 < beta < 1.0 and power > 0.0:
            return min(max(round(math.log(power) / math.log(beta)) - 1, 0), _FOREVER)
    return _FOREVER


class Adam(Optimizer):
    """Adam, after Kingma and Ba: steps scaled by running means of the gradient and of its square.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        beta1: how much of the mean of gradients is kept.
        beta2: how much of the mean of squared gradients is kept.
        epsilon: added to the divisor.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``; it enters the gradient.
        grad_clip: a gradient clip from ``oar.nn``.
        lazy_mode: accepted for compatibility; gradients of single rows become dense.
        multi_precision: keep float32 copies of parameters in 16-bit floats and update those.
        use_multi_tensor: accepted for compatibility; updates are always multi-tensor.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.Adam(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    _state_names = ("moment1", "moment2")
    _fused_l2 = False

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Any = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        use_multi_tensor: bool = False,
        name: str | None = None,
    ) -> None:
        _check_betas(beta1, beta2, epsilon)
        self._beta1, self._beta2, self._epsilon = float(beta1), float(beta2), float(epsilon)
        self._steps: dict[str, Tensor] = {}
        self._power_names: dict[str, tuple[str, str]] = {}
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name,
            multi_precision=multi_precision, beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon,
            lazy_mode=lazy_mode,
        )  # fmt: skip

    # counting steps: one counter per bucket, because the op that uses it also moves it on ----------

    def _count(self, param: Tensor) -> int:
        """How often a parameter has been updated."""
        if param.name not in self._power_names:
            stems = (f"{param.name}_beta1_pow_acc", f"{param.name}_beta2_pow_acc")
            self._power_names[param.name] = tuple(unique_name.generate(stem) for stem in stems)
            held = self._held_count(param.name)
            if held is not None:
                return held
        counter = self._steps.get(param.name)
        if counter is None or _is_variable(counter):  # A program is given its update once.
            return 0
        return int(float(counter))

    def _describe(self, param: Tensor, options: dict[str, Any]) -> tuple[float, Any, Hashable]:
        decay, regularizer, _ = super()._describe(param, options)
        return decay, regularizer, (0.0, self._count(param))

    def _make_buckets(self, signature: list[Any]) -> None:
        super()._make_buckets(signature)
        for bucket in self._buckets:
            names = [param.name for param in bucket.params]
            counter = self._own_counter(names)
            if counter is None:
                steps = float(bucket.extra[1])
                name = unique_name.generate(f"{names[0]}_steps")
                counter = persistent(lambda: oar.full([], steps, dtype="float32"), name)  # noqa: B023
            self._steps.update(dict.fromkeys(names, counter))

    def _own_counter(self, names: list[str]) -> Tensor | None:
        """The counter of these parameters, if they share one and nobody else does."""
        counter = self._steps.get(names[0])
        holders = {name for name, held in self._steps.items() if held is counter}
        return counter if counter is not None and holders == set(names) else None

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        options = bucket.options
        decay, counter = bucket.extra[0], self._steps[bucket.params[0].name]
        _C.ops.adamw_(
            params, grads, bucket.state["moment1"], bucket.state["moment2"],
            self._lr_tensor(bucket.factor), counter, options["beta1"], options["beta2"], options["epsilon"], decay,
        )  # fmt: skip

    # state dicts carry beta ** (steps + 1) per parameter -----------------------------------------

    def _betas(self) -> dict[str, tuple[float, float]]:
        pairs = zip(self._flat, self._owner)
        return {param.name: (float(owner["beta1"]), float(owner["beta2"])) for param, owner in pairs}

    def _held_count(self, name: str) -> int | None:
        keys = self._power_names[name]
        held = [self._accumulators_holder.pop(key, None) for key in keys]
        if all(value is None for value in held):
            return None
        values = [v.numpy() if isinstance(v, Tensor) else v for v in held]
        powers = {b: float(np.ravel(v)[0]) for b, v in zip(self._betas()[name], values) if v is not None}
        return _steps_from_powers(powers)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        rest = {key: state.pop(key) for key in ("master_weights", "LR_Scheduler") if key in state}
        betas = self._betas()
        for which in (0, 1):
            for name, counter in self._steps.items():
                power = betas[name][which] ** (float(counter) + 1.0)
                tensor = oar.to_tensor(np.array([power], dtype="float32"))
                tensor.name = self._power_names[name][which]
                state[tensor.name] = tensor
        return {**state, **rest}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().set_state_dict(state_dict)
        counts = {name: self._held_count(name) for name in self._power_names}
        for name, count in counts.items():
            if count is None:
                raise AssertionError(f"optimizer Tensor {self._power_names[name][0]} not found")
        sharing: dict[int, dict[str, int]] = {}
        for name, count in counts.items():
            sharing.setdefault(id(self._steps[name]), {})[name] = count
        for group in sharing.values():
            agreed = len(set(group.values())) == 1
            for name, count in group.items():
                # In place where that is right: captured programs hold on to the counter.
                if agreed:
                    self._steps[name].set_value(np.array(count, dtype="float32"))
                else:
                    self._steps[name] = oar.full([], float(count), dtype="float32")

    set_dict = set_state_dict
    load_state_dict = set_state_dict


class AdamW(_DecoupledDecay, Adam):
    """Adam with decoupled weight decay, after Loshchilov and Hutter.

    The decay shrinks parameters by ``lr * weight_decay`` at each step and never enters the gradient.

    Args:
        learning_rate, beta1, beta2, epsilon, parameters, grad_clip, lazy_mode, multi_precision:
            as for ``Adam``.
        weight_decay: the coefficient.
        lr_ratio: maps a parameter to a factor on its learning rate.
        apply_decay_param_fun: maps a parameter's name to whether it decays; all do when None.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> net = nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.AdamW(learning_rate=0.1, parameters=net.parameters())
        >>> before = net.weight.clone()
        >>> net(oar.ones([4, 2])).sum().backward()
        >>> optimizer.step()
        >>> optimizer.clear_grad()
        >>> bool((net.weight != before).all())
        True
    """

    def __init__(
        self,
        learning_rate: float | LRScheduler = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-08,
        parameters: Any = None,
        weight_decay: float = 0.01,
        lr_ratio: Callable[[Tensor], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        grad_clip: Any = None,
        lazy_mode: bool = False,
        multi_precision: bool = False,
        name: str | None = None,
    ) -> None:
        if not isinstance(weight_decay, (int, float, Tensor)):
            raise TypeError("weight_decay should be int, float or Tensor.")
        if lr_ratio is not None and not callable(lr_ratio):
            raise AssertionError("lr_ratio should be a function of a parameter.")
        self._lr_ratio = lr_ratio
        self._apply_decay_param_fun = apply_decay_param_fun
        self._weight_decay = float(weight_decay)
        super().__init__(
            learning_rate, beta1, beta2, epsilon, parameters, self._weight_decay, grad_clip, lazy_mode,
            multi_precision, name=name,
        )  # fmt: skip
        self.regularization = None

    def __str__(self) -> str:
        return " ".join(["Weight Decay, params:", ",".join(param.name for param in self._flat)])

    def _factor(self, param: Tensor, factor: float) -> float:
        return float(factor) * (1.0 if self._lr_ratio is None else float(self._lr_ratio(param)))

    def _describe(self, param: Tensor, options: dict[str, Any]) -> tuple[float, Any, Hashable]:
        decays = self._apply_decay_param_fun is None or self._apply_decay_param_fun(param.name)
        coefficient = float(options["weight_decay"] or 0.0) if decays else 0.0
        return 0.0, None, (coefficient, self._count(param))
