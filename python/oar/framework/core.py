"""Questions about the build and its dtypes, under the names of Paddle's native module."""

from __future__ import annotations

import enum
import subprocess
import time
import types
from collections.abc import Callable, Sequence

from oar import _C
from oar._C import Tensor
from oar._places import (
    CPUPlace, CUDAPinnedPlace, CUDAPlace, CustomPlace, IPUPlace, XPUPinnedPlace, XPUPlace, is_compiled_with_cinn,
    is_compiled_with_cuda, is_compiled_with_rocm, is_compiled_with_xpu, unavailable)

__all__ = [
    "CPUPlace",
    "CustomPlace",
    "IPUPlace",
    "LoDTensor",
    "Place",
    "Scope",
    "XPUPinnedPlace",
    "XPUPlace",
    "XPUVersion",
    "get_all_op_protos",
    "get_low_precision_op_list",
    "get_op_extra_attrs",
    "get_xpu_device_version",
    "globals",
    "is_compiled_with_avx",
    "is_compiled_with_mkldnn",
    "set_prim_eager_enabled",
    "supports_avx512f",
    "supports_bfloat16",
    "CUDAPinnedPlace",
    "CUDAPlace",
    "DataType",
    "VarDesc",
    "eager",
    "get_all_custom_device_type",
    "get_all_device_type",
    "get_available_custom_device",
    "get_available_device",
    "AmpLevel",
    "EOFException",
    "default_cpu_generator",
    "default_cuda_generator",
    "default_custom_device_generator",
    "device_memory_stat_current_value",
    "device_memory_stat_peak_value",
    "eager_assign_group_by_size",
    "get_cuda_device_count",
    "get_custom_device_count",
    "is_compiled_with_dist",
    "run_cmd",
    "is_bfloat16_supported",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "is_float16_supported",
]


class DataType:
    """The dtypes by their names in programs."""

    BOOL = _C.bool
    UINT8 = _C.uint8
    UINT32 = _C.uint32
    UINT64 = _C.uint64
    PSTRING = _C.pstring
    UNDEFINED = _C.raw
    INT8 = _C.int8
    INT16 = _C.int16
    INT32 = _C.int32
    INT64 = _C.int64
    FLOAT16 = _C.float16
    BFLOAT16 = _C.bfloat16
    FLOAT32 = _C.float32
    FLOAT64 = _C.float64
    FLOAT8_E4M3FN = _C.float8_e4m3fn
    FLOAT8_E5M2 = _C.float8_e5m2
    COMPLEX64 = _C.complex64
    COMPLEX128 = _C.complex128


class VarDesc:
    """Holds ``VarType``."""

    class VarType:
        """The dtypes by their older names, and the kinds of variables."""

        LOD_TENSOR = DENSE_TENSOR = "dense tensor"
        SELECTED_ROWS = "selected rows"
        LOD_TENSOR_ARRAY = DENSE_TENSOR_ARRAY = "list of tensors"
        FEED_MINIBATCH = "inputs of a run"
        FETCH_LIST = "results of a run"
        STEP_SCOPES = "scopes of a loop"
        PLACE_LIST = "places"
        READER = "reader"
        RAW = "anything"
        STRING = "text"
        STRINGS = "texts"
        VOCAB = "vocabulary"
        SPARSE_COO = "sparse tensor"

        BOOL = _C.bool
        UINT8 = _C.uint8
        UINT32 = _C.uint32
        UINT64 = _C.uint64
        INT8 = _C.int8
        INT16 = _C.int16
        INT32 = _C.int32
        INT64 = _C.int64
        FP16 = _C.float16
        BF16 = _C.bfloat16
        FP32 = _C.float32
        FP64 = _C.float64
        FP8_E4M3FN = _C.float8_e4m3fn
        FP8_E5M2 = _C.float8_e5m2
        COMPLEX64 = _C.complex64
        COMPLEX128 = _C.complex128


class AmpLevel(enum.Enum):
    """How much of a program runs in lower precision."""

    O0 = 0
    O1 = 1
    O2 = 2
    O3 = 3
    OD = 4


class EOFException(Exception):
    """A reader of a program has no more data."""


