#!/usr/bin/env python3
"""Random functions, plain and captured by to_static, side by side: any difference is a fault.

Each seed is a script: a world of objects, containers, layers and optimizers, a function that reads and changes it,
and calls
with edits of the world between them. It runs twice. After every call results, gradients, printed text and the whole
world are compared. A script that differs is shrunk and printed.

    to_static_fuzz.py --count 20000        # seeds 0 to 19999
    to_static_fuzz.py --minutes 10 --jobs 2
    to_static_fuzz.py --seed 4711 --count 1 --show
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

_BATCH = 250
# A worker that writes nothing for this long, besides the time for shrinking, is killed: it hangs. One that
# computes without end stops itself earlier, by its processor time.
_SECONDS = 300.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=None,
                        help="how many functions (default 20000, or no limit with --minutes)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--minutes", type=float, default=None, help="stop after so many minutes")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("--most", type=int, default=10, help="stop after so many failures (default 10; 0: never)")
    parser.add_argument("--shrink", type=float, default=20.0, metavar="SECONDS",
                        help="time to shrink one failure (0: do not)")
    parser.add_argument("--least-whole", type=float, default=0.2, metavar="SHARE",
                        help="fail if a smaller share of the calls ran as whole programs (default 0.2)")
    parser.add_argument("--show", action="store_true", help="print the scripts, and run nothing")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


# one process ----------------------------------------------------------------------------------------


def work(options: argparse.Namespace) -> None:
    """Runs seeds and writes a line of JSON for each, before it begins and when it has ended."""
    from to_static.generate import generate
    from to_static.run import compare

    for seed in range(options.seed, options.seed + options.count):
        print(json.dumps({"begins": seed}), flush=True)
        script = generate(seed)
        difference, wanted, got = compare(script)
        line = {"seed": seed, **got.counts, "raised": sorted(wanted.raised), "early": wanted.error is not None}
        if difference:
            line |= {"difference": difference, "script": smaller(script, difference, wanted, options.shrink)}
        print(json.dumps(line), flush=True)


def kind(difference: str) -> tuple[bool, bool, str]:
    """What sort of difference it is, so that shrinking does not end at another fault."""
    after = difference.partition(": ")[2]
    return difference.startswith("call"), "got [" in after, after.partition("[")[0]


def smaller(script: str, first: str, wanted, seconds: float) -> str:
    from to_static.run import compare
    from to_static.shrink import shrink

    def fails(text: str) -> bool:
        difference, plain, _ = compare(text)
        if difference is None or kind(difference) != kind(first):
            return False
        # What eager mode did not raise before would be a mistake of the shrinking.
        return plain.raised <= wanted.raised and (plain.error is None or wanted.error is not None)

    if seconds <= 0:
        return script
    text = shrink(script, fails, seconds)
    return f"# {compare(text)[0]}\n{text}"


# all of them -------------------------------------------------------------------------------------------


class Run:
    """Starts workers, reads what they write, shows progress."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.total = options.count if options.count is not None else 20000 if options.minutes is None else None
        self.end = time.monotonic() + options.minutes * 60 if options.minutes is not None else None
        self.next_seed, self.begun = options.seed, time.monotonic()
        self.done, self.failures = 0, 0
        self.counts: collections.Counter = collections.Counter()

    def over(self) -> bool:
        late = self.end is not None and time.monotonic() > self.end
        return late or bool(self.options.most and self.failures >= self.options.most)

    def run(self) -> int:
        workers: list[tuple[subprocess.Popen, int, int]] = []
        while not self.over():
            while len(workers) < self.options.jobs and self._left() > 0:
                workers.append(self._start())
            if not workers:
                break
            process, first, count = workers.pop(0)
            self._read(process, first, count)
        for process, *_ in workers:
            process.kill()
            process.wait()
        return self._conclude()

    def _left(self) -> int:
        return _BATCH if self.total is None else min(_BATCH, self.options.seed + self.total - self.next_seed)

    def _start(self) -> tuple[subprocess.Popen, int, int]:
        first, count = self.next_seed, self._left()
        self.next_seed += count
        return self._process(first, count), first, count

    def _process(self, first: int, count: int) -> subprocess.Popen:
        command = [sys.executable, __file__, "--worker", "--seed", str(first), "--count", str(count), "--shrink",
                   str(self.options.shrink)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def _read(self, process: subprocess.Popen, first: int, count: int) -> None:
        """Reads a worker to its end. One that dies loses its current seed; another continues after it."""
        current, timer = first, None
        for text in process.stdout:
            if timer is not None:
                timer.cancel()
            timer = threading.Timer(_SECONDS + 2 * self.options.shrink, process.kill)
            timer.start()
            line = json.loads(text)
            if "begins" in line:
                current = line["begins"]
                continue
            self._take(line)
            if self.over():
                process.kill()
                break
        if timer is not None:
            timer.cancel()
        if process.wait() != 0 and not self.over():
            self.failures += 1
            print(f"\n== seed {current}: the process ended with {process.returncode}; "
                  f"--seed {current} --count 1 --show prints the script")
            rest = first + count - current - 1
            if rest > 0:
                self._read(self._process(current + 1, rest), current + 1, rest)

    def _take(self, line: dict) -> None:
        self.done += 1
        for key in ("captures", "whole", "segments", "eager", "early"):
            self.counts[key] += line[key]
        self.counts["raised"] += bool(line["raised"])
        if "difference" in line:
            self.failures += 1
            print(f"\n== seed {line['seed']}: {line['difference']}\n{line['script']}")
        if self.done % 100 == 0:
            print(f"{self.summary()}", file=sys.stderr, flush=True)

    def summary(self) -> str:
        seconds = time.monotonic() - self.begun
        calls = self.counts["whole"] + self.counts["segments"] + self.counts["eager"]
        of = f" of {self.total}" if self.total is not None else ""
        return (f"{self.done}{of} functions, {self.done / seconds:.0f}/s, {self.failures} differ; {calls} calls: "
                f"{self.counts['whole']} whole, {self.counts['segments']} in segments, {self.counts['eager']} eager; "
                f"{self.counts['captures']} captures; {self.counts['raised']} functions raise, "
                f"{self.counts['early']} end early")

    def _conclude(self) -> int:
        print(self.summary())
        calls = self.counts["whole"] + self.counts["segments"] + self.counts["eager"]
        if calls and self.counts["whole"] < self.options.least_whole * calls:
            share = self.counts["whole"] / calls
            print(f"only {share:.0%} of the calls ran as whole programs: the run proves little about them.")
            return 2
        return 1 if self.failures else 0


def main() -> int:
    options = arguments()
    if options.worker:
        work(options)
        return 0
    if options.show:
        from to_static.generate import generate

        for seed in range(options.seed, options.seed + (options.count or 1)):
            print(f"# seed {seed}\n{generate(seed)}")
        return 0
    return Run(options).run()


if __name__ == "__main__":
    sys.exit(main())
