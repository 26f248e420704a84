#!/usr/bin/env python3
"""Oar compared with its peers: one interleaved run, ratios as the result.

    make bench-peers                                   the newest PyTorch and PaddlePaddle, each in its own environment
    make bench                                         every suite; hours on two cores
    make bench BENCH_ARGS="--quick"                    small operators, light models
    make bench BENCH_ARGS="--suite ops --filter conv2d --threads 2"
    make bench BENCH_ARGS="--suite train --modes eager,compiled --dtype float32,bfloat16 --memory"

A ratio is the peer's time divided by Oar's: above 1, Oar is faster. README.md says how it is formed. The record and the
picture go to build/bench/; a run is compared with the one before it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
FOLDER = PROJECT / "build" / "bench"
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from measure import Run  # noqa: E402
from plan import passes, plan, roles  # noqa: E402
from processes import measure_peak  # noqa: E402
from report import compare, cpu_name, plot, report, save  # noqa: E402

SUITES = ["tiny", "ops", "train", "infer", "deploy"]
PEERS = ["torch", "paddle", "onnxruntime"]


def interpreter(peer: str) -> str | None:
    """The environment that `make bench-peers` created, if any."""
    python = FOLDER / peer / "bin" / "python"
    return str(python) if python.exists() else None


def parse() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="bench.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--oar", metavar="PYTHON", default=sys.executable, help="interpreter that has Oar and NumPy (this one)")
    for peer in PEERS:
        p.add_argument("--" + peer, metavar="PYTHON", default=interpreter(peer),
                       help=f"interpreter that has it (the one of make bench-peers; '' leaves {peer} out)" +
                       (", and OpenVINO" if peer == "onnxruntime" else ""))
    p.add_argument("--suite", default=",".join(SUITES), help="of " + ",".join(SUITES) + " (default: all)")
    p.add_argument("--filter", metavar="TEXT", help="only rows whose label holds one of these, comma separated")
    p.add_argument("--threads", default="1,2", help="thread counts, comma separated")
    p.add_argument("--dtype", default="float32", help="float32, bfloat16 or both")
    p.add_argument("--modes", default="eager", help="of eager, compiled (the model) and step (train: the "
                   "whole step), comma separated")
    p.add_argument("--rounds", type=int, help="timed batches per case and framework (8; quick: 3); up to four times as "
                   "many while the minimum is unsettled")
    p.add_argument("--passes", type=int, help="fresh processes over which the rounds are spread (tiny 3, ops 2, models 1)")
    p.add_argument("--target", type=float, help="seconds a batch lasts at least (0.03; quick: 0.01)")
    p.add_argument("--budget", type=float, help="seconds per case and framework after which fewer rounds are run (20; quick: 4)")
    p.add_argument("--timeout", type=float, default=120, help="seconds without a reply before a worker is stopped "
                   "(models: six times that)")
    p.add_argument("--malloc", choices=["keep", "default"], default="keep",
                   help="keep: glibc keeps freed memory, for every framework (default); default: as glibc comes")
    p.add_argument("--quick", action="store_true", help="small operators and light models, fewer and shorter rounds")
    p.add_argument("--memory", action="store_true", help="also, in fresh processes: the peak memory growth of train and deploy, the time from loading a "
                   "file to the first result")
    p.add_argument("--out", metavar="FILE", type=Path, default=FOLDER / "latest.json", help="the record (build/bench/latest.json)")
    p.add_argument("--compare", metavar="OLD", type=Path, help="an earlier record; default: what --out held before")
    p.add_argument("--plot", metavar="FILE", type=Path, default=FOLDER / "ratios.png", help="the picture (build/bench/ratios.png)")
    p.add_argument("--list", action="store_true", help="list the rows and stop")
    p.add_argument("--as-torch", action="store_true", help=argparse.SUPPRESS)  # self-test: torch takes Oar's place
    options = p.parse_args()
    options.suite = [s for s in options.suite.split(",") if s]
    options.threads = [int(t) for t in options.threads.split(",")]
    options.dtype, options.modes = options.dtype.split(","), options.modes.split(",")
    for values, known in ((options.suite, [*SUITES, "selftest"]), (options.dtype, ["float32", "bfloat16"]),
                          (options.modes, ["eager", "compiled", "step"])):
        for value in values:
            if value not in known:
                p.error(f"{value}: not one of {', '.join(known)}")
    options.rounds = options.rounds or (3 if options.quick else 8)
    options.target = options.target or (0.01 if options.quick else 0.03)
    options.budget = options.budget or (4.0 if options.quick else 20.0)
    return options


def measure_all(run: Run, rows: list[dict], options: argparse.Namespace, done: list[dict]) -> None:
    for group_of in dict.fromkeys((r["threads"], r["dtype"], r["suite"]) for r in rows):
        group = [r for r in rows if (r["threads"], r["dtype"], r["suite"]) == group_of]
        for i in range(passes(group[0], options)):
            run.stop_workers()
            for row in group:
                run.progress(len(done), len(rows), row)
                run.measure(row)
                if i == 0:
                    done.append(row)
                run.progress(len(done), len(rows), row)


def peak_rates(run: Run, rows: list[dict]) -> dict[int, float]:
    """What the machine can do, for suites that are reported as a share of it."""
    if not any(r["suite"] in ("train", "infer") for r in rows):
        return {}
    exes = [sys.executable] + [exe for row in rows for _, _, exe in roles(row, run.options)]
    peaks = {}
    for threads in sorted({r["threads"] for r in rows}):
        peaks[threads], _ = measure_peak(exes, threads)
        print(f"float32 matrix product, numpy's BLAS, {threads} threads: {peaks[threads] / 1e9:.0f} GFLOP/s")
    return peaks


def keep_record(done: list[dict], options: argparse.Namespace, run: Run, peaks: dict, finished: bool) -> None:
    old = options.compare
    options.out.parent.mkdir(parents=True, exist_ok=True)
    if old is None and options.out.exists():
        old = options.out.with_name("previous.json")
        os.replace(options.out, old)
    save(options.out, done, options, run, peaks, finished)
    if old is not None:
        compare(old, done)
    plot(options.plot, done)
    print(f"\nRecord: {options.out}   picture: {options.plot}")


def main() -> int:
    options = parse()
    rows = plan(options)
    if options.list:
        for row in rows:
            print(row["label"], f"{row['threads']}t", row["dtype"], row["mode"])
        print(f"{len(rows)} rows")
        return 0
    if not rows:
        print("no such case; --list shows them", file=sys.stderr)
        return 2
    if not options.torch and not options.paddle:
        print("note: no peer is installed, so there are times only; `make bench-peers` installs them", file=sys.stderr)
    run, done, peaks, finished = Run(options), [], {}, False
    print(f"{cpu_name()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    try:
        peaks = peak_rates(run, rows)
        measure_all(run, rows, options, done)
        finished = True
    except KeyboardInterrupt:
        print("\ninterrupted: this is what there is", file=sys.stderr)
    finally:
        if sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
        run.close()
    for role, info in run.versions.items():
        print(f"{role}: {info['version']}, Python {info['python']}, numpy {info['numpy']}" + (f", {info['note']}" if info["note"] else ""))
    report(done, options, peaks)
    if run.restarts:
        print(f"\nworkers restarted: {run.restarts}")
    keep_record(done, options, run, peaks, finished)
    return 0 if finished else 130


if __name__ == "__main__":
    sys.exit(main())
