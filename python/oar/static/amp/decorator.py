"""``decorate``: an optimizer that casts a program, scales its loss, and leaves out steps that are not finite."""

from __future__ import annotations

import warnings
from typing import Any

import oar
from oar._C import Tensor
from oar.framework.parameter import dtype_name
from oar.static.amp.fp16_lists import AutoMixedPrecisionLists, check_amp_dtype
from oar.static.amp.fp16_utils import cast_model_to_fp16, cast_parameters_to_fp16, cast_variables

__all__ = ["OptimizerWithMixedPrecision", "decorate"]

_LEVELS = ("O0", "OD", "O1", "O2")


class OptimizerWithMixedPrecision:
    """What ``decorate`` returns: an optimizer with mixed precision, to be used as the optimizer itself.

    Args:
        optimizer: the optimizer.
        amp_lists: which ops compute in 16 bits.
        level: as for ``amp.auto_cast``.
        dtype: ``'float16'`` or ``'bfloat16'``.
        init_loss_scaling: the factor on the loss to begin with.
        use_dynamic_loss_scaling: whether the scale follows the gradients. In bfloat16 it does not.
        incr_every_n_steps: so many finite steps in a row multiply the scale by ``incr_ratio``.
        decr_every_n_nan_or_inf: so many steps that are not finite multiply it by ``decr_ratio``.
        incr_ratio: above 1.
        decr_ratio: below 1.
        use_amp_guard: only calls inside ``fp16_guard`` are cast.
        use_master_grad: cast gradients to float32. Those of parameters are, because parameters stay in float32.
        use_promote: at level O2, compute in float32 where an operand is.

    Examples:
        >>> import oar
        >>> oar.enable_static()
        >>> optimizer = oar.static.amp.decorate(oar.optimizer.SGD(0.1), level='O2')
        >>> type(optimizer).__name__, optimizer.get_lr()
        ('OptimizerWithMixedPrecision', 0.1)
        >>> oar.disable_static()
    """

    def __init__(
        self,
        optimizer: Any,
        amp_lists: Any,
        level: str,
        dtype: str,
        init_loss_scaling: float,
        use_dynamic_loss_scaling: bool,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int,
        incr_ratio: float,
        decr_ratio: float,
        use_amp_guard: bool | None = None,
        use_master_grad: bool = False,
        use_promote: bool = False,
    ) -> None:
        if not isinstance(optimizer, oar.optimizer.Optimizer):
            raise RuntimeError(f"[static.amp.decorate] optimizer should be an Optimizer, but received {type(optimizer).__name__}.")
        if dtype == "bfloat16" and use_dynamic_loss_scaling:
            use_dynamic_loss_scaling, init_loss_scaling = False, 1.0
            warnings.warn("[static.amp.decorate] in bfloat16 gradients do not vanish: the loss is not scaled. Pass "
                          "use_dynamic_loss_scaling=False.", stacklevel=3)
        self._optimizer = optimizer
        self._amp_lists = amp_lists
        self._amp_level = level
        self._amp_dtype = dtype
        self._use_fp16_guard = bool(use_amp_guard)
        self._use_master_grad = use_master_grad
        self.use_promote = use_promote
        self._init_loss_scaling = init_loss_scaling
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling
        self._scaling = (incr_ratio, decr_ratio, incr_every_n_steps, decr_every_n_nan_or_inf)
        self._scaler: Any = None
        self._scaled_loss: Tensor | None = None
        self._train_program: Any = None
        self._to_fp16_var_names: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        # What it does not do itself, such as get_lr, the optimizer does.
        if name == "_optimizer":
            raise AttributeError(name)
        return getattr(self._optimizer, name)

    def get_loss_scaling(self) -> Tensor:
        """The variable with the scale of the loss. Call ``minimize`` before."""
        if self._scaler is None or self._scaler._scale is None:
            raise AssertionError("[get_loss_scaling] Please call minimize() before calling get_loss_scaling().")
        return self._scaler._scale

    def get_scaled_loss(self) -> Tensor | None:
        """The variable with the scaled loss; None before ``minimize``."""
        return self._scaled_loss

    @property
    def _scales(self) -> bool:
        return self._use_dynamic_loss_scaling or self._init_loss_scaling != 1.0

    def backward(
        self, loss: Tensor, startup_program: Any = None, parameter_list: Any = None, no_grad_set: Any = None, callbacks: Any = None
    ) -> list[tuple[Tensor, Tensor]]:
        """Cast the program of a loss, scale the loss and append the gradients.

        Args:
            loss: the loss.
            startup_program: the program that initialises what is added; None is the default one.
            parameter_list: the parameters; None takes those that are trained.
            no_grad_set: variables that no gradient passes.
            callbacks: accepted for compatibility.

        Returns:
            pairs of a parameter and the gradient of the scaled loss.
        """
        program = oar.static.program.program_of(loss) or oar.static.default_main_program()
        self._train_program = program
        with oar.static.program_guard(program, startup_program):
            if self._amp_level != "O0":
                self._to_fp16_var_names = cast_variables(
                    program, [loss], self._amp_lists, self._amp_dtype, self._amp_level, self.use_promote or self._amp_level != "O2",
                    self._use_fp16_guard)
            if dtype_name(loss.dtype) in ("float16", "bfloat16"):
                loss._become(loss.astype("float32"))
            self._scaler = oar.amp.AmpScaler(self._scales, self._init_loss_scaling, *self._scaling, self._use_dynamic_loss_scaling)
            self._scaled_loss = self._scaler._scaled(loss)
            return self._optimizer.backward(self._scaled_loss, startup_program, parameter_list, no_grad_set)

    def apply_gradients(self, params_grads: list[tuple[Tensor, Tensor]]) -> list[Any]:
        """Append the update: gradients are divided by the scale, and a run whose gradients are not finite changes nothing but the
        scale.

        Args:
            params_grads: what ``backward`` returned.

        Returns:
            the ops of the update.
        """
        if self._scaler is None:
            raise AssertionError("[apply_gradients] Please call backward() before calling apply_gradients().")
        if not self._scales:
            return self._optimizer.apply_gradients(params_grads)
        return self._scaler._append_guarded(self._optimizer, params_grads)

    def apply_optimize(self, loss: Tensor, startup_program: Any, params_grads: list[tuple[Tensor, Tensor]]) -> list[Any]:
        """``apply_gradients`` in the program of the loss.

        Args:
            loss: the loss.
            startup_program: the program that initialises what is added; None is the default one.
            params_grads: what ``backward`` returned.

        Returns:
            the ops of the update.
        """
        program = oar.static.program.program_of(loss) or oar.static.default_main_program()
        with oar.static.program_guard(program, startup_program):
            return self.apply_gradients(params_grads)

    def minimize(
        self, loss: Tensor, startup_program: Any = None, parameter_list: Any = None, no_grad_set: Any = None
    ) -> tuple[list[Any], list[tuple[Tensor, Tensor]]]:
        """``backward`` and ``apply_optimize``.

        Args:
            loss: the loss.
            startup_program: the program that initialises what is added; None is the default one.
            parameter_list: the parameters; None takes those that are trained.
            no_grad_set: variables that no gradient passes.

        Returns:
            the ops of the update, and pairs of a parameter and the gradient of the scaled loss.
        """
        params_grads = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, params_grads), params_grads

    def amp_init(self, place: Any, scope: Any = None, test_program: Any = None, use_fp16_test: bool = False,
                 rewrite_master_weight: bool = False) -> None:
        """After the startup program has run: at level O2 round the parameters to 16 bits, and cast a program for tests.

        Args:
            place: accepted for compatibility.
            scope: the scope with the parameters; None is the global one.
            test_program: a copy of the program for tests, which is cast as the program for training is.
            use_fp16_test: cast it at level O1, too.
            rewrite_master_weight: round the parameters. They are the master weights, so False leaves them as they are.
        """
        if self._train_program is None:
            raise AssertionError("[amp_init] Please call the minimize method first.")
        if self._amp_level == "O2" and rewrite_master_weight:
            cast_parameters_to_fp16(place, self._train_program, scope, self._to_fp16_var_names, self._amp_dtype)
        if test_program is not None and (self._amp_level == "O2" or use_fp16_test):
            cast_model_to_fp16(test_program, self._amp_lists, self._use_fp16_guard, self._amp_dtype, self._amp_level, self.use_promote)


