"""Adam and AdamW."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.framework import unique_name
from oar.framework.parameter import dtype_name
from oar.framework.persistent import persistent
from oar.optimizer._in_program import is_variable
from oar.optimizer._plan import Bucket, number_dtype, single
from oar.optimizer._rows import RowsWithoutGradient, RowUpdate, has_sparse_gradient, merged_rows
from oar.optimizer.lr import LRScheduler
from oar.optimizer.optimizer import Optimizer, _DecoupledDecay

__all__ = ["Adam", "AdamW"]

# So many steps that the corrections of the moments' bias are 1 in any precision.
_FOREVER = 10_000_000


def _check_betas(beta1: Any, beta2: Any, epsilon: Any) -> None:
    for name, value in (("beta1", beta1), ("beta2", beta2)):
        if not is_variable(value) and not 0 <= float(value) < 1:
            raise ValueError(f"Invalid value of {name}, expect {name} in [0,1), but received {value}.")
    if not is_variable(epsilon) and not 0 <= float(epsilon):
        raise ValueError(f"Invalid value of epsilon, expect epsilon >= 0, but received {epsilon}.")


def _coefficient(value: Any) -> Any:
    """A number, or a variable of the program, whose value each run reads."""
    return oar.reshape(value, []) if is_variable(value) else float(value)


# The names of the powers of both betas, as they appear in state dicts.
_POWERS = ("beta1_pow_acc", "beta2_pow_acc")


def _number(value: Any) -> float:
    return float(np.ravel(value.numpy() if isinstance(value, Tensor) else value)[0])


class _Clock:
    """The steps of parameters that are updated together, and the powers of the betas that state dicts show.

    The tensors of a state dict are views of the powers, so that they follow: from the first state dict on, and in
    programs always.
    """

    def __init__(self, steps: float, betas: tuple[float, float], dtype: str, name: str) -> None:
        self.steps = persistent(lambda: oar.full([], steps, dtype="float32"), name)
        self._powers: Tensor | None = None
        if oar.in_dynamic_mode():
            self._betas = oar.to_tensor(np.array(betas, dtype="float64")).to(oar.get_device())
            self._powers = oar.zeros([2], dtype=dtype)
        self.seen = False

    def moved(self) -> None:
        """The op has counted a step."""
        if self._powers is not None and (self.seen or _C.is_capturing()):
            _C.ops.copy_into(self._powers, _C.ops.pow(self._betas, self.steps + 1.0))

    def written(self) -> list[Tensor]:
        """The tensors that a step writes."""
        return [self.steps] if self._powers is None else [self.steps, self._powers]

    def set(self, steps: int) -> None:
        self.steps.set_value(np.array(steps, dtype="float32"))
        self.moved()

    def show(self, which: int, tensor: Tensor) -> None:
        """Let ``tensor`` be the power of beta 1 or 2 from now on."""
        assert self._powers is not None, "programs keep the powers themselves"
        tensor._share_data_with(self._powers[which : which + 1])

    def look(self) -> None:
        """The powers are read."""
        if not self.seen:
            self.seen = True
            self.moved()


def _steps_from_powers(powers: dict[float, float]) -> int:
    """How many steps were done when ``beta ** (steps + 1)`` is known for each beta.

    The power of the larger beta is the more precise; where both have run into zero, or say nothing, the
    moments' bias is negligible.
    """
    for beta in sorted(powers, reverse=True):
        power = powers[beta]
        if 0.0 < beta < 1.0 and power > 0.0:
            return min(max(round(math.log(power) / math.log(beta)) - 1, 0), _FOREVER)
    return _FOREVER


def _by_parts(
    params: list[Tensor], grads: list[Any], moments: Sequence[list[Tensor]], lr: Tensor, steps: Tensor,
    options: dict[str, Any], decay: float,
) -> None:  # fmt: skip
    """A step of Adam, written with other ops: for AMSGrad, which has a third moment, and for betas that are variables."""
    ops, beta1, beta2 = _C.ops, options["beta1"], options["beta2"]
    ops.copy_into(steps, steps + 1.0)
    count, rate = ops.cast(ops.reshape(steps, []), "float64"), ops.reshape(lr, [])
    shrink1, shrink2 = (1.0 - ops.pow(ops.zeros_like(count) + beta, count) for beta in (beta1, beta2))
    for param, grad, moment1, moment2, *maximum in zip(params, grads, *moments):
        grad = ops.cast(grad.to_dense(), param.dtype)
        ops.copy_into(moment1, beta1 * moment1 + (1.0 - beta1) * grad)
        ops.copy_into(moment2, beta2 * moment2 + (1.0 - beta2) * grad * grad)
        for largest in maximum:
            ops.copy_into(largest, ops.maximum(largest, moment2))
        divisor = ops.sqrt((maximum or [moment2])[0] / ops.cast(shrink2, param.dtype)) + options["epsilon"]
        scaled = moment1 / ops.cast(shrink1, param.dtype) / divisor
        factor = ops.cast(rate, param.dtype)
        ops.copy_into(param, param * (1.0 - factor * decay) - factor * scaled)


class Adam(Optimizer):
    """Adam, after Kingma and Ba: steps scaled by running means of the gradient and of its square.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        beta1: how much of the mean of gradients is kept; a number, or a variable of a static program.
        beta2: how much of the mean of squared gradients is kept, likewise.
        epsilon: added to the divisor, likewise.
        parameters: parameters or parameter groups.
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``; it enters the gradient.
        grad_clip: a gradient clip from ``oar.nn``.
        lazy_mode: where a gradient holds some rows only, as of an ``Embedding`` with ``sparse=True``, leave the other
            rows and their moments as they are. Otherwise those decay as with a gradient of zeros.
        multi_precision: keep float32 copies of parameters in 16-bit floats and update those.
        use_multi_tensor: accepted for compatibility; updates are always multi-tensor.
        amsgrad: divide by the largest mean of squared gradients so far, after Reddi and others.

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

    _state_names: tuple[str, ...] = ("moment1", "moment2")
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
        amsgrad: bool = False,
        name: str | None = None,
    ) -> None:
        _check_betas(beta1, beta2, epsilon)
        if amsgrad:
            self._state_names = (*self._state_names, "moment2_max")
        self._beta1, self._beta2, self._epsilon = map(_coefficient, (beta1, beta2, epsilon))
        self._clocks: dict[str, _Clock] = {}
        self._powers: dict[str, tuple[Tensor, Tensor]] = {}
        super().__init__(
            learning_rate, parameters, weight_decay, grad_clip, name,
            multi_precision=multi_precision, beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon,
            lazy_mode=lazy_mode,
        )  # fmt: skip

    # counting steps: one clock per bucket, because the op that uses it also moves it on ----------

    def _count(self, param: Tensor) -> int:
        """How often a parameter has been updated."""
        if param.name not in self._powers and oar.in_dynamic_mode():
            first, second = (self._power_tensor(stem, param) for stem in _POWERS)
            self._powers[param.name] = first, second
            held = [self._claim(power.name) for power in self._powers[param.name]]
            if None not in held:
                return self._steps_behind(param.name, held)
        clock = self._clocks.get(param.name)
        if clock is None or is_variable(clock.steps):  # A program is given its update once.
            return 0
        return int(float(clock.steps))

    def _power_tensor(self, stem: str, param: Tensor) -> Tensor:
        return persistent(lambda: oar.ones([1], dtype=number_dtype(param)), self._state_name(stem, param))

    def _describe(self, param: Tensor, options: dict[str, Any]) -> tuple[float, Any, Hashable]:
        decay, regularizer, _ = super()._describe(param, options)
        return decay, regularizer, (0.0, self._count(param))

    def _make_buckets(self, signature: list[Any]) -> None:
        super()._make_buckets(signature)
        for bucket in self._buckets:
            names = [param.name for param in bucket.params]
            if not self._share_a_clock(names):
                name = unique_name.generate_for(bucket.params[0], f"{names[0]}_steps")
                betas = (bucket.options["beta1"], bucket.options["beta2"])
                self._start_clock(names, _Clock(float(bucket.extra[1]), betas, number_dtype(bucket.params[0]), name))

    def _share_a_clock(self, names: list[str]) -> bool:
        """Whether these parameters share one clock, which no other parameter has."""
        clock = self._clocks.get(names[0])
        return clock is not None and {name for name, held in self._clocks.items() if held is clock} == set(names)

    def _start_clock(self, names: list[str], clock: _Clock) -> None:
        before = [self._clocks[name] for name in names if name in self._clocks]
        for name in names:
            self._clocks[name] = clock
            for which, power in enumerate(self._powers.get(name, ())):
                clock.show(which, power)
        if any(old.seen for old in before):
            clock.look()

    def _split_rows(self, grads: list[Any]) -> tuple[list[Any], dict[int, Tensor]]:
        lazy = [bucket for bucket in self._buckets if bucket.options["lazy_mode"] and bucket.regularizer is None]
        if not lazy:
            return grads, {}
        if _C.is_capturing() and not is_variable(grads[0]) and any(has_sparse_gradient(param) for bucket in lazy for param in bucket.params):
            raise NotImplementedError(
                f"{type(self).__name__}(lazy_mode=True) updates the rows that a gradient holds, which only the run of "
                "a step tells: such a step cannot be captured. Capture the network without optimizer.step(), or "
                "leave lazy_mode out."
            )
        grads, rows = list(grads), {}
        for position in (position for bucket in lazy for position in bucket.positions):
            if grads[position].is_selected_rows():
                rows[position], grads[position] = merged_rows(grads[position])
        return grads, rows

    def _apply(self, bucket: Bucket, params: list[Tensor], grads: list[Any]) -> None:
        lists = [params, *(bucket.state[name] for name in self._state_names)]
        if self._keeps_rows(bucket, grads):
            kept = RowsWithoutGradient(bucket.params, grads, *lists)
            self._step(bucket, grads, *lists)
            kept.restore()
        elif self._rows and not self._rows.keys().isdisjoint(bucket.positions):
            update = RowUpdate([self._rows.get(position) for position in bucket.positions], *lists)
            self._step(bucket, grads, *update.lists)
            update.write_back()
        else:
            self._step(bucket, grads, *lists)

    def _keeps_rows(self, bucket: Bucket, grads: list[Any]) -> bool:
        """Whether this is a step of a written program that leaves rows as they are."""
        if not bucket.options["lazy_mode"] or bucket.regularizer is not None:
            return False
        return is_variable(grads[0]) and any(map(has_sparse_gradient, bucket.params))

    def _written(self, bucket: Bucket) -> list[Tensor]:
        return [*super()._written(bucket), *self._clocks[bucket.params[0].name].written()]

    def _step(self, bucket: Bucket, grads: list[Any], params: list[Tensor], *moments: list[Tensor]) -> None:
        options, clock = bucket.options, self._clocks[bucket.params[0].name]
        beta1, beta2, epsilon = options["beta1"], options["beta2"], options["epsilon"]
        variable = isinstance(beta1, Tensor) or isinstance(beta2, Tensor) or isinstance(epsilon, Tensor)
        if len(moments) > 2 or variable:
            _by_parts(params, grads, moments, self._lr_tensor(bucket.factor), clock.steps, options, bucket.extra[0])
            clock.moved()
            return
        _C.ops.adamw_(
            params, grads, *moments, self._lr_tensor(bucket.factor), clock.steps, beta1, beta2, epsilon, bucket.extra[0],
        )  # fmt: skip
        clock.moved()

    # state dicts carry beta ** (steps + 1) per parameter -----------------------------------------

    def _betas(self) -> dict[str, tuple[float, float]]:
        pairs = zip(self._flat, self._owner)
        return {param.name: (float(owner["beta1"]), float(owner["beta2"])) for param, owner in pairs}

    def _steps_behind(self, name: str, powers: list[Any]) -> int:
        return _steps_from_powers(dict(zip(self._betas()[name], map(_number, powers))))

    def _existing(self) -> list[Tensor]:
        return [*super()._existing(), *(power for powers in self._powers.values() for power in powers)]

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        rest: dict[str, Any] = {key: state.pop(key) for key in ("master_weights", "LR_Scheduler") if key in state}
        for clock in self._clocks.values():
            clock.look()
        for which in (0, 1):
            state.update({powers[which].name: powers[which] for powers in self._powers.values()})
        return {**state, **rest}

    def set_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().set_state_dict(state_dict)
        betas, counts = self._betas(), {}
        for name, powers in self._powers.items():
            held = [self._claim(power.name) for power in powers]
            counts[name] = self._steps_behind(name, held)
        sharing: dict[int, list[str]] = {}
        for name in counts:
            sharing.setdefault(id(self._clocks[name]), []).append(name)
        for names in sharing.values():
            # In place where that is right: captured programs hold on to the clock.
            if len({counts[name] for name in names}) == 1:
                self._clocks[names[0]].set(counts[names[0]])
            else:
                for name in names:
                    dtype = dtype_name(self._powers[name][0].dtype)
                    self._start_clock([name], _Clock(float(counts[name]), betas[name], dtype, f"{name}_steps"))

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
        amsgrad: divide by the largest mean of squared gradients so far.

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
        amsgrad: bool = False,
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
            multi_precision, amsgrad=amsgrad, name=name,
        )  # fmt: skip
        self.regularization = None

    def __str__(self) -> str:
        return " ".join(["Weight Decay, params:", ",".join(param.name for param in self._flat)])

    def _factor(self, param: Tensor, factor: float) -> float:
        return float(factor) * (1.0 if self._lr_ratio is None else float(self._lr_ratio(param)))

    def _describe(self, param: Tensor, options: dict[str, Any]) -> tuple[float, Any, Hashable]:
        decays = self._apply_decay_param_fun is None or self._apply_decay_param_fun(param.name)
        coefficient = single(float(options["weight_decay"] or 0.0)) if decays else 0.0
        return 0.0, None, (coefficient, self._count(param))
