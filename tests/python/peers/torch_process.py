"""PyTorch in a process and an environment of its own: calls go there and results come back as .npz files."""

from __future__ import annotations

import json
import pathlib
import subprocess
import tempfile
from dataclasses import dataclass, field

import numpy as np

import oar

WORKER = pathlib.Path(__file__).with_name("worker.py")


@dataclass
class Call:
    """A call to be made: arguments by their names in our schema; if gradients are asked for, per result the cotangent
    or None, and the arguments that are constants."""

    expression: str
    arguments: dict
    cotangents: list = field(default_factory=list)
    constants: tuple = ()


@dataclass
class Answer:
    """What PyTorch gave. A value is None where the table's expression says that it has no such result, the gradients
    are where it has none."""

    values: list = field(default_factory=list)
    gradients: list | None = None
    missing: str | None = None
    error: str | None = None
    gradient_error: str | None = None


class Torch:
    """Starts the process; answers lists of calls."""

    def __init__(self, python: str):
        self.folder = tempfile.TemporaryDirectory(prefix="oar-torch-")
        self.process = subprocess.Popen([python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.version = self.process.stdout.readline().strip()
        assert self.version, f"{python} did not start, or has no PyTorch"

    def ask(self, calls: list[Call]) -> list[Answer]:
        arrays: dict[str, np.ndarray] = {}
        described = [_described(call, arrays) for call in calls]
        name = str(pathlib.Path(self.folder.name) / "calls.npz")
        np.savez(name, calls=json.dumps(described), **arrays)
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        reply = self.process.stdout.readline().strip()
        assert reply, f"the PyTorch process ended with status {self.process.wait()}"
        with np.load(reply) as stored:
            return [_answer(a, stored) for a in json.loads(str(stored["answers"]))]

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()


def _described(call: Call, arrays: dict) -> dict:
    def put(array) -> str:
        key = f"a{len(arrays)}"
        arrays[key] = np.asarray(array)
        return key

    def encoded(value):
        if isinstance(value, oar.Tensor):
            return {"array": put(value.numpy())}
        if isinstance(value, oar.dtype):
            return {"dtype": value.name}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        return [encoded(v) for v in value] if isinstance(value, (list, tuple)) else value

    return {"expression": call.expression,
            "arguments": {name: encoded(value) for name, value in call.arguments.items()},
            "constants": call.constants,
            "gradients": [None if c is None else put(c.numpy()) for c in call.cotangents]}


def _answer(described: dict, arrays) -> Answer:
    if "values" not in described:
        return Answer(**described)
    return Answer(values=[None if key is None else arrays[key] for key in described["values"]],
                  gradient_error=described.get("gradient_error"),
                  gradients=described["gradients"] and [arrays[key] for key in described["gradients"]])
