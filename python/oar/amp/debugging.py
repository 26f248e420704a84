"""Finding out where numbers go wrong: NaN and infinity by op and layer, calls by dtype, two runs side by side."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._lazy import np
from oar.amp import _watch
from oar.framework import core

__all__ = [
    "DebugMode", "TensorCheckerConfig", "check_layer_numerics", "check_numerics", "collect_operator_stats", "compare_accuracy",
    "disable_operator_stats_collection", "disable_tensor_checker", "enable_operator_stats_collection", "enable_tensor_checker",
]  # fmt: skip


class DebugMode(Enum):
    """What a check does with what it sees.

    - ``CHECK_NAN_INF_AND_ABORT``: report NaN and infinity, and raise an error.
    - ``CHECK_NAN_INF``: report them and go on.
    - ``CHECK_ALL_FOR_OVERFLOW``: report also float32 numbers that are out of float16's range.
    - ``CHECK_ALL``: report every tensor.

    Examples:
        >>> import oar
        >>> oar.amp.debugging.DebugMode.CHECK_ALL.value
        3
    """

    CHECK_NAN_INF_AND_ABORT = 0
    CHECK_NAN_INF = 1
    CHECK_ALL_FOR_OVERFLOW = 2
    CHECK_ALL = 3


# tensors of all calls ----------------------------------------------------------------------------


class TensorCheckerConfig:
    """What ``enable_tensor_checker`` checks.

    Args:
        enable: whether anything is checked. True seeds all random numbers with the seed they began with, so that runs can be
            repeated.
        debug_mode: what to do with what is found.
        output_dir: a folder for the reports; None prints them.
        checked_op_list: names of ops, Paddle's or Oar's, whose results are checked; their derivatives end in ``_grad``. None: all.
        skipped_op_list: names of ops whose results are not checked.
        debug_step: two numbers: check in the calls of ``enable_tensor_checker`` from the first on and before the second.
        stack_height_limit: accepted for compatibility; errors always name the line.

    Examples:
        >>> import oar
        >>> config = oar.amp.debugging.TensorCheckerConfig(enable=True)
        >>> oar.amp.debugging.enable_tensor_checker(config)
        >>> try:
        ...     oar.log(oar.to_tensor([-1.0]))
        ... except RuntimeError as error:
        ...     print(str(error)[:42])
        ... finally:
        ...     oar.amp.debugging.disable_tensor_checker()
        ...
        [PRECISION] [ERROR] in [device=cpu, op=log, tensor=, dtype=fp32], numel=1, num_nan=1, num_inf=0, num_zero=0, max=nan, min=nan, mean=nan
        [log] There are NAN or INF (num_nan=1, num
    """

    # Counts the calls of `enable_tensor_checker`.
    current_step_id: int = 0

    def __init__(
        self,
        enable: bool,
        debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
        output_dir: str | None = None,
        checked_op_list: Sequence[str] | None = None,
        skipped_op_list: Sequence[str] | None = None,
        debug_step: Sequence[int] | None = None,
        stack_height_limit: int = 1,
    ) -> None:
        if not isinstance(debug_mode, DebugMode):
            raise ValueError(f"[TensorCheckerConfig] debug_mode should be a DebugMode, but received {debug_mode!r}. Pass for example "
                             "DebugMode.CHECK_NAN_INF.")
        if not isinstance(stack_height_limit, int):
            raise ValueError(f"[TensorCheckerConfig] stack_height_limit must be int, but received {type(stack_height_limit).__name__}.")
        self.enable = enable
        self.debug_mode = debug_mode
        self.output_dir = output_dir
        self.checked_op_list = _name_list("checked_op_list", checked_op_list)
        self.skipped_op_list = _name_list("skipped_op_list", skipped_op_list)
        self.debug_step = debug_step
        self.stack_height_limit = stack_height_limit
        self.start_step, self.end_step = _steps(debug_step)
        self.initial_seed = core.default_cpu_generator().initial_seed()
        self.seed = self.initial_seed if 0 <= self.initial_seed < 2**32 else 123
        if enable:
            oar.seed(self.seed)
            np.random.seed(self.seed)
            random.seed(self.seed)

    def update_and_check_step_id(self) -> bool:
        """Count a step; returns whether it is one to check.

        Examples:
            >>> import oar
            >>> oar.amp.debugging.TensorCheckerConfig(enable=False).update_and_check_step_id()
            False
        """
        if not self.enable:
            return False
        if self.start_step is None or self.end_step is None:
            return True
        if not self.start_step <= TensorCheckerConfig.current_step_id < self.end_step:
            return False
        TensorCheckerConfig.current_step_id += 1
        return True

    def start_check_nan_inf(self) -> None:
        """Check from now on, if the configuration is enabled.

        Examples:
            >>> import oar
            >>> oar.amp.debugging.TensorCheckerConfig(enable=False).start_check_nan_inf()
        """
        if self.enable:
            _watch.settings.output_dir = self.output_dir or ""
            _watch.settings.checked, _watch.settings.skipped = frozenset(self.checked_op_list), frozenset(self.skipped_op_list)
            oar.set_flags({"check_nan_inf_level": self.debug_mode.value, "check_nan_inf": True})

    def stop_check_nan_inf(self) -> None:
        """Check no longer.

        Examples:
            >>> import oar
            >>> oar.amp.debugging.TensorCheckerConfig(enable=False).stop_check_nan_inf()
        """
        disable_tensor_checker()


def _name_list(what: str, names: Any) -> tuple[str, ...]:
    if names is None:
        return ()
    if not isinstance(names, (list, tuple)):
        raise ValueError(f"[TensorCheckerConfig] {what} must be list or tuple, but received {type(names).__name__}. Pass the names of ops.")
    return tuple(names)


def _steps(debug_step: Any) -> tuple[int | None, int | None]:
    if debug_step is None:
        return None, None
    if not isinstance(debug_step, (list, tuple)):
        raise ValueError(f"[TensorCheckerConfig] debug_step must be list or tuple, but received {type(debug_step).__name__}. Pass the "
                         "first step and the one after the last.")
    if len(debug_step) != 2 or not debug_step[1] > debug_step[0]:
        raise AssertionError(f"[TensorCheckerConfig] debug_step should be two numbers, the second the larger, but received {debug_step}.")
    return max(debug_step[0], 0), debug_step[1]


def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """Check the results of the calls of this thread, those of ``backward`` and of optimizers too, until
    ``disable_tensor_checker``. An error names the op, its operands, the layer and the line.

    Args:
        checker_config: what to check.

    Examples:
        >>> import oar
        >>> config = oar.amp.debugging.TensorCheckerConfig(True, oar.amp.debugging.DebugMode.CHECK_NAN_INF)
        >>> oar.amp.debugging.enable_tensor_checker(config)
        >>> y = oar.to_tensor([1.0, 0.0]) / oar.to_tensor([1.0, 0.0])
        [PRECISION] [ERROR] in [device=cpu, op=divide, tensor=, dtype=fp32], numel=2, num_nan=1, num_inf=0, num_zero=0, max=1.000000e+00, min=1.000000e+00, mean=nan
        >>> oar.amp.debugging.disable_tensor_checker()
    """
    if not isinstance(checker_config, TensorCheckerConfig):
        raise TypeError(f"[enable_tensor_checker] takes a TensorCheckerConfig, but received {type(checker_config).__name__}.")
    if checker_config.update_and_check_step_id():
        checker_config.start_check_nan_inf()
    else:
        checker_config.stop_check_nan_inf()


def disable_tensor_checker() -> None:
    """End what ``enable_tensor_checker`` began.

    Examples:
        >>> import oar
        >>> oar.amp.debugging.disable_tensor_checker()
    """
    _watch.settings.output_dir = ""
    _watch.settings.checked = _watch.settings.skipped = frozenset()
    oar.set_flags({"check_nan_inf": False, "check_nan_inf_level": 0})


# one layer, one tensor ---------------------------------------------------------------------------


def check_layer_numerics(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for ``forward`` of a layer: an error if one of its calls, or of their derivatives, returns NaN or infinity.

    Args:
        func: the method. Its first argument has to be a tensor.

    Returns:
        the method with the check.

    Examples:
        >>> import oar
        >>> class Root(oar.nn.Layer):
        ...     @oar.amp.debugging.check_layer_numerics
        ...     def forward(self, x):
        ...         return oar.sqrt(x)
        ...
        >>> Root()(oar.to_tensor([4.0])).tolist()
        [2.0]
    """

    @functools.wraps(func)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args:
            raise RuntimeError(f"[check_layer_numerics] No elements found in args: {type(self).__name__}.{func.__name__} needs a tensor as "
                               "its first argument.")
        first = args[0]
        if not isinstance(first, Tensor):
            raise RuntimeError(f"[check_layer_numerics] First input of this layer must be tensor, but {type(self).__name__} received "
                               f"{type(first).__name__}.")
        watched = oar.is_grad_enabled() and oar.is_floating_point(first)
        if watched:
            first = _leaving(first)
        with _checked():
            made = func(self, first, *args[1:], **kwargs)
        return _entering(made) if watched else made

    return wrapper


@contextlib.contextmanager
def _checked() -> Iterator[None]:
    _force(1)
    try:
        yield
    finally:
        _force(-1)


def _force(more: int) -> None:
    _watch.settings.forced += more
    _watch.refresh()


def _leaving(first: Tensor) -> Tensor:
    """The tensor; once its gradient is known, the derivatives of the layer have been computed."""
    passed = _C.ops.assign(first)
    passed.stop_gradient = False

    def end(grad: Tensor) -> None:
        if _watch.settings.forced:
            _force(-1)

    passed.register_hook(end)
    return passed


def _entering(made: Any) -> Any:
    """The results; when the gradient of the first of them arrives, the derivatives of the layer follow."""
    first = next((one for one in (made if isinstance(made, (list, tuple)) else [made]) if isinstance(one, Tensor)), None)
    if first is None or first.stop_gradient:
        return made

    def begin(grad: Tensor) -> None:
        _force(1)

    first.register_hook(begin)
    return made


def check_numerics(
    tensor: Tensor, op_type: str, var_name: str, debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT
) -> tuple[Tensor, Tensor]:
    """Count NaN, infinities and zeros of a tensor, and report them.

    Args:
        tensor: the tensor.
        op_type: what computed it, for the report.
        var_name: its name, for the report.
        debug_mode: what to do with what is found.

    Returns:
        the numbers of NaN, infinities and zeros as int64 of shape [3], and maximum, minimum and mean as float32 of shape [3].

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0, 0.0, 3.0])
        >>> stats, values = oar.amp.debugging.check_numerics(x, 'to_tensor', 'x')
        >>> stats.tolist(), values.tolist()
        ([0, 0, 1], [3.0, 0.0, 1.3333333730697632])
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"[check_numerics] tensor should be a Tensor, but received {type(tensor).__name__}.")
    if not isinstance(debug_mode, DebugMode):
        raise ValueError(f"[check_numerics] debug_mode should be a DebugMode, but received {debug_mode!r}.")
    if not oar.in_dynamic_mode():
        return _at_every_run(tensor, op_type, str(var_name), debug_mode)
    stats, values = _numerics(tensor, op_type, str(var_name), debug_mode)
    return oar.to_tensor(stats), oar.to_tensor(values)


def _numerics(tensor: Tensor, op_type: str, var_name: str, mode: DebugMode) -> tuple[Any, Any]:
    numbers = _watch.numbers_of(tensor)
    _judge(tensor, numbers, op_type, var_name, mode)
    stats = np.array([numbers.nan, numbers.inf, numbers.zero], dtype="int64")
    return stats, np.array([numbers.most, numbers.least, numbers.mean], dtype="float32")


def _at_every_run(tensor: Tensor, op_type: str, var_name: str, mode: DebugMode) -> tuple[Tensor, Tensor]:
    from oar.static.nn.host import _host_op

    stats, values = _host_op(lambda x: _numerics(x, op_type, var_name, mode), [tensor.detach()], [[3], [3]], [oar.int64, oar.float32])
    return stats, values


def _judge(tensor: Any, numbers: _watch.Numbers, op_type: str, var_name: str, mode: DebugMode) -> None:
    _watch.report(op_type, var_name, tensor, numbers, mode.value, "")
    if mode is DebugMode.CHECK_NAN_INF_AND_ABORT and numbers.bad:
        raise RuntimeError(f"[check_numerics] There are NAN or INF (num_nan={numbers.nan}, num_inf={numbers.inf}, "
                           f"num_zero={numbers.zero}) in {var_name}, a result of {op_type}. Look at the operands of {op_type}.")


# calls by dtype ----------------------------------------------------------------------------------


def _print_operator_stats(op_count_dict: dict[str, Any] | None) -> None:
    """Prints a table: how many calls of each op were in float16, bfloat16, float32 and other dtypes."""
    columns = (" FP16 Calls ", " BF16 Calls ", " FP32 Calls", " Other Calls ")
    print(f"<{' op list ':-^120}>")
    print(f"<{' Op Name ':-^40}", *(f"{column:-^17}" for column in columns), sep=" | ", end=">\n")
    rows = op_count_dict or {}
    for name in sorted(rows):
        row = rows[name]
        if not isinstance(row, (list, str)):
            raise ValueError(f"[_print_operator_stats] the counts of {name} should be a list or a string, but are {type(row).__name__}.")
        called = row.split(",") if isinstance(row, str) else row
        print((f"  {name:<40}|  " + "|  ".join(f"{count:<17}" for count in called)).rstrip())
    print(f"<{f' op count: {len(rows)} ':-^120}>\n")


def enable_operator_stats_collection() -> None:
    """Count the calls of ops by dtype, from now until ``disable_operator_stats_collection``.

    Examples:
        >>> import oar
        >>> x = oar.ones([2, 2])
        >>> oar.amp.debugging.enable_operator_stats_collection()
        >>> y = x @ x + x
        >>> oar.amp.debugging.disable_operator_stats_collection()  # doctest: +ELLIPSIS
        <--... op list ...
          elementwise_add                         |  0                |  0                |  1                |  0
          matmul_v2                               |  0                |  0                |  1                |  0
        <--... op count: 2 ...
        <BLANKLINE>
    """
    _watch.clear_counts()
    oar.set_flags({"low_precision_op_list": 1})


def disable_operator_stats_collection() -> None:
    """Print how many calls of each op, under Paddle's names, were in float16, bfloat16, float32 and other dtypes, and count no
    longer. A call that is two in Paddle, such as a product with a bias, counts as both.

    Examples:
        >>> import oar
        >>> oar.amp.debugging.disable_operator_stats_collection()  # Nothing is counted.
    """
    if not oar.get_flags("low_precision_op_list")["low_precision_op_list"]:
        return
    oar.set_flags({"low_precision_op_list": 0})
    _print_operator_stats(_watch.counts())


@contextlib.contextmanager
def collect_operator_stats() -> Iterator[None]:
    """Count the calls inside by dtype, and print a table of them at the end.

    Examples:
        >>> import oar
        >>> x = oar.ones([2, 2])
        >>> with oar.amp.debugging.collect_operator_stats():
        ...     with oar.amp.auto_cast(dtype='bfloat16'):
        ...         y = x @ x
        ...
        <------------------------------------------------------- op list -------------------------------------------------------->
        <--------------- Op Name ---------------- | -- FP16 Calls --- | -- BF16 Calls --- | --- FP32 Calls--- | -- Other Calls -->
          matmul_v2                               |  0                |  1                |  0                |  0
        <----------------------------------------------------- op count: 1 ------------------------------------------------------>
        <BLANKLINE>
    """
    enable_operator_stats_collection()
    try:
        yield
    finally:
        disable_operator_stats_collection()


# two runs ----------------------------------------------------------------------------------------


def compare_accuracy(
    dump_path: str, another_dump_path: str, output_filename: str, loss_scale: float = 1, dump_all_tensors: bool = False
) -> None:
    """Write a table of the reports of two runs side by side, which ``TensorCheckerConfig(output_dir=...)`` wrote.

    Args:
        dump_path: the folder of the first run, in float32 for example.
        another_dump_path: the folder of the other run, in float16 for example. It may be missing.
        output_filename: the table: an Excel file if the name ends in ``.xlsx``, otherwise comma-separated values.
        loss_scale: the scale of the loss in the other run.
        dump_all_tensors: only False is supported.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> folder = tempfile.mkdtemp()
        >>> for name, dtype in (('full', 'float32'), ('half', 'float16')):
        ...     config = oar.amp.debugging.TensorCheckerConfig(
        ...         True, oar.amp.debugging.DebugMode.CHECK_ALL, output_dir=os.path.join(folder, name))
        ...     oar.amp.debugging.enable_tensor_checker(config)
        ...     y = oar.to_tensor([3.0], dtype=dtype) * 2
        ...     oar.amp.debugging.disable_tensor_checker()
        ...
        >>> table = os.path.join(folder, 'table.csv')
        >>> oar.amp.debugging.compare_accuracy(os.path.join(folder, 'full'), os.path.join(folder, 'half'), table)
        >>> 'multiply' in open(table).read()
        True
    """
    from oar.amp import accuracy_compare

    if dump_all_tensors:
        raise AssertionError("[compare_accuracy] dump_all_tensors=True is not supported: the reports hold no elements. Leave it out.")
    accuracy_compare.compare_accuracy(dump_path, another_dump_path, output_filename, loss_scale, dump_all_tensors=False)
