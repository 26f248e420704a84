"""Operator cases, as data.

A case is written once: its inputs, the same computation in Paddle's API (`p`)
and in PyTorch's (`t`), and two sets of sizes.  Names in an expression:

    a, b, c, ...   the inputs, in order
    n, m, k, ...   the sizes of the chosen set (an input's letter wins; n_, m_, ... are always sizes)
    P, PF          paddle, paddle.nn.functional
    T, TF          torch, torch.nn.functional
    attention      frameworks.py: the framework's own attention, [batch, length, heads, width]

An input is (distribution, shape, arguments...); see `make` below.  `grad` names
the inputs to differentiate; such a case is timed twice: forward (nothing is
recorded) and forward + backward.  `setup_p`/`setup_t` are statements run once,
outside the timing; tensors they put into `extra` are differentiated too, so that
their gradients are cleared between calls.  `transposed_t` names inputs that torch
keeps transposed (their gradients are turned back for the comparison).  `check` says how results are compared:

    "close"    elementwise, within `tol` (relative, see agreement.py)
    "abs"      the same on absolute values (vectors whose sign is free)
    "random"   shape, mean and spread only
    "shape"    shape only
    "first"    like "close", the first output only

`bf16` admits the case in a bfloat16 run (floating inputs are converted, and
`tol` gives way to one for bfloat16).  `note` says where the two sides differ.
"""

import numpy as np

CASES = []

EW = (dict(n=64, m=256), dict(n=4096, m=2048))            # 64 KiB, 32 MiB
SMALLER = (dict(n=64, m=64), dict(n=2048, m=2048))        # 16 KiB, 16 MiB
IMG = (dict(n=2, c=16, h=16, w=16), dict(n=16, c=32, h=96, w=96))   # 32 KiB, 18 MiB


def case(name, family, inputs, p, t, sizes=EW, grad="", check="close", tol=1e-3,
         bf16=False, setup_p="", setup_t="", transposed_t="", note=""):
    assert all(c["name"] != name for c in CASES), name
    CASES.append(dict(name=name, family=family, inputs=inputs, p=p, t=t,
                      small=sizes[0], large=sizes[1], grad=grad, check=check, tol=tol,
                      bf16=bf16, setup_p=setup_p, setup_t=setup_t, transposed_t=transposed_t, note=note))


def make(spec, size, rng):
    """One input as a numpy array."""
    kind, shape, args = spec[0], spec[1], [_value(v, size) for v in spec[2:]]
    shape = tuple(_value(s, size) for s in shape.split(",") if s.strip())
    count = int(np.prod(shape, dtype=np.int64))
    if kind == "randn":
        scale = args[0] if args else 1.0
        return (rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)).astype(np.float32)
    if kind == "uniform":                       # low, high
        low, high = args or (0.0, 1.0)
        return (rng.random(shape, dtype=np.float32) * np.float32(high - low) + np.float32(low)).astype(np.float32)
    if kind == "int":                           # low, high, dtype
        return rng.integers(args[0], args[1], shape).astype(args[2] if len(args) > 2 else "int64")
    if kind == "bool":                          # share of True
        return rng.random(shape, dtype=np.float32) < (args[0] if args else 0.5)
    if kind == "sorted":
        return np.sort(rng.random(shape, dtype=np.float32), axis=-1)
    if kind == "perm":                          # distinct integers below args[0]
        return rng.permutation(args[0])[:count].reshape(shape).astype("int64")
    if kind == "prob":                          # rows that sum to one
        x = rng.random(shape, dtype=np.float32) + np.float32(0.01)
        return (x / x.sum(-1, keepdims=True)).astype(np.float32)
    if kind == "logprob":
        x = rng.standard_normal(shape, dtype=np.float32)
        x = x - x.max(-1, keepdims=True)
        return (x - np.log(np.exp(x).sum(-1, keepdims=True))).astype(np.float32)
    if kind == "spd":                           # symmetric positive definite
        x = rng.standard_normal(shape, dtype=np.float32)
        eye = np.eye(shape[-1], dtype=np.float32)
        return (x @ np.swapaxes(x, -1, -2) / shape[-1] + eye).astype(np.float32)
    if kind == "dominant":                      # well conditioned square matrices
        x = rng.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[-1]))
        return (x + 2 * np.eye(shape[-1], dtype=np.float32)).astype(np.float32)
    if kind == "triangular":
        x = np.tril(rng.standard_normal(shape, dtype=np.float32)) / np.float32(np.sqrt(shape[-1]))
        return (x + 2 * np.eye(shape[-1], dtype=np.float32)).astype(np.float32)
    if kind == "full":                          # value, dtype
        return np.full(shape, args[0], args[1])
    if kind == "complex":
        x = rng.standard_normal(shape + (2,), dtype=np.float32)
        return np.ascontiguousarray(x).view(np.complex64)[..., 0]
    raise ValueError(kind)


def _value(text, size):
    """A number, a size's name, or a product of them such as `c*4`."""
    if not isinstance(text, str) or text in ("int32", "int64", "float32", "float64"):
        return text
    return int(eval(text, {"__builtins__": {}}, dict(size)))


R = ("randn", "n,m")
POS = ("uniform", "n,m", 0.1, 4.0)

# ---------------------------------------------------------------- elementwise, one input

for _name, _p, _t, _in in [
    ("neg", "-a", "-a", R),
    ("abs", "P.abs(a)", "T.abs(a)", R),
    ("square", "P.square(a)", "T.square(a)", R),
    ("reciprocal", "P.reciprocal(a)", "T.reciprocal(a)", POS),
    ("sqrt", "P.sqrt(a)", "T.sqrt(a)", POS),
    ("rsqrt", "P.rsqrt(a)", "T.rsqrt(a)", POS),
    ("exp", "P.exp(a)", "T.exp(a)", R),
    ("expm1", "P.expm1(a)", "T.expm1(a)", R),
    ("log", "P.log(a)", "T.log(a)", POS),
    ("log1p", "P.log1p(a)", "T.log1p(a)", POS),
    ("log2", "P.log2(a)", "T.log2(a)", POS),
    ("sin", "P.sin(a)", "T.sin(a)", R),
    ("cos", "P.cos(a)", "T.cos(a)", R),
    ("tan", "P.tan(a)", "T.tan(a)", ("uniform", "n,m", -1.2, 1.2)),
    ("atan", "P.atan(a)", "T.atan(a)", R),
    ("asin", "P.asin(a)", "T.asin(a)", ("uniform", "n,m", -0.9, 0.9)),
    ("sinh", "P.sinh(a)", "T.sinh(a)", R),
    ("tanh", "P.tanh(a)", "T.tanh(a)", R),
    ("sigmoid", "PF.sigmoid(a)", "T.sigmoid(a)", R),
    ("erf", "P.erf(a)", "T.erf(a)", R),
    ("erfinv", "P.erfinv(a)", "T.erfinv(a)", ("uniform", "n,m", -0.9, 0.9)),
    ("lgamma", "P.lgamma(a)", "T.lgamma(a)", POS),
    ("clip", "P.clip(a, -0.5, 0.5)", "T.clamp(a, -0.5, 0.5)", R),
]:
    case(_name, "elementwise", [_in], _p, _t, grad="a",
         bf16=_name in ("neg", "abs", "square", "sqrt", "exp", "log", "tanh", "sigmoid", "erf", "clip"))
for _name in ("floor", "round", "sign"):
    case(_name, "elementwise", [R], f"P.{_name}(a)", f"T.{_name}(a)")

# ---------------------------------------------------------------- elementwise, more inputs

