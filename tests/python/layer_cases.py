"""Calls of layers and functions, with what Paddle 3.3 gives for them in ``data/layer_cases.json``.

A call is a text in which the operands have names. Every float operand requires a gradient. A layer runs in
training, then in evaluation; its state is checked after each. An array is kept as two numbers: its sum with fixed
weights and the sum of its magnitudes. ``python layer_cases.py``, with a Python that has Paddle, writes the file again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).parent / "data" / "layer_cases.json"


class Operand:
    """How to create an array from a random generator, and whether it requires a gradient."""

    def __init__(self, make: Any, differentiable: bool = True) -> None:
        self.make, self.differentiable = make, differentiable


def f(*shape: int) -> Operand:
    return Operand(lambda r: r.normal(size=shape).astype("float32"))


def u(low: float, high: float, *shape: int) -> Operand:
    return Operand(lambda r: r.uniform(low, high, size=shape).astype("float32"))


def i(low: int, high: int, *shape: int, dtype: str = "int64") -> Operand:
    return Operand(lambda r: r.integers(low, high, size=shape).astype(dtype), False)


def shares(*shape: int) -> Operand:
    def make(r: Any) -> np.ndarray:
        weights = np.exp(r.normal(size=shape))
        return (weights / weights.sum(-1, keepdims=True)).astype("float32")

    return Operand(make)


def given(values: Any, dtype: str | None = None) -> Operand:
    array = np.asarray(values)
    array = array.astype(dtype or ("float32" if array.dtype == "float64" else array.dtype))
    return Operand(lambda r: array.copy(), array.dtype.kind == "f")


def fixed(operand: Operand) -> Operand:
    return Operand(operand.make, False)


Case = tuple[str, dict[str, Operand]]


def _last(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an image with its channels last."""
    return (shape[0], *shape[2:], shape[1])


def norms() -> Iterator[Case]:
    images = [("1D", (4, 3), "NC"), ("1D", (4, 3, 5), "NCL"), ("1D", (4, 5, 3), "NLC"), ("2D", (2, 3, 4, 4), "NCHW"),
              ("2D", (2, 4, 4, 3), "NHWC"), ("3D", (2, 3, 2, 2, 2), "NCDHW"), ("3D", (2, 2, 2, 2, 3), "NDHWC")]
    for rank, shape, layout in images:
        for more in ("", ", use_global_stats=True", ", momentum=0.7, epsilon=1e-2, weight_attr=False, bias_attr=False"):
            yield f"nn.BatchNorm{rank}(3, data_format='{layout}'{more})", {"x": f(*shape)}
        one = tuple(3 if place == layout.index("C") else 1 for place in range(len(shape)))
        yield f"nn.BatchNorm{rank}(3, data_format='{layout}')", {"x": f(*one)}
        for training in (True, False):
            for use_global in (None, True):
                yield (f"(F.batch_norm(x, m, v, w, b, training={training}, data_format='{layout}', "
                       f"use_global_stats={use_global}), m, v)",
                       {"x": f(*shape), "m": fixed(f(3)), "v": fixed(u(0.5, 1.5, 3)), "w": f(3), "b": f(3)})
    for more in ("", ", is_test=True", ", use_global_stats=True", ", act='relu'", ", momentum=0.6, epsilon=1e-3",
                 ", in_place=True", ", param_attr=False, bias_attr=False"):
        for shape in ((4, 3), (4, 3, 5), (2, 3, 4, 4), (2, 3, 2, 2, 2)):
            yield f"nn.BatchNorm(3{more})", {"x": f(*shape)}
    yield "nn.BatchNorm(3, data_layout='NHWC')", {"x": f(2, 4, 4, 3)}
    for layout, shape in (("NCHW", (2, 4, 3, 3)), ("NHWC", (2, 3, 3, 4)), ("NCL", (2, 4, 3)),
                          ("NDHWC", (2, 2, 2, 2, 4))):
        for more in ("", ", bias_attr=False"):
            yield f"nn.GroupNorm(2, 4, data_format='{layout}'{more})", {"x": f(*shape)}
    for rank, shape in (("1D", (2, 3)), ("1D", (2, 3, 5)), ("2D", (2, 3, 4, 4)), ("3D", (2, 3, 2, 2, 2))):
        for more in ("", ", weight_attr=False, bias_attr=False", ", momentum=0.5, epsilon=1e-2"):
            yield f"nn.InstanceNorm{rank}(3{more})", {"x": f(*shape)}
    for more in ("", ", weight_attr=False", ", bias_attr=False"):
        yield f"nn.LayerNorm([3, 5]{more})", {"x": f(2, 3, 5)}
    for layout, shape in (("NCHW", (2, 5, 3, 3)), ("NHWC", (2, 3, 3, 5)), ("NCL", (2, 5, 3)),
                          ("NDHWC", (2, 2, 2, 2, 5))):
        yield f"nn.LocalResponseNorm(3, alpha=0.1, beta=0.6, k=2.0, data_format='{layout}')", {"x": f(*shape)}


