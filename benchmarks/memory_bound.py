"""Kernels that only move memory, against NumPy's loop of the same traffic into memory that is there already.

    python benchmarks/memory_bound.py [MiB per tensor ...]

The ratio is NumPy's time by Oar's; at least 0.85 is the goal. Times are processor time of one thread, the
least of many calls taken in turns, so that other programs disturb little.
"""

import sys
import time

import numpy as np

import oar


def cases(count):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, count)).astype(np.float32)
    out, wide = np.empty_like(x), np.empty(count, np.float64)
    a, b = oar.to_tensor(x), oar.to_tensor(y)
    yield "add", lambda: a + b, lambda: np.add(x, y, out=out)
    yield "multiply", lambda: a * b, lambda: np.multiply(x, y, out=out)
    yield "relu", lambda: oar.nn.functional.relu(a), lambda: np.maximum(x, 0, out=out)
    yield "copy", lambda: oar.assign(a), lambda: np.copyto(out, x)
    yield "cast", lambda: a.astype("float64"), lambda: np.copyto(wide, x)
    yield "sum", lambda: oar.sum(a), lambda: np.sum(x)


def seconds(call, calls):
    start = time.thread_time()
    for _ in range(calls):
        call()
    return (time.thread_time() - start) / calls


def main():
    oar.set_num_threads(1)
    for mib in [float(a) for a in sys.argv[1:]] or [0.0625, 32.0]:
        count = int(mib * 2**20 / 4)
        calls = max(1, int(4 / mib))
        for name, ours, theirs in cases(count):
            best = [float("inf"), float("inf")]
            for _ in range(25):
                for k, call in enumerate((ours, theirs)):
                    best[k] = min(best[k], seconds(call, calls))
            print(f"{name:10s} {mib:8.4f} MiB   oar {best[0] * 1e6:9.1f} us   numpy {best[1] * 1e6:9.1f} us   "
                  f"{best[1] / best[0]:.2f}x")


if __name__ == "__main__":
    main()