case("add", "binary", [R, R], "a + b", "a + b", grad="ab", bf16=True)
case("sub", "binary", [R, R], "a - b", "a - b", grad="ab", bf16=True)
case("mul", "binary", [R, R], "a * b", "a * b", grad="ab", bf16=True)
case("div", "binary", [R, POS], "a / b", "a / b", grad="ab", bf16=True)
case("pow_tensor", "binary", [POS, R], "P.pow(a, b)", "T.pow(a, b)", grad="ab")
case("pow_scalar", "binary", [R], "P.pow(a, 3.0)", "T.pow(a, 3.0)", grad="a")
case("add_scalar", "binary", [R], "a + 1.5", "a + 1.5", grad="a", bf16=True)
case("rsub_scalar", "binary", [R], "1.0 - a", "1.0 - a", grad="a")
case("maximum", "binary", [R, R], "P.maximum(a, b)", "T.maximum(a, b)", grad="ab", bf16=True)
case("atan2", "binary", [R, R], "P.atan2(a, b)", "T.atan2(a, b)", grad="ab")
case("hypot", "binary", [R, POS], "P.hypot(a, b)", "T.hypot(a, b)")
case("logaddexp", "binary", [R, R], "P.logaddexp(a, b)", "T.logaddexp(a, b)", grad="ab")
case("remainder", "binary", [R, POS], "P.remainder(a, b)", "T.remainder(a, b)", tol=5e-3)
case("floor_divide_int", "binary", [("int", "n,m", 0, 1000), ("int", "n,m", 1, 50)],
     "P.floor_divide(a, b)", "T.div(a, b, rounding_mode='floor')")
case("add_int64", "binary", [("int", "n,m", -1000, 1000), ("int", "n,m", -1000, 1000)], "a + b", "a + b")
case("mul_int32", "binary", [("int", "n,m", -99, 99, "int32"), ("int", "n,m", -99, 99, "int32")], "a * b", "a * b")
case("bitwise_xor_int32", "binary", [("int", "n,m", 0, 9999, "int32"), ("int", "n,m", 0, 9999, "int32")],
     "P.bitwise_xor(a, b)", "T.bitwise_xor(a, b)")
case("logical_and", "binary", [("bool", "n,m"), ("bool", "n,m")], "P.logical_and(a, b)", "T.logical_and(a, b)")
case("add_row", "broadcast", [R, ("randn", "m")], "a + b", "a + b", grad="ab", bf16=True)
case("mul_column", "broadcast", [R, ("randn", "n,1")], "a * b", "a * b", grad="ab")
case("outer_add", "broadcast", [("randn", "n,1"), ("randn", "1,m")], "a + b", "a + b", grad="ab")
case("bias_nchw", "broadcast", [("randn", "n,c,h,w"), ("randn", "1,c,1,1")], "a + b", "a + b", sizes=IMG, grad="ab")
case("add_transposed", "broadcast", [("randn", "n,n"), ("randn", "n,n")],
     "a + P.transpose(b, [1, 0])", "a + b.t()", sizes=(dict(n=128), dict(n=2048)), grad="ab")
case("greater_than", "compare", [R, R], "P.greater_than(a, b)", "T.gt(a, b)")
case("equal_int64", "compare", [("int", "n,m", 0, 4), ("int", "n,m", 0, 4)], "P.equal(a, b)", "T.eq(a, b)")
case("less_scalar", "compare", [R], "a < 0.5", "a < 0.5")
case("isfinite", "compare", [R], "P.isfinite(a)", "T.isfinite(a)")
case("isnan", "compare", [R], "P.isnan(a)", "T.isnan(a)")
case("where", "compare", [("bool", "n,m"), R, R], "P.where(a, b, c)", "T.where(a, b, c)", grad="bc", bf16=True)
case("masked_fill", "compare", [R, ("bool", "n,m", 0.3)], "P.masked_fill(a, b, -1.0)", "a.masked_fill(b, -1.0)", grad="a")
case("cast_float64", "cast", [R], "P.cast(a, 'float64')", "a.to(T.float64)", grad="a")
case("cast_int32", "cast", [("uniform", "n,m", -99, 99)], "P.cast(a, 'int32')", "a.to(T.int32)")
case("cast_bfloat16", "cast", [R], "P.cast(P.cast(a, 'bfloat16'), 'float32')", "a.to(T.bfloat16).to(T.float32)")
case("cast_from_int64", "cast", [("int", "n,m", 0, 1000)], "P.cast(a, 'float32')", "a.to(T.float32)")
case("cast_from_bool", "cast", [("bool", "n,m")], "P.cast(a, 'float32')", "a.to(T.float32)")
case("lerp", "fused", [R, R, ("uniform", "n,m")], "P.lerp(a, b, c)", "T.lerp(a, b, c)", grad="ab")
case("addcmul", "fused", [R, R, R], "a + 0.5 * b * c", "T.addcmul(a, b, c, value=0.5)", grad="abc",
     note="Paddle has no addcmul: a composed expression against torch's fused op")
case("scale_shift_relu", "fused", [R, ("randn", "m"), ("randn", "m")],
     "PF.relu(a * b + c)", "TF.relu(a * b + c)", grad="abc")
case("polynomial", "fused", [R], "((a * 0.1 + 0.2) * a - 0.3) * a + 1.0",
     "((a * 0.1 + 0.2) * a - 0.3) * a + 1.0", grad="a")

# ---------------------------------------------------------------- activations

for _name, _p, _t in [
    ("relu", "PF.relu(a)", "TF.relu(a)"),
    ("relu6", "PF.relu6(a)", "TF.relu6(a)"),
    ("leaky_relu", "PF.leaky_relu(a, 0.1)", "TF.leaky_relu(a, 0.1)"),
    ("elu", "PF.elu(a)", "TF.elu(a)"),
    ("selu", "PF.selu(a)", "TF.selu(a)"),
    ("celu", "PF.celu(a)", "TF.celu(a)"),
    ("gelu", "PF.gelu(a)", "TF.gelu(a)"),
    ("gelu_tanh", "PF.gelu(a, approximate=True)", "TF.gelu(a, approximate='tanh')"),
    ("silu", "PF.silu(a)", "TF.silu(a)"),
    ("mish", "PF.mish(a)", "TF.mish(a)"),
    ("softplus", "PF.softplus(a)", "TF.softplus(a)"),
    ("hardswish", "PF.hardswish(a)", "TF.hardswish(a)"),
    ("hardsigmoid", "PF.hardsigmoid(a)", "TF.hardsigmoid(a)"),
    ("hardtanh", "PF.hardtanh(a)", "TF.hardtanh(a)"),
    ("softsign", "PF.softsign(a)", "TF.softsign(a)"),
    ("log_sigmoid", "PF.log_sigmoid(a)", "TF.logsigmoid(a)"),
    ("tanhshrink", "PF.tanhshrink(a)", "TF.tanhshrink(a)"),
]:
    case(_name, "activation", [R], _p, _t, grad="a", bf16=_name in ("relu", "gelu", "silu", "hardswish"))
case("glu", "activation", [R], "PF.glu(a)", "TF.glu(a)", grad="a")
case("prelu", "activation", [("randn", "n,c,h,w"), ("uniform", "c")], "PF.prelu(a, b)", "TF.prelu(a, b)",
     sizes=IMG, grad="ab")

# ---------------------------------------------------------------- reductions

