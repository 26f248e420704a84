"""A peer in its own process and environment: calls go there and results come back as files."""

from __future__ import annotations

import functools
import pathlib
import select
import subprocess
import tempfile
from dataclasses import dataclass, field

import numpy as np

import oar
from peers import message

PATIENCE = 8  # seconds of processor time for the calls of one op, which a busy machine does not use up
STUCK = 300  # seconds after which a process that uses none is ended
WORKER = pathlib.Path(__file__).with_name("worker.py")


@dataclass
class Call:
    """A call to run: arguments by their names in our schema; if gradients are requested, per result the cotangent
    or None, and the arguments that are constants."""

    expression: str
    arguments: dict
    cotangents: list = field(default_factory=list)
    constants: tuple = ()


@dataclass
class Answer:
    """What the peer returned. A value is None where the table's expression says that it has no such result, the gradients
    are where it has none."""

    values: list = field(default_factory=list)
    dtypes: list = field(default_factory=list)
    gradients: list | None = None
    missing: str | None = None
    error: str | None = None
    gradient_error: str | None = None


class Peer:
    """Starts the process; runs lists of calls."""

    def __init__(self, python: str, name: str):
        self.python, self.name = python, name
        self.folder = tempfile.TemporaryDirectory(prefix=f"oar-{name}-")
        self.file = str(pathlib.Path(self.folder.name) / "calls")
        self.sent: list[Call] = []
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen([self.python, str(WORKER), self.name, str(PATIENCE)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.__dict__.pop("version", None)

    @functools.cached_property
    def version(self) -> str:
        """The first line that the process writes, when it is ready."""
        found = self.process.stdout.readline().strip()
        assert found, f"{self.python} did not start, or has no {self.name}"
        return found

    def ask(self, calls: list[Call]) -> list[Answer]:
        self.send(calls)
        return self.receive()

    def send(self, calls: list[Call]) -> None:
        """Lets the process begin with calls, whose answers `receive` returns."""
        arrays: dict[str, np.ndarray] = {}
        message.write(self.file, [_described(call, arrays) for call in calls], arrays)
        self.sent = calls
        try:
            self.process.stdin.write(self.file + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it ended, which `receive` will see

    def receive(self) -> list[Answer]:
        """The answers to the calls that were sent. If one of them ends the process, another process gets them one by one."""
        calls = self.sent
        reply = self._reply()
        if reply:
            answers, arrays = message.read(reply)
            return [_answer(a, arrays) for a in answers]
        status = self.process.wait()
        self._start()
        if len(calls) == 1:
            return [Answer(missing=f"the process of {self.name} ended with status {status}")]
        return [answer for call in calls for answer in self.ask([call])]

    def _reply(self) -> str:
        """The next line of the process; one that does not come in time ends it."""
        assert self.version
        ready, _, _ = select.select([self.process.stdout], [], [], STUCK)
        if not ready:
            self.process.kill()
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        self.process.kill()  # which is faster than to let it end
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.folder.cleanup()


def _described(call: Call, arrays: dict) -> dict:
    def put(tensor) -> dict:
        key = f"a{len(arrays)}"
        arrays[key] = np.asarray(tensor.numpy())
        return {"array": key, "dtype": tensor.dtype.name}

    def encoded(value):
        if isinstance(value, oar.Tensor):
            return put(value)
        if isinstance(value, oar.dtype):
            return {"dtype": value.name}
        if isinstance(value, complex):
            return {"complex": [value.real, value.imag]}
        return [encoded(v) for v in value] if isinstance(value, (list, tuple)) else value

    return {"expression": call.expression,
            "arguments": {name: encoded(value) for name, value in call.arguments.items()},
            "constants": call.constants,
            "gradients": [None if c is None else put(c) for c in call.cotangents]}


def _answer(described: dict, arrays) -> Answer:
    if "values" not in described:
        return Answer(**described)

    def numbers(key):
        array = arrays[key]
        return _floats_of_bfloat16(array) if key.endswith(":bfloat16") else array

    values = [None if key is None else numbers(key) for key in described["values"]]
    return Answer(values=values,
                  dtypes=[None if key is None else key.rsplit(":", 1)[1] for key in described["values"]],
                  gradient_error=described.get("gradient_error"),
                  gradients=described["gradients"] and [numbers(key) for key in described["gradients"]])


def _floats_of_bfloat16(bits: np.ndarray) -> np.ndarray:
    return np.asarray(bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
