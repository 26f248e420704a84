"""Scientific computing in Oar and, given their interpreters, in PyTorch and JAX: side by side, one thread each.

    .venv/bin/python benchmarks/science.py [--torch PYTHON] [--jax PYTHON] [--filter TEXT] [--rounds N] [--quick]

The cases: a training step of a network that solves Burgers' equation; the Hessian of a network with 1,005 parameters; a step of a
spectral solver of the Navier-Stokes equations, and the gradient through ten of them; derivatives of order 1 to 8 of a network.
All are in float64. Each framework runs in a process of its own, in several ways (eager, compiled, forward, reverse). Results must
agree to 8 digits. Then the processes are measured in turn, in processor time, and the least of the rounds counts. Ratios are the
time of the other's best way by that of Oar's: above 1, Oar is faster.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import math
import os
import subprocess
import sys
import time

import numpy as np
from science_cases.inputs import ORDERS

CASES = {"Burgers training step": ("burgers",), "Hessian, 1,005 parameters": ("hessian",), "Navier-Stokes step": ("fft_solver",),
         "gradient of 10 steps": ("fft_gradient",), **{f"derivative of order {n}": ("derivatives", n) for n in range(1, ORDERS + 1)}}


def work(library: str) -> None:
    """The measured side: reads a case, a way and how many calls; replies with the seconds, or for no calls with the result."""
    answers, sys.stdout = sys.stdout, sys.stderr  # what compilers print must not mix with answers
    module = importlib.import_module(f"science_cases.of_{library}")
    print(module.VERSION, file=answers, flush=True)
    case, ways = "", {}
    for line in sys.stdin:
        asked, way, calls = json.loads(line)
        if asked != case:
            case, ways = asked, {}
            name, *arguments = CASES[case]
            ways = getattr(module, name)(*arguments)
        if way is None:
            print(json.dumps(list(ways)), file=answers, flush=True)
        elif calls == 0:
            result = io.BytesIO()
            start = time.perf_counter()
            np.save(result, module.finish(ways[way]()))
            print(json.dumps([time.perf_counter() - start, result.getvalue().hex()]), file=answers, flush=True)
        else:
            run, start = ways[way], time.process_time()
            for _ in range(calls):
                run()
            print(json.dumps(time.process_time() - start), file=answers, flush=True)


class Worker:
    def __init__(self, library: str, python: str) -> None:
        self.library = library
        flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OAR_NUM_THREADS": "1",
                       "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
        self.process = subprocess.Popen([python, __file__, "--work", library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.version = self.line()

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"The process that measures {self.library} has ended (status {self.process.wait()}).")
        return line.strip()

    def ask(self, case: str, way: str | None, calls: int):
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([case, way, calls]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.line())


def measure(workers: list[Worker], case: str, rounds: int) -> dict[tuple[str, str], tuple[float, float]]:
    """For each framework and way the least milliseconds of processor time per call, and the milliseconds of the first call."""
    listed = [(worker, way) for worker in workers for way in worker.ask(case, None, 0)]
    expected, first, calls = None, {}, {}
    for worker, way in listed:
        seconds, result = worker.ask(case, way, 0)
        value = np.load(io.BytesIO(bytes.fromhex(result)))
        expected = value if expected is None else expected
        error = float(np.abs(value - expected).max() / np.abs(expected).max())
        if not error < 1e-8:
            sys.exit(f"{case}: {worker.library} ({way}) differs from Oar by {error:.1e}, relative to the largest element.")
        first[worker.library, way] = seconds * 1e3
    least = dict.fromkeys(first, math.inf)
    for worker, way in listed:
        worker.ask(case, way, 2)
        calls[worker.library, way] = max(1, round(0.05 / max(worker.ask(case, way, 1), 1e-5)))
    for _ in range(rounds):
        for worker, way in listed:
            key = (worker.library, way)
            least[key] = min(least[key], worker.ask(case, way, calls[key]) / calls[key] * 1e3)
    return {key: (least[key], first[key]) for key in least}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", help="an interpreter that has PyTorch")
    parser.add_argument("--jax", help="an interpreter that has JAX")
    parser.add_argument("--filter", default="", help="only cases whose names contain this")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work)
    pythons = {"oar": sys.executable, "torch": options.torch, "jax": options.jax}
    workers = [Worker(library, python) for library, python in pythons.items() if python]
    print(", ".join(f"{worker.library} {worker.version}" for worker in workers), flush=True)
    for case in CASES:
        if options.filter not in case:
            continue
        figures = measure(workers, case, 1 if options.quick else options.rounds)
        best = {library: min(ms for (one, _), (ms, _) in figures.items() if one == library) for library in {key[0] for key in figures}}
        ratios = "".join(f"   {other} {best[other] / best['oar']:.2f}x" for other in pythons if other in best and other != "oar")
        print(f"{case}{ratios}")
        for (library, way), (ms, first) in figures.items():
            print(f"    {library:6s} {way:18s} {ms:10.3f} ms   first call {first:8.0f} ms", flush=True)


if __name__ == "__main__":
    main()