R3 = (dict(n=8, m=32, k=64), dict(n=64, m=256, k=512))
case("sum_all", "reduction", [("uniform", "n,m")], "P.sum(a)", "T.sum(a)", grad="a", bf16=True)
case("sum_first", "reduction", [R], "P.sum(a, axis=0)", "T.sum(a, 0)", grad="a", bf16=True)
case("sum_last", "reduction", [R], "P.sum(a, axis=-1)", "T.sum(a, -1)", grad="a", bf16=True)
case("sum_middle", "reduction", [("randn", "n,m,k")], "P.sum(a, axis=1)", "T.sum(a, 1)", sizes=R3, grad="a")
case("sum_outer_pair", "reduction", [("randn", "n,m,k")], "P.sum(a, axis=[0, 2])", "T.sum(a, (0, 2))", sizes=R3, grad="a")
case("mean_all", "reduction", [("uniform", "n,m")], "P.mean(a)", "T.mean(a)", grad="a", bf16=True)
case("mean_last", "reduction", [R], "P.mean(a, axis=-1)", "T.mean(a, -1)", grad="a")
case("mean_nchw", "reduction", [("randn", "n,c,h,w")], "P.mean(a, axis=[2, 3])", "T.mean(a, (2, 3))", sizes=IMG, grad="a")
case("max_last", "reduction", [R], "P.max(a, axis=-1)", "T.amax(a, -1)", grad="a", bf16=True)
case("max_first", "reduction", [R], "P.max(a, axis=0)", "T.amax(a, 0)", grad="a")
case("min_all", "reduction", [R], "P.min(a)", "T.min(a)")
case("prod_last", "reduction", [("uniform", "n,m", 0.98, 1.02)], "P.prod(a, axis=-1)", "T.prod(a, -1)", grad="a")
case("var_last", "reduction", [R], "P.var(a, axis=-1)", "T.var(a, -1)", grad="a")
case("std_first", "reduction", [R], "P.std(a, axis=0)", "T.std(a, 0)", grad="a")
case("norm2_all", "reduction", [R], "P.linalg.norm(a)", "T.linalg.norm(a)", grad="a")
case("norm1_last", "reduction", [R], "P.linalg.norm(a, p=1, axis=-1)", "T.linalg.vector_norm(a, 1, -1)", grad="a")
case("logsumexp_last", "reduction", [R], "P.logsumexp(a, axis=-1)", "T.logsumexp(a, -1)", grad="a")
case("logsumexp_first", "reduction", [R], "P.logsumexp(a, axis=0)", "T.logsumexp(a, 0)", grad="a")
case("all_last", "reduction", [("bool", "n,m", 0.999)], "P.all(a, axis=-1)", "T.all(a, -1)")
case("any_all", "reduction", [("bool", "n,m", 0.0)], "P.any(a)", "T.any(a)")
case("count_nonzero", "reduction", [("int", "n,m", 0, 3)], "P.count_nonzero(a)", "T.count_nonzero(a)")
case("nansum_last", "reduction", [R], "P.nansum(a, axis=-1)", "T.nansum(a, -1)")
case("sum_int64", "reduction", [("int", "n,m", 0, 1000)], "P.sum(a, axis=-1)", "T.sum(a, -1)")

# ---------------------------------------------------------------- search and sort

case("argmax_last", "search", [R], "P.argmax(a, axis=-1)", "T.argmax(a, -1)")
case("argmax_first", "search", [R], "P.argmax(a, axis=0)", "T.argmax(a, 0)")
case("argmin_all", "search", [("perm", "n,m", "n*m")], "P.argmin(a)", "T.argmin(a)")
case("topk_10", "search", [R], "P.topk(a, 10, axis=-1)[0]", "T.topk(a, 10, -1)[0]", grad="a")
case("topk_200", "search", [R], "P.topk(a, 200, axis=-1)[0]", "T.topk(a, 200, -1)[0]")
case("sort_last", "search", [R], "P.sort(a, axis=-1)", "T.sort(a, -1)[0]", grad="a",
     note="torch.sort also returns the indices")
case("sort_first", "search", [R], "P.sort(a, axis=0)", "T.sort(a, 0)[0]", sizes=SMALLER,
     note="torch.sort also returns the indices")
case("sort_flat_int64", "search", [("int", "n", 0, 1000000)], "P.sort(a)", "T.sort(a)[0]",
     sizes=(dict(n=4096), dict(n=2097152)), note="torch.sort also returns the indices")
case("argsort_last", "search", [("perm", "n,m", "n*m")], "P.argsort(a, axis=-1)", "T.argsort(a, -1)", sizes=SMALLER)
case("kthvalue", "search", [R], "P.kthvalue(a, 50, axis=-1)[0]", "T.kthvalue(a, 50, -1)[0]")
case("unique", "search", [("int", "n", 0, 1000)], "P.unique(a)", "T.unique(a)", sizes=(dict(n=8192), dict(n=2097152)))
case("unique_counts", "search", [("int", "n", 0, "n")], "P.unique(a, return_inverse=True, return_counts=True)",
     "T.unique(a, return_inverse=True, return_counts=True)", sizes=(dict(n=8192), dict(n=1048576)))
case("searchsorted", "search", [("sorted", "n"), ("uniform", "m")], "P.searchsorted(a, b)", "T.searchsorted(a, b)",
     sizes=(dict(n=1024, m=4096), dict(n=1048576, m=4194304)))
case("bincount", "search", [("int", "n", 0, 512)], "P.bincount(a, minlength=512)", "T.bincount(a, minlength=512)",
     sizes=(dict(n=8192), dict(n=4194304)))
case("histogram", "search", [("uniform", "n")], "P.histogram(a, bins=64, min=0, max=1)", "T.histc(a, bins=64, min=0, max=1)",
     sizes=(dict(n=8192), dict(n=4194304)))
case("nonzero", "search", [("int", "n,m", 0, 3)], "P.nonzero(a)", "T.nonzero(a)")

# ---------------------------------------------------------------- scans

case("cumsum_last", "scan", [R], "P.cumsum(a, axis=-1)", "T.cumsum(a, -1)", grad="a")
case("cumsum_first", "scan", [R], "P.cumsum(a, axis=0)", "T.cumsum(a, 0)", grad="a")
case("cumprod_last", "scan", [("uniform", "n,m", 0.98, 1.02)], "P.cumprod(a, dim=-1)", "T.cumprod(a, -1)", grad="a", tol=3e-3)
case("logcumsumexp", "scan", [R], "P.logcumsumexp(a, axis=-1)", "T.logcumsumexp(a, -1)", sizes=SMALLER, grad="a")
case("cummax", "scan", [R], "P.cummax(a, axis=-1)[0]", "T.cummax(a, -1)[0]", sizes=SMALLER)
case("diff", "scan", [R], "P.diff(a)", "T.diff(a)", grad="a")

# ---------------------------------------------------------------- matrix products

case("matmul_square", "matmul", [("randn", "n,n"), ("randn", "n,n")], "P.matmul(a, b)", "T.matmul(a, b)",
     sizes=(dict(n=128), dict(n=2048)), grad="ab", bf16=True)
case("matmul_512", "matmul", [("randn", "n,n"), ("randn", "n,n")], "P.matmul(a, b)", "T.matmul(a, b)",
     sizes=(dict(n=64), dict(n=512)), grad="ab", bf16=True)
case("matmul_tall", "matmul", [("randn", "n,k"), ("randn", "k,m")], "P.matmul(a, b)", "T.matmul(a, b)",
     sizes=(dict(n=1024, k=16, m=8), dict(n=262144, k=64, m=16)), grad="ab")
case("matmul_long_k", "matmul", [("randn", "m,k"), ("randn", "k,m")], "P.matmul(a, b)", "T.matmul(a, b)",
     sizes=(dict(m=8, k=2048), dict(m=32, k=131072)), grad="ab")
case("matmul_transposed", "matmul", [("randn", "n,k"), ("randn", "m,k")], "P.matmul(a, b, transpose_y=True)",
     "T.matmul(a, b.t())", sizes=(dict(n=64, k=128, m=96), dict(n=2048, k=1024, m=2048)), grad="ab")
case("matmul_batched", "matmul", [("randn", "b_,n,k"), ("randn", "b_,k,m")], "P.matmul(a, b)", "T.matmul(a, b)",
     sizes=(dict(b_=16, n=32, k=32, m=32), dict(b_=64, n=256, k=128, m=256)), grad="ab", bf16=True)
case("bmm_tiny_matrices", "matmul", [("randn", "b_,4,4"), ("randn", "b_,4,4")], "P.bmm(a, b)", "T.bmm(a, b)",
     sizes=(dict(b_=512), dict(b_=262144)), grad="ab")
case("matmul_broadcast", "matmul", [("randn", "b_,h,n,k"), ("randn", "k,m")], "P.matmul(a, b)", "T.matmul(a, b)",
     sizes=(dict(b_=2, h=4, n=16, k=32, m=32), dict(b_=8, h=16, n=128, k=256, m=256)), grad="ab")