def decorate(optimizer: Any, amp_lists: Any = None, *args: Any, **kwargs: Any) -> OptimizerWithMixedPrecision:
    """An optimizer that trains a program in mixed precision.

    Its ``minimize`` writes the calls behind the loss once more, with casts; the loss is the new result from then on. Parameters stay in
    float32, and so do the states of the optimizer: at level O2 the program computes with 16-bit copies. Two sets of further arguments are
    accepted; the second is the older one, which begins with a number.

    Args:
        optimizer: the optimizer.
        amp_lists: ``AutoMixedPrecisionLists``; None has the default ones.
        level: ``'O0'``, ``'OD'``, ``'O1'`` (the default) or ``'O2'``; see ``amp.auto_cast``.
        dtype: ``'float16'`` (the default) or ``'bfloat16'``.
        master_weight: accepted for compatibility: parameters are the master weights.
        master_grad: accepted for compatibility: gradients of parameters are in float32.
        init_loss_scaling: the factor on the loss to begin with, 2 ** 16; 2 ** 15 in the older set.
        incr_every_n_steps: so many finite steps in a row raise the scale, 2000; 1000 in the older set.
        decr_every_n_nan_or_inf: so many steps that are not finite lower it, 1; 2 in the older set.
        incr_ratio: the factor that raises it, 2.0.
        decr_ratio: the factor that lowers it, 0.5; 0.8 in the older set.
        use_dynamic_loss_scaling: whether the scale follows the gradients; None: in float16. True in the older set.
        use_amp_guard: only calls inside ``fp16_guard`` are cast; False. ``use_fp16_guard`` in the older set, None: at level O2.
        use_promote: at level O2, compute in float32 where an operand is; False.
        use_pure_fp16: of the older set: level O2.
        use_bf16: of the older set: bfloat16.

    Returns:
        an ``OptimizerWithMixedPrecision``.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [4, 3])
        ...     loss = oar.nn.Linear(3, 1)(x).mean()
        ...     optimizer = oar.static.amp.decorate(oar.optimizer.SGD(0.1), level='O1', dtype='float16', init_loss_scaling=128.0)
        ...     _ = optimizer.minimize(loss)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> losses = [executor.run(main, feed={'x': np.ones([4, 3], 'float32')}, fetch_list=[loss])[0] for _ in range(3)]
        >>> bool(losses[2] < losses[0])
        True
        >>> oar.disable_static()
    """
    older = {"use_pure_fp16", "use_fp16_guard", "use_bf16"}
    newer = {"level", "dtype", "master_weight", "master_grad", "use_amp_guard"}
    if (args and isinstance(args[0], (int, float))) or (not older.isdisjoint(kwargs) and newer.isdisjoint(kwargs)):
        return _decorate_older(optimizer, amp_lists, *args, **kwargs)
    return _decorate(optimizer, amp_lists, *args, **kwargs)


