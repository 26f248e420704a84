"""Sparse tensors in Oar, SciPy and, given its interpreter, PyTorch: one run, in turns.

    python benchmarks/sparse.py [--torch build/bench/torch/bin/python] [--threads 2] [--filter matmul]

Each library has a process of its own, which is stopped while another one works. A row is the least of the rounds; its ratio is
the peer's time by Oar's, so above 1 Oar is faster. Results are compared before anything is timed. SciPy has one thread. With
``--threads 1`` times are processor time, so that other programs disturb little.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np

ROWS, DENSITY = 4000, 0.005


def matrix(seed: int, rows: int = ROWS, cols: int = ROWS, density: float = DENSITY, kind: str = "float32"):
    """Rows, columns and values of a random matrix, in order."""
    rng = np.random.default_rng(seed)
    flat = np.unique(rng.integers(0, rows * cols, int(rows * cols * density)))
    return flat // cols, flat % cols, rng.standard_normal(len(flat)).astype(kind), rows, cols


def crows(rows: np.ndarray, count: int) -> np.ndarray:
    return np.append(0, np.cumsum(np.bincount(rows, minlength=count)))


DENSE = {width: np.random.default_rng(9).standard_normal((ROWS, width)).astype("float32") for width in (1, 32, 256)}
SHUFFLED = np.random.default_rng(5).permutation(len(matrix(1)[0]))


def oar_cases():
    import oar
    from oar import sparse

    oar.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def coo(m, order=slice(None)):
        return sparse.sparse_coo_tensor(np.stack([m[0][order], m[1][order]]), m[2][order], [m[3], m[4]])

    a, b = coo(matrix(1)).coalesce(), coo(matrix(2)).coalesce()
    ac, bc, loose = a.to_sparse_csr(), b.to_sparse_csr(), coo(matrix(1), SHUFFLED)
    dense = {width: oar.to_tensor(values) for width, values in DENSE.items()}
    vector, full = dense[1].flatten(), ac.to_dense()
    yield "mv csr", lambda: sparse.mv(ac, vector), lambda t: t.numpy()
    yield "mv coo", lambda: sparse.mv(a, vector), lambda t: t.numpy()
    for width in (32, 256):
        yield f"matmul csr x dense {width}", lambda w=width: sparse.matmul(ac, dense[w]), lambda t: t.numpy()
        yield f"matmul coo x dense {width}", lambda w=width: sparse.matmul(a, dense[w]), lambda t: t.numpy()
    yield "matmul csr x csr", lambda: sparse.matmul(ac, bc), lambda t: t.to_dense().numpy()
    wide = oar.transpose(dense[32], [1, 0])
    yield "masked matmul 32", lambda: sparse.masked_matmul(dense[32], wide, ac), lambda t: t.values().numpy()
    yield "add csr", lambda: sparse.add(ac, bc), lambda t: t.to_dense().numpy()
    yield "add coo", lambda: sparse.add(a, b), lambda t: t.to_dense().numpy()
    yield "multiply coo", lambda: sparse.multiply(a, b), lambda t: t.to_dense().numpy()
    yield "sin", lambda: sparse.sin(a), lambda t: t.values().numpy()
    yield "coalesce", lambda: loose.coalesce(), lambda t: t.values().numpy()
    yield "to dense", lambda: a.to_dense(), lambda t: t.numpy()
    yield "dense to coo", lambda: full.to_sparse_coo(2), lambda t: t.values().numpy()
    yield "coo to csr", lambda: a.to_sparse_csr(), lambda t: t.values().numpy()
    yield "csr transpose", lambda: sparse.transpose(ac, [1, 0]), lambda t: t.values().numpy()
    yield "sum rows", lambda: sparse.sum(a, 1), lambda t: t.values().numpy()

    def trained():
        x = ac.detach()
        x.stop_gradient = False
        y = dense[32].detach()
        y.stop_gradient = False
        sparse.matmul(x, y).backward()
        return y.grad

    yield "matmul csr x dense 32, backward", trained, lambda t: t.numpy()


def scipy_cases():
    import scipy.sparse

    def coo(m, order=slice(None)):
        return scipy.sparse.coo_matrix((m[2][order], (m[0][order], m[1][order])), (m[3], m[4]))

    a, b = coo(matrix(1)), coo(matrix(2))
    ac, bc = a.tocsr(), b.tocsr()
    vector, full = DENSE[1].ravel(), ac.toarray()
    yield "mv csr", lambda: ac @ vector, lambda t: t
    yield "mv coo", lambda: a @ vector, lambda t: t
    for width in (32, 256):
        yield f"matmul csr x dense {width}", lambda w=width: ac @ DENSE[w], lambda t: t
        yield f"matmul coo x dense {width}", lambda w=width: a @ DENSE[w], lambda t: t
    yield "matmul csr x csr", lambda: ac @ bc, lambda t: t.toarray()
    yield "add csr", lambda: ac + bc, lambda t: t.toarray()
    yield "multiply coo", lambda: ac.multiply(bc), lambda t: t.toarray()
    yield "sin", lambda: ac.sin(), lambda t: t.data

    def coalesce():
        loose = coo(matrix_one, SHUFFLED)
        loose.sum_duplicates()
        return loose

    matrix_one = matrix(1)
    yield "coalesce", coalesce, lambda t: t.tocsr().data
    yield "to dense", lambda: a.toarray(), lambda t: t
    yield "dense to coo", lambda: scipy.sparse.coo_matrix(full), lambda t: t.data
    yield "coo to csr", lambda: a.tocsr(), lambda t: t.data
    yield "csr transpose", lambda: ac.T.tocsr(), lambda t: t.data
    yield "sum rows", lambda: a.sum(1), lambda t: np.asarray(t).ravel()[np.unique(matrix_one[0])]


def torch_cases():
    import torch

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))

    def coo(m, order=slice(None)):
        indices = torch.from_numpy(np.stack([m[0][order], m[1][order]]))
        return torch.sparse_coo_tensor(indices, torch.from_numpy(m[2][order]), (m[3], m[4]))

    a, b = coo(matrix(1)).coalesce(), coo(matrix(2)).coalesce()
    ac, bc = a.to_sparse_csr(), b.to_sparse_csr()
    dense = {width: torch.from_numpy(values) for width, values in DENSE.items()}
    vector, full = dense[1].flatten(), ac.to_dense()
    m = matrix(1)
    loose_indices = torch.from_numpy(np.stack([m[0][SHUFFLED], m[1][SHUFFLED]]))
    loose_values = torch.from_numpy(m[2][SHUFFLED])
    yield "mv csr", lambda: ac @ vector, lambda t: t.numpy()
    yield "mv coo", lambda: a @ vector, lambda t: t.numpy()
    for width in (32, 256):
        yield f"matmul csr x dense {width}", lambda w=width: ac @ dense[w], lambda t: t.numpy()
        yield f"matmul coo x dense {width}", lambda w=width: a @ dense[w], lambda t: t.numpy()
    yield "matmul csr x csr", lambda: ac @ bc, lambda t: t.to_dense().numpy()
    zero, wide = torch.sparse_csr_tensor(ac.crow_indices(), ac.col_indices(), torch.zeros_like(ac.values()), ac.shape), dense[32].T
    yield "masked matmul 32", lambda: torch.sparse.sampled_addmm(zero, dense[32], wide), lambda t: t.values().numpy()
    yield "add csr", lambda: ac + bc, lambda t: t.to_dense().numpy()
    yield "add coo", lambda: (a + b).coalesce(), lambda t: t.to_dense().numpy()
    yield "multiply coo", lambda: a * b, lambda t: t.to_dense().numpy()
    yield "sin", lambda: torch.sin(a), lambda t: t.coalesce().values().numpy()
    yield ("coalesce", lambda: torch.sparse_coo_tensor(loose_indices, loose_values, (ROWS, ROWS)).coalesce(),
           lambda t: t.values().numpy())
    yield "to dense", lambda: a.to_dense(), lambda t: t.numpy()
    yield "dense to coo", lambda: full.to_sparse(), lambda t: t.values().numpy()
    yield "coo to csr", lambda: a.to_sparse_csr(), lambda t: t.values().numpy()
    yield "csr transpose", lambda: ac.t().to_sparse_csr(), lambda t: t.values().numpy()
    yield "sum rows", lambda: torch.sparse.sum(a, 1), lambda t: t.coalesce().values().numpy()

    def trained():
        x, y = ac.detach().requires_grad_(), dense[32].detach().requires_grad_()
        (x @ y).sum().backward()
        return y.grad

    yield "matmul csr x dense 32, backward", trained, lambda t: t.numpy()


def work(library: str) -> None:
    """A worker: for each line, the time of so many calls of a case, or a summary of its result."""
    clock = time.process_time if os.environ["OMP_NUM_THREADS"] == "1" else time.perf_counter
    cases = {name: (call, read) for name, call, read in globals()[f"{library}_cases"]()}
    print(json.dumps(list(cases)), flush=True)
    for line in sys.stdin:
        name, count = json.loads(line)
        call, read = cases[name]
        if count == 0:
            result = np.asarray(read(call()), dtype="float64")
            print(json.dumps([list(result.shape), float(result.sum()), float(np.abs(result).sum())]), flush=True)
            continue
        start = clock()
        for _ in range(count):
            call()
        print(json.dumps(clock() - start), flush=True)


class Worker:
    """The process of a library, stopped while it has nothing to do."""

    def __init__(self, library: str, python: str, threads: int) -> None:
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
        self.library = library
        self.process = subprocess.Popen([python, __file__, "--worker", library], stdin=subprocess.PIPE, text=True,
                                        stdout=subprocess.PIPE, env={**os.environ, **dict.fromkeys(names, str(threads))})
        self.cases = self._answer()

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"The process of {self.library} has ended (status {self.process.wait()}).")
        self.process.send_signal(signal.SIGSTOP)
        return json.loads(line)

    def ask(self, name: str, count: int):
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.write(json.dumps([name, count]) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--torch", help="an interpreter that has PyTorch")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--filter", default="")
    options = parser.parse_args()
    if options.worker:
        return work(options.worker)
    workers = [Worker("oar", sys.executable, options.threads), Worker("scipy", sys.executable, options.threads)]
    if options.torch:
        workers.append(Worker("torch", options.torch, options.threads))
    peers = [w.library for w in workers[1:]]
    print(f"{ROWS} x {ROWS}, {len(matrix(1)[0])} elements, float32, {options.threads} threads")
    print(f"{'':34s}{'oar us':>10s}" + "".join(f"{p + ' us':>12s}{'ratio':>7s}" for p in peers))
    for name in workers[0].cases:
        if options.filter in name:
            row(name, [w for w in workers if name in w.cases], peers, options.rounds)
    for worker in workers:
        worker.close()


def row(name: str, workers: list[Worker], peers: list[str], rounds: int) -> None:
    results = {w.library: w.ask(name, 0) for w in workers}
    for library, (shape, total, size) in results.items():
        if shape != results["oar"][0] or abs(total - results["oar"][1]) > 1e-4 * (size + 1):
            print(f"{name}: {library} has another result: {results}")
    counts = {w.library: max(1, round(0.03 / max(w.ask(name, 3) / 3, 1e-7))) for w in workers}
    least = dict.fromkeys(results, float("inf"))
    for _ in range(rounds):
        for worker in workers:
            count = counts[worker.library]
            least[worker.library] = min(least[worker.library], worker.ask(name, count) / count * 1e6)
    cells = "".join(f"{least[p]:12.1f}{least[p] / least['oar']:7.2f}" if p in least else f"{'-':>12s}{'':7s}" for p in peers)
    print(f"{name:34s}{least['oar']:10.1f}{cells}", flush=True)


if __name__ == "__main__":
    main()