case("gemv", "matmul", [("randn", "n,m"), ("randn", "m")], "P.mv(a, b)", "T.mv(a, b)", grad="ab")
case("vecmat", "matmul", [("randn", "n"), ("randn", "n,m")], "P.matmul(a, b)", "T.matmul(a, b)", grad="ab")
case("dot", "matmul", [("randn", "n"), ("randn", "n")], "P.dot(a, b)", "T.dot(a, b)",
     sizes=(dict(n=8192), dict(n=4194304)), grad="ab", tol=1e-2)
case("outer", "matmul", [("randn", "n"), ("randn", "m")], "P.outer(a, b)", "T.outer(a, b)", grad="ab")
case("addmm", "matmul", [("randn", "n,m"), ("randn", "n,k"), ("randn", "k,m")], "P.addmm(a, b, c)", "T.addmm(a, b, c)",
     sizes=(dict(n=64, k=64, m=64), dict(n=2048, k=512, m=2048)), grad="abc")
case("linear", "matmul", [("randn", "n,k"), ("randn", "k,m"), ("randn", "m")], "PF.linear(a, b, c)",
     "TF.linear(a, b, c)", sizes=(dict(n=32, k=128, m=128), dict(n=1024, k=1024, m=4096)), grad="abc", bf16=True,
     setup_t="b = b.detach().t().contiguous().requires_grad_(b.requires_grad)", transposed_t="b",
     note="each side keeps the weight in its own layout, [in, out] and [out, in]")
case("linear_batch_1", "matmul", [("randn", "1,k"), ("randn", "k,m"), ("randn", "m")], "PF.linear(a, b, c)",
     "TF.linear(a, b, c)", sizes=(dict(k=128, m=128), dict(k=2048, m=2048)), grad="abc", bf16=True,
     setup_t="b = b.detach().t().contiguous().requires_grad_(b.requires_grad)", transposed_t="b",
     note="each side keeps the weight in its own layout, [in, out] and [out, in]")
case("einsum_bij_bjk", "matmul", [("randn", "b_,n,k"), ("randn", "b_,k,m")], "P.einsum('bij,bjk->bik', a, b)",
     "T.einsum('bij,bjk->bik', a, b)", sizes=(dict(b_=4, n=32, k=32, m=32), dict(b_=32, n=256, k=128, m=256)), grad="ab")
case("einsum_scores", "matmul", [("randn", "b_,n,h,k"), ("randn", "b_,n,h,k")], "P.einsum('bqhd,bkhd->bhqk', a, b)",
     "T.einsum('bqhd,bkhd->bhqk', a, b)", sizes=(dict(b_=2, n=32, h=2, k=16), dict(b_=4, n=384, h=8, k=64)), grad="ab")
case("einsum_bilinear", "matmul", [("randn", "n,k"), ("randn", "m,k,k"), ("randn", "n,k")],
     "P.einsum('ni,oij,nj->no', a, b, c)", "T.einsum('ni,oij,nj->no', a, b, c)",
     sizes=(dict(n=16, k=8, m=8), dict(n=256, k=64, m=64)), grad="abc", tol=5e-3)
case("tensordot", "matmul", [("randn", "n,k,m"), ("randn", "k,m,n")], "P.tensordot(a, b, axes=2)", "T.tensordot(a, b, 2)",
     sizes=(dict(n=16, k=16, m=16), dict(n=256, k=128, m=64)), grad="ab")
case("kron", "matmul", [("randn", "n,n"), ("randn", "m,m")], "P.kron(a, b)", "T.kron(a, b)",
     sizes=(dict(n=8, m=16), dict(n=32, m=64)), grad="ab")
case("cdist", "matmul", [("randn", "n,k"), ("randn", "m,k")], "P.cdist(a, b)", "T.cdist(a, b)",
     sizes=(dict(n=64, m=64, k=16), dict(n=2048, m=2048, k=64)))

# ---------------------------------------------------------------- layout and joining

case("transpose_copy", "layout", [("randn", "n,n")], "P.transpose(a, [1, 0]).contiguous()", "a.t().contiguous()",
     sizes=(dict(n=128), dict(n=2048)), grad="a")
case("nchw_to_nhwc", "layout", [("randn", "n,c,h,w")], "P.transpose(a, [0, 2, 3, 1]).contiguous()",
     "a.permute(0, 2, 3, 1).contiguous()", sizes=IMG, grad="a")
case("split_heads_copy", "layout", [("randn", "n,m,h,k")], "P.transpose(a, [0, 2, 1, 3]).contiguous()",
     "a.permute(0, 2, 1, 3).contiguous()", sizes=(dict(n=2, m=32, h=4, k=32), dict(n=16, m=512, h=12, k=64)), grad="a")
case("reverse_axes_copy", "layout", [("randn", "n,m,k")], "P.transpose(a, [2, 1, 0]).contiguous()",
     "a.permute(2, 1, 0).contiguous()", sizes=R3)
case("concat_first", "layout", [R, R, R], "P.concat([a, b, c], axis=0)", "T.cat([a, b, c], 0)", grad="abc", bf16=True)
case("concat_last", "layout", [R, R, R], "P.concat([a, b, c], axis=-1)", "T.cat([a, b, c], -1)", grad="abc")
case("concat_channels", "layout", [("randn", "n,c,h,w"), ("randn", "n,c,h,w")], "P.concat([a, b], axis=1)",
     "T.cat([a, b], 1)", sizes=IMG, grad="ab")
case("stack_new_axis", "layout", [R, R, R], "P.stack([a, b, c], axis=1)", "T.stack([a, b, c], 1)", grad="abc")
case("split_and_add", "layout", [("randn", "n,m")], "(lambda s: s[0] * s[1] + s[2] * s[3])(P.split(a, 4, axis=-1))",
     "(lambda s: s[0] * s[1] + s[2] * s[3])(T.split(a, m // 4, -1))", grad="a")
case("unbind_and_add", "layout", [("randn", "4,n,m")], "(lambda s: s[0] * s[1] + s[2] * s[3])(P.unbind(a, 0))",
     "(lambda s: s[0] * s[1] + s[2] * s[3])(T.unbind(a, 0))", sizes=SMALLER, grad="a")
case("pad_constant", "layout", [("randn", "n,c,h,w")], "PF.pad(a, [1, 1, 1, 1])", "TF.pad(a, [1, 1, 1, 1])", sizes=IMG, grad="a")
case("pad_reflect", "layout", [("randn", "n,c,h,w")], "PF.pad(a, [2, 2, 2, 2], mode='reflect')",
     "TF.pad(a, [2, 2, 2, 2], mode='reflect')", sizes=IMG, grad="a")
case("roll", "layout", [R], "P.roll(a, 7, axis=1)", "T.roll(a, 7, 1)", grad="a")
case("flip", "layout", [R], "P.flip(a, axis=[1])", "T.flip(a, [1])", grad="a")
case("tile", "layout", [R], "P.tile(a, [2, 2])", "a.repeat(2, 2)", sizes=SMALLER, grad="a")
case("repeat_interleave", "layout", [R], "P.repeat_interleave(a, 3, axis=0)", "T.repeat_interleave(a, 3, 0)",
     sizes=SMALLER, grad="a")
case("expand_copy", "layout", [("randn", "n,1")], "P.broadcast_to(a, [n, m]).contiguous()", "a.expand(n, m).contiguous()", grad="a")
case("tril", "layout", [("randn", "n,n")], "P.tril(a)", "T.tril(a)", sizes=(dict(n=128), dict(n=2048)), grad="a")
case("rot90", "layout", [("randn", "n,n")], "P.rot90(a, 1, [0, 1])", "T.rot90(a, 1, [0, 1])", sizes=(dict(n=128), dict(n=2048)))
case("im2col", "layout", [("randn", "n,c,h,w")], "PF.unfold(a, 3, paddings=1)", "TF.unfold(a, 3, padding=1)",
     sizes=(dict(n=1, c=8, h=16, w=16), dict(n=4, c=16, h=96, w=96)), grad="a")
