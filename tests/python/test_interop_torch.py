"""Archives of torch.export: ops against NumPy, sizes, containers, writes, files that are wrong."""

import io
import json
import random as chances
import zipfile

import numpy as np
import pytest
from pt2_files import Ref, archive, meta, node

import oar
from oar import _C

R = Ref


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def loaded(content):
    return oar.interop.TorchModel(*_C.torch_model(content))


def described(arrays):
    return {f"x{i}": (list(a.shape), a.dtype.name) for i, a in enumerate(arrays)}


def run(nodes, arrays, outputs, weights=None, **more):
    model = loaded(archive(nodes, described(arrays), outputs, weights, **more))
    return [t.numpy() for t in model(*arrays)]


def one(target, arrays, inputs, outputs=1, listed=False):
    """What one op computes from inputs x0, x1, ..."""
    names = [f"y{i}" for i in range(outputs)]
    got = run([node(target, inputs, *names, listed=listed)], arrays, [R(n) for n in names])
    return got[0] if outputs == 1 and not listed else got


X, Y = random(2, 3, 4), random(2, 3, 4, seed=1)
I = np.array([[0, 2], [1, 0]])  # noqa: E741


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


OPS = {
    "add.Tensor": ([X, Y], {"self": R("x0"), "other": R("x1"), "alpha": 2}, lambda x, y: x + 2 * y),
    "rsub.Scalar": ([X], {"self": R("x0"), "other": 1}, lambda x: 1 - x),
    "mul.Scalar": ([I], {"self": R("x0"), "other": 2.5}, lambda x: (x * 2.5).astype("float32")),
    "div.Tensor": ([I, I + 1], {"self": R("x0"), "other": R("x1")}, lambda x, y: (x / y).astype("float32")),
    "div.Tensor_mode": ([I - 3, I + 2], {"self": R("x0"), "other": R("x1"), "rounding_mode": "trunc"}, lambda x, y: np.trunc(x / y).astype("int64")),
    "remainder.Scalar": ([X], {"self": R("x0"), "other": 0.7}, lambda x: np.mod(x, np.float32(0.7))),
    "fmod.Scalar": ([X], {"self": R("x0"), "other": 0.7}, lambda x: np.fmod(x, np.float32(0.7))),
    "pow.Scalar": ([X], {"self": 2.0, "exponent": R("x0")}, lambda x: 2 ** x),
    "gt.Scalar": ([X], {"self": R("x0"), "other": 0}, lambda x: x > 0),
    "clamp.default": ([X], {"self": R("x0"), "min": -0.5, "max": None}, lambda x: np.maximum(x, np.float32(-0.5))),
    "where.ScalarOther": ([X > 0, X], {"condition": R("x0"), "self": R("x1"), "other": 3.0}, lambda c, x: np.where(c, x, np.float32(3))),
    "hardtanh.default": ([X], {"self": R("x0"), "min_val": 0.0, "max_val": 6.0}, lambda x: np.clip(x, 0, 6)),
    "sum.dim_IntList": ([I], {"self": R("x0"), "dim": [1], "keepdim": True}, lambda x: x.sum(1, keepdims=True)),
    "mean.dim": ([X], {"self": R("x0"), "dim": [-1, 0]}, lambda x: x.mean((0, 2))),
    "var.correction": ([X], {"self": R("x0"), "dim": [1], "correction": 0.0, "keepdim": True}, lambda x: x.var(1, keepdims=True)),
    "amax.default": ([X], {"self": R("x0"), "dim": [2]}, lambda x: x.max(2)),
    "any.default": ([X > 2], {"self": R("x0")}, lambda x: x.any()),
    "argmax.default": ([X], {"self": R("x0"), "dim": 1}, lambda x: x.argmax(1)),
    "cumsum.default": ([I], {"self": R("x0"), "dim": -1}, lambda x: x.cumsum(-1)),
    "linalg_vector_norm.default": ([X], {"self": R("x0"), "ord": 1.0, "dim": [1]}, lambda x: np.abs(x).sum(1)),
    "_softmax.default": ([X], {"self": R("x0"), "dim": 1, "half_to_float": False}, lambda x: softmax(x, 1)),
    "bmm.default": ([X, random(2, 4, 2)], {"self": R("x0"), "mat2": R("x1")}, lambda x, y: x @ y),
    "addmm.default": ([random(5), random(2, 3), random(3, 5)], {"self": R("x0"), "mat1": R("x1"), "mat2": R("x2"), "alpha": 2},
                      lambda b, x, y: b + 2 * x @ y),
    "linear.default": ([X, random(5, 4)], {"input": R("x0"), "weight": R("x1")}, lambda x, w: x @ w.T),
    "view.default": ([X], {"self": R("x0"), "size": [3, -1]}, lambda x: x.reshape(3, -1)),
    "permute.default": ([X], {"self": R("x0"), "dims": [2, 0, -2]}, lambda x: x.transpose(2, 0, 1)),
    "transpose.int": ([X], {"self": R("x0"), "dim0": -1, "dim1": 0}, lambda x: x.swapaxes(2, 0)),
    "expand.default": ([random(3, 1)], {"self": R("x0"), "size": [2, -1, 4]}, lambda x: np.broadcast_to(x, (2, 3, 4))),
    "squeeze.dims": ([random(1, 3, 1)], {"self": R("x0"), "dim": [0, 1]}, lambda x: x[0]),
    "slice.Tensor": ([X], {"self": R("x0"), "dim": 2, "start": -3, "end": 9223372036854775807, "step": 2}, lambda x: x[:, :, -3::2]),
    "select.int": ([X], {"self": R("x0"), "dim": 1, "index": -1}, lambda x: x[:, -1]),
    "cat.default": ([X, X], {"tensors": [R("x0"), R("x1")], "dim": -1}, lambda x, y: np.concatenate([x, y], -1)),
    "roll.default": ([X], {"self": R("x0"), "shifts": [1], "dims": [2]}, lambda x: np.roll(x, 1, 2)),
    "flip.default": ([X], {"self": R("x0"), "dims": [1]}, lambda x: x[:, ::-1]),
    "repeat.default": ([random(3)], {"self": R("x0"), "repeats": [2, 2]}, lambda x: np.tile(x, (2, 2))),
    "tril.default": ([X], {"self": R("x0"), "diagonal": 1}, lambda x: np.tril(x, 1)),
    "constant_pad_nd.default": ([X], {"self": R("x0"), "pad": [1, -1, 0, 2], "value": 3.0},
                                lambda x: np.pad(x[:, :, :-1], [(0, 0), (0, 2), (1, 0)], constant_values=3)),
    "reflection_pad1d.default": ([X], {"self": R("x0"), "padding": [2, 1]}, lambda x: np.pad(x, [(0, 0), (0, 0), (2, 1)], mode="reflect")),
    "embedding.default": ([random(5, 3), I], {"weight": R("x0"), "indices": R("x1")}, lambda w, i: w[i]),
    "index.Tensor": ([X, I], {"self": R("x0"), "indices": [None, R("x1")]}, lambda x, i: x[:, i]),
    "gather.default": ([X[0, :2], I], {"self": R("x0"), "dim": 1, "index": R("x1")}, lambda x, i: np.take_along_axis(x, i, 1)),
    "index_put.default": ([X[0, :, 0], np.array([2, 0]), random(2)], {"self": R("x0"), "indices": [R("x1")], "values": R("x2")},
                          lambda x, i, v: np.array([v[1], x[1], v[0]])),
    "masked_fill.Scalar": ([X, X > 0], {"self": R("x0"), "mask": R("x1"), "value": float("-inf")}, lambda x, m: np.where(m, -np.inf, x)),
    "scatter.value": ([X[0, :2], I], {"self": R("x0"), "dim": 1, "index": R("x1"), "value": 9.0},
                      lambda x, i: np.array([[9, x[0, 1], 9, x[0, 3]], [9, 9, x[1, 2], x[1, 3]]])),
    "_to_copy.default": ([X], {"self": R("x0"), "dtype": np.dtype("int64")}, lambda x: x.astype("int64")),
    "full_like.default": ([I], {"self": R("x0"), "fill_value": 2}, lambda x: np.full_like(x, 2)),
    "mse_loss.default": ([X, Y], {"self": R("x0"), "target": R("x1")}, lambda x, y: ((x - y) ** 2).mean()),
    "nll_loss_nd.default": ([random(3, 4), np.array([1, 0, 3])], {"self": R("x0"), "target": R("x1"), "reduction": 2},
                            lambda x, t: -x[range(3), t].sum()),
    "pixel_shuffle.default": ([random(1, 4, 2, 3)], {"self": R("x0"), "upscale_factor": 2},
                              lambda x: x.reshape(1, 2, 2, 2, 3).transpose(0, 3, 1, 4, 2).reshape(1, 1, 4, 6)),
    "upsample_nearest2d.vec": ([random(1, 1, 2, 2)], {"input": R("x0"), "output_size": None, "scale_factors": [2.0, 2.0]},
                               lambda x: x.repeat(2, 2).repeat(2, 3)),
    "avg_pool2d.default": ([random(1, 2, 4, 4)], {"self": R("x0"), "kernel_size": [2, 2]}, lambda x: x.reshape(1, 2, 2, 2, 2, 2).mean((3, 5))),
}


