"""The other side of peers/process.py; runs in the peer's environment, which has no Oar: `worker.py torch 8`.

One request per line: the name of a file (message.py) with arrays and a description of the calls. The answer is a line too:
the name of a file with, for each call, values and gradients, or an error. What differs from peer to peer is in
torch_side.py and paddle_side.py. A request that takes more than so many seconds of processor time ends the process.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

import numpy as np

import message
from evaluate import evaluate

side = importlib.import_module(f"{sys.argv[1]}_side")
DIFFERENTIABLE = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


class Call:
    """One call: its expression, arguments by name, and which gradients are requested."""

    def __init__(self, description: dict, arrays):
        self.expression = description["expression"]
        self.arrays = arrays
        self.wanted = description["gradients"]
        self.constants = description["constants"]
        self.leaves: list = []
        self.arguments = {name: self.decoded(value, name not in self.constants)
                          for name, value in description["arguments"].items()}

    def tensor(self, described: dict):
        return side.tensor(self.arrays[described["array"]].copy(), described["dtype"])

    def decoded(self, value, variable: bool):
        if isinstance(value, list):
            return [self.decoded(v, variable) for v in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            tensor = self.tensor(value)
            if self.wanted and variable and value["dtype"] in DIFFERENTIABLE:
                self.leaves.append(side.leaf(tensor))
            return tensor
        return side.dtype(value["dtype"]) if "dtype" in value else complex(*value["complex"])

    def run(self) -> list:
        return evaluate(self.expression, {**side.WORDS, **self.arguments})

    def gradients(self, outputs: list) -> list:
        pairs = [(out, self.tensor(cotangent)) for out, cotangent in zip(outputs, self.wanted)
                 if cotangent is not None and side.is_recorded(out)]
        pairs = [(out, cotangent) for out, cotangent in pairs if list(out.shape) == list(cotangent.shape)]
        return side.gradients(pairs, self.leaves)


def answer(call: Call, key: str, arrays: dict) -> dict:
    """What one call gave, its arrays put among the others, each named by its dtype too."""
    def put(tensor) -> str:
        array, dtype = side.numbers(tensor)
        name = f"{key}.{len(arrays)}:{dtype}"
        arrays[name] = array
        return name

    try:
        outputs = call.run()
        values = [put(out) if side.is_tensor(out) else None for out in outputs]
    except Exception as error:  # noqa: BLE001  (the test shows it)
        return {"missing" if side.lacks(error) else "error": f"{type(error).__name__}: {error}"}
    try:
        gradients = [put(g) for g in call.gradients(outputs)] if call.wanted else []
    except Exception as error:  # noqa: BLE001
        return {"values": values, "gradients": None, "gradient_error": None if side.lacks(error) else str(error)}
    return {"values": values, "gradients": gradients}


def replies():
    """A separate file for the replies: what a peer prints does not mix with them."""
    own = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return own


def main() -> None:
    out = replies()
    print(side.VERSION, file=out, flush=True)
    for line in sys.stdin:
        name = line.strip()
        signal.setitimer(signal.ITIMER_PROF, float(sys.argv[2]))
        calls, arrays = message.read(name)
        found: dict[str, np.ndarray] = {}
        answers = [answer(Call(call, arrays), str(i), found) for i, call in enumerate(calls)]
        message.write(name + ".out", answers, found)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(name + ".out", file=out, flush=True)


if __name__ == "__main__":
    main()
