"""Runs the benchmarks: the cost of one call in Oar, NumPy and, given their interpreters, PyTorch and Paddle.

    make bench
    make bench BENCH_ARGS="--torch ~/torch/bin/python --paddle ~/paddle/bin/python --json figures.json"

All libraries are measured in turn, case by case and round by round, so that a machine that gets slower gets slower
for all of them. The least of the rounds counts: everything that disturbs a measurement makes it longer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Worker:
    """A process that measures one library."""

    def __init__(self, library: str, python: str) -> None:
        self.library = library
        # One thread and one core's worth of noise: what is measured is the call.
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.process = subprocess.Popen([python, str(HERE / "per_call_worker.py"), library], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)
        hello = json.loads(self._line())
        self.version, self.cases = hello["version"], hello["cases"]

    def _line(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"The process that measures {self.library} has ended (status {self.process.wait()}).")
        return line

    def seconds(self, case: str, number: int) -> float:
        """The time of so many calls."""
        self.process.stdin.write(f"{case} {number}\n")
        self.process.stdin.flush()
        return float(self._line())

    def calls_within(self, case: str, seconds: float) -> int:
        """How many calls fit into the time, after warming up."""
        number = 1
        while True:
            taken = self.seconds(case, number)
            if taken > seconds / 4:
                return max(1, round(number * seconds / taken))
            number *= 4

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(workers: list[Worker], cases: list[str], rounds: int, seconds: float) -> dict[str, dict[str, float]]:
    """The least nanoseconds per call, by case and library."""
    least: dict[str, dict[str, float]] = {case: {} for case in cases}
    numbers = {(w.library, case): w.calls_within(case, seconds) for case in cases for w in workers if case in w.cases}
    for _ in range(rounds):
        for case in cases:
            for worker in workers:
                if case not in worker.cases:
                    continue
                number = numbers[worker.library, case]
                taken = worker.seconds(case, number) / number * 1e9
                least[case][worker.library] = min(taken, least[case].get(worker.library, taken))
    return least


def table(least: dict[str, dict[str, float]], libraries: list[str]) -> str:
    """A Markdown table: nanoseconds, and how many times Oar's cost the others' is."""
    others = [library for library in libraries if library != "oar"]
    heads = ["one call on 4x4 float32", "oar", *(f"{library} (x oar)" for library in others)]
    rows = []
    for case, found in least.items():
        row = [case, f"{found['oar']:.0f} ns"]
        for library in others:
            row.append(f"{found[library]:.0f} ns ({found[library] / found['oar']:.2f})" if library in found else "")
        rows.append(row)
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in [heads, *rows]]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--paddle", metavar="PYTHON", help="an interpreter that has Paddle")
    parser.add_argument("--case", action="append", help="measure this case only (may be repeated)")
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each case (default 15)")
    parser.add_argument("--seconds", type=float, default=0.005, help="aim of one measurement (default 0.005)")
    parser.add_argument("--json", type=Path, default=HERE.parent / "build" / "bench" / "per_call.json",
                        help="where the figures go (default build/bench/per_call.json)")
    options = parser.parse_args()

    interpreters = {"oar": sys.executable, "numpy": sys.executable, "torch": options.torch, "paddle": options.paddle}
    workers = [Worker(library, os.path.expanduser(python)) for library, python in interpreters.items() if python]
    cases = options.case or workers[0].cases
    if unknown := [case for case in cases if case not in workers[0].cases]:
        parser.error(f"there is no case {unknown[0]!r}; the cases are {', '.join(workers[0].cases)}")
    least = measure(workers, cases, options.rounds, options.seconds)
    for worker in workers:
        worker.close()

    libraries = [worker.library for worker in workers]
    print(table(least, libraries))
    print("\n" + ", ".join(f"{w.library} {w.version}" for w in workers) + f"; {processor()}; one thread each")
    record = {
        "unit": "nanoseconds per call, least of all rounds",
        "machine": processor(),
        "python": platform.python_version(),
        "versions": {worker.library: worker.version for worker in workers},
        "rounds": options.rounds,
        "least": least,
        "ratio_to_oar": {case: {library: value / found["oar"] for library, value in found.items()}
                         for case, found in least.items()},
    }  # fmt: skip
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(record, indent=2) + "\n")
    print(f"Figures: {options.json}")


if __name__ == "__main__":
    main()