case("pixel_shuffle", "layout", [("randn", "n,c*4,h,w")], "PF.pixel_shuffle(a, 2)", "TF.pixel_shuffle(a, 2)",
     sizes=(dict(n=1, c=8, h=16, w=16), dict(n=8, c=16, h=96, w=96)), grad="a")

# ---------------------------------------------------------------- indexing

ROWS = (dict(n=256, m=64, k=128), dict(n=65536, m=128, k=65536))
case("index_select_rows", "index", [("randn", "n,m"), ("int", "k", 0, "n")], "P.index_select(a, b, axis=0)",
     "T.index_select(a, 0, b)", sizes=ROWS, grad="a", bf16=True)
case("index_select_columns", "index", [("randn", "n,m"), ("int", "k", 0, "m")], "P.index_select(a, b, axis=1)",
     "T.index_select(a, 1, b)", sizes=(dict(n=64, m=256, k=128), dict(n=4096, m=2048, k=1024)), grad="a")
case("gather_rows", "index", [("randn", "n,m"), ("int", "k", 0, "n")], "P.gather(a, b, axis=0)", "a[b]", sizes=ROWS, grad="a")
case("gather_nd", "index", [("randn", "n,m"), ("int", "k", 0, "n"), ("int", "k", 0, "m")],
     "P.gather_nd(a, i)", "a[b, c]", sizes=ROWS, grad="a", setup_p="i = P.stack([b, c], axis=1)")
case("index_two_arrays", "index", [("randn", "n,m"), ("int", "k", 0, "n"), ("int", "k", 0, "m")], "a[b, c]", "a[b, c]",
     sizes=ROWS, grad="a")
case("scatter_rows", "index", [("randn", "n,m"), ("perm", "k//2", "n"), ("randn", "k//2,m")],
     "P.scatter(a, b, c, overwrite=True)", "a.index_copy(0, b, c)", sizes=(dict(n=256, m=64, k=256), dict(n=65536, m=128, k=65536)),
     grad="ac")
case("index_add", "index", [("randn", "n,m"), ("int", "k", 0, "n"), ("randn", "k,m")], "P.index_add(a, b, 0, c)",
     "T.index_add(a, 0, b, c)", sizes=ROWS, grad="ac")
case("scatter_nd_add", "index", [("randn", "n,m"), ("int", "k,1", 0, "n"), ("randn", "k,m")], "P.scatter_nd_add(a, b, c)",
     "T.index_put(a, (b[:, 0],), c, accumulate=True)", sizes=ROWS)
case("take_along_axis", "index", [("randn", "n,m"), ("int", "n,m", 0, "m")], "P.take_along_axis(a, b, 1, broadcast=False)",
     "T.gather(a, 1, b)", sizes=SMALLER, grad="a", note="Paddle's Python layer also checks the indices' range")
case("put_along_axis_add", "index", [("randn", "n,m"), ("int", "n,m", 0, "m"), ("randn", "n,m")],
     "P.put_along_axis(a, b, c, 1, reduce='add', include_self=True, broadcast=False)", "T.scatter_add(a, 1, b, c)",
     sizes=SMALLER, note="Paddle's Python layer also checks the indices' range")
case("masked_select", "index", [R, ("bool", "n,m", 0.3)], "P.masked_select(a, b)", "T.masked_select(a, b)", grad="a")
case("boolean_index_rows", "index", [R, ("bool", "n", 0.5)], "a[b]", "a[b]", grad="a")
case("slice_rows_copy", "index", [R], "a[n // 4: n // 2].contiguous() + 0.0", "a[n // 4: n // 2].contiguous() + 0.0", grad="a",
     note="the addition makes both sides produce new memory")
case("slice_columns_copy", "index", [R], "a[:, m // 4: m // 2].contiguous()", "a[:, m // 4: m // 2].contiguous()", grad="a")
case("slice_step_copy", "index", [R], "a[::2, ::3].contiguous()", "a[::2, ::3].contiguous()", grad="a")
case("slice_assign", "index", [R, ("randn", "n//2,m")], "assign(a, b)", "assign(a, b)",
     setup_p="def assign(x, y):\n    x[n // 4: n // 4 + n // 2] = y\n    return x",
     setup_t="def assign(x, y):\n    x[n // 4: n // 4 + n // 2] = y\n    return x")
case("mask_assign", "index", [R, ("bool", "n,m", 0.3)], "assign(a, b)", "assign(a, b)",
     setup_p="def assign(x, y):\n    x[y] = 0.0\n    return x",
     setup_t="def assign(x, y):\n    x[y] = 0.0\n    return x")
case("embedding", "index", [("int", "n,m", 0, "k"), ("randn", "k,d")], "PF.embedding(a, b)", "TF.embedding(a, b)",
     sizes=(dict(n=4, m=32, k=1000, d=64), dict(n=32, m=256, k=30000, d=256)), grad="b", bf16=True)
case("embedding_narrow", "index", [("int", "n,m", 0, "k"), ("randn", "k,d")], "PF.embedding(a, b)", "TF.embedding(a, b)",
     sizes=(dict(n=64, m=26, k=1000, d=8), dict(n=4096, m=26, k=500000, d=16)))
case("one_hot", "index", [("int", "n", 0, 100)], "PF.one_hot(a, 100)", "TF.one_hot(a, 100)",
     sizes=(dict(n=256), dict(n=65536)), note="Paddle gives float32, torch int64 (twice the memory)")

# ---------------------------------------------------------------- softmax and normalisation

case("softmax_last", "norm", [R], "PF.softmax(a, axis=-1)", "TF.softmax(a, -1)", grad="a", bf16=True)
case("softmax_first", "norm", [R], "PF.softmax(a, axis=0)", "TF.softmax(a, 0)", grad="a")
case("softmax_scores", "norm", [("randn", "n,h,m,m")], "PF.softmax(a, axis=-1)", "TF.softmax(a, -1)",
     sizes=(dict(n=1, h=4, m=64), dict(n=8, h=12, m=256)), grad="a")
case("softmax_vocabulary", "norm", [("randn", "n,m")], "PF.softmax(a, axis=-1)", "TF.softmax(a, -1)",
     sizes=(dict(n=2, m=8192), dict(n=128, m=50257)), grad="a")
case("log_softmax", "norm", [R], "PF.log_softmax(a, axis=-1)", "TF.log_softmax(a, -1)", grad="a")
TOK = (dict(n=16, m=256), dict(n=8192, m=768))
case("layer_norm", "norm", [("randn", "n,m"), ("uniform", "m"), ("randn", "m")], "PF.layer_norm(a, [m], b, c)",
     "TF.layer_norm(a, [m], b, c)", sizes=TOK, grad="abc", bf16=True)
case("rms_norm", "norm", [("randn", "n,m"), ("uniform", "m")], "a * P.rsqrt(P.mean(a * a, axis=-1, keepdim=True) + 1e-6) * b",
     "a * T.rsqrt(T.mean(a * a, -1, keepdim=True) + 1e-6) * b", sizes=TOK, grad="ab", note="written out on both sides")
case("group_norm", "norm", [("randn", "n,c,h,w"), ("uniform", "c"), ("randn", "c")],
     "PF.group_norm(a, 8, weight=b, bias=c)", "TF.group_norm(a, 8, weight=b, bias=c)", sizes=IMG, grad="abc")
case("instance_norm", "norm", [("randn", "n,c,h,w"), ("uniform", "c"), ("randn", "c")],
     "PF.instance_norm(a, weight=b, bias=c)", "TF.instance_norm(a, weight=b, bias=c)", sizes=IMG, grad="abc")
case("batch_norm_train", "norm", [("randn", "n,c,h,w"), ("uniform", "c"), ("randn", "c"), ("full", "c", 0.0, "float32"), ("full", "c", 1.0, "float32")],
     "PF.batch_norm(a, d, e, weight=b, bias=c, training=True, momentum=0.9)",
     "TF.batch_norm(a, d, e, weight=b, bias=c, training=True, momentum=0.1)", sizes=IMG, grad="abc",
     note="running variance: biased in Paddle, unbiased in torch (not compared)")
