"""High derivatives: Taylor mode against nested reverse mode, and against JAX if an interpreter with JAX is given.

    .venv/bin/python benchmarks/science.py [--jax python-with-jax] [--quick]

Prints a table: the time to compute the derivatives of order 1 to 8 of a network of one variable at some points, eager and
captured, on one thread. Every way must agree with the others to 6 digits.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time

import numpy as np

WIDTH, POINTS = 64, 256


def weights() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    sizes = [1, WIDTH, WIDTH, WIDTH, 1]
    return [rng.standard_normal((a, b)) / math.sqrt(a) for a, b in zip(sizes, sizes[1:])]


def best(run, budget: float = 1.0) -> float:
    """The shortest time of a call, in milliseconds, after a first one."""
    run()
    times, end = [], time.perf_counter() + budget
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


JAX = '''
import json, sys, time
sys.path.insert(0, sys.argv[1])
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
from jax.experimental.jet import jet
from science import POINTS, best, weights
W = [jnp.asarray(w) for w in weights()]
x = jnp.linspace(-1, 1, POINTS)[:, None]
def net(x):
    for w in W[:-1]:
        x = jnp.tanh(x @ w)
    return x @ W[-1]
def taylor(x, order):
    one, zero = jnp.ones_like(x), jnp.zeros_like(x)
    return jet(net, (x,), ([one] + [zero] * (order - 1),))[1][-1]
def nested(x, order):
    f = lambda s: net(s.reshape(1, 1))[0, 0]
    for _ in range(order):
        f = jax.grad(f)
    return jax.vmap(f)(x[:, 0])[:, None]
rows = []
for order in range(1, int(sys.argv[2]) + 1):
    row = {"order": order}
    for name, way, limit in (("taylor", taylor, 99), ("nested", nested, int(sys.argv[3]))):
        if order > limit:
            continue
        f = jax.jit(lambda x: way(x, order))
        start = time.perf_counter()
        value = f(x).block_until_ready()
        row[name + " compile"] = (time.perf_counter() - start) * 1e3
        row[name] = best(lambda: f(x).block_until_ready())
        row[name + " sum"] = float(jnp.abs(value).sum())
    rows.append(row)
print(json.dumps(rows))
'''


def measure_oar(orders: int, nested_limit: int) -> list[dict]:
    import oar
    from oar.science import taylor

    oar.set_num_threads(1)
    matrices = [oar.to_tensor(w) for w in weights()]
    x = oar.to_tensor(np.linspace(-1, 1, POINTS)[:, None])

    def net(x):
        for w in matrices[:-1]:
            x = oar.tanh(x @ w)
        return x @ matrices[-1]

    def by_taylor(x, order):
        return taylor(net, x, order)[order]

    def by_nesting(x, order):
        leaf = x.detach()
        leaf.stop_gradient = False
        y = net(leaf)
        for _ in range(order):
            (y,) = oar.grad([y], [leaf], create_graph=True)
        return y.detach()

    rows = []
    for order in range(1, orders + 1):
        row: dict = {"order": order}
        for name, way, limit in (("taylor", by_taylor, 99), ("nested", by_nesting, nested_limit)):
            if order > limit:
                continue
            row[name] = best(lambda: way(x, order))  # noqa: B023
            row[name + " sum"] = float(oar.abs(way(x, order)).sum())
        captured = oar.jit.to_static(lambda x: by_taylor(x, order))  # noqa: B023
        start = time.perf_counter()
        captured(x)
        row["taylor capture"] = (time.perf_counter() - start) * 1e3
        row["taylor captured"] = best(lambda: captured(x))  # noqa: B023
        rows.append(row)
    return rows


def measure_jax(python: str, orders: int, nested_limit: int) -> list[dict]:
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    made = subprocess.run([python, "-c", JAX, sys.path[0], str(orders), str(nested_limit)], capture_output=True, text=True,
                          env={**os.environ, "XLA_FLAGS": flags, "OMP_NUM_THREADS": "1"})
    if made.returncode:
        sys.exit(f"JAX failed:\n{made.stderr}")
    return json.loads(made.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jax", help="a Python interpreter that has JAX")
    parser.add_argument("--quick", action="store_true", help="orders 1 to 4 only")
    given = parser.parse_args()
    orders, nested_limit = (4, 4) if given.quick else (8, 6)
    ours = measure_oar(orders, nested_limit)
    theirs = measure_jax(given.jax, orders, nested_limit) if given.jax else []
    columns = ["taylor", "taylor captured", "nested"]
    head = ["order", *(f"Oar {c}" for c in columns), *(["JAX taylor (jit)", "JAX nested (jit)"] if theirs else [])]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for i, row in enumerate(ours):
        cells = [f"{row[c]:.2f}" if c in row else "" for c in columns]
        sums = [row["taylor sum"], row.get("nested sum")]
        if theirs:
            cells += [f"{theirs[i][c]:.2f}" if c in theirs[i] else "" for c in ("taylor", "nested")]
            sums += [theirs[i]["taylor sum"]]
        print(f"| {row['order']} | " + " | ".join(cells) + " |")
        if any(s is not None and abs(s - sums[0]) > 1e-6 * abs(sums[0]) for s in sums):
            sys.exit(f"The results of order {row['order']} differ: {sums}")
    print(f"\nMilliseconds for {POINTS} points in float64 on one thread, a network with 3 hidden layers of {WIDTH}; the best of several runs.")
    print("First call of order", orders, ": Oar captures in", f"{ours[-1]['taylor capture']:.0f} ms" +
          (f", JAX compiles in {theirs[-1]['taylor compile']:.0f} ms (Taylor)" if theirs else ""))


if __name__ == "__main__":
    main()