class _Eager(types.SimpleNamespace):
    """Calls that run at once: the class of tensors, and the ops in the order of Paddle's native interface."""

    @property
    def ops(self) -> types.ModuleType:
        from oar import _C_ops, _legacy_C_ops

        _C_ops.legacy = _legacy_C_ops  # type: ignore[attr-defined]
        return _C_ops

    def sparse_coo_tensor(self, indices: Tensor, values: Tensor, shape: list[int], stop_gradient: bool = True) -> Tensor:
        """``oar.sparse.sparse_coo_tensor`` with every argument."""
        from oar.sparse import sparse_coo_tensor

        return sparse_coo_tensor(indices, values, shape, stop_gradient=stop_gradient)

    def sparse_csr_tensor(
        self, crows: Tensor, cols: Tensor, values: Tensor, shape: list[int], stop_gradient: bool = True
    ) -> Tensor:
        """``oar.sparse.sparse_csr_tensor`` with every argument."""
        from oar.sparse import sparse_csr_tensor

        return sparse_csr_tensor(crows, cols, values, shape, stop_gradient=stop_gradient)

    def _add_backward_final_hook(self, hook: Callable[[], object]) -> None:
        """Calls a function once, after the next backward."""
        _C.add_backward_final_hook(hook)

    def _run_custom_op(self, name: str, *arguments: object) -> list[Tensor]:
        """Calls an op of one's own by its name. Returns its results, always as a list."""
        made = getattr(_C.ops, name)(*arguments)
        return list(made) if isinstance(made, (list, tuple)) else [made]


eager = _Eager(Tensor=Tensor)


def get_cuda_device_count() -> int:
    """0: devices other than the CPU come as plug-ins."""
    return 0


def get_custom_device_count(device_type: str) -> int:
    """How many devices of a kind the loaded plug-ins provide."""
    devices = _devices()
    if device_type == "cpu" or device_type not in devices:
        raise unavailable("get_custom_device_count", f"device of kind {device_type!r}")
    return devices[device_type]


def device_memory_stat_current_value(stat_type: str, device_id: int = 0) -> int:
    """Bytes on a GPU now: 0, there is none. ``oar.device.memory_allocated`` counts those of the CPU."""
    return 0


def device_memory_stat_peak_value(stat_type: str, device_id: int = 0) -> int:
    """The most bytes on a GPU at once: 0, there is none."""
    return 0


def default_cpu_generator():
    """The random numbers of the CPU."""
    from oar._framework import Generator

    return Generator()


def default_cuda_generator(device_id: int = 0):
    """An error: there is no GPU."""
    raise unavailable("default_cuda_generator", "GPU")


def default_custom_device_generator(place: object):
    """An error: the random numbers of devices of plug-ins are those of the CPU."""
    raise unavailable("default_custom_device_generator", "generator of a device's own")


def is_compiled_with_dist() -> bool:
    """False: there is one process."""
    return False


def _devices() -> dict[str, int]:
    """How many devices of each kind there are, without the one that only measures overhead."""
    return {kind: number for kind, number in _C.device_types() if kind != "null"}


def get_all_device_type() -> list[str]:
    """The available kinds of devices: the CPU and those of plug-ins.

    Examples:
        >>> import oar
        >>> 'cpu' in oar.device.get_all_device_type()
        True
    """
    return list(_devices())


def get_all_custom_device_type() -> list[str]:
    """The kinds of devices of loaded plug-ins.

    Examples:
        >>> import oar
        >>> isinstance(oar.device.get_all_custom_device_type(), list)
        True
    """
    return [kind for kind in _devices() if kind != "cpu"]


def get_available_device() -> list[str]:
    """The available devices, by the names that ``set_device`` takes.

    Examples:
        >>> import oar
        >>> 'cpu' in oar.device.get_available_device()
        True
    """
    return ["cpu", *get_available_custom_device()]


def get_available_custom_device() -> list[str]:
    """The devices of loaded plug-ins, by the names that ``set_device`` takes.

    Examples:
        >>> import oar
        >>> isinstance(oar.device.get_available_custom_device(), list)
        True
    """
    return [f"{kind}:{i}" for kind in get_all_custom_device_type() for i in range(_devices()[kind])]


def is_bfloat16_supported(place=None) -> bool:
    """Whether ops take bfloat16: on the CPU, all of them."""
    return place is None or place.is_cpu_place()


def is_float16_supported(place=None) -> bool:
    """Whether the device itself computes in float16: a CPU with AVX-512-FP16. On others, ops compute in float32 and round."""
    return (place is None or place.is_cpu_place()) and "avx512_fp16" in _processor_flags()


# kinds of places -----------------------------------------------------------------------------------


class XPUVersion:
    """The generations of Kunlun devices."""

    XPU1 = 1
    XPU2 = 2
    XPU3 = 3


def get_xpu_device_version(device_id: int = 0) -> int:
    """An error: there is no such device."""
    raise unavailable("get_xpu_device_version", "XPU")


