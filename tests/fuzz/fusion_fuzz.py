"""Random programs, fused and call by call: results must agree.

    python tests/fuzz/fusion_fuzz.py [--count 1000] [--seed 0] [--most 60] [--seconds 600]

Each program has up to 60 calls on tensors of rank 0 to 8: elementwise ones of every kind, casts, choices, views, reductions along
any axes and what follows them, norms and softmax. It is captured once; some sizes stay open, and it runs at two of each.
Integers and bools must be the same; floats may differ by rounding. A program that fails is printed with its seed.
"""

import argparse
import random
import sys
import time

import numpy as np

import oar
from oar.nn import functional as F
from oar.static import InputSpec

oar.set_flags({"FLAGS_fusion_runs": 0})  # small programs are fused, too

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
# What rounding may differ by, relative to the largest number of the tensor.
TOLERANCE = {"float64": 1e-9, "float32": 2e-4, "float16": 2e-2, "bfloat16": 1.5e-1}

SMOOTH = {
    "tanh": oar.tanh, "sigmoid": F.sigmoid, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate=True),
    "silu": F.silu, "softplus": F.softplus, "erf": oar.erf, "sin": oar.sin, "cos": oar.cos, "atan": oar.atan,
    "mish": F.mish, "elu": F.elu, "selu": F.selu, "hardswish": F.hardswish, "relu": F.relu, "relu6": F.relu6,
    "leaky_relu": F.leaky_relu, "softsign": F.softsign, "abs": oar.abs, "neg": lambda x: -x, "square": lambda x: x * x * 0.25,
    "exp": lambda x: oar.exp(-oar.abs(x)), "expm1": lambda x: oar.expm1(-oar.abs(x)), "sqrt": lambda x: oar.sqrt(oar.abs(x) + 0.5),
    "rsqrt": lambda x: oar.rsqrt(oar.abs(x) + 0.5), "log": lambda x: oar.log(oar.abs(x) + 0.5),
    "log1p": lambda x: oar.log1p(oar.abs(x)), "log2": lambda x: oar.log2(oar.abs(x) + 1.0), "asinh": oar.asinh,
    "scale": lambda x: oar.scale(x, 0.5, 0.25), "clip": lambda x: oar.clip(x, -1.0, 1.5), "asin": lambda x: oar.asin(oar.tanh(x)),
    "acos": lambda x: oar.acos(0.9 * oar.tanh(x)), "sinh": lambda x: oar.sinh(oar.tanh(x)), "cosh": lambda x: oar.cosh(oar.tanh(x)),
    "tan": lambda x: oar.tan(oar.tanh(x)), "log10": lambda x: oar.log10(oar.abs(x) + 1.0), "stanh": oar.stanh,
    "reciprocal": lambda x: oar.reciprocal(1.0 + oar.abs(x)), "tanhshrink": F.tanhshrink, "logsigmoid": F.log_sigmoid,
}  # fmt: skip
PAIRS = {
    "add": oar.add, "subtract": oar.subtract, "multiply": lambda x, y: x * y * 0.5, "maximum": oar.maximum,
    "minimum": oar.minimum, "fmax": oar.fmax, "fmin": oar.fmin, "divide": lambda x, y: x / (oar.abs(y) + 1.0),
    "hypot": oar.hypot, "atan2": lambda x, y: oar.atan2(x, oar.abs(y) + 0.5), "logaddexp": oar.logaddexp,
    "lerp": lambda x, y: oar.lerp(x, y, 0.25), "pow": lambda x, y: oar.pow(oar.abs(x) + 0.5, oar.tanh(y)),
    "copysign": lambda x, y: oar.abs(x) + oar.abs(y),
}  # fmt: skip
WHOLE = {"add": oar.add, "subtract": oar.subtract, "multiply": oar.multiply, "maximum": oar.maximum, "minimum": oar.minimum,
         "and": oar.bitwise_and, "or": oar.bitwise_or, "xor": oar.bitwise_xor}  # fmt: skip
QUESTIONS = (oar.less_than, oar.less_equal, oar.greater_than, oar.greater_equal, oar.equal, oar.not_equal)


def kind(t):
    return str(t.dtype).split(".")[-1]


def is_float(t):
    return kind(t) in FLOATS


