"""``Optimizer``: what all optimizers share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.framework import unique_name
from oar.framework.parameter import dtype_name
from oar.framework.persistent import persistent
from oar.nn import _path
from oar.nn.clip import ClipGradBase
from oar.optimizer import _in_program, _plan
from oar.optimizer._state import OptimizerState
from oar.optimizer.lr import LRScheduler
from oar.regularizer import L2Decay, WeightDecayRegularizer

__all__ = ["Optimizer"]

_watched = False  # whether a profiler may record
_path.watched_globals(globals())


class Optimizer(OptimizerState):
    """Base class of optimizers.

    Args:
        learning_rate: a float or an ``LRScheduler``.
        parameters: parameters, or parameter groups: dictionaries with ``'params'`` and options of their
            own, such as ``'weight_decay'`` or ``'learning_rate'`` (a factor on the optimizer's).
        weight_decay: a float (an L2 penalty), ``L1Decay`` or ``L2Decay``.
        grad_clip: a gradient clip from ``oar.nn``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> class SignDescent(oar.optimizer.SGD):
        ...     def step(self):
        ...         for parameter in self._parameter_list:
        ...             parameter.grad.set_value(oar.sign(parameter.grad))
        ...         super().step()
        ...
        >>> w = oar.create_parameter([1], 'float32', default_initializer=nn.initializer.Constant(2.0))
        >>> (w * 5).sum().backward()
        >>> SignDescent(0.5, parameters=[w]).step()
        >>> w.tolist()
        [1.5]
    """

    # Names of the per-parameter state, as they appear in state dicts.
    _state_names: tuple[str, ...] = ()
    # Whether the op takes an L2 coefficient itself, and gradients that hold only some rows.
    _fused_l2 = True
    _sparse = False
    # Whether the update of an element depends on nothing but that element: then parameters may be cut.
    _by_element = True

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        parameters: Sequence[Any] | None = None,
        weight_decay: Any = None,
        grad_clip: Any = None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        _check_arguments(learning_rate, parameters, grad_clip)
        if isinstance(weight_decay, str):
            raise TypeError(f"weight_decay should be a float, L1Decay or L2Decay, not {weight_decay!r}.")
        if isinstance(weight_decay, (int, float)) and not isinstance(self, _DecoupledDecay):
            weight_decay = L2Decay(float(weight_decay))
        self._name = name
        self._learning_rate = learning_rate
        self._grad_clip = grad_clip
        self.regularization: WeightDecayRegularizer | None = weight_decay
        self._multi_precision = bool(options.pop("multi_precision", False))
        self._default_dict = {"weight_decay": weight_decay, "grad_clip": grad_clip, **options}
        self._accumulators: dict[str, dict[str, Tensor]] = defaultdict(dict)
        self._accumulators_holder: dict[str, Any] = {}
        self._state_loaded = False  # a loaded state that waits for the first step
        self._strangers = False  # it has states that fit no parameter
        self._without_state: list[str] = []
        self._rows: dict[int, Tensor] = {}
        self._master_weights: dict[str, Tensor] = {}
        self._lr_tensors: dict[float, Tensor] = {}
        self._lr_value = float("nan")
        self._groups: list[dict[str, Any]] = []
        self._flat: list[Tensor] = []
        self._attrs: list[dict[str, float]] = []
        self._owner: list[dict[str, Any]] = []
        self._buckets: list[_plan.Bucket] = []
        self._signature: list[Any] | None = None
        self._parameter_list = list(parameters or ())
        grouped = bool(self._parameter_list) and isinstance(self._parameter_list[0], dict)
        for group in self._parameter_list if grouped else [{"params": self._parameter_list}]:
            self._add_param_group(dict(group), set_factor=grouped)
        self._param_groups = self._groups if grouped else self._parameter_list
        self.clear_gradients = self.clear_grad
        # Of a program's own class: the one it is made from.
        self.type = next(kind.__name__ for kind in type(self).__mro__ if kind.__module__.startswith("oar.")).lower()
        if isinstance(learning_rate, LRScheduler):
            learning_rate._listen(self)

    def _add_param_group(self, param_group: dict[str, Any], set_factor: bool = True) -> None:
        """Add a group of parameters; options it does not give are the optimizer's."""
        if "params" not in param_group:
            raise AssertionError("A parameter group needs 'params', the parameters it is about.")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError("A parameter group should hold an ordered collection, such as a list, not a set.")
        params = [params] if isinstance(params, Tensor) else list(params)
        known = {id(param) for param in self._flat}
        if any(id(param) in known for param in params):
            raise ValueError("Some parameters appear in more than one parameter group.")
        group = {**self._default_dict, **param_group, "params": params}
        self._groups.append(group)
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"An optimizer takes Tensors, but received {type(param).__name__}.")
            attr = getattr(param, "optimize_attr", None) or {"learning_rate": 1.0}
            if set_factor:
                attr["learning_rate"] = group.get("learning_rate", 1.0)
            self._flat.append(param)
            self._attrs.append(attr)
            self._owner.append(group)
        self._signature = None

    def _train_instead(self, other: Callable[[Tensor], Tensor | None]) -> None:
        """Updates other tensors in the places of its parameters: nothing where ``other`` returns None. Before the first step."""
        rows = [(other(param), attr, owner) for param, attr, owner in zip(self._flat, self._attrs, self._owner)]
        kept = [(param, attr, owner) for param, attr, owner in rows if param is not None]
        self._flat, self._attrs, self._owner = [row[0] for row in kept], [row[1] for row in kept], [row[2] for row in kept]
        for group in self._groups:
            group["params"] = [param for param, _, owner in kept if owner is group]
        if self._param_groups is not self._groups:
            self._parameter_list = self._param_groups = list(self._flat)
        self._signature = None

    # learning rate -----------------------------------------------------------------------------

    def get_lr(self) -> float:
        """The learning rate now."""
        rate = self._learning_rate
        return float(rate() if isinstance(rate, LRScheduler) else rate)

    def set_lr(self, value: float) -> None:
        """Set the learning rate. Not for an optimizer with a scheduler."""
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError("set_lr() conflicts with the LRScheduler that sets this optimizer's learning rate.")
        if not isinstance(value, (int, float)):
            raise TypeError(f"[set_lr] the learning rate should be a float, but received {type(value).__name__}. Pass float(value).")
        self._learning_rate = float(value)
        self._refresh_lr()

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Let ``scheduler`` set the learning rate from now on."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(f"scheduler should be an LRScheduler, but received {type(scheduler).__name__}.")
        self._learning_rate = scheduler
        scheduler._listen(self)
        self._refresh_lr()

    def _refresh_lr(self) -> None:
        """Bring the learning-rate tensors, which captured programs read, up to date."""
        rate = self.get_lr()
        if rate != self._lr_value:
            self._lr_value = rate
            with oar.no_grad():
                for factor, tensor in self._lr_tensors.items():
                    if _in_program.is_variable(tensor):
                        _in_program.set_learning_rate(tensor, rate * factor)
                    else:
                        tensor.set_value(np.array(rate * factor, dtype=dtype_name(tensor.dtype)))

    def _lr_tensor(self, factor: float) -> Tensor:
        if factor not in self._lr_tensors:
            self._make_lasting(lambda: self._make_lr_tensor(factor))
        return self._lr_tensors[factor]

    def _make_lr_tensor(self, factor: float) -> None:
        name = unique_name.generate("learning_rate")
        dtype = max((_plan.number_dtype(param) for param in self._flat), default="float32")  # float64 if one is
        self._lr_tensors[factor] = persistent(lambda: oar.full([], self.get_lr() * factor, dtype=dtype), name)

    def _make_lasting(self, make: Callable[[], None]) -> None:
        """Makes state that lives on from step to step: not a part of a program that is being captured."""
        if oar.in_dynamic_mode():
            _C.outside_capture(make)
        else:
            make()

    # stepping ----------------------------------------------------------------------------------

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        self._step_unless(None)

    def _step_unless(self, found: Tensor | None) -> None:
        self._refresh_lr()
        with oar.no_grad():
            self._update([None if p.stop_gradient else p.grad for p in self._flat], found)

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], list[tuple[Tensor, Tensor]]]:
        """Update the parameters with the gradients that ``loss.backward()`` left in them."""
        if not isinstance(loss, Tensor):
            raise AssertionError("The loss should be a Tensor.")
        params_grads = self.backward(loss, startup_program, parameters, no_grad_set)
        return self.apply_gradients(params_grads), params_grads

    def backward(
        self,
        loss: Tensor,
        startup_program: Any = None,
        parameters: Any = None,
        no_grad_set: Any = None,
        callbacks: Any = None,
    ) -> list[tuple[Tensor, Tensor]]:
        """The parameters and the gradients they hold. Call ``loss.backward()`` before; a program is given its
        backward here."""
        if _in_program.is_variable(loss):
            return _in_program.append_backward(self, loss, parameters, no_grad_set)
        listed = self._flat if parameters is None else list(parameters)
        skipped = {id(item) for item in (no_grad_set or ())}
        wanted = (p for p in listed if not p.stop_gradient and id(p) not in skipped)
        return [(p, p.grad) for p in wanted if p.grad is not None]

    def apply_gradients(self, params_grads: Sequence[tuple[Tensor, Tensor]]) -> list[Any]:
        """Update parameters with the gradients given."""
        if params_grads and _in_program.is_variable(params_grads[0][1]):
            return _in_program.append_update(self, params_grads)
        self._refresh_lr()
        given = {id(param): grad for param, grad in params_grads}
        with oar.no_grad():
            self._update([given.get(id(param)) for param in self._flat])
        return []

    def append_regularization_ops(
        self, parameters_and_grads: Sequence[tuple[Tensor, Any]], regularization: Any = None
    ) -> list[tuple[Tensor, Any]]:
        """The gradients with the terms of weight decay added."""
        result = []
        for param, grad in parameters_and_grads:
            _, regularizer = _plan.decay_of(param, regularization, fused_l2=False)
            if grad is not None and regularizer is not None:
                grad = grad + regularizer(param, grad, None)
            result.append((param, grad))
        return result

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Clear the gradients: zeros, or None when ``set_to_zero`` is False."""
        for param in self._flat:
            if not param.stop_gradient:
                param.clear_gradient(set_to_zero)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients: None, or zeros when ``set_to_none`` is False. The name that PyTorch has."""
        self.clear_grad(set_to_zero=not set_to_none)

    def _update(self, grads: list[Any], unless: Tensor | None = None) -> None:
        """Updates the parameters. Where ``unless`` is true everything stays as it is: programs cannot leave a step out."""
        if _watched:
            from oar.profiler.utils import optimization

            with optimization():
                self._update_now(grads, unless)
        else:
            self._update_now(grads, unless)

    def _update_now(self, grads: list[Any], unless: Tensor | None) -> None:
        signature = [None if g is None else a["learning_rate"] for g, a in zip(grads, self._attrs)]
        if signature != self._signature:
            self._make_lasting(lambda: self._make_buckets(signature))
        grads, rows = self._split_rows(grads)
        if rows or self._rows:
            self._rows = rows
        for group in self._groups:
            if group["grad_clip"] is not None:
                grads = self._clipped(grads)
                break
        kept = () if unless is None else self._contents()
        for bucket in self._buckets:
            chosen = [grads[position] for position in bucket.positions]
            self._run(bucket, self._prepared(bucket, chosen))
        if unless is not None:
            for tensor, before in kept:
                _C.ops.copy_into(tensor, oar.where(oar.reshape(unless, []), before, tensor))

    def _contents(self) -> list[tuple[Tensor, Tensor]]:
        """What an update writes, with its content now."""
        return [(tensor, _C.ops.assign(tensor)) for bucket in self._buckets for tensor in self._written(bucket)]

    def _written(self, bucket: _plan.Bucket) -> list[Tensor]:
        """The tensors that the update of a bucket writes."""
        return [*bucket.params, *(bucket.master or ()), *(tensor for states in bucket.state.values() for tensor in states)]

    def _split_rows(self, grads: list[Any]) -> tuple[list[Any], dict[int, Tensor]]:
        """The gradients, and by position, for those that are selected rows, which rows."""
        return grads, {}

    def _clipped(self, grads: list[Any]) -> list[Any]:
        grads = list(grads)
        for group in self._groups:
            clip = group["grad_clip"]
            if clip is None:
                continue
            places = [i for i, owner in enumerate(self._owner) if owner is group and grads[i] is not None]
            for place, (_, grad) in zip(places, clip([(self._flat[i], grads[i]) for i in places])):
                grads[place] = grad
        return grads

    def _prepared(self, bucket: _plan.Bucket, grads: list[Any]) -> list[Any]:
        """Gradients as the op takes them: dense where it needs that, with regularisation terms."""
        if not self._sparse or bucket.regularizer is not None:
            grads = [grad.to_dense() if grad.is_selected_rows() else grad for grad in grads]
        if bucket.master is not None:
            grads = [grad.astype("float32") for grad in grads]
        elif bucket.half:  # float32 gradients, which decorate(master_grad=True) gives them
            grads = [grad if grad.dtype == param.dtype else grad.astype(param.dtype)
                     for param, grad in zip(bucket.params, grads)]
        if bucket.regularizer is not None:
            term = bucket.regularizer
            grads = [grad + term(param, grad, None) for param, grad in zip(bucket.master or bucket.params, grads)]
        return grads

    def _run(self, bucket: _plan.Bucket, grads: list[Any]) -> None:
        if bucket.master is None:
            self._apply(bucket, bucket.params, grads)
            return
        # Half-precision parameters with float32 master copies: update those, then round.
        self._apply(bucket, bucket.master, grads)
        for param, master in zip(bucket.params, bucket.master):
            param.set_value(master.astype(param.dtype))

    def _apply(self, bucket: _plan.Bucket, params: list[Tensor], grads: list[Any]) -> None:
        """Call the update op on ``params``. Every optimizer writes its own."""
        raise NotImplementedError(f"{type(self).__name__} does not define its update.")

    # plan and state ----------------------------------------------------------------------------

    def _describe(self, param: Tensor, options: dict[str, Any]) -> tuple[float, Any, Hashable]:
        return (*_plan.decay_of(param, options["weight_decay"], self._fused_l2), None)

    def _factor(self, param: Tensor, factor: float) -> float:
        """The learning-rate factor of a parameter, given the one in its ``optimize_attr``."""
        return float(factor)

    def _make_buckets(self, signature: list[Any]) -> None:
        members = [
            (i, self._flat[i], self._owner[i], self._factor(self._flat[i], factor))
            for i, factor in enumerate(signature)
            if factor is not None
        ]
        self._buckets = _plan.build(members, self._describe)
        for bucket in self._buckets:
            if self._has_master(bucket.params[0]):
                bucket.master = [self._master_weight(param) for param in bucket.params]
            for name in self._state_names:
                bucket.state[name] = [self._state_tensor(name, param) for param in bucket.params]
        self._signature = signature
        self._state_loaded = False
        self._warn_of_new_states()

    def _has_master(self, param: Tensor) -> bool:
        return self._multi_precision and _plan.is_half(param)

    def _master_weight(self, param: Tensor) -> Tensor:
        master = self._master_weights.get(param.name)
        if master is None:
            name = unique_name.generate_for(param, f"{param.name}_fp32_master")
            source = param if oar.in_dynamic_mode() else _in_program.startup_value(param)
            master = persistent(lambda: source.detach().astype("float32"), name)
            self._master_weights[param.name] = master
        return master

    def _option(self, param: Tensor, name: str) -> Any:
        """An option of the group that a parameter belongs to."""
        return next(owner[name] for listed, owner in zip(self._flat, self._owner) if listed is param)

    def _initial_state(self, name: str, param: Tensor) -> Tensor:
        """What the state ``name`` of a parameter begins with: zeros in its shape."""
        return oar.zeros(list(param.shape), dtype="float32" if _plan.is_half(param) else param.dtype)


class _DecoupledDecay:
    """Marks optimizers whose weight decay is a number that never enters the gradient."""


def _check_arguments(learning_rate: Any, parameters: Any, grad_clip: Any) -> None:
    if not isinstance(learning_rate, (float, LRScheduler)):
        swapped = isinstance(learning_rate, (list, tuple))
        raise TypeError(f"learning rate should be float or LRScheduler, got {type(learning_rate)} here."
                        + (" It comes first: SGD(0.1, parameters=net.parameters())." if swapped else ""))
    if parameters is None and oar.in_dynamic_mode():
        raise AttributeError("parameters argument given to the Optimizer should not be None in dygraph mode. "
                             "Pass those of your network: parameters=net.parameters().")
    if isinstance(parameters, (Tensor, dict)) or (parameters is not None and not isinstance(parameters, Iterable)):
        own = hasattr(parameters, "parameters")
        raise TypeError(
            f"parameters should be an iterable of Tensors or a list of parameter groups, but received a "
            f"{type(parameters).__name__}." + (" Pass its parameters()." if own else "")
        )
    if grad_clip is not None and not isinstance(grad_clip, ClipGradBase):
        raise TypeError(f"grad_clip should be a gradient clip from oar.nn, but received {type(grad_clip).__name__}.")