class Place:
    """A place of any kind, which is set later."""

    def __init__(self) -> None:
        self._place: object = CPUPlace()

    def set_place(self, place: object) -> None:
        """Become that place."""
        self._place = place

    def __getattr__(self, name: str):
        return getattr(self.__dict__["_place"], name)


# what the processor and the build can do ---------------------------------------------------------


def _processor_flags() -> set[str]:
    try:
        with open("/proc/cpuinfo") as file:
            return next((set(line.split()) for line in file if line.startswith("flags")), set())
    except OSError:
        return set()


def supports_avx512f() -> bool:
    """Whether the processor has AVX-512."""
    return "avx512f" in _processor_flags()


def supports_bfloat16() -> bool:
    """Whether bfloat16 is fast: with AVX-512."""
    return supports_avx512f()


def is_compiled_with_avx() -> bool:
    """True: AVX2 is the least that Oar needs."""
    return True


def is_compiled_with_mkldnn() -> bool:
    """True: large products and convolutions are oneDNN's."""
    return True


# flags and wishes ----------------------------------------------------------------------------------


class _Globals:
    """The flags as a mapping."""

    def __getitem__(self, name: str):
        from oar._framework import get_flags

        return get_flags(name)[name]

    def __setitem__(self, name: str, value: object) -> None:
        from oar._framework import set_flags

        set_flags({name: value})

    def __contains__(self, name: str) -> bool:
        return name.removeprefix("FLAGS_") in self.keys()

    def keys(self) -> list[str]:
        """The names of the flags."""
        from oar._framework import _kept_flags

        return [row[0] for row in _C.list_flags()] + list(_kept_flags())

    def is_public(self, name: str) -> bool:
        """Whether there is such a flag."""
        return name in self


def globals() -> _Globals:
    """The flags as a mapping."""
    return _Globals()


_expansion = {"forward": False, "backward": False, "eager": False}


def _set_prim_all_enabled(value: bool) -> None:
    """Whether ops should be expanded into primitives. Stored; the results are the same, and Oar expands what a device lacks."""
    _expansion.update(forward=bool(value), backward=bool(value))


def _set_prim_forward_enabled(value: bool) -> None:
    """As ``_set_prim_all_enabled``, for forward calls."""
    _expansion["forward"] = bool(value)


def _set_prim_backward_enabled(value: bool) -> None:
    """As ``_set_prim_all_enabled``, for gradients."""
    _expansion["backward"] = bool(value)


def set_prim_eager_enabled(value: bool) -> None:
    """As ``_set_prim_all_enabled``, for calls that run at once."""
    _expansion["eager"] = bool(value)


def _is_fwd_prim_enabled() -> bool:
    return _expansion["forward"]


def _is_bwd_prim_enabled() -> bool:
    return _expansion["backward"]


def _is_eager_prim_enabled() -> bool:
    return _expansion["eager"]


_kept_whole: dict[str, set[str]] = {"forward": set(), "backward": set()}


def _set_prim_forward_blacklist(*names: str) -> None:
    """Ops that are not to be expanded. Kept, as the wish to expand is."""
    _kept_whole["forward"].update(names)


def _set_prim_backward_blacklist(*names: str) -> None:
    """Ops whose gradients are not to be expanded. Kept, as the wish to expand is."""
    _kept_whole["backward"].update(names)


_tuning = {"kernels": False, "layout": False}


def enable_autotune() -> None:
    """A wish to tune kernels. Kept; Oar chooses kernels by the sizes of their operands."""
    _tuning["kernels"] = True


def disable_autotune() -> None:
    """Takes ``enable_autotune`` back."""
    _tuning["kernels"] = False


def set_autotune_range(start: int, stop: int) -> None:
    """The steps to tune in. Accepted; nothing is tuned at run time."""


def update_autotune_status() -> None:
    """Counts a step. Accepted; nothing is tuned at run time."""


def autotune_status() -> dict[str, object]:
    """What has been tuned: nothing."""
    return {"use_autotune": _tuning["kernels"], "step_id": 0, "cache_size": 0, "cache_hit_rate": 0.0}


def enable_layout_autotune() -> None:
    """A wish to choose the layout of images. Stays off without a GPU, as in Paddle."""


def disable_layout_autotune() -> None:
    """Takes ``enable_layout_autotune`` back."""
    _tuning["layout"] = False


def use_layout_autotune() -> bool:
    """Whether the layout of images is tuned at run time: never; the compiler chooses it."""
    return _tuning["layout"]


def grad_var_suffix() -> str:
    """What the name of a gradient ends with."""
    return "@GRAD"


