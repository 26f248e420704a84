"""Capture of straight-line functions."""

from __future__ import annotations

import inspect

from oar import _C
from oar._C import Tensor
from oar.nn import _path
from oar.static.input_spec import InputSpec


class Operation:
    """One call of a program."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        """The name of the op as Paddle's programs write it, ``pd_op.add`` for example."""
        return f"pd_op.{self._name}"

    def __repr__(self) -> str:
        return f"<Operation {self._name}>"


class CapturedBlock:
    """The calls of a program in order."""

    def __init__(self, ops: list[Operation]) -> None:
        self.ops = ops


class CapturedProgram:
    """A captured function. Call it with tensors; ``str()`` shows it.

    Args:
        native: the program of the core.
        single: whether the function returned one tensor.
        outputs: the tensors to differentiate.

    Examples:
        >>> import oar
        >>> program = oar.jit.capture(lambda x: x * 2, [oar.static.InputSpec([2])])
        >>> isinstance(program, oar.jit.CapturedProgram)
        True
        >>> program(oar.to_tensor([1.0, 2.0]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [2., 4.])
    """

    def __init__(self, native, single: bool, outputs: int):
        self._native, self._single, self._outputs = native, single, outputs

    def __call__(self, *inputs: Tensor):
        results = self._native.call(list(inputs))
        return results[0] if self._single else tuple(results)

    def __str__(self) -> str:
        return self._native.text()

    @property
    def input_names(self) -> list[str]:
        """The inputs, in order."""
        return self._native.input_names

    @property
    def state_names(self) -> list[str]:
        """The tensors that live on between runs: parameters, buffers, moments."""
        return self._native.state_names

    @property
    def op_names(self) -> list[str]:
        """The ops, in order."""
        return self._native.op_names

    def global_block(self) -> CapturedBlock:
        """Its calls, under Paddle's names for looking at them."""
        return CapturedBlock([Operation(name) for name in self.op_names])

    def verify(self) -> list[str]:
        """What is wrong with the program: empty if nothing."""
        return self._native.verify()

    def differentiate(self, with_respect_to: list[str], output: int = 0) -> CapturedProgram:
        """The program that also gives the gradients of a scalar output for these inputs or states."""
        native = self._native.differentiate(list(with_respect_to), output)
        return CapturedProgram(native, False, self._outputs + len(with_respect_to))


def capture(function, input_spec, name: str | None = None) -> CapturedProgram:
    """Runs the function once on symbolic tensors and writes its calls down as a program.

    Open sizes (None, -1 or a name) stay open: one program serves every batch size. Parameters and other tensors that
    the function changes in place become states of the program, so that a whole training step can be captured.

    Args:
        function: the function.
        input_spec: an ``InputSpec`` per argument.

    Returns:
        a program.

    Examples:
        >>> import oar
        >>> program = oar.jit.capture(lambda x: x * 2, [oar.static.InputSpec(['batch', 3])])
        >>> program(oar.ones([4, 3])).shape
        [4, 3]
    """
    symbols: dict[str, object] = {}
    rows = []
    names = _parameter_names(function, len(input_spec))
    for i, spec in enumerate(input_spec):
        if isinstance(spec, Tensor):
            spec = InputSpec.from_tensor(spec)
        label = spec.name or names[i]
        shape = [_size(d, f"{label}_{axis}", symbols) for axis, d in enumerate(spec.shape)]
        rows.append((shape, spec.dtype, label, spec.stop_gradient))
    single = []

    def run(inputs):
        with _path.watched(), _path.inside_method(function):
            result = function(*inputs)
        single.append(isinstance(result, Tensor))
        if result is None:
            return []
        return [result] if single[-1] else list(result)

    native = _C.capture(run, rows, name or getattr(function, "__name__", "main"))
    return CapturedProgram(native, single[-1], -1)


def _size(size, label: str, symbols: dict):
    if isinstance(size, str) or size is None:
        key = size or label
        if key not in symbols:
            symbols[key] = _C.Dim(key, 4 + len(symbols))
        return symbols[key]
    return size


def _parameter_names(function, count: int) -> list[str]:
    try:
        names = [p.name for p in inspect.signature(function).parameters.values()
                 if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        names = []
    return [names[i] if i < len(names) else f"x{i}" for i in range(count)]