def windows() -> Iterator[Case]:
    for n, shape, layout in ((1, (2, 4, 7), "NLC"), (2, (2, 4, 6, 7), "NHWC"), (3, (2, 4, 4, 5, 4), "NDHWC")):
        for more in ("", ", stride=2, padding='SAME'", ", dilation=2, padding=2", ", groups=2, bias_attr=False",
                     ", padding=1, padding_mode='reflect'", f", padding={[1, 2] * n}"):
            yield f"nn.Conv{n}D(4, 8, 3{more})", {"x": f(*shape)}
            yield f"nn.Conv{n}D(4, 8, 3{more}, data_format='{layout}')", {"x": f(*_last(shape))}
        for more in ("", ", stride=2, padding=1, output_padding=1", ", stride=2, padding='SAME'", ", groups=2"):
            yield f"nn.Conv{n}DTranspose(4, 6, 3{more})", {"x": f(*shape)}
            yield f"nn.Conv{n}DTranspose(4, 6, 3{more}, data_format='{layout}')", {"x": f(*_last(shape))}
        for more in ("2", "3, stride=2, padding=1", "3, stride=2, padding=1, ceil_mode=True",
                     "3, stride=2, padding='SAME'"):
            for kind in (f"MaxPool{n}D({more}", f"AvgPool{n}D({more}"):
                yield f"nn.{kind})", {"x": f(*shape)}
                if n > 1:
                    yield f"nn.{kind}, data_format='{layout}')", {"x": f(*_last(shape))}
        yield f"nn.MaxPool{n}D(3, stride=2, return_mask=True)", {"x": f(*shape)}
        for size in ("1", "3"):
            yield f"nn.AdaptiveAvgPool{n}D({size})", {"x": f(*shape)}
            yield f"nn.AdaptiveMaxPool{n}D({size}, return_mask=True)", {"x": f(*shape)}
    for mode in ("constant", "reflect", "replicate", "circular"):
        yield f"nn.Pad2D([1, 2, 2, 1], mode='{mode}', value=0.5)", {"x": f(2, 3, 6, 5)}
        yield f"nn.Pad2D([1, 2, 2, 1], mode='{mode}', value=0.5, data_format='NHWC')", {"x": f(2, 6, 5, 3)}
    for mode, shape in (("nearest", (2, 3, 4, 5)), ("bilinear", (2, 3, 4, 5)), ("bicubic", (2, 3, 4, 5)),
                        ("linear", (2, 3, 5)), ("trilinear", (2, 3, 3, 4, 4))):
        n = len(shape) - 2
        for size in (f"size={[7] * n}", f"size={[1] * n}", f"size={[1, 3, 2][:n]}", "scale_factor=0.6"):
            # Paddle's gradient of lines that become one number is not that of its values.
            x = fixed(f(*shape)) if mode == "linear" else f(*shape)
            yield f"F.interpolate(x, {size}, mode='{mode}')", {"x": x}
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for align in (True, False):
                call = f"F.grid_sample(x, g, mode='{mode}', padding_mode='{padding}', align_corners={align})"
                yield call, {"x": f(2, 3, 4, 5), "g": u(-1.6, 1.6, 2, 3, 3, 2)}
                yield call, {"x": f(1, 1, 3, 3), "g": given([[[[1.0, 1.0], [-1.0, -1.0], [0.0, 0.0], [0.5, 0.5]]]])}


