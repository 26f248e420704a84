"""Chains of small calls as they stand in networks, compiled: Oar's fused programs beside its unfused ones, torch.compile and JAX.

    python benchmarks/fusion.py [--torch PYTHON] [--jax PYTHON] [--filter gelu] [--rounds 8] [--threads 2] [--sizes small,large]

Each framework runs in a process of its own and takes its turn in every round, so that a busy moment of the machine meets all. The
time is the least of all rounds; a ratio is the time of the other side by that of Oar's fused program: above 1, Oar is faster. Results
are compared with NumPy's in float64 before anything is timed.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time

import numpy as np

# A chain is an expression in the names of its inputs and of the functions below; `n` and `m` are rows and columns.
CHAINS = {
    "bias_gelu": ("gelu(x + b)", ("x", "b")),
    "residual_layer_norm": ("layer_norm(x + y, w, b)", ("x", "y", "w", "b")),
    "rms_norm": ("x * rsqrt(mean(x * x) + 1e-6) * w", ("x", "w")),
    "swiglu": ("silu(x) * y", ("x", "y")),
    "rotary": ("concat(left * c - right * s, right * c + left * s)", ("left", "right", "c", "s")),
    "masked_softmax": ("softmax(where(keep, x * 0.125, -1e9))", ("x", "keep")),
    "adamw": (
        "m1 = 0.9 * m + 0.1 * g; v1 = 0.999 * v + 0.001 * g * g; "
        "(p * 0.99999 - 0.001 * m1 * 1.5 / (sqrt(v1 * 1.25) + 1e-8), m1, v1)",
        ("p", "g", "m", "v"),
    ),
    "normalise_image": ("(float32(u) * 0.00392156862 - b) * w", ("u", "b", "w")),
    "scale_hardswish": ("hardswish(x * w + b)", ("x", "w", "b")),
    "quantise": ("clip(round(x * 20.0), -128.0, 127.0) * 0.05", ("x",)),
    "gelu_grad_bias": (
        "d = g * (0.5 + 0.5 * erf(x * 0.70710678) + x * 0.39894228 * exp(x * x * -0.5)); (d, columns(d))",
        ("x", "g"),
    ),
    "rms_norm_grad": (
        "h = x * rsqrt(mean(x * x) + 1e-6); e = g * w; (e - h * mean(e * h), columns(g * h))",
        ("x", "g", "w"),
    ),
    "squared_error": ("all_mean((x - y) * (x - y))", ("x", "y")),
}
SIZES = {"small": (64, 256), "large": (16384, 1024)}  # 64 KiB and 64 MiB


def inputs_of(names, n, m):
    rng = np.random.default_rng(0)
    made = {}
    for name in names:
        if name in ("b", "w"):
            made[name] = rng.normal(size=m).astype("float32")
        elif name == "u":
            made[name] = rng.integers(0, 256, (n, m), dtype="uint8")
        elif name == "keep":
            made[name] = rng.random((n, m)) < 0.8
        elif name in ("left", "right"):
            made[name] = rng.normal(size=(n, m // 2)).astype("float32")
        elif name in ("c", "s"):
            angle = rng.normal(size=(max(1, n // 8), m // 2))
            made[name] = np.tile((np.cos if name == "c" else np.sin)(angle), (8 if n >= 8 else 1, 1)).astype("float32")
        elif name == "v":
            made[name] = rng.random((n, m)).astype("float32")
        else:
            made[name] = rng.normal(size=(n, m)).astype("float32")
    return made


def function(text, names, functions):
    """The expression as a function: the parts before the last semicolon are assignments."""
    *parts, result = text.split(";")
    lines = [f"def chain({', '.join(names)}):", *(f"    {p.strip()}" for p in parts), f"    return {result.strip()}"]
    scope = dict(functions)
    exec("\n".join(lines), scope)
    return scope["chain"]


# ---- The frameworks -------------------------------------------------------------------------------------


def numpy_functions():
    erf = np.vectorize(math.erf)
    soft = lambda x: (lambda e: e / e.sum(-1, keepdims=True))(np.exp(x - x.max(-1, keepdims=True)))
    norm = lambda x, w, b: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b
    return dict(
        gelu=lambda x: 0.5 * x * (1 + erf(x / np.sqrt(2))), layer_norm=norm, rsqrt=lambda x: 1 / np.sqrt(x), sqrt=np.sqrt,
        mean=lambda x: x.mean(-1, keepdims=True), silu=lambda x: x / (1 + np.exp(-x)), where=np.where, softmax=soft,
        concat=lambda *t: np.concatenate(t, -1), float32=lambda x: x.astype("float64"), round=np.round, clip=np.clip,
        hardswish=lambda x: x * np.clip(x + 3, 0, 6) / 6, erf=erf, exp=np.exp, columns=lambda x: x.sum(0), all_mean=np.mean,
    )  # fmt: skip


def oar_functions():
    import oar

    f = oar.nn.functional
    return dict(
        gelu=f.gelu, layer_norm=lambda x, w, b: f.layer_norm(x, [x.shape[-1]], w, b), rsqrt=oar.rsqrt,
        mean=lambda x: oar.mean(x, -1, keepdim=True), silu=f.silu, where=lambda k, x, y: oar.where(k, x, oar.full_like(x, y)),
        softmax=lambda x: f.softmax(x, -1), concat=lambda *t: oar.concat(t, -1), float32=lambda x: x.astype("float32"),
        round=oar.round, clip=oar.clip, hardswish=f.hardswish, sqrt=oar.sqrt, erf=oar.erf, exp=oar.exp,
        columns=lambda x: oar.sum(x, 0), all_mean=oar.mean,
    )  # fmt: skip


def torch_functions():
    import torch

    f = torch.nn.functional
    return dict(
        gelu=f.gelu, layer_norm=lambda x, w, b: f.layer_norm(x, x.shape[-1:], w, b), rsqrt=torch.rsqrt, sqrt=torch.sqrt,
        mean=lambda x: x.mean(-1, keepdim=True), silu=f.silu, where=torch.where, softmax=lambda x: torch.softmax(x, -1),
        concat=lambda *t: torch.cat(t, -1), float32=lambda x: x.float(), round=torch.round, clip=torch.clamp,
        hardswish=f.hardswish, erf=torch.erf, exp=torch.exp, columns=lambda x: x.sum(0), all_mean=torch.mean,
    )  # fmt: skip


def jax_functions():
    import jax
    import jax.numpy as jnp

    norm = lambda x, w, b: (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * w + b
    return dict(
        gelu=lambda x: jax.nn.gelu(x, approximate=False), layer_norm=norm, rsqrt=jax.lax.rsqrt, sqrt=jnp.sqrt,
        mean=lambda x: x.mean(-1, keepdims=True), silu=jax.nn.silu, where=jnp.where, softmax=lambda x: jax.nn.softmax(x, -1),
        concat=lambda *t: jnp.concatenate(t, -1), float32=lambda x: x.astype("float32"), round=jnp.round, clip=jnp.clip,
        hardswish=jax.nn.hard_swish, erf=jax.lax.erf, exp=jnp.exp, columns=lambda x: x.sum(0), all_mean=jnp.mean,
    )  # fmt: skip


def prepare(framework, threads):
    """What makes (arrays, chain) a call that returns NumPy arrays on request."""
    if framework in ("oar", "unfused"):
        import oar
        from oar.static import InputSpec

        oar.set_num_threads(threads)
        oar.set_flags({"FLAGS_fusion": framework == "oar"})
        functions = oar_functions()

        def make(text, arrays):
            given = [oar.to_tensor(a) for a in arrays.values()]
            specs = [InputSpec(list(a.shape), str(a.dtype)) for a in arrays.values()]
            program = oar.jit.capture(function(text, arrays, functions), specs)
            return lambda: program(*given), lambda r: r.numpy(), lambda r: None

        return make
    if framework == "torch":
        import torch

        torch.set_num_threads(threads)
        functions = torch_functions()

        def make(text, arrays):
            torch._dynamo.reset()
            given = [torch.from_numpy(a) for a in arrays.values()]
            program = torch.compile(function(text, arrays, functions), dynamic=False)

            def call():
                with torch.inference_mode():
                    return program(*given)

            return call, lambda r: r.numpy(), lambda r: None

        return make
    import jax

    functions = jax_functions()

    def make(text, arrays):
        given = [jax.numpy.asarray(a) for a in arrays.values()]
        program = jax.jit(function(text, arrays, functions))
        return lambda: program(*given), np.asarray, jax.block_until_ready

    return make


def seconds(call, wait, calls):
    start = time.perf_counter()
    for _ in range(calls):
        result = call()
    wait(result)
    return (time.perf_counter() - start) / calls


def worker(framework, threads):
    """Answers lines of JSON: set a chain up, or time it once more."""
    make, ready = prepare(framework, threads), None
    for line in sys.stdin:
        q = json.loads(line)
        try:
            if "chain" in q:
                text, names = CHAINS[q["chain"]]
                arrays = inputs_of(names, *SIZES[q["size"]])
                call, to_numpy, wait = make(text, arrays)
                results = call()
                results = results if isinstance(results, (tuple, list)) else [results]
                sums = [float(np.abs(to_numpy(r).astype("float64")).sum()) for r in results]
                once = seconds(call, wait, 3)
                ready = call, wait, max(1, int(0.03 / once))
                answer = {"sums": sums}
            else:
                answer = {"time": seconds(*ready)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        print("@" + json.dumps(answer), flush=True)


class Side:
    def __init__(self, name, python, threads):
        self.name = name
        names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
        env = dict(os.environ, **{n: str(threads) for n in names})
        if threads == 1:
            env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        command = [python, __file__, "--worker", name, "--threads", str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        return {"error": "the process has ended"}


def expected(chain, size):
    text, names = CHAINS[chain]
    arrays = inputs_of(names, *SIZES[size])
    wide = {k: a.astype("float64") if a.dtype == np.float32 else a for k, a in arrays.items()}
    results = function(text, names, numpy_functions())(**wide)
    results = results if isinstance(results, tuple) else (results,)
    return [float(np.abs(r).sum()) for r in results]


def row(chain, size, sides, rounds):
    want, times = expected(chain, size), {}
    for side in sides:
        answer = side.ask(chain=chain, size=size)
        got = answer.get("sums")
        if got is None or not np.allclose(got, want, rtol=1e-3):
            print(f"    {side.name}: {answer.get('error', f'WRONG: {got} for {want}')}")
        else:
            times[side.name] = float("inf")
    for _ in range(rounds):
        for side in sides:
            if side.name in times:
                times[side.name] = min(times[side.name], side.ask().get("time", float("inf")))
    own = times.get("oar", float("nan"))
    shown = "".join(f"  {n} {t * 1e6:10.1f} us ({t / own:4.2f}x)" for n, t in times.items())
    print(f"{chain:20s} {size:6s}{shown}", flush=True)
    return {n: t / own for n, t in times.items() if n != "oar"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch")
    parser.add_argument("--jax")
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sizes", default="small,large")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args.worker, args.threads)
    pythons = {"oar": sys.executable, "unfused": sys.executable, "torch": args.torch, "jax": args.jax}
    sides = [Side(name, python, args.threads) for name, python in pythons.items() if python]
    ratios = {side.name: [] for side in sides[1:]}
    for size in args.sizes.split(","):
        for chain in CHAINS:
            if args.filter in chain:
                for name, ratio in row(chain, size, sides, args.rounds).items():
                    ratios[name].append(ratio)
    for name, values in ratios.items():
        if values:
            print(f"geometric mean against {name}: {math.exp(sum(map(math.log, values)) / len(values)):.2f}")


if __name__ == "__main__":
    main()
