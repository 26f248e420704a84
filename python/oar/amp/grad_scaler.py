"""Scaling of the loss, which keeps small gradients from vanishing in float16."""

from __future__ import annotations

import warnings
from enum import Enum
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.framework import unique_name
from oar.framework.persistent import persistent

__all__ = ["AmpScaler", "GradScaler", "OptimizerState"]


class OptimizerState(Enum):
    """What has been done with an optimizer since the last update of the scale.

    Examples:
        >>> from oar.amp.grad_scaler import OptimizerState
        >>> OptimizerState.INIT.value
        0
    """

    INIT = 0
    UNSCALED = 1
    STEPPED = 2


class AmpScaler:
    """What ``GradScaler`` is made from; its ``minimize`` does the work of ``step`` and ``update`` at once.

    Args:
        enable: False makes every method do what it would do without a scaler.
        init_loss_scaling: the factor on the loss to begin with.
        incr_ratio: the factor on the scale after ``incr_every_n_steps`` finite steps in a row; above 1.
        decr_ratio: the factor on the scale after ``decr_every_n_nan_or_inf`` steps that were not finite; below 1.
        incr_every_n_steps: see ``incr_ratio``.
        decr_every_n_nan_or_inf: see ``decr_ratio``.
        use_dynamic_loss_scaling: False keeps the scale as it is.

    Examples:
        >>> import oar
        >>> from oar.amp import AmpScaler
        >>> with oar.amp.auto_cast(dtype='float16'):
        ...     AmpScaler(init_loss_scaling=1024.0).scale(oar.to_tensor(2.0)).item()
        ...
        2048.0
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 2.0**15,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 1000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        self._enable = bool(enable)
        self._use_dynamic_loss_scaling = self._enable and bool(use_dynamic_loss_scaling)
        self._init_loss_scaling = init_loss_scaling if self._enable else 1.0
        self._scale: Tensor | None = None
        self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
        self._incr_every_n_steps, self._decr_every_n_nan_or_inf = incr_every_n_steps, decr_every_n_nan_or_inf
        if not self._enable:
            return
        _C.forget_autocast_dtype()  # what ran before has nothing to do with the losses to come
        self._check_scale(init_loss_scaling)
        self._checked_ratio("incr_ratio", incr_ratio)
        self._checked_ratio("decr_ratio", decr_ratio)
        self._checked_count("incr_every_n_steps", incr_every_n_steps)
        self._checked_count("decr_every_n_nan_or_inf", decr_every_n_nan_or_inf)
        # Tensors, so that a captured step reads and writes them as an eager one does.
        self._scale = self._lasting("loss_scaling", init_loss_scaling, "float32")
        self._good_steps = self._lasting("num_good_steps", 0, "int32")
        self._bad_steps = self._lasting("num_bad_steps", 0, "int32")
        self._found_inf = self._lasting("found_inf", False, "bool")
        # Of each optimizer: its id, what was done, and whether its gradients were not finite. A new tuple each time: a captured
        # step leaves it as it was.
        self._stages: tuple[tuple[int, OptimizerState, Tensor | None], ...] = ()
        self._warned = False

    @staticmethod
    def _lasting(name: str, value: Any, dtype: str) -> Tensor:
        return persistent(lambda: oar.full([1], value, dtype=dtype), unique_name.generate(name))

    def _name(self) -> str:
        return type(self).__name__

    def _check_scale(self, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < float("inf"):
            raise ValueError(f"[{self._name()}] the scale of the loss should be a positive number, but received {value!r}. Pass "
                             "for example 65536.0.")

    def _checked_ratio(self, name: str, value: Any) -> float:
        if not isinstance(value, (int, float, np.number)):
            raise TypeError(f"[{self._name()}] {name} should be a number, but received {type(value).__name__}.")
        if name.endswith("incr_ratio") and not value > 1.0:
            raise AssertionError(f"[{self._name()}] The {name} must be > 1.0, but received {value}. Pass for example 2.0.")
        if name.endswith("decr_ratio") and not 0.0 < value < 1.0:
            raise AssertionError(f"[{self._name()}] The {name} must be < 1.0 and above 0, but received {value}. Pass for example 0.5.")
        return float(value)

    def _checked_count(self, name: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"[{self._name()}] {name} should be an int, but received {type(value).__name__}.")
        if value < 1:
            raise ValueError(f"[{self._name()}] {name} should be 1 or more, but received {value}.")
        return int(value)

    # steps -------------------------------------------------------------------------------------

    def _stage(self, optimizer: Any) -> OptimizerState:
        return next((stage for key, stage, _ in self._stages if key == id(optimizer)), OptimizerState.INIT)

    def _set_stage(self, optimizer: Any, stage: OptimizerState, found: Tensor | None = None) -> None:
        self._stages = (*(row for row in self._stages if row[0] != id(optimizer)), (id(optimizer), stage, found))

    def scale(self, var: Tensor) -> Tensor:
        """Multiply a loss by the scale.

        Args:
            var: the loss.

        Returns:
            the product, in the wider dtype of both; the loss itself if the scaler is off. In bfloat16, whose range is that of
            float32, a dynamic scale has no use: the scaler then switches itself off, with a warning.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler(init_loss_scaling=1024.0).scale(oar.to_tensor(2.0)).item()
            2048.0
        """
        if not isinstance(var, Tensor):
            raise TypeError(f"[{self._name()}.scale] var should be a Tensor, the loss, but received {type(var).__name__}.")
        if self._enable and self._use_dynamic_loss_scaling and _C.last_autocast_dtype() == "bfloat16":
            self._switch_off()
        return self._scaled(var)

    def _scaled(self, var: Tensor) -> Tensor:
        if not self._enable or self._scale is None:
            return var
        scale = self._scale if len(var.shape) else oar.reshape(self._scale, [])
        return oar.cast(var, "float32") * scale if var.dtype in (oar.float16, oar.bfloat16) else var * scale

    def _switch_off(self) -> None:
        self._enable = self._use_dynamic_loss_scaling = False
        self._init_loss_scaling = 1.0
        warnings.warn(f"[{self._name()}] mixed precision is in bfloat16, where gradients do not vanish: the scaler is off. Pass "
                      "enable=False, or use_dynamic_loss_scaling=False for a fixed scale.", stacklevel=4)

    def minimize(self, optimizer: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Update the parameters, unless a gradient is not finite; then update the scale.

        Args:
            optimizer: the optimizer.
            args: what its ``minimize`` takes: the scaled loss.
            kwargs: likewise.

        Returns:
            what the optimizer's ``minimize`` returns; two None where the step was skipped.

        Examples:
            >>> import oar
            >>> net = oar.nn.Linear(2, 1)
            >>> optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
            >>> scaler = oar.amp.GradScaler(init_loss_scaling=8.0)
            >>> loss = scaler.scale(net(oar.ones([4, 2])).mean())
            >>> loss.backward()
            >>> _ = scaler.minimize(optimizer, loss)
        """
        optimizer = _plain(optimizer)
        if not self._enable:
            return optimizer.minimize(*args, **kwargs)
        if not oar.in_dynamic_mode():
            return self._append_update(optimizer, *args, **kwargs)
        if self._stage(optimizer) is OptimizerState.INIT:
            self._unscale(optimizer)
        stepped = self._step_if_finite(optimizer)
        if self._use_dynamic_loss_scaling:
            self._update()
        self._stages = ()
        return ([], optimizer.backward(*args, **kwargs)) if stepped else (None, None)

    def _unscale(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, and note whether all are finite."""
        if not self._enable:
            return
        optimizer = _plain(optimizer)
        stage = self._stage(optimizer)
        if stage is OptimizerState.UNSCALED:
            raise RuntimeError(f"[{self._name()}] unscale_() has already been called on this optimizer since the last update(). Call "
                               "update() after each step.")
        if stage is OptimizerState.STEPPED:
            raise RuntimeError(f"[{self._name()}] unscale_() is being called after step(). Call it before, or update() between.")
        grads = [param.grad for param in _parameters(optimizer) if param.grad is not None]
        found = self._unscaled(grads)
        self._note(found, first=not self._stages)
        self._set_stage(optimizer, OptimizerState.UNSCALED, found)

    def _unscaled(self, grads: list[Any]) -> Tensor:
        """Whether gradients are not all finite; they are divided by the scale."""
        from oar.static.amp.amp_nn import check_finite_and_unscale

        assert self._scale is not None
        with oar.no_grad():
            values = [grad.value() if grad.is_selected_rows() else grad for grad in grads]
            return check_finite_and_unscale(values, self._scale)[1]

    def _note(self, found: Tensor, first: bool) -> None:
        # Of several optimizers that share a step, one may have found something that the scale must follow.
        with oar.no_grad():
            _C.ops.copy_into(self._found_inf, found if first else oar.logical_or(self._found_inf, found))

    def _step_if_finite(self, optimizer: Any) -> bool:
        """Takes a step unless the gradients of the optimizer are not finite. Eager mode reads one bool; a program
        takes the step, and keeps what was before where they were not finite."""
        found = next(found for key, _, found in self._stages if key == id(optimizer))
        if _C.is_capturing() and type(optimizer).step is oar.optimizer.Optimizer.step:
            optimizer._step_unless(found)
            return True
        if bool(found):
            self._report()
            return False
        optimizer.step()
        return True

    def _report(self) -> None:
        if self._warned or self._scale is None or not self._use_dynamic_loss_scaling or float(self._scale) >= 1.0:
            return
        self._warned = True
        warnings.warn(
            f"[{self._name()}] gradients are still not finite at a scale of {float(self._scale):g}, so it is not the scale: the loss "
            "itself, or its derivative, is NaN or infinite. These steps are skipped. Find the op with "
            "oar.amp.debugging.enable_tensor_checker(oar.amp.debugging.TensorCheckerConfig(enable=True)).", stacklevel=5,
        )  # fmt: skip

    def _update(self) -> None:
        """Count the step and move the scale."""
        if not self._enable:
            return
        found, scale = self._found_inf, self._scale
        assert scale is not None
        with oar.no_grad():
            none = oar.zeros_like(self._good_steps)
            good = oar.where(found, none, self._good_steps + 1)
            bad = oar.where(found, self._bad_steps + 1, none)
            more, less = good == self._incr_every_n_steps, bad == self._decr_every_n_nan_or_inf
            raised, lowered = scale * self._incr_ratio, scale * self._decr_ratio
            raised = oar.where(oar.isfinite(raised), raised, scale)
            lowered = oar.where(lowered > 0, lowered, scale)
            _C.ops.copy_into(scale, oar.where(more, raised, oar.where(less, lowered, scale)))
            _C.ops.copy_into(self._good_steps, oar.where(more, none, good))
            _C.ops.copy_into(self._bad_steps, oar.where(less, none, bad))

    def _append_update(self, optimizer: Any, loss: Tensor, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """The same in a static program: backward, unscaling, the guarded update and the scale's."""
        params_grads = optimizer.backward(loss, *args, **kwargs)
        return self._append_guarded(optimizer, params_grads), params_grads

    def _append_guarded(self, optimizer: Any, params_grads: list[tuple[Tensor, Tensor]]) -> list[Any]:
        from oar.optimizer._in_program import append_update

        if not params_grads:
            return []

        program = oar.static.default_main_program()
        with program._role("update"):
            found = self._unscaled([grad for _, grad in params_grads])
            self._note(found, first=True)
        ops = append_update(optimizer, params_grads, found)
        if self._use_dynamic_loss_scaling:
            with program._role("update"):
                self._update()
        return ops

    # settings ----------------------------------------------------------------------------------

    def is_enable(self) -> bool:
        """Whether the scaler is on.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler().is_enable()
            True
        """
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Whether the scale follows the gradients.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler(use_dynamic_loss_scaling=False).is_use_dynamic_loss_scaling()
            False
        """
        return self._use_dynamic_loss_scaling

    def get_init_loss_scaling(self) -> float:
        """The scale that the scaler began with.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler(init_loss_scaling=1024.0).get_init_loss_scaling()
            1024.0
        """
        return self._init_loss_scaling

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Set the scale, now and as the one to begin with.

        Args:
            new_init_loss_scaling: a positive number.

        Examples:
            >>> import oar
            >>> scaler = oar.amp.GradScaler()
            >>> scaler.set_init_loss_scaling(256.0)
            >>> scaler.scale(oar.to_tensor(1.0)).item()
            256.0
        """
        self._check_scale(new_init_loss_scaling)
        self._init_loss_scaling = new_init_loss_scaling
        if self._scale is not None:
            self._scale.set_value(np.array([new_init_loss_scaling], dtype="float32"))

    def get_incr_ratio(self) -> float:
        """The factor on the scale after finite steps.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler().get_incr_ratio()
            2.0
        """
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        """Set the factor on the scale after finite steps.

        Args:
            new_incr_ratio: above 1.

        Examples:
            >>> import oar
            >>> scaler = oar.amp.GradScaler()
            >>> scaler.set_incr_ratio(3.0)
            >>> scaler.get_incr_ratio()
            3.0
        """
        self._incr_ratio = self._checked_ratio("new_incr_ratio", new_incr_ratio)

    def get_decr_ratio(self) -> float:
        """The factor on the scale after steps that were not finite.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler().get_decr_ratio()
            0.5
        """
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        """Set the factor on the scale after steps that were not finite.

        Args:
            new_decr_ratio: below 1.

        Examples:
            >>> import oar
            >>> scaler = oar.amp.GradScaler()
            >>> scaler.set_decr_ratio(0.1)
            >>> scaler.get_decr_ratio()
            0.1
        """
        self._decr_ratio = self._checked_ratio("new_decr_ratio", new_decr_ratio)

    def get_incr_every_n_steps(self) -> int:
        """How many finite steps in a row raise the scale.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler().get_incr_every_n_steps()
            2000
        """
        return self._incr_every_n_steps

    def set_incr_every_n_steps(self, new_incr_every_n_steps: int) -> None:
        """Set how many finite steps in a row raise the scale.

        Args:
            new_incr_every_n_steps: 1 or more.

        Examples:
            >>> import oar
            >>> scaler = oar.amp.GradScaler()
            >>> scaler.set_incr_every_n_steps(100)
            >>> scaler.get_incr_every_n_steps()
            100
        """
        self._incr_every_n_steps = self._checked_count("new_incr_every_n_steps", new_incr_every_n_steps)

    def get_decr_every_n_nan_or_inf(self) -> int:
        """How many steps that were not finite lower the scale.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler().get_decr_every_n_nan_or_inf()
            1
        """
        return self._decr_every_n_nan_or_inf

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf: int) -> None:
        """Set how many steps that were not finite lower the scale.

        Args:
            new_decr_every_n_nan_or_inf: 1 or more.

        Examples:
            >>> import oar
            >>> scaler = oar.amp.GradScaler()
            >>> scaler.set_decr_every_n_nan_or_inf(2)
            >>> scaler.get_decr_every_n_nan_or_inf()
            2
        """
        self._decr_every_n_nan_or_inf = self._checked_count("new_decr_every_n_nan_or_inf", new_decr_every_n_nan_or_inf)

    # state dicts -------------------------------------------------------------------------------

    @property
    def _incr_count(self) -> int:
        return int(self._good_steps)

    @property
    def _decr_count(self) -> int:
        return int(self._bad_steps)

    def state_dict(self) -> dict[str, Any]:
        """The scale, the settings and the counts, to be saved; empty if the scaler is off.

        Returns:
            a dict with ``scale``, an array of one number, and numbers.

        Examples:
            >>> import oar
            >>> oar.amp.GradScaler(init_loss_scaling=8.0).state_dict()['scale'].tolist()
            [8.0]
        """
        if not self._enable or self._scale is None:
            return {}
        return {
            "scale": self._scale.numpy(),
            "incr_ratio": self._incr_ratio,
            "decr_ratio": self._decr_ratio,
            "incr_every_n_steps": self._incr_every_n_steps,
            "decr_every_n_nan_or_inf": self._decr_every_n_nan_or_inf,
            "incr_count": self._incr_count,
            "decr_count": self._decr_count,
            "use_dynamic_loss_scaling": self._use_dynamic_loss_scaling,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state that ``state_dict`` returned.

        Args:
            state_dict: the state.

        Examples:
            >>> import oar
            >>> first, second = oar.amp.GradScaler(init_loss_scaling=8.0), oar.amp.GradScaler()
            >>> second.load_state_dict(first.state_dict())
            >>> second.scale(oar.to_tensor(1.0)).item()
            8.0
        """
        if not self._enable:
            return
        if not isinstance(state_dict, dict):
            raise TypeError(f"[{self._name()}.load_state_dict] takes a dict, as state_dict() returns, not {type(state_dict).__name__}.")
        if not state_dict:
            raise RuntimeError(f"[{self._name()}.load_state_dict] The input state dict is empty, possibly because it was saved from a "
                               "disabled instance of GradScaler. Pass the state of one that is on, or enable=False here.")
        missing = [key for key in self.state_dict() if key not in state_dict]
        if missing:
            raise KeyError(f"[{self._name()}.load_state_dict] the state dict has no {', '.join(missing)}. Pass what state_dict() "
                           "returned.")
        scale = state_dict["scale"]
        self.set_init_loss_scaling(float(np.ravel(scale.numpy() if isinstance(scale, Tensor) else scale)[0]))
        for key in ("incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf"):
            setattr(self, f"_{key}", state_dict[key])
        self._good_steps.set_value(np.array([state_dict["incr_count"]], dtype="int32"))
        self._bad_steps.set_value(np.array([state_dict["decr_count"]], dtype="int32"))
        self._use_dynamic_loss_scaling = state_dict["use_dynamic_loss_scaling"]


class GradScaler(AmpScaler):
    """Scales the loss, so that small gradients do not vanish in float16, and skips steps whose gradients are not finite.

    Args:
        enable: False makes every method do what it would do without a scaler.
        init_loss_scaling: the factor on the loss to begin with.
        incr_ratio: the factor on the scale after ``incr_every_n_steps`` finite steps in a row; above 1.
        decr_ratio: the factor on the scale after ``decr_every_n_nan_or_inf`` steps in a row that were not finite; below 1.
        incr_every_n_steps: see ``incr_ratio``.
        decr_every_n_nan_or_inf: see ``decr_ratio``.
        use_dynamic_loss_scaling: False keeps the scale as it is.

    Examples:
        >>> import oar
        >>> net = oar.nn.Linear(2, 1)
        >>> optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
        >>> scaler = oar.amp.GradScaler(init_loss_scaling=1024.0)
        >>> with oar.amp.auto_cast(dtype='float16'):
        ...     loss = net(oar.ones([4, 2])).mean()
        ...
        >>> scaler.scale(loss).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> optimizer.clear_grad()
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 2.0**16,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        super().__init__(enable, init_loss_scaling, incr_ratio, decr_ratio, incr_every_n_steps, decr_every_n_nan_or_inf,
                         use_dynamic_loss_scaling)

    def step(self, optimizer: Any) -> None:
        """Update the parameters of an optimizer, unless one of its gradients is not finite. ``update`` has to follow.

        Gradients that ``unscale_`` has not divided by the scale yet are divided first.

        Args:
            optimizer: the optimizer.

        Examples:
            >>> import oar
            >>> w = oar.create_parameter([1], 'float32', default_initializer=oar.nn.initializer.Constant(2.0))
            >>> optimizer = oar.optimizer.SGD(1.0, parameters=[w])
            >>> scaler = oar.amp.GradScaler(init_loss_scaling=8.0)
            >>> scaler.scale((w * float('inf')).sum()).backward()
            >>> scaler.step(optimizer)
            >>> scaler.update()
            >>> w.tolist(), scaler.scale(oar.to_tensor(1.0)).item()
            ([2.0], 4.0)
        """
        optimizer = _plain(optimizer)
        if not self._enable:
            return optimizer.step()
        stage = self._stage(optimizer)
        if stage is OptimizerState.STEPPED:
            raise RuntimeError("[GradScaler] step() has already been called since the last update(). Call update() after each step.")
        if stage is OptimizerState.INIT:
            self._unscale(optimizer)
        self._step_if_finite(optimizer)
        self._set_stage(optimizer, OptimizerState.STEPPED)
        if not self._use_dynamic_loss_scaling:
            self._stages = ()
        return None

    def update(self) -> None:
        """Update the scale, after the steps of all optimizers.

        Examples:
            >>> import oar
            >>> scaler = oar.amp.GradScaler(init_loss_scaling=8.0, incr_every_n_steps=1)
            >>> scaler.update()
            >>> scaler.scale(oar.to_tensor(1.0)).item()
            16.0
        """
        if self._enable and self._use_dynamic_loss_scaling:
            self._update()
            self._stages = ()

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale: to look at them, or to clip them, before ``step``.

        Args:
            optimizer: the optimizer.

        Examples:
            >>> import oar
            >>> w = oar.create_parameter([1], 'float32')
            >>> optimizer = oar.optimizer.SGD(1.0, parameters=[w])
            >>> scaler = oar.amp.GradScaler(init_loss_scaling=8.0)
            >>> scaler.scale((w * 3.0).sum()).backward()
            >>> scaler.unscale_(optimizer)
            >>> w.grad.tolist()
            [3.0]
        """
        self._unscale(optimizer)


def _plain(optimizer: Any) -> Any:
    """The optimizer inside wrappers, such as that of ``static.amp.decorate``."""
    while not isinstance(optimizer, oar.optimizer.Optimizer):
        inner = getattr(optimizer, "_optimizer", None) or getattr(optimizer, "inner_opt", None) or getattr(optimizer, "_inner_opt", None)
        if inner is None:
            raise TypeError(f"[GradScaler] optimizer should be an Optimizer, but received {type(optimizer).__name__}. Pass one of "
                            "oar.optimizer.")
        optimizer = inner
    return optimizer


def _parameters(optimizer: Any) -> list[Tensor]:
    return optimizer._flat