@pytest.mark.parametrize("target", OPS)
def test_ops(target):
    arrays, inputs, wanted = OPS[target]
    want = np.asarray(wanted(*arrays))
    got = one(target, arrays, inputs)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_convolution_and_batch_norm():
    x, w, b = random(1, 2, 5, 5), random(3, 2, 3, 3, seed=1), random(3, seed=2)
    scale, shift, mean, var = random(3, seed=3), random(3, seed=4), random(3, seed=5), np.abs(random(3, seed=6)) + 0.5
    weights = {"w": w, "b": b, "scale": scale, "shift": shift, "mean": mean, "var": var}
    nodes = [
        node("conv2d.default", {"input": R("x0"), "weight": R("w_w"), "bias": R("w_b"), "stride": [2, 2], "padding": [1, 1]}, "conv"),
        node("_native_batch_norm_legit_no_training.default",
             {"input": R("conv"), "weight": R("w_scale"), "bias": R("w_shift"), "running_mean": R("w_mean"), "running_var": R("w_var"),
              "momentum": 0.1, "eps": 1e-5}, "norm", "a", "b"),
        node("relu_.default", {"self": R("norm")}, "relu"),
        node("adaptive_avg_pool2d.default", {"self": R("relu"), "output_size": [1, 1]}, "pool"),
    ]
    got, = run(nodes, [x], [R("pool")], weights)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    conv = np.einsum("ncyxhw,ochw->noyx", windows, w) + b[:, None, None]
    norm = (conv - mean[:, None, None]) / np.sqrt(var[:, None, None] + 1e-5) * scale[:, None, None] + shift[:, None, None]
    np.testing.assert_allclose(got, np.maximum(norm, 0).mean((2, 3), keepdims=True), rtol=1e-4, atol=1e-5)
    model = loaded(archive(nodes, described([x]), [R("pool")], weights))
    np.testing.assert_array_equal(model.weights["w"].numpy(), w)
    assert set(model.weights) == set(weights)