def losses() -> Iterator[Case]:
    for red in ("mean", "sum", "none"):
        by = f"reduction='{red}'"
        pair = {"x": u(0.1, 0.9, 4, 3), "y": u(0, 1, 4, 3)}
        yield f"F.binary_cross_entropy(x, y, {by})", pair
        yield f"F.binary_cross_entropy(x, y, w, {by})", {**pair, "w": u(0.5, 1.5, 3)}
        scores = {"x": f(4, 3), "y": u(0, 1, 4, 3)}
        yield f"F.binary_cross_entropy_with_logits(x, y, {by})", scores
        yield (f"F.binary_cross_entropy_with_logits(x, y, weight=w, pos_weight=p, {by})",
               {**scores, "w": u(0.5, 1.5, 4, 3), "p": u(0.5, 1.5, 3)})
        yield f"F.sigmoid_focal_loss(x, y, n, alpha=0.4, gamma=1.5, {by})", {**scores, "n": u(1, 2, 1)}
        classes = {"x": f(4, 5), "y": given([0, 2, 2, 4]), "w": u(0.5, 1.5, 5)}
        for more in ("", ", weight=w", ", weight=w, ignore_index=2", ", label_smoothing=0.1, weight=w"):
            yield f"F.cross_entropy(x, y{more}, {by})", classes
        for more in ("", ", weight=w", ", label_smoothing=0.1"):
            yield (f"F.cross_entropy(x, y, soft_label=True{more}, {by})",
                   {"x": f(4, 5), "y": shares(4, 5), "w": u(0.5, 1.5, 5)})
        yield f"F.cross_entropy(x, y, use_softmax=False, soft_label=True, {by})", {"x": shares(4, 5), "y": shares(4, 5)}
        yield f"F.nll_loss(x, y, w, 2, {by})", classes
        for kind in ("l1_loss", "mse_loss", "smooth_l1_loss"):
            yield f"F.{kind}(x, y, {by})", {"x": f(4, 3), "y": f(4, 3)}
        for log_target in (True, False):
            yield f"F.kl_div(x, y, {by}, log_target={log_target})", {"x": f(4, 3), "y": shares(4, 3)}
        signs = {"x": f(4), "y": given([1.0, -1.0, 1.0, -1.0])}
        yield f"F.margin_ranking_loss(x, o, y, 0.3, {by})", {**signs, "o": f(4)}
        yield f"F.soft_margin_loss(x, y, {by})", signs
        yield f"F.hinge_embedding_loss(x, y, 0.8, {by})", signs
        yield (f"F.multi_label_soft_margin_loss(x, y, w, {by})",
               {"x": f(4, 3), "y": given(np.eye(4, 3)), "w": u(0.5, 1.5, 3)})
        yield f"F.multi_margin_loss(x, y, 2, 0.7, w, {by})", {"x": f(4, 3), "y": i(0, 3, 4), "w": u(0.5, 1.5, 3)}
        yield (f"F.cosine_embedding_loss(x, z, y, 0.1, {by})",
               {"x": f(4, 3), "z": f(4, 3), "y": given([1.0, -1.0, 1.0, -1.0])})
        yield f"F.triplet_margin_loss(x, p, n, swap=True, {by})", {"x": f(4, 3), "p": f(4, 3), "n": f(4, 3)}
        yield f"F.poisson_nll_loss(x, y, False, True, {by})", {"x": u(0.2, 2, 4, 3), "y": u(0.2, 5, 4, 3)}
        yield f"F.gaussian_nll_loss(x, y, v, True, {by})", {"x": f(4, 3), "y": f(4, 3), "v": u(0.2, 2, 4, 1)}
        lengths = {"a": given([4, 4, 2]), "b": given([3, 4, 3])}
        too_long = given([[1, 2, 3, 1], [1, 1, 1, 1], [1, 2, 3, 1]], "int32")
        yield f"F.ctc_loss(x, y, a, b, {by})", {"x": f(4, 3, 4), "y": too_long, **lengths}
        yield (f"F.rnnt_loss(x, y, a, b, {by})", {"x": f(2, 4, 3, 5), "y": i(1, 5, 2, 2, dtype="int32"),
                                                  "a": given([4, 3], "int32"), "b": given([2, 1], "int32")})
    yield "F.kl_div(x, y, reduction='batchmean')", {"x": f(4, 3), "y": shares(4, 3)}
    yield "F.log_loss(x, y)", {"x": u(0.1, 0.9, 4, 1), "y": u(0, 1, 4, 1)}
    yield "F.square_error_cost(x, y)", {"x": f(4, 3), "y": f(4, 3)}
    yield "F.npair_loss(a, p, y)", {"a": f(4, 3), "p": f(4, 3), "y": given([0.0, 1.0, 1.0, 2.0])}
    yield "F.label_smooth(y, prior_dist=p)", {"y": shares(4, 3), "p": shares(1, 3)}
    yield "F.softmax_with_cross_entropy(x, y, soft_label=True)", {"x": f(4, 5), "y": shares(4, 5)}
    yield "F.hsigmoid_loss(x, y, 6, w, b)", {"x": f(4, 3), "y": i(0, 6, 4), "w": f(5, 3), "b": f(5)}
    paths = {"t": given([[0, 2, -1], [0, -1, 3], [0, 1, -1]]), "c": given([[0, 1, 0], [1, 0, 1], [1, 1, 1]])}
    tree = {"x": f(3, 3), "y": i(0, 5, 3, 1), "w": f(5, 3), "b": f(5, 1)}
    yield "F.hsigmoid_loss(x, y, 5, w, b, t, c)", {**tree, **paths}