case("batch_norm_eval", "norm", [("randn", "n,c,h,w"), ("uniform", "c"), ("randn", "c"), ("randn", "c"), ("uniform", "c", 0.5, 2.0)],
     "PF.batch_norm(a, d, e, weight=b, bias=c, training=False)",
     "TF.batch_norm(a, d, e, weight=b, bias=c, training=False)", sizes=IMG)
case("normalize_l2", "norm", [R], "PF.normalize(a, axis=1)", "TF.normalize(a, dim=1)", grad="a")
case("local_response_norm", "norm", [("randn", "n,c,h,w")], "PF.local_response_norm(a, 5)", "TF.local_response_norm(a, 5)",
     sizes=(dict(n=1, c=16, h=16, w=16), dict(n=8, c=32, h=64, w=64)))

# ---------------------------------------------------------------- random numbers

NONE = []
case("dropout", "random", [R], "PF.dropout(a, 0.3, training=True)", "TF.dropout(a, 0.3, training=True)", grad="a", check="random")
case("randn", "random", NONE, "P.randn([n, m])", "T.randn([n, m])", check="random")
case("rand", "random", NONE, "P.rand([n, m])", "T.rand([n, m])", check="random")
case("uniform_range", "random", NONE, "P.uniform([n, m], min=-2.0, max=3.0)", "T.empty([n, m]).uniform_(-2.0, 3.0)", check="random")
case("randint", "random", NONE, "P.randint(0, 1000, [n, m])", "T.randint(0, 1000, [n, m])", check="random")
case("randperm", "random", NONE, "P.randperm(n)", "T.randperm(n)", check="random", sizes=(dict(n=4096), dict(n=4194304)))
case("bernoulli", "random", [("uniform", "n,m")], "P.bernoulli(a)", "T.bernoulli(a)", check="random")
case("multinomial", "random", [("prob", "n,m")], "P.multinomial(a, 16, replacement=True)",
     "T.multinomial(a, 16, replacement=True)", check="random", sizes=(dict(n=8, m=256), dict(n=256, m=16384)))

# ---------------------------------------------------------------- losses

CLS = (dict(n=64, m=100), dict(n=4096, m=1000))
case("cross_entropy", "loss", [("randn", "n,m"), ("int", "n", 0, "m")], "PF.cross_entropy(a, b)", "TF.cross_entropy(a, b)",
     sizes=CLS, grad="a", bf16=True)
case("cross_entropy_vocabulary", "loss", [("randn", "n,m"), ("int", "n", 0, "m")], "PF.cross_entropy(a, b)",
     "TF.cross_entropy(a, b)", sizes=(dict(n=4, m=8192), dict(n=128, m=50257)), grad="a")
case("cross_entropy_soft", "loss", [("randn", "n,m"), ("prob", "n,m")], "PF.cross_entropy(a, b, soft_label=True)",
     "TF.cross_entropy(a, b)", sizes=CLS, grad="a")
case("nll_loss", "loss", [("logprob", "n,m"), ("int", "n", 0, "m")], "PF.nll_loss(a, b)", "TF.nll_loss(a, b)", sizes=CLS, grad="a")
case("bce", "loss", [("uniform", "n,m", 0.01, 0.99), ("uniform", "n,m")], "PF.binary_cross_entropy(a, b)",
     "TF.binary_cross_entropy(a, b)", grad="a")
case("bce_logits", "loss", [R, ("uniform", "n,m")], "PF.binary_cross_entropy_with_logits(a, b)",
     "TF.binary_cross_entropy_with_logits(a, b)", grad="a")
case("mse", "loss", [R, R], "PF.mse_loss(a, b)", "TF.mse_loss(a, b)", grad="a", bf16=True)
case("l1", "loss", [R, R], "PF.l1_loss(a, b)", "TF.l1_loss(a, b)", grad="a")
case("smooth_l1", "loss", [R, R], "PF.smooth_l1_loss(a, b, delta=1.0)", "TF.smooth_l1_loss(a, b, beta=1.0)", grad="a",
     note="delta 1: elsewhere Paddle's loss is torch's huber_loss")
case("kl_div", "loss", [("logprob", "n,m"), ("prob", "n,m")], "PF.kl_div(a, b, reduction='batchmean')",
     "TF.kl_div(a, b, reduction='batchmean')", grad="a")
case("cosine_similarity", "loss", [R, R], "PF.cosine_similarity(a, b, axis=1)", "TF.cosine_similarity(a, b, dim=1)", grad="ab")
case("triplet_margin", "loss", [R, R, R], "PF.triplet_margin_loss(a, b, c)", "TF.triplet_margin_loss(a, b, c)", grad="abc")
case("ctc", "loss", [("randn", "s,n,k"), ("int", "n,m", 1, "k", "int32"), ("full", "n", "s", "int64"), ("full", "n", "m", "int64")],
     "PF.ctc_loss(a, b, c, d)", "TF.ctc_loss(TF.log_softmax(a, -1), b, c, d)",
     sizes=(dict(s=32, n=4, k=32, m=8), dict(s=256, n=32, k=512, m=48)), grad="a", tol=5e-3,
     note="Paddle's op includes the softmax")

# ---------------------------------------------------------------- convolutions


def conv(name, p, t, small, large, weight, grad="ab", bf16=False, dims="n,c,h,w", note=""):
    case(name, "conv", [("randn", dims), ("randn", weight, 0.1)], p, t, sizes=(small, large), grad=grad,
         bf16=bf16, tol=2e-3, note=note)


conv("conv2d_3x3", "PF.conv2d(a, b, padding=1)", "TF.conv2d(a, b, padding=1)",
     dict(n=1, c=16, h=16, w=16), dict(n=16, c=64, h=56, w=56), "c,c,3,3", bf16=True)
conv("conv2d_1x1", "PF.conv2d(a, b)", "TF.conv2d(a, b)",
     dict(n=1, c=32, h=14, w=14), dict(n=16, c=256, h=28, w=28), "c,c,1,1", bf16=True)
conv("conv2d_depthwise", "PF.conv2d(a, b, padding=1, groups=c)", "TF.conv2d(a, b, padding=1, groups=c)",
     dict(n=1, c=32, h=16, w=16), dict(n=16, c=128, h=56, w=56), "c,1,3,3", bf16=True)
conv("conv2d_stem_7x7", "PF.conv2d(a, b, stride=2, padding=3)", "TF.conv2d(a, b, stride=2, padding=3)",
     dict(n=1, c=3, h=32, w=32), dict(n=16, c=3, h=224, w=224), "64,c,7,7")
conv("conv2d_strided", "PF.conv2d(a, b, stride=2, padding=1)", "TF.conv2d(a, b, stride=2, padding=1)",
     dict(n=1, c=16, h=16, w=16), dict(n=16, c=128, h=56, w=56), "c,c,3,3")
conv("conv2d_dilated", "PF.conv2d(a, b, padding=2, dilation=2)", "TF.conv2d(a, b, padding=2, dilation=2)",
     dict(n=1, c=16, h=16, w=16), dict(n=8, c=64, h=56, w=56), "c,c,3,3")
conv("conv2d_grouped", "PF.conv2d(a, b, padding=1, groups=4)", "TF.conv2d(a, b, padding=1, groups=4)",
     dict(n=1, c=16, h=16, w=16), dict(n=16, c=128, h=28, w=28), "c,c//4,3,3")
conv("conv2d_transposed", "PF.conv2d_transpose(a, b, stride=2, padding=1)", "TF.conv_transpose2d(a, b, stride=2, padding=1)",
     dict(n=1, c=16, h=8, w=8), dict(n=8, c=64, h=28, w=28), "c,c,4,4")
conv("conv1d_k5", "PF.conv1d(a, b, padding=2)", "TF.conv1d(a, b, padding=2)",
     dict(n=2, c=16, h=128), dict(n=16, c=128, h=2048), "c,c,5", dims="n,c,h")