def test_open_sizes_and_numbers():
    nodes = [
        node("sym_size.int", {"self": R("x"), "dim": 0}, "sym_n"),
        node("_operator.mul", {"a": R("sym_n"), "b": 3}, "sym_m"),
        node("view.default", {"self": R("x"), "size": [R("sym_m")]}, "y"),
        node("arange.start_step", {"start": 0, "end": R("sym_n"), "step": 2}, "z"),
    ]
    model = loaded(archive(nodes, {"x": ([-1, 3], "float32")}, [R("y"), R("z"), R("sym_m"), 0.5, None]))
    assert model.shapes == {"x": ["x_0", 3]}
    assert model.inputs == ["x"]
    for n in (1, 4, 5):
        x = random(n, 3)
        y, z, m, half = (t.numpy() for t in model(x))
        np.testing.assert_array_equal(y, x.reshape(-1))
        np.testing.assert_array_equal(z, np.arange(0, n, 2))
        assert m == 3 * n
        assert half == 0.5


def test_containers_name_outputs():
    nodes = [node("split.Tensor", {"self": R("x0"), "split_size": 2, "dim": 1}, "a", "b", listed=True)]
    made = archive(nodes, described([X]), [R("a"), R("b"), R("x0")], containers={"out": None, "more": [None, (None,)]})
    model = loaded(made)
    assert model.outputs == ["out", "more.0", "more.1.0"]
    for got, want in zip(model(X), [X[:, :2], X[:, 2:], X], strict=True):
        np.testing.assert_array_equal(got.numpy(), want)
    assert loaded(archive(nodes, described([X]), [R("a"), R("b")])).outputs == ["output.0", "output.1"]