def op_support_gpu(op_type: str) -> bool:
    """Whether an op has a kernel for GPUs: not without a plug-in."""
    return False


def get_all_op_protos() -> list[bytes]:
    """The ops that ``Block.append_op`` takes, as bytes that ``OpProto.FromString`` reads."""
    from oar.base import operators
    from oar.base.proto.framework_pb2 import OpProto

    forms = map(operators.find_older, operators.older_names())
    return [OpProto.of(form).SerializeToString() for form in forms if form is not None]


def get_op_extra_attrs(type: str) -> dict[str, object]:
    """Attributes that only steer another engine: none are listed."""
    return {}


def eager_assign_group_by_size(
    tensors: Sequence[Tensor], is_sparse_gradient: Sequence[bool], group_size_limits: Sequence[int] = (26214400,),
    tensor_indices: Sequence[int] = (),
) -> list[list[int]]:  # fmt: skip
    """Divides tensors into groups of one dtype whose bytes reach a limit, for sending each group at once.

    Args:
        tensors: the tensors.
        is_sparse_gradient: which of them have sparse gradients; each of those is a group of its own. Empty: none.
        group_size_limits: the bytes that close the first, the second, ... group of each dtype; the last holds for all others.
        tensor_indices: the numbers of the tensors; empty: 0, 1, 2 and so on.

    Returns:
        the numbers of the tensors of each group. Without ``tensor_indices``, sorted by their first.
    """
    numbers = list(tensor_indices) or list(range(len(tensors)))
    groups: list[list[int]] = []
    open_groups: dict[_C.dtype, tuple[list[int], int]] = {}
    closed: dict[_C.dtype, int] = {}
    for i, (number, tensor) in enumerate(zip(numbers, tensors)):
        if is_sparse_gradient and is_sparse_gradient[i]:
            groups.append([number])
            continue
        members, size = open_groups.pop(tensor.dtype, ([], 0))
        members.append(number)
        size += tensor.size * tensor.element_size()
        limit = group_size_limits[min(closed.get(tensor.dtype, 0), len(group_size_limits) - 1)]
        if size >= limit:
            groups.append(members)
            closed[tensor.dtype] = closed.get(tensor.dtype, 0) + 1
        else:
            open_groups[tensor.dtype] = members, size
    groups += [members for members, _ in open_groups.values()]
    return groups if tensor_indices else sorted(groups, key=lambda members: members[0])


def run_cmd(cmd: str, time_out: int = -1, sleep_inter: int = -1) -> str:
    """Runs a command of the shell and returns what it prints; again, until it succeeds, for ``time_out`` milliseconds."""
    end = time.monotonic() + time_out / 1000
    while True:
        done = subprocess.run(cmd, shell=True, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S602
        if done.returncode == 0 or time.monotonic() >= end:
            return done.stdout
        time.sleep(max(sleep_inter, 0) / 1000)


def get_low_precision_op_list() -> dict[str, str]:
    """How often ops ran in float16, bfloat16, float32 and other dtypes, by Paddle's names, while
    ``amp.debugging.enable_operator_stats_collection`` counted."""
    from oar.amp import _watch

    return _watch.counts()


def clear_low_precision_op_list() -> None:
    """Counts from nothing again."""
    from oar.amp import _watch

    _watch.clear_counts()


def set_checked_op_list(op_list: str) -> None:
    """The ops whose results the tensor checker checks, separated by commas; none: all."""
    _set_watched(checked=_names_of(op_list))


def set_skipped_op_list(op_list: str) -> None:
    """The ops whose results the tensor checker does not check, separated by commas."""
    _set_watched(skipped=_names_of(op_list))


def set_nan_inf_debug_path(path: str) -> None:
    """The folder that the tensor checker writes its reports to."""
    _set_watched(output_dir=path)


def set_nan_inf_stack_limit(limit: int) -> None:
    """Accepted for compatibility: errors of the tensor checker always name the line."""


def _names_of(op_list: str) -> frozenset[str]:
    return frozenset(name for name in op_list.split(",") if name)


def _set_watched(**values: object) -> None:
    from oar.amp import _watch

    vars(_watch.settings).update(values)


def __getattr__(name: str):
    if name in ("LoDTensor", "Scope"):
        from oar.static import scope

        return getattr(scope, name)
    if name in ("TracerEventType", "TracerMemEventType"):
        from oar.profiler import event_types

        return getattr(event_types, name)
    if name in ("AnalysisConfig", "PaddlePredictor", "create_paddle_predictor"):
        from oar.inference import older

        return getattr(older, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