conv("conv1d_causal_dilated", "PF.conv1d(a, b, padding=8, dilation=8)", "TF.conv1d(a, b, padding=8, dilation=8)",
     dict(n=2, c=16, h=128), dict(n=16, c=64, h=4096), "c,c,3", dims="n,c,h")
conv("conv3d_3x3x3", "PF.conv3d(a, b, padding=1)", "TF.conv3d(a, b, padding=1)",
     dict(n=1, c=8, d=8, h=8, w=8), dict(n=2, c=32, d=16, h=56, w=56), "c,c,3,3,3", dims="n,c,d,h,w")
case("conv_bn_relu", "conv", [("randn", "n,c,h,w"), ("randn", "c,c,3,3", 0.1), ("uniform", "c"), ("randn", "c"), ("full", "c", 0.0, "float32"), ("full", "c", 1.0, "float32")],
     "PF.relu(PF.batch_norm(PF.conv2d(a, b, padding=1), e, f, weight=c, bias=d, training=True, momentum=0.9))",
     "TF.relu(TF.batch_norm(TF.conv2d(a, b, padding=1), e, f, weight=c, bias=d, training=True, momentum=0.1))",
     sizes=(dict(n=1, c=16, h=16, w=16), dict(n=16, c=64, h=56, w=56)), grad="ab", tol=5e-3)

# ---------------------------------------------------------------- pooling and resampling

case("max_pool2d_2", "pool", [("randn", "n,c,h,w")], "PF.max_pool2d(a, 2)", "TF.max_pool2d(a, 2)", sizes=IMG, grad="a")
case("max_pool2d_3s2", "pool", [("randn", "n,c,h,w")], "PF.max_pool2d(a, 3, stride=2, padding=1)",
     "TF.max_pool2d(a, 3, stride=2, padding=1)", sizes=IMG, grad="a")
case("avg_pool2d_2", "pool", [("randn", "n,c,h,w")], "PF.avg_pool2d(a, 2)", "TF.avg_pool2d(a, 2)", sizes=IMG, grad="a")
case("avg_pool2d_3s1", "pool", [("randn", "n,c,h,w")], "PF.avg_pool2d(a, 3, stride=1, padding=1, exclusive=True)",
     "TF.avg_pool2d(a, 3, stride=1, padding=1, count_include_pad=False)", sizes=IMG, grad="a")
case("adaptive_avg_pool2d_1", "pool", [("randn", "n,c,h,w")], "PF.adaptive_avg_pool2d(a, 1)", "TF.adaptive_avg_pool2d(a, 1)",
     sizes=IMG, grad="a")
case("adaptive_avg_pool2d_7", "pool", [("randn", "n,c,h,w")], "PF.adaptive_avg_pool2d(a, 7)", "TF.adaptive_avg_pool2d(a, 7)",
     sizes=IMG, grad="a")
case("adaptive_max_pool2d_4", "pool", [("randn", "n,c,h,w")], "PF.adaptive_max_pool2d(a, 4)", "TF.adaptive_max_pool2d(a, 4)",
     sizes=IMG, grad="a")
case("max_pool1d_2", "pool", [("randn", "n,c,h")], "PF.max_pool1d(a, 2)", "TF.max_pool1d(a, 2)",
     sizes=(dict(n=2, c=16, h=256), dict(n=32, c=64, h=2048)), grad="a")
case("avg_pool3d_2", "pool", [("randn", "n,c,d,h,w")], "PF.avg_pool3d(a, 2)", "TF.avg_pool3d(a, 2)",
     sizes=(dict(n=1, c=4, d=8, h=8, w=8), dict(n=2, c=16, d=32, h=56, w=56)), grad="a")
case("interpolate_nearest", "resample", [("randn", "n,c,h,w")], "PF.interpolate(a, scale_factor=2, mode='nearest')",
     "TF.interpolate(a, scale_factor=2, mode='nearest')", sizes=(dict(n=1, c=8, h=16, w=16), dict(n=4, c=32, h=96, w=96)), grad="a")
case("interpolate_bilinear", "resample", [("randn", "n,c,h,w")],
     "PF.interpolate(a, scale_factor=2, mode='bilinear', align_corners=False)",
     "TF.interpolate(a, scale_factor=2, mode='bilinear', align_corners=False)",
     sizes=(dict(n=1, c=8, h=16, w=16), dict(n=4, c=32, h=96, w=96)), grad="a")
case("interpolate_bicubic", "resample", [("randn", "n,c,h,w")], "PF.interpolate(a, size=[h * 2, w * 2], mode='bicubic', align_corners=False)",
     "TF.interpolate(a, size=[h * 2, w * 2], mode='bicubic', align_corners=False)",
     sizes=(dict(n=1, c=8, h=16, w=16), dict(n=4, c=16, h=96, w=96)), grad="a")
case("grid_sample", "resample", [("randn", "n,c,h,w"), ("uniform", "n,h,w,2", -1.0, 1.0)],
     "PF.grid_sample(a, b, align_corners=False)", "TF.grid_sample(a, b, align_corners=False)",
     sizes=(dict(n=1, c=8, h=16, w=16), dict(n=8, c=32, h=96, w=96)), grad="a", tol=2e-3)
case("affine_grid", "resample", [("randn", "n,2,3")], "PF.affine_grid(a, [n, 3, h, w], align_corners=False)",
     "TF.affine_grid(a, [n, 3, h, w], align_corners=False)", sizes=(dict(n=2, h=32, w=32), dict(n=16, h=224, w=224)))

# ---------------------------------------------------------------- Fourier transforms

case("fft_1024", "fft", [("complex", "n,m")], "P.fft.fft(a)", "T.fft.fft(a)", sizes=(dict(n=8, m=1024), dict(n=2048, m=1024)))
case("fft_prime", "fft", [("complex", "n,m")], "P.fft.fft(a)", "T.fft.fft(a)", sizes=(dict(n=8, m=1009), dict(n=1024, m=1009)))
case("fft_long", "fft", [("complex", "n")], "P.fft.fft(a)", "T.fft.fft(a)", sizes=(dict(n=16384), dict(n=2097152)))
case("ifft_first_axis", "fft", [("complex", "n,m")], "P.fft.ifft(a, axis=0)", "T.fft.ifft(a, dim=0)",
     sizes=(dict(n=256, m=32), dict(n=1024, m=2048)))
case("rfft", "fft", [("randn", "n,m")], "P.fft.rfft(a)", "T.fft.rfft(a)", sizes=(dict(n=8, m=1024), dict(n=4096, m=1024)))
case("rfft_irfft", "fft", [("randn", "n,m")], "P.fft.irfft(P.fft.rfft(a))", "T.fft.irfft(T.fft.rfft(a))",
     sizes=(dict(n=8, m=1024), dict(n=4096, m=1024)), grad="a")
case("fft2", "fft", [("complex", "n,m,m")], "P.fft.fft2(a)", "T.fft.fft2(a)", sizes=(dict(n=1, m=64), dict(n=4, m=512)))
case("rfft2", "fft", [("randn", "n,m,m")], "P.fft.rfft2(a)", "T.fft.rfft2(a)", sizes=(dict(n=1, m=64), dict(n=8, m=512)))

# ---------------------------------------------------------------- linear algebra: many small, one larger

LA = (dict(n=32, m=8), dict(n=1, m=512))
LB = (dict(n=32, m=8), dict(n=1, m=256))
case("svd", "linalg", [("randn", "n,m,m")], "P.linalg.svd(a, full_matrices=False)", "T.linalg.svd(a, full_matrices=False)",
     sizes=LB, check="abs", tol=2e-2)
case("qr", "linalg", [("dominant", "n,m,m")], "P.linalg.qr(a)", "T.linalg.qr(a)", sizes=LA, check="abs", tol=5e-3)
case("cholesky", "linalg", [("spd", "n,m,m")], "P.linalg.cholesky(a)", "T.linalg.cholesky(a)", sizes=LA, grad="a")
case("solve", "linalg", [("dominant", "n,m,m"), ("randn", "n,m,4")], "P.linalg.solve(a, b)", "T.linalg.solve(a, b)",
     sizes=LA, grad="ab", tol=5e-3)
