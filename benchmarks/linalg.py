"""Linear algebra against NumPy, SciPy and PyTorch, side by side in one run.

    python benchmarks/linalg.py [--threads 2] [--filter solve] [--sizes 10000x2,1x1000] [--dtype float64]
                                [--torch build/bench/torch/bin/python] [--rounds 7]

Each side is a process of its own, which is stopped while another one works. The results are compared first. The ratio is
the other side's time by Oar's, of the least of several rounds taken in turns: above 1, Oar is faster. With ``--threads 1`` times
are processor time, so that other programs disturb little.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from processes import environment

# a: general matrices; s: symmetric positive definite ones; b: right sides with as many columns as rows, at most 8.
CASES = {
    "cholesky": dict(oar="L.cholesky(s)", numpy="np.linalg.cholesky(s)", scipy="sl.cholesky(s, lower=True)", torch="T.cholesky(s)"),
    "solve": dict(oar="L.solve(a, b)", numpy="np.linalg.solve(a, b)", scipy="sl.solve(a, b)", torch="T.solve(a, b)"),
    "inv": dict(oar="L.inv(a)", numpy="np.linalg.inv(a)", scipy="sl.inv(a)", torch="T.inv(a)"),
    "det": dict(oar="L.det(a)", numpy="np.linalg.det(a)", scipy="sl.det(a)", torch="T.det(a)"),
    "slogdet": dict(oar="L.slogdet(a)[1]", numpy="np.linalg.slogdet(a)[1]", torch="T.slogdet(a)[1]"),
    "lu": dict(oar="L.lu(a)[0]", scipy="sl.lu_factor(a)[0]", torch="T.lu_factor(a)[0]"),
    "triangular_solve": dict(oar="L.triangular_solve(s, b, upper=False)", scipy="sl.solve_triangular(s, b, lower=True)",
                             torch="T.solve_triangular(s, b, upper=False)"),
    "qr": dict(oar="L.qr(a)[1].abs()", numpy="np.abs(np.linalg.qr(a)[1])", scipy="np.abs(sl.qr(a)[1])", torch="T.qr(a)[1].abs()"),
    "eigh": dict(oar="L.eigh(s)[0]", numpy="np.linalg.eigh(s)[0]", scipy="sl.eigh(s)[0]", torch="T.eigh(s)[0]"),
    "eigvalsh": dict(oar="L.eigvalsh(s)", numpy="np.linalg.eigvalsh(s)", scipy="sl.eigvalsh(s)", torch="T.eigvalsh(s)"),
    "svd": dict(oar="L.svd(a)[1]", numpy="np.linalg.svd(a, False)[1]", scipy="sl.svd(a, False)[1]", torch="T.svd(a, False)[1]"),
    "svdvals": dict(oar="L.svdvals(a)", numpy="np.linalg.svd(a, compute_uv=False)", scipy="sl.svdvals(a)", torch="T.svdvals(a)"),
    "eig": dict(oar="abs(L.eig(a)[0]).sum()", numpy="np.sum(np.abs(np.linalg.eig(a)[0]))", torch="T.eig(a)[0].abs().sum()"),
    "pinv": dict(oar="L.pinv(a)", numpy="np.linalg.pinv(a)", scipy="sl.pinv(a)", torch="T.pinv(a)"),
    "lstsq": dict(oar="L.lstsq(a, b)[0]", numpy="np.linalg.lstsq(a, b)[0]", scipy="sl.lstsq(a, b)[0]",
                  torch="T.lstsq(a, b, driver='gelsd')[0]"),
    "matrix_exp": dict(oar="L.matrix_exp(e)", scipy="sl.expm(e)", torch="T.matrix_exp(e)"),
}
# What takes seconds for the largest sizes.
LARGEST = {"eig": 500, "svd": 1000, "eigh": 1000, "pinv": 1000, "lstsq": 1000, "svdvals": 1000}
SIZES = "10000x2,10000x4,2000x8,1000x16,100x64,1x200,1x1000,1x2000"


def inputs(count, n, dtype):
    rng = np.random.default_rng(n)
    shape = (count, n, n) if count > 1 else (n, n)
    a = rng.normal(size=shape)
    s = a @ np.swapaxes(a, -1, -2) / n + np.eye(n)
    a = a + np.sqrt(n) * np.eye(n)
    return {"a": a.astype(dtype), "s": s.astype(dtype), "b": a[..., :min(n, 8)].astype(dtype), "e": (a / n).astype(dtype)}


def names_of(side, threads):
    """What expressions of a side may use, and what turns an array into its tensors and back."""
    if side == "oar":
        import oar
        oar.set_num_threads(threads)
        return {"L": oar.linalg}, oar.to_tensor, lambda t: t.numpy()
    if side == "torch":
        import torch
        torch.set_num_threads(threads)
        return {"T": torch.linalg, "torch": torch}, torch.from_numpy, lambda t: t.numpy()
    if side == "scipy":
        import scipy.linalg as sl
        return {"sl": sl, "np": np}, lambda x: x, np.asarray
    return {"np": np}, lambda x: x, np.asarray


def work(side, threads):
    """The measured side: answers requests that come line by line."""
    names, to_tensor, to_array = names_of(side, threads)
    clock = time.process_time if threads == 1 else time.perf_counter
    call = None
    for line in sys.stdin:
        kind, *rest = line.rstrip("\n").split("\t")
        try:
            if kind == "prepare":
                code, count, n, dtype, path = rest
                given = {k: to_tensor(v) for k, v in inputs(int(count), int(n), dtype).items()}
                call = eval(f"lambda: {code}", {**names, **given})
                np.save(path, to_array(call()))
                print("ready", flush=True)
            else:
                calls = int(rest[0])
                start = clock()
                for _ in range(calls):
                    call()
                print((clock() - start) / calls, flush=True)
        except Exception as error:  # noqa: BLE001
            print(f"{type(error).__name__}: {error}".replace("\n", " "), flush=True)


class Side:
    def __init__(self, name, exe, threads):
        self.name = name
        self.process = subprocess.Popen([exe, __file__, "--work", name, "--threads", str(threads)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(threads))

    def ask(self, *request):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write("\t".join(map(str, request)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        self.process.send_signal(signal.SIGSTOP)
        return answer

    def close(self):
        self.process.kill()
        self.process.wait()


def measure(sides, name, count, n, options, folder):
    """Seconds of each side that has the function and agrees with NumPy or SciPy."""
    live, results = {}, {}
    for side in sides:
        code = CASES[name].get(side.name)
        if code is None or (side.name == "scipy" and count > 1):
            continue
        path = f"{folder}/{side.name}.npy"
        answer = side.ask("prepare", code, count, n, options.dtype, path)
        if answer != "ready":
            print(f"{name} {count}x{n} {side.name}: {answer}")
            continue
        live[side.name], results[side.name] = side, np.load(path)
    reference = results.get("numpy", results.get("scipy", results.get("torch")))
    tolerance = 1e-8 if options.dtype == "float64" else 2e-3
    for side, found in results.items():
        if not np.allclose(found, reference, rtol=tolerance, atol=tolerance * max(1.0, float(np.max(np.abs(reference))))):
            print(f"{name} {count}x{n} {side}: WRONG")
            live.pop(side)
    calls = {side: max(1, int(0.03 / float(live[side].ask("time", 1)))) for side in live}
    best = dict.fromkeys(live, float("inf"))
    for _ in range(options.rounds):
        for side, process in live.items():
            best[side] = min(best[side], float(process.ask("time", calls[side])))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--filter", default="")
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--torch", default=str(Path(__file__).resolve().parent.parent / "build/bench/torch/bin/python"))
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.work, options.threads)
    import tempfile
    folder = tempfile.mkdtemp(prefix="bench-linalg-")
    names = ["oar", "numpy", "scipy"] + (["torch"] if os.path.exists(options.torch) else [])
    sides = [Side(name, options.torch if name == "torch" else sys.executable, options.threads) for name in names]
    print(f"{options.threads} threads, {options.dtype}; microseconds of Oar, and others' time by Oar's")
    try:
        for name in CASES:
            if options.filter not in name:
                continue
            for size in options.sizes.split(","):
                count, n = map(int, size.split("x"))
                if n > LARGEST.get(name, 2000):
                    continue
                best = measure(sides, name, count, n, options, folder)
                if "oar" not in best:
                    continue
                ratios = "   ".join(f"{side} {seconds / best['oar']:5.2f}x" for side, seconds in best.items() if side != "oar")
                print(f"{name:17s} {size:>8s}  oar {best['oar'] * 1e6:12.1f} us   {ratios}", flush=True)
    finally:
        for side in sides:
            side.close()


if __name__ == "__main__":
    main()
