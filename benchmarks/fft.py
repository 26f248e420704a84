"""Fourier transforms in Oar, SciPy and, given its interpreter, PyTorch: side by side, one thread each.

    make bench-fft BENCH_ARGS="--filter 1024"
    python benchmarks/fft.py [--torch build/bench/torch/bin/python] [--filter TEXT] [--rounds N] [--threads N]

Each library runs in a process of its own. They are measured in turn, case by case and round by round, in processor time, and the
least of the rounds counts. Ratios are the other's time by Oar's: above 1, Oar is faster.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time

SINGLE = [16, 64, 256, 1024, 4096, 16384, 65536, 1 << 18, 1 << 20]
OTHER = [1000, 1009, 10000, 10007, 15625, 19683, 100003]
BATCHES = [(4096, 16), (1000, 64), (1000, 100), (256, 1024), (1000, 127), (64, 4096)]
VOLUMES = [(512, 512), (1024, 1024), (300, 300), (64, 64, 64)]


def cases() -> list[tuple[str, str, tuple[int, ...], str]]:
    """Name, function, shape, dtype."""
    found = []
    for bits, whole, real in ((32, "complex64", "float32"), (64, "complex128", "float64")):
        for n in SINGLE + OTHER:
            found.append((f"fft {n} f{bits}", "fft", (n,), whole))
            found.append((f"rfft {n} f{bits}", "rfft", (n,), real))
        for batch, n in BATCHES:
            found.append((f"fft {batch} x {n} f{bits}", "fft", (batch, n), whole))
            found.append((f"rfft {batch} x {n} f{bits}", "rfft", (batch, n), real))
        for shape in VOLUMES:
            size = " x ".join(map(str, shape))
            found.append((f"fftn {size} f{bits}", "fftn", shape, whole))
            found.append((f"rfftn {size} f{bits}", "rfftn", shape, real))
    return found


def work(library: str, threads: int) -> None:
    """The measured side: reads the number of a case and how many calls, replies with the seconds they took."""
    import random

    flat: dict[int, list[float]] = {}

    def numbers(count: int) -> list[float]:
        source = random.Random(count)
        return flat.setdefault(count, [source.gauss(0, 1) for _ in range(count)])

    if library == "torch":
        import torch as package

        package.set_num_threads(threads)
        functions, make = package.fft, lambda shape, dtype: package.tensor(numbers(math.prod(shape))).reshape(shape).to(getattr(package, dtype))
    elif library == "oar":
        import oar as package

        package.set_num_threads(threads)
        functions, make = package.fft, lambda shape, dtype: package.to_tensor(numbers(math.prod(shape)), "float64").reshape(shape).astype(dtype)
    else:
        import numpy as np
        import scipy as package
        from scipy import fft as functions

        make = lambda shape, dtype: np.array(numbers(math.prod(shape))).reshape(shape).astype(dtype)  # noqa: E731
    options = {"workers": threads} if library == "scipy" else {}
    print(package.__version__, flush=True)
    listed, inputs = cases(), {}
    clock = time.process_time if threads == 1 else time.perf_counter
    for line in sys.stdin:
        case, calls = map(int, line.split())
        _, name, shape, dtype = listed[case]
        if case not in inputs:
            inputs.clear()
            inputs[case] = make(shape, dtype)
        x, function = inputs[case], getattr(functions, name)
        start = clock()
        for _ in range(calls):
            function(x, **options)
        print(clock() - start, flush=True)


class Worker:
    def __init__(self, library: str, python: str, threads: int) -> None:
        self.library = library
        count = str(threads)
        environment = {**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
        self.process = subprocess.Popen([python, __file__, "--work", library, "--threads", count], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)
        self.version = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"The process that measures {self.library} has ended (status {self.process.wait()}).")
        return line.strip()

    def seconds(self, case: int, calls: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{case} {calls}\n")
        self.process.stdin.flush()
        return float(self.line())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="an interpreter that has PyTorch")
    parser.add_argument("--filter", default="", help="only cases whose names contain this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="where to write the figures")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.threads)
    pythons = {"oar": sys.executable, "scipy": sys.executable, "torch": options.torch}
    workers = [Worker(library, python, options.threads) for library, python in pythons.items() if python]
    print(", ".join(f"{worker.library} {worker.version}" for worker in workers))
    figures: dict[str, dict[str, float]] = {}
    for number, (name, *_) in enumerate(cases()):
        if options.filter not in name:
            continue
        calls, least = {}, {worker.library: math.inf for worker in workers}
        for worker in workers:
            worker.seconds(number, 2)
            calls[worker.library] = max(1, round(0.003 / max(worker.seconds(number, 1), 1e-6)))
        for _ in range(options.rounds):
            for worker in workers:
                count = calls[worker.library]
                least[worker.library] = min(least[worker.library], worker.seconds(number, count) / count)
        figures[name] = least
        ratios = "".join(f"   {other} {least[other] / least['oar']:6.2f}x" for other in least if other != "oar")
        print(f"{name:28s} oar {least['oar'] * 1e6:10.1f} us{ratios}", flush=True)
    for other in [worker.library for worker in workers if worker.library != "oar"]:
        ratios = sorted(least[other] / least["oar"] for least in figures.values())
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{other}: geometric mean {mean:.2f}x, least {ratios[0]:.2f}x, {sum(r >= 1 for r in ratios)} of {len(ratios)} at least 1x")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
