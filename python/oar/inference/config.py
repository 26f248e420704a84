"""What a predictor is to run, and how."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable
from typing import Any

from oar._places import unavailable
from oar.framework.oar_file import is_oar_path

__all__ = ["Config", "DataType", "PlaceType", "PrecisionType", "XpuConfig"]


class DataType(enum.Enum):
    """Dtypes of inputs and outputs.

    Examples:
        >>> import oar
        >>> oar.inference.DataType.FLOAT32.name
        'FLOAT32'
    """

    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT64 = "int64"
    INT32 = "int32"
    INT8 = "int8"
    UINT8 = "uint8"
    BOOL = "bool"


class PlaceType(enum.Enum):
    """Kinds of devices.

    Examples:
        >>> import oar
        >>> oar.inference.PlaceType.CPU.name
        'CPU'
    """

    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class PrecisionType(enum.Enum):
    """Precisions of a predictor.

    Examples:
        >>> import oar
        >>> oar.inference.PrecisionType.Half.name
        'Half'
    """

    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


def _file(path: str) -> str:
    """The file itself; a program under one of Paddle's two endings is found under the other, too."""
    stem, end = os.path.splitext(path)
    for other in (end, ".pdmodel", ".json"):
        if os.path.isfile(stem + other):
            return stem + other
    raise ValueError(f"[Config] there is no file {path}.")


def _is_foreign(path: str) -> bool:
    """Whether a path is that of a model that has no file of parameters of Paddle's kind."""
    from oar import _C

    return os.path.isfile(path) and _C.guess_file(os.fspath(path))[0] in ("onnx", "tflite", "caffe")


class XpuConfig:
    """Settings of an XPU, which is not there.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.inference.XpuConfig()
        ... except Exception as error:
        ...     print(type(error).__name__)
        ...
        DeviceUnavailable
    """

    def __init__(self) -> None:
        raise unavailable("XpuConfig", "XPU")


def _accepted(name: str, why: str) -> Any:
    def accept(self: Config, *args: Any, **kwargs: Any) -> None:
        self._ignored[name] = why

    accept.__name__ = name
    accept.__doc__ = f"Accepted, without effect: {why}."
    return accept


def _missing(name: str, what: str) -> Any:
    def refuse(self: Config, *args: Any, **kwargs: Any) -> None:
        raise ValueError(f"[Config] there is no {what} here. hint: leave {name} out.")

    refuse.__name__ = name
    refuse.__doc__ = f"An error: there is no {what}."
    return refuse


def _answer(name: str, value: Any, why: str) -> Any:
    def answer(self: Config, *args: Any) -> Any:
        return value

    answer.__name__ = name
    answer.__doc__ = f"{value!r}: {why}."
    return answer


