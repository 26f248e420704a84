"""Programs in bfloat16 or float16: the same calls, captured again with casts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import Any, BinaryIO, NamedTuple

import oar
from oar import _C
from oar._C import Tensor
from oar.framework._replace import replace_files
from oar.framework.io import states_from_bytes, states_to_bytes
from oar.framework.oar_file import OarContent, is_oar_path, load_oar, save_oar
from oar.inference.config import PlaceType, PrecisionType
from oar.inference.paddle import Model as PaddleModel
from oar.static.io import load_from_file, program_in
from oar.static.oar_model import OarBuilder
from oar.static.program import Program, written_elsewhere

__all__ = ["BoundProgram", "LowPrecision", "bound_in", "convert_to_mixed_precision", "in_low_precision", "load_bound"]

_MOST_PROGRAMS = 64
_DTYPES = {PrecisionType.Half: "float16", PrecisionType.Bfloat16: "bfloat16"}


class BoundProgram(NamedTuple):
    """A program with its weights: what it takes, in the order of its inputs, and what it gives. `feeds` are its inputs in the order of the file."""

    native: Any
    inputs: list[str]
    outputs: list[str]
    feeds: list[str]


def bound(program: Program, tensors: dict[str, Tensor]) -> BoundProgram:
    """A program of Oar with its states, by their names."""
    for name, tensor in tensors.items():
        tensor.name = name
    builder = program._builder
    native, inputs = builder.draft(builder.outputs(), lambda name, *_: tensors[name], False)
    return BoundProgram(native, inputs, list(program._fetch_names), list(program._feed_names))


def load_bound(program_file: str, params_file: str | None, method: str = "forward") -> BoundProgram:
    """The program of an ``.oar`` file, or of two files that Oar or Paddle wrote."""
    if params_file is None and is_oar_path(program_file):
        content: OarContent = load_oar(program_file)
        return bound(program_in(content.method(method, program_file)[0], content.tensors), content.tensors)
    weights = load_from_file(params_file) if params_file and os.path.isfile(params_file) else b""
    return bound_in(load_from_file(program_file), weights, str(params_file))


def bound_in(program: bytes, parameters: bytes, where: str) -> BoundProgram:
    """The same from the content of two files."""
    if _C.is_paddle_program(program):
        model = PaddleModel(program, parameters)
        return BoundProgram(model.open_program(), model.inputs, model.outputs, model.inputs)
    tensors = states_from_bytes(parameters, where) if parameters else {}
    return bound(program_in(program, tensors), tensors)


def in_low_precision(native: Any, dtype: str, keep_io_types: bool = True, black_list: Iterable[str] = (), white_list: Iterable[str] = ()) -> Any:
    """The program with casts where ``amp.auto_cast`` at O1 makes them; weights that are only read in ``dtype`` are constants of it."""
    parts = _C.saved_parts(native)
    sizes: dict[str, Any] = {}
    rows = []
    for label, (kind, shape) in zip(native.input_names, parts["inputs"]):
        dims = [sizes.setdefault(size, _C.Dim(size, max(int(parts["sizes"].get(size, 4)), 2))) if isinstance(size, str) else size for size in shape]
        rows.append((dims, _taken(kind, dtype, keep_io_types), label, True))

    def run(inputs: list[Tensor]) -> list[Tensor]:
        given = [t.astype(kind) for t, (kind, _) in zip(inputs, parts["inputs"])]
        with oar.amp.auto_cast(True, custom_black_list=set(black_list), custom_white_list=set(white_list), level="O1", dtype=dtype):
            made = native.run(given)
        return [t.astype(_taken(kind, dtype, keep_io_types)) for t, (kind, _) in zip(made, parts["outputs"])]

    black_list, white_list = _with_parts(black_list), _with_parts(white_list)
    with written_elsewhere(), oar.no_grad():
        return _C.capture(run, rows, "forward").optimised(True)


def _with_parts(names: Iterable[str]) -> set[str]:
    """With the op that convolutions of all kinds are in saved programs."""
    given = set(names)
    return given | ({"conv"} if given & {"conv1d", "conv2d", "conv3d", "depthwise_conv2d"} else set())


def _taken(kind: str, dtype: str, keep_io_types: bool) -> str:
    """The dtype of an input or output in the new program."""
    return kind if keep_io_types or kind != "float32" else dtype


class LowPrecision:
    """A model whose runs compute in a lower precision.

    Args:
        source: a bound program, or a model that has a program for each set of sizes.
        dtype: ``"bfloat16"`` or ``"float16"``.
        only: the ops that do, by Paddle's names; None leaves the choice to ``amp.auto_cast``.
    """

    def __init__(self, source: Any, dtype: str, only: set[str] | None) -> None:
        self._source, self._dtype = source, dtype
        usual = oar.amp.white_list()[dtype]["O1"]
        self._lists = (set(), set()) if only is None else (usual - only, only)
        self._made: dict[Any, tuple[Any, list[str]]] = {}  # by shapes; the same for all if the program's sizes are open

    def run(self, feed: dict[str, Any]) -> list[Tensor]:
        """The outputs for these tensors or arrays by name."""
        given = {name: x if isinstance(x, Tensor) else oar.to_tensor(x) for name, x in feed.items()}
        is_bound = isinstance(self._source, BoundProgram)
        key = None if is_bound else tuple(tuple(tensor.shape) for tensor in given.values())
        if key not in self._made:
            if len(self._made) >= _MOST_PROGRAMS:
                self._made.pop(next(iter(self._made)))
            native = self._source.native if is_bound else self._source.program(given)
            names = self._source.inputs if is_bound else native.input_names
            black, white = self._lists
            self._made[key] = in_low_precision(native, self._dtype, True, black, white), names
        native, names = self._made[key]
        with oar.no_grad():
            return native.run([given[name] for name in names])


def convert_to_mixed_precision(
    model_file: str,
    params_file: str,
    mixed_model_file: str,
    mixed_params_file: str,
    mixed_precision: PrecisionType,
    backend: PlaceType,
    keep_io_types: bool = True,
    black_list: set[str] = set(),  # noqa: B006  as in Paddle
    **kwargs: Any,
) -> None:
    """Writes a model that computes in float16 or bfloat16 where this is safe, and has its large weights in that dtype.

    Ops are chosen as ``amp.auto_cast`` at level O1 does. The files are those of Oar, whoever wrote the model: ``Config`` reads them.
    Both appear, or neither.

    Args:
        model_file: the program, of Oar or Paddle, or an ``.oar`` file.
        params_file: its parameters; ``''`` for an ``.oar`` file.
        mixed_model_file: the program to write, or an ``.oar`` file.
        mixed_params_file: the parameters to write; with ``''`` they are beside the program.
        mixed_precision: ``PrecisionType.Half`` or ``PrecisionType.Bfloat16``.
        backend: ``PlaceType.CPU``.
        keep_io_types: whether inputs and outputs stay float32.
        black_list: names of ops, as Paddle calls them, that stay in float32.
        kwargs: ``white_list``: names of further ops that compute in the lower precision.

    Examples:
        >>> import os, tempfile
        >>> import oar
        >>> path = os.path.join(tempfile.mkdtemp(), 'net.oar')
        >>> oar.jit.save(oar.nn.Linear(64, 64), path, input_spec=[oar.static.InputSpec([None, 64], 'float32', 'x')])
        >>> half = path.replace('net', 'half')
        >>> kind = oar.inference.PrecisionType.Bfloat16
        >>> oar.inference.convert_to_mixed_precision(path, '', half, '', kind, oar.inference.PlaceType.CPU)
        >>> oar.interop.load(half)(oar.ones([2, 64]))[0].dtype.name
        'float32'
        >>> os.path.getsize(half) < os.path.getsize(path)
        True
    """
    unknown = set(kwargs) - {"white_list"}
    if unknown:
        raise TypeError(f"[convert_to_mixed_precision] there is no option {min(unknown)!r}; there is white_list.")
    if mixed_precision not in _DTYPES:
        raise ValueError(f"[convert_to_mixed_precision] mixed_precision is {mixed_precision}; it can be PrecisionType.Half or "
                         "PrecisionType.Bfloat16.")
    if backend != PlaceType.CPU:
        raise ValueError(f"[convert_to_mixed_precision] there is no {backend.name} here; the backend can be PlaceType.CPU.")
    source = load_bound(model_file, params_file or None)
    dtype = _DTYPES[mixed_precision]
    with written_elsewhere(), oar.no_grad():
        native = in_low_precision(source.native, dtype, keep_io_types, black_list, kwargs.get("white_list", ()))
        _write(native, source, mixed_model_file, mixed_params_file)


def _write(native: Any, source: BoundProgram, program_file: str, params_file: str) -> None:
    builder = OarBuilder()
    builder.add("forward", "", [native.for_deployment()], source.inputs, source.outputs, source.inputs)
    states = {tensor.name: tensor for _, tensor in native.states()}
    content = builder.content(states, {})
    if is_oar_path(program_file):
        save_oar(program_file, content)
        return
    weights = params_file or os.path.splitext(program_file)[0] + ".pdiparams"
    text, packed = content.programs["forward"][0], states_to_bytes(content.tensors)
    replace_files({program_file: partial(_put, text), weights: partial(_put, packed)})


def _put(content: bytes, file: BinaryIO) -> None:
    file.write(content)