def test_writes_in_place():
    nodes = [
        node("zeros.default", {"size": [2, 3]}, "z"),
        node("select.int", {"self": R("z"), "dim": 0, "index": 1}, "row"),
        node("copy_.default", {"self": R("row"), "src": R("x0")}, "c"),
        node("add_.Tensor", {"self": R("z"), "other": 1}, "z1"),
        node("mul_.Tensor", {"self": R("row"), "other": 2.0}, "row1"),
        node("clone.default", {"self": R("x0")}, "copy"),
        node("relu_.default", {"self": R("copy")}, "r"),
    ]
    x = random(3)
    z, r = run(nodes, [x], [R("z"), R("copy")])
    np.testing.assert_allclose(z, np.array([[1, 1, 1], 2 * (x + 1)]), rtol=1e-6)
    np.testing.assert_array_equal(r, np.maximum(x, 0))


def test_buffers_change():
    nodes = [node("add.Tensor", {"self": R("w_count"), "other": R("x0")}, "sum")]
    mutation = [{"buffer_mutation": {"arg": {"name": "sum"}, "buffer_name": "count"}}]
    model = loaded(archive(nodes, described([random(2)]), [R("sum")], {"count": np.zeros(2, "float32")}, more=mutation))
    x = random(2)
    model(x)
    np.testing.assert_allclose(model(x)[0].numpy(), 2 * x, rtol=1e-6)
    counts = [node("add.Tensor", {"self": R("w_count"), "other": 1}, "sum"), node("relu.default", {"self": R("x0")}, "y")]
    model = loaded(archive(counts, described([x]), [R("y"), R("sum")], {"count": np.zeros(2, "float32")}, more=mutation))
    assert [model(x)[1].tolist() for _ in range(3)] == [[1, 1], [2, 2], [3, 3]]
    assert model.weights["count"].tolist() == [3, 3]


def test_strided_weights():
    base = np.arange(12, dtype="float32")
    weights = {"t": (base.tobytes(), meta([3, 2], strides=[1, 4], offset=1)), "e": (base.tobytes(), meta([2, 3], strides=[0, 1]))}
    model = loaded(archive([], described([X]), [R("x0")], weights))
    np.testing.assert_array_equal(model.weights["t"].numpy(), base.reshape(3, 4).T[1:4, :2])
    np.testing.assert_array_equal(model.weights["e"].numpy(), np.stack([base[:3]] * 2))