class Config:
    """A model and wishes about how it is run.

    A wish acts, or it is an error, or it changes nothing; ``without_effect`` has those of the last kind that were made, and why.

    Args:
        prog_file: the program, ``model.pdmodel`` or ``model.json``; or, alone, an ``.oar`` file, a model of any format that
            ``oar.interop.load`` reads, a folder with a program, or the prefix of both files.
        params_file: the contents of its parameters, ``model.pdiparams``.

    Examples:
        >>> import oar
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), 'model')
        >>> oar.enable_static()
        >>> with oar.static.program_guard(oar.static.Program()):
        ...     x = oar.static.data('x', [None, 3])
        ...     oar.static.save_inference_model(path, [x], [x * 2], oar.static.Executor())
        ...
        >>> oar.disable_static()
        >>> config = oar.inference.Config(path + '.pdmodel', path + '.pdiparams')
        >>> config.disable_gpu()
        >>> config.without_effect()
        {'disable_gpu': 'models run on the CPU'}
        >>> oar.inference.create_predictor(config).get_input_names()
        ['x']
    """

    Precision = PrecisionType

    def __init__(self, prog_file: str | None = None, params_file: str | None = None) -> None:
        self._program: str | None = None
        self._parameters: str | None = None
        self._buffers: tuple[bytes, bytes] | None = None
        self._threads: int | None = None
        self._ignored: dict[str, str] = {}
        self._flags: dict[str, Any] = {}  # during runs
        self._passes_off: list[str] = []
        self._low_precision: str | None = None
        self._low_ops: set[str] | None = None
        self._profiled = False
        if prog_file is not None:
            self.set_model(prog_file, params_file)

    # the model -----------------------------------------------------------------------------------

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Choose the files of the model; see the class."""
        self._buffers = None
        if params_file is None and (is_oar_path(prog_file) or _is_foreign(prog_file)):
            if not os.path.isfile(prog_file):
                raise ValueError(f"[Config] there is no file {prog_file}.")
            self._program, self._parameters = os.fspath(prog_file), None
            return
        if params_file is None:
            prefix = os.path.join(prog_file, "__model__") if os.path.isdir(prog_file) else prog_file
            prog_file, params_file = prefix + ".pdmodel", prefix + ".pdiparams"
        self._program, self._parameters = _file(prog_file), params_file

    def set_prog_file(self, path: str) -> None:
        """Choose the file of the program."""
        self._program = _file(path)

    def set_params_file(self, path: str) -> None:
        """Choose the file of the parameters."""
        self._parameters = os.fspath(path)

    def set_model_buffer(self, prog_buffer: bytes, prog_size: int, params_buffer: bytes, params_size: int) -> None:
        """The content of both files, in memory."""
        self._buffers = bytes(prog_buffer[:prog_size]), bytes(params_buffer[:params_size])
        self._program = self._parameters = None

    def model_from_memory(self) -> bool:
        """Whether the model came from ``set_model_buffer``."""
        return self._buffers is not None

    def prog_file(self) -> str | None:
        """The file of the program."""
        return self._program

    def params_file(self) -> str | None:
        """The file of the parameters."""
        return self._parameters

    def model_dir(self) -> str:
        """The folder that the program is in."""
        return os.path.dirname(self._program or "")

    # how it is run -------------------------------------------------------------------------------

    def set_cpu_math_library_num_threads(self, number: int) -> None:
        """How many threads an op may use."""
        self._threads = int(number)

    def cpu_math_library_num_threads(self) -> int:
        """How many threads an op may use."""
        import oar

        return self._threads or oar.get_num_threads()

    def switch_ir_optim(self, x: bool = True) -> None:
        """Whether passes run over the program."""
        self._passes_off = [name for name in self._passes_off if name != "all"] + ([] if x else ["all"])

    def ir_optim(self) -> bool:
        """Whether passes run over the program."""
        return "all" not in self._passes_off

    def delete_pass(self, name: str) -> None:
        """Leave out one of Oar's passes (``oar flags`` names the flag ``passes_off``). Names of Paddle's passes have no effect."""
        from oar import _C

        if name in _C.pass_names():
            self._passes_off.append(name)
        else:
            self._ignored[f"delete_pass({name!r})"] = "Oar has other passes"

    def enable_mkldnn(self) -> None:
        """Let oneDNN compute products and convolutions where it is faster, as is usual."""
        self._flags.pop("onednn", None)

    def disable_mkldnn(self) -> None:
        """Compute without oneDNN."""
        self._flags["onednn"] = False

    def mkldnn_enabled(self) -> bool:
        """Whether oneDNN may compute."""
        import oar

        return bool(self._flags.get("onednn", oar.get_flags("onednn")["onednn"]))

    enable_onednn, disable_onednn, onednn_enabled = enable_mkldnn, disable_mkldnn, mkldnn_enabled

    def enable_mkldnn_bfloat16(self) -> None:
        """Compute in bfloat16 where ``amp.auto_cast`` at level O1 does. Inputs and outputs keep their dtypes."""
        self._low_precision = "bfloat16"

    enable_onednn_bfloat16 = enable_mkldnn_bfloat16

    def set_bfloat16_op(self, op_list: Iterable[str]) -> None:
        """The ops that compute in bfloat16, by Paddle's names; others stay in float32."""
        self._low_ops = set(op_list)

    def mkldnn_bfloat16_enabled(self) -> bool:
        """Whether bfloat16 was chosen."""
        return self._low_precision == "bfloat16"

    def enable_profile(self) -> None:
        """Time each op; ``Predictor.op_times`` has the sums. A run takes longer."""
        self._profiled = True

    def profile_enabled(self) -> bool:
        """Whether ops are timed."""
        return self._profiled

    # what the settings come to -------------------------------------------------------------------

    def without_effect(self) -> dict[str, str]:
        """The wishes that were made and change nothing, and why."""
        return dict(self._ignored)

    def run_flags(self) -> dict[str, Any]:
        """The flags that hold during a run of the predictor."""
        off = {"passes_off": ",".join(self._passes_off)} if self._passes_off else {}
        return {**self._flags, **off}

    def summary(self) -> str:
        """The settings as text."""
        import oar

        rows = {
            "program": self._program or ("in memory" if self._buffers else None),
            "parameters": self._parameters,
            "threads": self.cpu_math_library_num_threads(),
            "instruction set": oar.get_flags("cpu_isa")["cpu_isa"],
            "oneDNN": self.mkldnn_enabled(),
            "passes left out": ", ".join(self._passes_off) or "none",
            "precision": self._low_precision or "as in the program",
            "profile": self._profiled,
            **{f"without effect: {name}": why for name, why in self._ignored.items()},
        }
        return "\n".join(f"{key}: {value}" for key, value in rows.items())

    # Wishes that are accepted and change nothing.
    collect_shape_range_info = _accepted("collect_shape_range_info", "programs take any size without it")
    disable_glog_info = _accepted("disable_glog_info", "nothing is logged, unless the flag log says so")
    disable_gpu = _accepted("disable_gpu", "models run on the CPU")
    disable_mkldnn_fc_passes = _accepted("disable_mkldnn_fc_passes", "oneDNN computes products where it is faster")
    disable_onednn_fc_passes = _accepted("disable_onednn_fc_passes", "oneDNN computes products where it is faster")
    disable_onnxruntime = _accepted("disable_onnxruntime", "Oar runs ONNX models itself")
    enable_cinn = _accepted("enable_cinn", "there is one compiler, which is on")
    enable_memory_optim = _accepted("enable_memory_optim", "memory is planned in any case")
    enable_new_executor = _accepted("enable_new_executor", "there is one executor")
    enable_new_ir = _accepted("enable_new_ir", "there is one kind of program")
    enable_onnxruntime = _accepted("enable_onnxruntime", "Oar runs ONNX models itself")
    enable_ort_optimization = _accepted("enable_ort_optimization", "Oar runs ONNX models itself")
    enable_save_optim_model = _accepted("enable_save_optim_model", "programs are optimised when they are loaded, which takes milliseconds")
    set_mkldnn_cache_capacity = _accepted("set_mkldnn_cache_capacity", "prepared calls are kept with the program")
    set_mkldnn_op = _accepted("set_mkldnn_op", "oneDNN computes where it is faster")
    set_onednn_cache_capacity = _accepted("set_onednn_cache_capacity", "prepared calls are kept with the program")
    set_onednn_op = _accepted("set_onednn_op", "oneDNN computes where it is faster")
    set_optim_cache_dir = _accepted("set_optim_cache_dir", "nothing is written to disk")
    set_optimization_level = _accepted("set_optimization_level", "all passes run; switch_ir_optim(False) turns them off")
    switch_ir_debug = _accepted("switch_ir_debug", "oar inspect prints programs")
    switch_specify_input_names = _accepted("switch_specify_input_names", "inputs have names in any case")
    switch_use_feed_fetch_ops = _accepted("switch_use_feed_fetch_ops", "programs have none")
    use_optimized_model = _accepted("use_optimized_model", "programs are optimised when they are loaded, which takes milliseconds")

    glog_info_disabled = _answer("glog_info_disabled", True, "nothing is logged")
    new_ir_enabled = _answer("new_ir_enabled", True, "there is one kind of program")
    specify_input_name = _answer("specify_input_name", True, "inputs have names in any case")
    use_feed_fetch_ops_enabled = _answer("use_feed_fetch_ops_enabled", False, "programs have none")
    mkldnn_int8_enabled = onednn_int8_enabled = _answer("mkldnn_int8_enabled", False, "nothing is computed in int8")
    onnxruntime_enabled = _answer("onnxruntime_enabled", False, "Oar runs ONNX models itself")
    openvino_engine_enabled = _answer("openvino_engine_enabled", False, "there is no OpenVINO")
    shape_range_info_collected = _answer("shape_range_info_collected", False, "programs take any size without it")
    shape_range_info_path = _answer("shape_range_info_path", "", "programs take any size without it")
    use_gpu = _answer("use_gpu", False, "devices other than the CPU come as plug-ins")
    use_xpu = _answer("use_xpu", False, "devices other than the CPU come as plug-ins")
    gpu_device_id = _answer("gpu_device_id", 0, "there is no GPU")
    xpu_device_id = _answer("xpu_device_id", 0, "there is no XPU")
    memory_pool_init_size_mb = _answer("memory_pool_init_size_mb", 0, "memory is taken when it is needed")
    fraction_of_gpu_memory_for_pool = _answer("fraction_of_gpu_memory_for_pool", 0.0, "there is no GPU")

    def enable_use_gpu(self, *args: Any, **kwargs: Any) -> None:
        """An error: there is no GPU back end."""
        raise ValueError("[Config] there is no GPU here. hint: do not call enable_use_gpu, or call disable_gpu().")

    def enable_xpu(self, *args: Any, **kwargs: Any) -> None:
        """An error: there is no XPU."""
        raise unavailable("Config.enable_xpu", "XPU")

    set_xpu_config = set_xpu_device_id = xpu_config = enable_xpu

    enable_custom_device = _missing("enable_custom_device", "back end for other devices in predictors")
    enable_ipu = _missing("enable_ipu", "IPU")
    enable_openvino_engine = _missing("enable_openvino_engine", "OpenVINO")
    enable_mkldnn_int8 = enable_onednn_int8 = _missing("enable_mkldnn_int8", "arithmetic in int8")
    enable_low_precision_io = _missing("enable_low_precision_io", "GPU, for which it is")
    enable_tensorrt_engine = _missing("enable_tensorrt_engine", "TensorRT")
    tensorrt_engine_enabled = _answer("tensorrt_engine_enabled", False, "Oar is built without TensorRT")