def _decorate(
    optimizer: Any, amp_lists: Any, level: str = "O1", dtype: str = "float16", master_weight: bool | None = None,
    master_grad: bool = False, init_loss_scaling: float = 2**16, incr_every_n_steps: int = 2000, decr_every_n_nan_or_inf: int = 1,
    incr_ratio: float = 2.0, decr_ratio: float = 0.5, use_dynamic_loss_scaling: bool | None = None, use_amp_guard: bool = False,
    use_promote: bool = False,
) -> OptimizerWithMixedPrecision:  # fmt: skip
    upper = level.upper() if isinstance(level, str) else level
    if upper not in _LEVELS:
        raise ValueError(f"[static.amp.decorate] level should be O0, OD, O1 or O2, but received {level!r}.")
    dtype = check_amp_dtype(dtype)
    if upper == "OD" and amp_lists is not None:
        warnings.warn("[static.amp.decorate] at level OD amp_lists is not used. Leave it out.", stacklevel=3)
        amp_lists = None
    lists = AutoMixedPrecisionLists(dtype=dtype) if amp_lists is None else amp_lists
    dynamic = dtype == "float16" if use_dynamic_loss_scaling is None else use_dynamic_loss_scaling
    scale = 1.0 if dtype == "bfloat16" and use_dynamic_loss_scaling is None else init_loss_scaling
    return OptimizerWithMixedPrecision(
        optimizer, lists, upper, dtype, scale, dynamic, incr_every_n_steps, decr_every_n_nan_or_inf, incr_ratio, decr_ratio,
        use_amp_guard, master_grad, use_promote)


def _decorate_older(
    optimizer: Any, amp_lists: Any, init_loss_scaling: float = 2**15, incr_every_n_steps: int = 1000, decr_every_n_nan_or_inf: int = 2,
    incr_ratio: float = 2.0, decr_ratio: float = 0.8, use_dynamic_loss_scaling: bool = True, use_pure_fp16: bool = False,
    use_fp16_guard: bool | None = None, use_bf16: bool = False, use_promote: bool = False,
) -> OptimizerWithMixedPrecision:  # fmt: skip
    dtype = "bfloat16" if use_bf16 else "float16"
    lists = AutoMixedPrecisionLists(dtype=dtype) if amp_lists is None else amp_lists
    guard = use_pure_fp16 if use_fp16_guard is None else use_fp16_guard
    return OptimizerWithMixedPrecision(
        optimizer, lists, "O2" if use_pure_fp16 else "O1", dtype, init_loss_scaling, use_dynamic_loss_scaling, incr_every_n_steps,
        decr_every_n_nan_or_inf, incr_ratio, decr_ratio, guard, False, use_promote)
