"""What one call costs, measured from Python on 4x4 tensors: the arithmetic is nothing, the way to it everything.

Run by per_call.py, one process per library, each with the interpreter that has the library. It reads lines
`case number` and replies with the seconds that so many calls took. It needs the standard library and the measured one
only.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import timeit

# What is timed. The same words for every library, unless OTHER_WORDS says differently.
CASES = {
    "add": "x + y",
    "add a number": "x + 1.5",
    "add in place": "z.add_(y)",
    "exp": "exp(x)",
    "matmul": "x @ y",
    "sum": "x.sum()",
    "mean over an axis": "x.mean(0)",
    "reshape": "x.reshape([2, 8])",
    "one row": "x[1]",
    "add, recorded": "a + y",
    "matmul, recorded": "a @ y",
    "forward and backward": "(a * y).sum().backward()",
    "captured add": "captured(x, y)",
    "captured add, recorded": "captured(a, y)",
}
RECORDED = ("add, recorded", "matmul, recorded", "forward and backward", "captured add",
            "captured add, recorded")
OTHER_WORDS = {"numpy": {"add in place": "add(z, y, z)"}}


def add(x, y):
    return x + y


def names_for(library: str) -> dict[str, object]:
    """x, y, z: plain 4x4 tensors; a: one that requires a gradient; captured: a function that runs as a program."""
    rows = [[0.25 * (4 * i + j) - 1.0 for j in range(4)] for i in range(4)]
    zeros = [[0.0] * 4 for _ in range(4)]
    if library == "numpy":
        import numpy

        x, z = numpy.array(rows, "float32"), numpy.array(zeros, "float32")
        return {"x": x, "y": x.copy(), "z": z, "exp": numpy.exp, "add": numpy.add}
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        x = torch.tensor(rows)
        return {"x": x, "y": x.clone(), "z": torch.tensor(zeros), "exp": torch.exp,
                "a": x.clone().requires_grad_(), "captured": torch.compile(add)}  # fmt: skip
    if library == "paddle":
        import paddle as module

        module.set_device("cpu")
    else:
        import oar as module

        module.set_num_threads(1)
    x = module.to_tensor(rows)
    return {"x": x, "y": x.clone(), "z": module.to_tensor(zeros), "exp": module.exp,
            "a": module.to_tensor(rows, stop_gradient=False), "captured": module.jit.to_static(add)}  # fmt: skip


def version_of(library: str) -> str:
    return __import__(library).__version__


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", choices=("oar", "numpy", "torch", "paddle"))
    library = parser.parse_args().library
    names = names_for(library)
    words = {**CASES, **OTHER_WORDS.get(library, {})}
    if "a" not in names:
        words = {case: text for case, text in words.items() if case not in RECORDED}
    timers = {case: timeit.Timer(text, globals=names) for case, text in words.items()}
    print(json.dumps({"version": version_of(library), "cases": list(timers)}), flush=True)
    gc.disable()
    for line in sys.stdin:
        case, _, number = line.rpartition(" ")
        print(timers[case].timeit(int(number)), flush=True)


if __name__ == "__main__":
    main()
