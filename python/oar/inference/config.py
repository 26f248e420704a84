"""What a predictor is to run, and how."""

from __future__ import annotations

import enum
import os
from typing import Any

from oar.framework.oar_file import is_oar_path

__all__ = ["Config", "DataType", "PlaceType", "PrecisionType"]


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


class Config:
    """A model and wishes about how it is run.

    Args:
        prog_file: the program, ``model.pdmodel``; or, alone, an ``.oar`` file, a folder with a program, or the prefix of both files.
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
        >>> oar.inference.create_predictor(config).get_input_names()
        ['x']
    """

    def __init__(self, prog_file: str | None = None, params_file: str | None = None) -> None:
        self._program: str | None = None
        self._parameters: str | None = None
        self._threads: int | None = None
        self._wishes: dict[str, bool] = {"ir_optim": True, "memory_optim": True}
        if prog_file is not None:
            self.set_model(prog_file, params_file)

    def set_model(self, prog_file: str, params_file: str | None = None) -> None:
        """Choose the files of the model; see the class."""
        if params_file is None and is_oar_path(prog_file):
            if not os.path.isfile(prog_file):
                raise ValueError(f"[Config] there is no file {prog_file}.")
            self._program, self._parameters = os.fspath(prog_file), None
            return
        if params_file is None:
            prefix = os.path.join(prog_file, "__model__") if os.path.isdir(prog_file) else prog_file
            prog_file, params_file = prefix + ".pdmodel", prefix + ".pdiparams"
        self._program, self._parameters = _file(prog_file), params_file

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
        """Whether passes run over the program. Kept: they always do."""
        self._wishes["ir_optim"] = bool(x)

    def ir_optim(self) -> bool:
        """Whether passes were wished for."""
        return self._wishes["ir_optim"]

    def enable_memory_optim(self, x: bool = True) -> None:
        """Whether memory is planned. Kept: it always is."""
        self._wishes["memory_optim"] = bool(x)

    def _accept(self, *args: Any, **kwargs: Any) -> None:
        """A wish about engines and printing that changes no result."""

    disable_gpu = disable_mkldnn = disable_onednn = enable_mkldnn = enable_onednn = disable_glog_info = _accept
    enable_new_ir = enable_new_executor = switch_use_feed_fetch_ops = switch_specify_input_names = _accept
    switch_ir_debug = set_optimization_level = enable_profile = set_mkldnn_cache_capacity = _accept

    def use_gpu(self) -> bool:
        """False: devices other than the CPU come as plug-ins."""
        return False

    def enable_use_gpu(self, *args: Any, **kwargs: Any) -> None:
        """An error: there is no GPU back end."""
        raise ValueError("[Config] there is no GPU here. hint: do not call enable_use_gpu, or call disable_gpu().")

    def enable_tensorrt_engine(self, *args: Any, **kwargs: Any) -> None:
        """An error: Oar is built without TensorRT."""
        raise ValueError("[Config] Oar is built without TensorRT. hint: leave enable_tensorrt_engine out.")

    def tensorrt_engine_enabled(self) -> bool:
        """False: Oar is built without TensorRT."""
        return False

    def summary(self) -> str:
        """The settings as text."""
        rows = {"program": self._program, "parameters": self._parameters, "threads": self.cpu_math_library_num_threads()}
        return "\n".join(f"{key}: {value}" for key, value in rows.items())