class World:
    """Draws a function once, as a list of choices, and plays it on any tensors of the right kind."""

    def __init__(self, seed, most, any_axes):
        self.draw = random.Random(seed)
        self.any_axes = any_axes  # reductions of any, or of the last
        self.rank = self.draw.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 6, 8))
        limits = (1, 2, 3, 4) if self.rank > 4 else (1, 2, 3, 5, 8, 17, 33, 64)
        self.shape = [self.draw.choice(limits) for _ in range(self.rank)]
        if self.draw.random() < 0.03 and self.rank:
            self.shape[self.draw.randrange(self.rank)] = 0
        self.calls = self.draw.randint(2, most)
        self.inputs = []
        for _ in range(self.draw.randint(1, 5)):
            shape = [1 if self.draw.random() < 0.25 else s for s in self.shape]
            shape = shape[self.draw.randint(0, self.rank) if self.draw.random() < 0.3 else 0 :]
            dtype = self.draw.choice(("float32",) * 6 + FLOATS + INTEGERS + ("bool",))
            self.inputs.append((shape, dtype))
        self.open_axis = self.draw.random() < 0.4 and self.rank > 0 and self.shape[0] > 1
        self.play_seed = self.draw.random()
        self.kinds = {"float64"} | {d for _, d in self.inputs if d in FLOATS}  # of all values

    def tensors(self, rng, first=None):
        made = []
        for shape, dtype in self.inputs:
            shape = list(shape)
            if first is not None and len(shape) == self.rank and shape and shape[0] == self.shape[0]:
                shape[0] = first
            if dtype == "bool":
                data = rng.integers(0, 2, shape).astype(bool)
            elif dtype in INTEGERS:
                info = np.iinfo(dtype)
                data = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
            else:
                data = rng.normal(size=shape).astype("float64")
                if self.play_seed < 0.1:
                    special = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e6], size=shape)
                    data = np.where(rng.random(shape) < 0.05, special, data)
            t = oar.to_tensor(np.asarray(data))
            made.append(t.astype(dtype) if dtype in FLOATS else t)
        return made

    def specs(self):
        made = []
        for shape, dtype in self.inputs:
            shape = list(shape)
            if self.open_axis and len(shape) == self.rank and shape[0] == self.shape[0]:
                shape[0] = "batch"
            made.append(InputSpec(shape, dtype))
        return made

    def play(self, *inputs):
        draw = random.Random(self.play_seed)
        live = list(inputs)
        for _ in range(self.calls):
            made = self.call(draw, live)
            if made is not None:
                live.append(made)
                self.kinds |= {kind(made)} & set(FLOATS)
        # Results of which some are read by others, too.
        return [live[-1], *draw.sample(live[len(inputs) :] or live, min(2, len(live[len(inputs) :]) or 1))]

    def call(self, draw, live):
        x = draw.choice(live[-6:])
        choice = draw.random()
        if choice < 0.06:
            return x.astype(draw.choice(FLOATS if is_float(x) else FLOATS + INTEGERS + ("bool",)))
        if choice < 0.16:
            return self.view(draw, x)
        if choice < 0.30 and is_float(x) and x.ndim:
            if self.any_axes and draw.random() < 0.3:
                return self.along_any(draw, x)
            return self.along_last(draw, x)
        if is_float(x):
            if choice < 0.55:
                return SMOOTH[draw.choice(sorted(SMOOTH))](x)
            y = self.partner(draw, live, x, float)
            if choice < 0.62:
                leaf = draw.choice(live[: len(self.inputs)])  # exact values: a comparison cannot flip
                test = draw.choice(QUESTIONS)(leaf, leaf * 0 + 1) if kind(leaf) != "bool" else leaf
                return self.joined(lambda a, b: oar.where(test, a, b), x, y)
            return self.joined(PAIRS[draw.choice(sorted(PAIRS))], x, y)
        y = self.partner(draw, live, x, int)
        if kind(x) == "bool":
            return self.joined(draw.choice((oar.logical_and, oar.logical_or, oar.logical_xor)), x, y)
        if choice < 0.45:
            return self.joined(draw.choice(QUESTIONS), x, y)
        if choice < 0.5:
            return oar.sign(x) if kind(x) != "uint8" else x
        return self.joined(WHOLE[draw.choice(sorted(WHOLE))], x, y)

    @staticmethod
    def partner(draw, live, x, of):
        fits = [t for t in live if is_float(t) == (of is float) and (kind(t) == "bool") == (kind(x) == "bool")]
        return draw.choice(fits or [x])

    @staticmethod
    def joined(function, x, y):
        if x.ndim and y.ndim and x.size * y.size > 1e7 and x.shape != y.shape:
            return None
        try:
            return function(x, y)
        except (ValueError, TypeError, RuntimeError, NotImplementedError):
            return None  # shapes or dtypes that do not go together

    @staticmethod
    def view(draw, x):
        which = draw.randrange(5)
        if which == 0 and x.ndim > 1:
            perm = list(range(x.ndim))
            draw.shuffle(perm)
            return oar.transpose(x, perm)
        if which == 1:
            return oar.unsqueeze(x, draw.randint(0, x.ndim)) if x.ndim < 8 else None
        if which == 2 and x.ndim:
            return oar.reshape(x, [-1] if all(isinstance(s, int) and s for s in x.shape) else x.shape)
        if which == 3 and x.ndim and isinstance(x.shape[-1], int) and x.shape[-1] > 2:
            return x[..., 1:] if draw.random() < 0.5 else x[..., ::2]
        if which == 4 and x.ndim:
            return oar.squeeze(x)
        return None

    @staticmethod
    def along_last(draw, x):
        if not isinstance(x.shape[-1], int) or x.shape[-1] == 0:
            return None
        which, keep = draw.randrange(9), draw.random() < 0.7
        if which < 4:
            function = (oar.mean, oar.max, oar.min, lambda t, *a, **k: oar.sum(t, *a, **k) * (1.0 / t.shape[-1]))[which]
            return function(x, -1, keepdim=keep)
        if which == 4:
            return F.softmax(x, -1)
        if which == 5:
            return F.log_softmax(x, -1)
        if which == 6:
            return F.layer_norm(x, [x.shape[-1]])
        if which == 7:
            return x * oar.rsqrt(oar.mean(x * x, -1, keepdim=True) + 0.1)
        return x - oar.logsumexp(x, -1, keepdim=True)

    @staticmethod
    def along_any(draw, x):
        """Reductions of any axes. Sums of opposite numbers are small, so these are of squares."""
        axes = sorted(draw.sample(range(x.ndim), draw.randint(1, x.ndim)))
        if any(not isinstance(x.shape[a], int) or x.shape[a] == 0 for a in axes):
            return None
        count = float(np.prod([x.shape[a] for a in axes]))
        function = draw.choice((oar.mean, oar.max, oar.min, lambda t, *a, **k: oar.sum(t * t, *a, **k) * (1.0 / count)))
        return function(x, axes, keepdim=draw.random() < 0.7)