def sequences() -> Iterator[Case]:
    for kind in ("SimpleRNN", "LSTM", "GRU"):
        for more in ("", ", num_layers=2, direction='bidirect'", ", time_major=True"):
            # Training only: Paddle has no gradients of these layers in evaluation.
            yield f"TRAIN nn.{kind}(3, 4{more})", {"x": f(2, 5, 3)}
        yield f"TRAIN nn.{kind}(3, 4)", {"x": f(2, 5, 3), "sequence_length": given([2, 5])}
        cell = f"nn.{kind}Cell(3, 4)"
        yield f"nn.RNN({cell})", {"x": f(2, 5, 3), "sequence_length": given([2, 5])}
        yield f"nn.RNN({cell}, is_reverse=True)", {"x": f(2, 5, 3), "sequence_length": given([2, 5])}
        yield f"nn.RNN({cell}, time_major=True)", {"x": f(5, 2, 3), "sequence_length": given([2, 5])}
        yield f"nn.BiRNN({cell}, {cell})", {"x": f(2, 5, 3), "sequence_length": given([2, 5])}
    half_hidden = [[True] * 5] * 2 + [[False] * 5] * 3
    masks = {"bool": given(half_hidden), "int": given(half_hidden, "int64"), "float": fixed(f(2, 1, 5, 5)),
             "far": fixed(given(np.where(half_hidden, 0.0, -1e9))),
             "later": fixed(given(np.triu(np.full((5, 5), -np.inf), 1)))}
    for weights in (False, True):
        yield f"nn.MultiHeadAttention(8, 2, kdim=6, vdim=4, need_weights={weights})", {
            "query": f(2, 3, 8), "key": f(2, 5, 6), "value": f(2, 5, 4)}
        for mask in masks.values():
            yield f"nn.MultiHeadAttention(8, 2, need_weights={weights})", {"query": f(2, 5, 8), "attn_mask": mask}
    for first in (False, True):
        yield f"nn.TransformerEncoderLayer(8, 2, 16, 0.0, normalize_before={first})", {"x": f(2, 5, 8)}
        yield (f"nn.TransformerDecoderLayer(8, 2, 16, 0.0, normalize_before={first})",
               {"x": f(2, 5, 8), "memory": f(2, 4, 8)})
    yield "F.scaled_dot_product_attention(q, k, v, m)", {"q": f(2, 5, 2, 4), "k": f(2, 5, 2, 4), "v": f(2, 5, 2, 4),
                                                         "m": fixed(f(2, 1, 5, 5))}
    yield "nn.Embedding(6, 3, padding_idx=2)", {"x": given([0, 2, 5, 2])}
    yield "nn.Bilinear(3, 4, 2)", {"x": f(5, 3), "y": f(5, 4)}
    for dropout in ("Dropout(0.3)", "Dropout(0.3, mode='downscale_in_infer')", "Dropout2D(0.3)", "AlphaDropout(0.3)",
                    "RReLU(0.2, 0.4)"):
        yield f"EVAL nn.{dropout}", {"x": f(2, 3, 4, 4)}
    for kind in ("PReLU(4)", "PReLU(4, data_format='NHWC')", "GLU(1)", "Maxout(2)", "Softmax2D()", "Hardsigmoid()",
                 "GELU(True)", "ThresholdedReLU(0.3, 0.7)", "Softplus(2, 1)"):
        yield f"nn.{kind}", {"x": f(2, 4, 4, 4)}