case("inv", "linalg", [("dominant", "n,m,m")], "P.linalg.inv(a)", "T.linalg.inv(a)", sizes=LA, grad="a", tol=5e-3)
case("eigh", "linalg", [("spd", "n,m,m")], "P.linalg.eigh(a)", "T.linalg.eigh(a)", sizes=LB, check="abs", tol=2e-2)
case("eigvalsh", "linalg", [("spd", "n,m,m")], "P.linalg.eigvalsh(a)", "T.linalg.eigvalsh(a)", sizes=LB)
case("det", "linalg", [("dominant", "n,m,m")], "P.linalg.det(a)", "T.linalg.det(a)", sizes=(dict(n=32, m=8), dict(n=64, m=64)),
     grad="a", tol=5e-3)
case("triangular_solve", "linalg", [("triangular", "n,m,m"), ("randn", "n,m,4")],
     "P.linalg.triangular_solve(a, b, upper=False)", "T.linalg.solve_triangular(a, b, upper=False)", sizes=LA, tol=5e-3)
case("matrix_power_4", "linalg", [("randn", "n,m,m", 0.1)], "P.linalg.matrix_power(a, 4)", "T.linalg.matrix_power(a, 4)",
     sizes=LA, tol=5e-3)

# ---------------------------------------------------------------- sparse tensors: about one element in a hundred

SP = (dict(n=256, m=256, k=32), dict(n=4096, m=4096, k=64))
_COO = {"p": "s = P.where(a > 2.33, a, P.zeros_like(a)).to_sparse_coo(2)", "t": "s = T.where(a > 2.33, a, 0).to_sparse_coo().coalesce()"}
_CSR = {"p": "s = P.where(a > 2.33, a, P.zeros_like(a)).to_sparse_csr()", "t": "s = T.where(a > 2.33, a, 0).to_sparse_csr()"}
for _kind, _made in (("coo", _COO), ("csr", _CSR)):
    case(f"{_kind}_matmul_dense", "sparse", [R, ("randn", "m,k")], "P.sparse.matmul(s, b)", "s @ b", sizes=SP,
         setup_p=_made["p"], setup_t=_made["t"])
    case(f"{_kind}_to_dense", "sparse", [R], "s.to_dense()", "s.to_dense()", sizes=SP, setup_p=_made["p"], setup_t=_made["t"])
case("coo_add", "sparse", [R], "P.sparse.add(s, s).to_dense()", "(s + s).to_dense()", sizes=SP, setup_p=_COO["p"], setup_t=_COO["t"])
case("coo_relu_values", "sparse", [R], "P.sparse.nn.functional.relu(s).values()", "T.relu(s).coalesce().values()", sizes=SP,
     setup_p=_COO["p"], setup_t=_COO["t"])
case("coo_softmax", "sparse", [R], "P.sparse.nn.functional.softmax(s).values()", "T.sparse.softmax(s, 1).coalesce().values()", sizes=SP,
     setup_p=_CSR["p"], setup_t=_COO["t"], note="Paddle's softmax takes CSR, PyTorch's COO; the values are in the same order")
case("dense_to_coo", "sparse", [R], "P.nn.functional.relu(a - 2.33).to_sparse_coo(2).values()",
     "TF.relu(a - 2.33).to_sparse_coo().values()", sizes=SP)

# ---------------------------------------------------------------- distributions

case("normal_log_prob", "distribution", [R, R, POS], "P.distribution.Normal(a, c).log_prob(b)",
     "T.distributions.Normal(a, c, validate_args=False).log_prob(b)", grad="abc")
case("normal_rsample", "distribution", [R, POS], "P.distribution.Normal(a, b).rsample()",
     "T.distributions.Normal(a, b, validate_args=False).rsample()", grad="ab", check="random")
case("normal_kl", "distribution", [R, POS, R, POS], "P.distribution.kl_divergence(P.distribution.Normal(a, b), P.distribution.Normal(c, d))",
     "T.distributions.kl_divergence(T.distributions.Normal(a, b, validate_args=False), T.distributions.Normal(c, d, validate_args=False))",
     grad="abcd")
case("categorical_sample", "distribution", [("prob", "n,m")], "P.distribution.Categorical(a).sample([1])",
     "T.distributions.Categorical(probs=a, validate_args=False).sample((1,))", sizes=SMALLER, check="shape",
     note="Paddle draws from the softmax of its argument")
case("bernoulli_log_prob", "distribution", [("uniform", "n,m", 0.1, 0.9), ("int", "n,m", 0, 2, "float32")],
     "P.distribution.Bernoulli(a).log_prob(b)", "T.distributions.Bernoulli(a, validate_args=False).log_prob(b)", grad="a")
case("gamma_sample", "distribution", [POS, POS], "P.distribution.Gamma(a, b).sample()",
     "T.distributions.Gamma(a, b, validate_args=False).sample()", sizes=SMALLER, check="random")
case("beta_log_prob", "distribution", [POS, POS, ("uniform", "n,m", 0.05, 0.95)], "P.distribution.Beta(a, b).log_prob(c)",
     "T.distributions.Beta(a, b, validate_args=False).log_prob(c)", sizes=SMALLER, tol=5e-3)
case("dirichlet_entropy", "distribution", [("uniform", "n,m", 0.5, 4.0)], "P.distribution.Dirichlet(a).entropy()",
     "T.distributions.Dirichlet(a, validate_args=False).entropy()", sizes=SMALLER, tol=5e-3)

# ---------------------------------------------------------------- attention, recurrent layers

QKV = [("randn", "n,s,h,d"), ("randn", "n,s,h,d"), ("randn", "n,s,h,d")]
_att = "each side's own attention call; where it lacks one, written out"
case("attention_short", "attention", QKV, "attention(a, b, c, False)", "attention(a, b, c, False)",
     sizes=(dict(n=1, s=32, h=4, d=32), dict(n=8, s=128, h=12, d=64)), grad="abc", bf16=True, note=_att)
case("attention_long", "attention", QKV, "attention(a, b, c, False)", "attention(a, b, c, False)",
     sizes=(dict(n=1, s=256, h=4, d=64), dict(n=1, s=1024, h=12, d=64)), grad="abc", bf16=True, note=_att)
case("attention_causal", "attention", QKV, "attention(a, b, c, True)", "attention(a, b, c, True)",
     sizes=(dict(n=1, s=128, h=4, d=64), dict(n=4, s=512, h=8, d=64)), grad="abc", bf16=True, note=_att)
case("attention_decode", "attention", [("randn", "n,1,h,d"), ("randn", "n,s,h,d"), ("randn", "n,s,h,d")],
     "attention(a, b, c, False)", "attention(a, b, c, False)",
     sizes=(dict(n=1, s=256, h=4, d=64), dict(n=4, s=4096, h=12, d=64)), note=_att)

for _name, _gates in (("LSTM", 4), ("GRU", 3)):
    _w = f"{_gates}*d"
    _names = "weight_ih_l0 weight_hh_l0 bias_ih_l0 bias_hh_l0"
    case(_name.lower(), "recurrent",
         [("randn", "n,s,d"), ("randn", _w + ",d", 0.1), ("randn", _w + ",d", 0.1), ("randn", _w, 0.1), ("randn", _w, 0.1)],
         "layer(a)[0]", "layer(a)[0]", sizes=(dict(n=4, s=16, d=32), dict(n=32, s=64, d=256)), grad="a",
         setup_p=f"layer = P.nn.{_name}(d_, d_)\nfor q, w in zip('{_names}'.split(), 'bcde'):\n    getattr(layer, q).set_value(inputs[w])\nextra = list(layer.parameters())",
         setup_t=f"layer = T.nn.{_name}(d_, d_, batch_first=True)\nfor q, w in zip('{_names}'.split(), 'bcde'):\n    getattr(layer, q).data.copy_(inputs[w])\nextra = list(layer.parameters())",
         note="backward reaches the layer's weights too")

NAMES = {c["name"]: c for c in CASES}