def wide(t):
    return t.astype("float64").numpy() if is_float(t) else t.numpy()


def differs(name, fused, plain, kinds):
    if fused.shape != plain.shape or fused.dtype != plain.dtype:
        return f"{name}: {fused.dtype}{fused.shape} for {plain.dtype}{plain.shape}"
    a, b = wide(fused), wide(plain)
    if not is_float(fused):
        return None if np.array_equal(a, b) else f"{name}: {(a != b).sum()} of {a.size} numbers differ"
    odd = np.isnan(a) != np.isnan(b)
    if odd.any():
        return f"{name}: {odd.sum()} NaN differ"
    finite = np.isfinite(a) & np.isfinite(b)
    apart = (~finite) & ~np.isnan(a) & (a != b)
    scale = max(1.0, np.abs(b[finite]).max() if finite.any() else 1.0)
    far = np.abs(a[finite] - b[finite]).max() / scale if finite.any() else 0.0
    if far > max(TOLERANCE[k] for k in kinds) or (apart.any() and not kinds & {"float16", "bfloat16"}):
        return f"{name}: off by {far:.2g} of {scale:.3g}, {apart.sum()} infinities differ ({kind(fused)}{list(fused.shape)})"
    return None


def check(seed, most, any_axes=True):
    """What is wrong with the program of this seed; None if nothing is."""
    world = World(seed, most, any_axes)
    rng = np.random.default_rng(seed)
    inputs = world.tensors(rng)
    try:
        world.play(*inputs)
    except (ValueError, TypeError, RuntimeError, NotImplementedError):
        return None  # not a program
    try:
        program = oar.jit.capture(world.play, world.specs())
    except (ValueError, TypeError, RuntimeError, NotImplementedError):
        world.open_axis = False
        program = oar.jit.capture(world.play, world.specs())
    runs = [inputs]
    if world.open_axis and world.rank and world.shape[0] > 1:
        runs.append(world.tensors(rng, world.shape[0] + 3))
    for run in runs:
        oar.set_flags({"FLAGS_fusion": False})
        try:
            plain = program(*run)
        except (ValueError, RuntimeError):
            continue  # what the capture assumed about the sizes does not hold
        oar.set_flags({"FLAGS_fusion": True})
        fused = program(*run)
        oar.set_flags({"FLAGS_fusion": False})
        for k, (a, b) in enumerate(zip(fused, plain)):
            wrong = differs(f"seed {seed}, result {k}", a, b, world.kinds)
            if wrong:
                return f"{wrong}, {world.calls} calls, inputs {world.inputs}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=1e9)
    args = parser.parse_args()
    end, wrong, done = time.time() + args.seconds, 0, 0
    for seed in range(args.seed, args.seed + args.count):
        if time.time() > end:
            break
        done += 1
        found = check(seed, args.most)
        if found:
            wrong += 1
            print(found, flush=True)
    print(f"{done} programs, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