def test_recurrent_layers():
    x, h, c = random(2, 5, 3), random(1, 2, 4, seed=1), random(1, 2, 4, seed=2)
    weights = {"i": random(16, 3, seed=3), "h": random(16, 4, seed=4), "bi": random(16, seed=5), "bh": random(16, seed=6)}
    call = {"input": R("x0"), "hx": [R("x1"), R("x2")], "params": [R(f"w_{n}") for n in weights], "has_biases": True, "num_layers": 1,
            "dropout": 0.0, "train": False, "bidirectional": False, "batch_first": True}
    y, hn, cn = run([node("lstm.input", call, "y", "hn", "cn")], [x, h, c], [R("y"), R("hn"), R("cn")], weights)

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    hidden, cell, steps = h[0], c[0], []
    for t in range(5):
        i, f, g, o = np.split(x[:, t] @ weights["i"].T + weights["bi"] + hidden @ weights["h"].T + weights["bh"], 4, -1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        hidden = sigmoid(o) * np.tanh(cell)
        steps.append(hidden)
    np.testing.assert_allclose(y, np.stack(steps, 1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(hn[0], hidden, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(cn[0], cell, rtol=1e-4, atol=1e-5)


def test_attention():
    q, k = random(1, 2, 3, 4), random(1, 2, 5, 4, seed=1)
    call = {"query": R("x0"), "key": R("x1"), "value": R("x1"), "attn_mask": None, "dropout_p": 0.0, "is_causal": False, "scale": 0.3}
    got = one("scaled_dot_product_attention.default", [q, k], call)
    np.testing.assert_allclose(got, softmax(q @ k.swapaxes(-1, -2) * 0.3, -1) @ k, rtol=1e-5, atol=1e-5)


# ---- files that are wrong ------------------------------------------------------------------------


def good(**more):
    nodes = [node("add.Tensor", {"self": R("x0"), "other": R("w_w")}, "y")]
    return archive(nodes, described([random(3)]), [R("y")], {"w": random(3)}, **more)


def refused(content, words, error=Exception):
    with pytest.raises(error, match=words):
        loaded(content)(random(3))


def test_unknown_ops_are_listed():
    nodes = [node(t, {"self": R("x0")}, f"y{i}") for i, t in enumerate(["nothing.default", "none_such.out", "nothing.default"])]
    refused(archive(nodes, described([random(3)]), [R("y0")]), r"none_such\.out.*nothing\.default \(2 times\)")


def test_wrong_arguments_name_the_node():
    refused(archive([node("sub.Tensor", {"self": R("x0"), "more": 1}, "y")], described([random(3)]), [R("y")]), r"aten\.sub\.Tensor 'y'.*more=")
    refused(archive([node("dropout.default", {"input": R("x0"), "p": 0.5, "train": True}, "y")], described([random(3)]), [R("y")]),
            r"aten\.dropout.*training mode")


def test_files_that_are_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        oar.interop.load_torch(tmp_path / "none.pt2")
    (tmp_path / "m.pt2").write_bytes(good())
    assert oar.interop.load_torch(tmp_path / "m.pt2").inputs == ["x0"]
    refused(b"no archive", "no zip archive")
    refused(good()[:200], "zip archive is damaged")

    def edited(change):
        return good(edit=change)

    refused(edited(lambda model, _: model["schema_version"].update(major=99)), "version 99")
    refused(edited(lambda _, config: config["w"].update(path_name="../../../../etc/passwd")), "has no '.*etc/passwd'")
    refused(edited(lambda _, config: config["w"]["tensor_meta"].update(sizes=[{"as_int": 1 << 40}])), "larger than its storage")
    refused(edited(lambda _, config: config["w"]["tensor_meta"].update(sizes=[{"as_int": 1 << 40}], strides=[{"as_int": 0}])), "too large")
    refused(edited(lambda _, config: config["w"]["tensor_meta"].update(sizes=[{"as_int": -3}])), "negative")
    refused(edited(lambda _, config: config.clear()), "no tensor 'w'")

    def circle(model, _):
        first = model["graph_module"]["graph"]["nodes"][0]["inputs"][0]
        first["arg"] = {"as_tensor": {"name": "y"}}

    refused(edited(circle), "reads 'y', which nothing before it computes")
    refused(archive([node("zeros.default", {"size": [1 << 40]}, "y")], described([random(3)]), [R("y")]), "too large")


def test_zip_bombs():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("m/models/model.json", b" " * (1 << 20))
    content = bytearray(out.getvalue())
    place = content.rfind(b"PK\x01\x02")
    content[place + 24:place + 28] = (0xfffffff0).to_bytes(4, "little")
    refused(bytes(content), "another size than stated")
    content[place + 24:place + 28] = (1 << 19).to_bytes(4, "little")
    refused(bytes(content), "larger than stated")
    model = good(packed=zipfile.ZIP_DEFLATED)
    np.testing.assert_allclose(loaded(model)(random(3))[0].numpy(), 2 * random(3), rtol=1e-6)


def test_state_dicts_are_for_load():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        packed.writestr("archive/data.pkl", b"")
    refused(out.getvalue(), "oar.load")


def test_damaged_files_are_errors():
    content = good()
    chance = chances.Random(0)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        try:
            loaded(bytes(damaged))(random(3))
        except Exception as error:  # noqa: BLE001
            assert "internal" not in str(error).lower(), error


def test_damaged_graphs_are_errors():
    """Values of the JSON are replaced by others, so that checksums stay right."""
    chance = chances.Random(1)
    strange = [None, -1, 1 << 62, 0.5, "x0", [], {}, [1, 2], {"as_int": 3}, True]

    def change(value):
        if chance.random() < 0.02:
            return chance.choice(strange)
        if isinstance(value, dict):
            return {k: change(v) for k, v in value.items()}
        return [change(v) for v in value] if isinstance(value, list) else value

    def damage(model, config):
        for whole in (model, config):
            made = json.loads(json.dumps(change(whole)))
            whole.clear()
            whole.update(made if isinstance(made, dict) else {})

    for _ in range(200):
        try:
            loaded(good(edit=damage))(random(3))
        except Exception as error:  # noqa: BLE001
            assert "internal" not in str(error).lower(), error