def cases() -> list[tuple[str, str, dict[str, Operand]]]:
    """A key for each call, the call, and its operands."""
    found: dict[str, tuple[str, str, dict[str, Operand]]] = {}
    for source in (norms, windows, losses, sequences):
        for call, operands in source():
            count = sum(1 for _, known, _ in found.values() if known == call)
            key = call if count == 0 else f"{call} #{count + 1}"
            found[key] = (key, call, operands)
    return list(found.values())


# ---- running ----------------------------------------------------------------------------------------


def _tensors(library: Any, key: str, operands: dict[str, Operand]) -> tuple[dict[str, Any], Any]:
    random = np.random.default_rng(zlib.crc32(key.encode()))
    made = {}
    for name, operand in operands.items():
        array = operand.make(random)
        made[name] = library.to_tensor(array)
        made[name].stop_gradient = not (operand.differentiable and array.dtype.kind == "f")
    return made, random


def _flat(value: Any, name: str, tensor: type) -> dict[str, Any]:
    if isinstance(value, (list, tuple)):
        return {k: v for n, item in enumerate(value) for k, v in _flat(item, f"{name}.{n}", tensor).items()}
    return {name: value} if isinstance(value, tensor) else {}


def digest(tensor: Any) -> Any:
    """Two numbers, and the shape; None for no tensor."""
    if tensor is None:
        return None
    array = np.asarray(tensor.numpy(), dtype="float64")
    weights = np.cos(np.arange(array.size)).reshape(array.shape)
    return [list(array.shape), float(f"{(array * weights).sum():.5g}"), float(f"{np.abs(array).sum():.5g}")]


def _backward(library: Any, outputs: dict[str, Any]) -> None:
    random, total = np.random.default_rng(5), None
    for tensor in outputs.values():
        if not tensor.stop_gradient and "float" in str(tensor.dtype):
            weights = random.uniform(0.5, 1.5, size=tuple(tensor.shape)).astype("float32")
            term = (tensor * library.to_tensor(weights)).sum()
            total = term if total is None else total + term
    if total is not None:
        total.backward()


def _fill(layer: Any, random: Any) -> None:
    for name, value in layer.state_dict().items():
        size = tuple(value.shape)
        new = random.uniform(0.5, 1.5, size=size) if "variance" in name else random.normal(size=size) * 0.5
        value.set_value(new.astype("float32"))


def run(library: Any, key: str, call: str, operands: dict[str, Operand]) -> dict[str, Any]:
    """What a call returns, by name."""
    tensors, random = _tensors(library, key, operands)
    names = {"nn": library.nn, "F": library.nn.functional}
    modes = {"TRAIN": ("train",), "EVAL": ("eval",)}.get(call.split()[0], ("train", "eval"))
    text = call.removeprefix("TRAIN ").removeprefix("EVAL ")
    if not text.startswith("nn."):
        outputs = _flat(eval(text, {**names, **tensors}), "out", library.Tensor)
        _backward(library, outputs)
        found = {name: digest(tensor) for name, tensor in outputs.items()}
        return {**found, **{f"grad.{name}": digest(tensor.grad) for name, tensor in tensors.items()}}
    layer, found = eval(text, names), {}
    _fill(layer, random)
    keywords = {name: tensor for name, tensor in tensors.items() if name in ("sequence_length", "attn_mask")}
    positional = [tensor for name, tensor in tensors.items() if name not in keywords]
    for mode in modes:
        getattr(layer, mode)()
        layer.clear_gradients(False)
        for tensor in positional:
            tensor.clear_gradient(False)
        outputs = _flat(layer(*positional, **keywords), "out", library.Tensor)
        _backward(library, outputs)
        found.update({f"{mode}.{name}": digest(tensor) for name, tensor in outputs.items()})
        found.update({f"{mode}.grad.{n}": digest(tensor.grad) for n, tensor in enumerate(positional)})
        found.update({f"{mode}.grad.{name}": digest(p.grad) for name, p in layer.named_parameters()})
        found.update({f"{mode}.state.{name}": digest(value) for name, value in layer.state_dict().items()
                      if name.startswith("_")})
    return found


if __name__ == "__main__":
    import paddle

    known = {key: run(paddle, key, call, operands) for key, call, operands in cases()}
    lines = [f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in known.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
