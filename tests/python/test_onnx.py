"""ONNX models: values against NumPy, sizes that stay open, files that are wrong."""

import numpy as np
import pytest
from onnx_files import field, graph, model, node, port, tensor

import oar
from oar import _C


def loaded(tmp_path, content: bytes):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    return oar.onnx.load(path)


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def one(op, arrays, wanted, tmp_path, opset=17, outputs=1, rtol=1e-5, **attributes):
    """A model of one node gives the wanted arrays."""
    names = [f"x{i}" for i in range(len(arrays))]
    ports = [port(n, a.shape, a.dtype.name) for n, a in zip(names, arrays)]
    results = [f"y{i}" for i in range(outputs)]
    got = loaded(tmp_path, model([node(op, names, results, **attributes)], ports, results, opset=opset))(*arrays)
    for g, w in zip(got, wanted if outputs > 1 else [wanted], strict=True):
        np.testing.assert_allclose(g.numpy(), w, rtol=rtol, atol=1e-6)
        assert list(g.shape) == list(np.shape(w))


def test_a_branch_that_does_not_fit_the_inputs(tmp_path):
    """One branch per rate, each with a weight for inputs of its own length."""
    branches = {f"{name}_branch": graph([node("MatMul", ["x", weight], [name])], [name])
                for name, weight in (("then", "w16"), ("else", "w8"))}
    w16, w8 = random(16, 2), random(8, 3, seed=1)
    m = loaded(tmp_path, model([node("Equal", ["rate", "fast"], ["is_fast"]), node("If", ["is_fast"], ["y"], **branches)],
                               [port("x", ["batch", "length"]), port("rate", [], "int64")], ["y"],
                               {"fast": np.int64(16000), "w16": w16, "w8": w8}))
    for rate, weight in ((16000, w16), (8000, w8), (16000, w16)):
        x = random(3, len(weight), seed=rate)
        np.testing.assert_allclose(m(x, np.array(rate))[0].numpy(), x @ weight, rtol=1e-5)
    with pytest.raises(ValueError, match="sizes that are summed differ"):
        m(random(3, 9), np.array(8000))


def test_a_branch_that_sizes_decide(tmp_path):
    """What exporters write for `squeeze` along an axis whose size they do not know."""
    branches = {"then_branch": graph([node("Squeeze", ["x", "axis"], ["a"])], ["a"]),
                "else_branch": graph([node("Identity", ["x"], ["b"])], ["b"])}
    nodes = [node("Shape", ["x"], ["sizes"]), node("Gather", ["sizes", "last"], ["size"]), node("Equal", ["size", "one"], ["is_one"]),
             node("If", ["is_one"], ["y"], **branches)]
    m = loaded(tmp_path, model(nodes, [port("x", ["batch", "length"])], ["y"],
                               {"axis": np.int64([1]), "last": np.int64(1), "one": np.int64(1)}))
    for length in (1, 4, 1):
        x = random(2, length, seed=length)
        np.testing.assert_array_equal(m(x)[0].numpy(), x[:, 0] if length == 1 else x)


def test_names_and_order_of_inputs(tmp_path):
    m = loaded(tmp_path, model([node("Sub", ["b", "a"], ["y"])], [port("a", [2]), port("b", [2])], ["y"]))
    assert (m.inputs, m.outputs) == (["a", "b"], ["y"])
    a, b = np.float32([1, 2]), np.float32([10, 20])
    np.testing.assert_array_equal(m(a, b)[0].numpy(), b - a)
    np.testing.assert_array_equal(m({"b": b, "a": a})[0].numpy(), b - a)
    with pytest.raises(ValueError, match="'c' is missing or not one of them"):
        m({"a": a, "b": b, "c": a})
    with pytest.raises(ValueError, match="takes 2 inputs and is given 1"):
        m(a)


@pytest.mark.parametrize("op, function", [
    ("Relu", lambda x: np.maximum(x, 0)), ("Exp", np.exp), ("Neg", np.negative), ("Abs", np.abs), ("Tanh", np.tanh),
    ("Sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("Floor", np.floor), ("Softsign", lambda x: x / (1 + np.abs(x))),
])
def test_functions_of_elements(op, function, tmp_path):
    x = random(3, 4)
    one(op, [x], function(x), tmp_path)


def test_integers_are_divided_towards_zero(tmp_path):
    x, y = np.int64([7, -7, 7, -7, 6]), np.int64([2, 2, -2, -2, 3])
    one("Div", [x, y], np.int64([3, -3, -3, 3, 2]), tmp_path)
    one("Mod", [x, y], np.fmod(x, y), tmp_path, fmod=1)


def test_gemm_and_broadcast(tmp_path):
    a, b, c = random(4, 3), random(5, 4, seed=1), random(5, seed=2)
    one("Gemm", [a, b, c], 0.5 * a.T @ b.T + 2 * c, tmp_path, alpha=0.5, beta=2.0, transA=1, transB=1)


def test_softmax_of_old_versions_joins_the_last_axes(tmp_path):
    x = random(2, 3, 4)
    e = np.exp(x.reshape(2, 12))
    one("Softmax", [x], (e / e.sum(1, keepdims=True)).reshape(2, 3, 4), tmp_path, opset=11)
    e = np.exp(x)
    one("Softmax", [x], e / e.sum(-1, keepdims=True), tmp_path, opset=13)


def test_convolution_with_automatic_padding(tmp_path):
    x, w = random(1, 1, 5, 5), random(1, 1, 3, 3, seed=1)
    padded = np.pad(x[0, 0], 1)
    wanted = np.array([[np.sum(padded[2 * i:2 * i + 3, 2 * j:2 * j + 3] * w[0, 0]) for j in range(3)] for i in range(3)])
    one("Conv", [x, w], wanted[None, None], tmp_path, auto_pad="SAME_UPPER", strides=[2, 2])
    one("Conv", [x, w], wanted[None, None], tmp_path, pads=[1, 1, 1, 1], strides=[2, 2])


def test_sizes_stay_open_through_shape_computations(tmp_path):
    """Shape, Gather, Concat, Reshape: what exporters write for x.reshape(n, -1)."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0),
             node("Unsqueeze", ["n", "axes"], ["n1"]), node("Concat", ["n1", "rest"], ["shape"], axis=0),
             node("Reshape", ["x", "shape"], ["y"])]
    m = loaded(tmp_path, model(nodes, [port("x", ["batch", 3, "width"])], ["y"],
                               {"zero": np.int64(0), "axes": np.int64([0]), "rest": np.int64([-1])}))
    for n, width in [(2, 4), (5, 4), (1, 7)]:
        x = random(n, 3, width)
        np.testing.assert_array_equal(m(x)[0].numpy(), x.reshape(n, -1))


def test_a_shape_among_the_inputs(tmp_path):
    m = loaded(tmp_path, model([node("Reshape", ["x", "shape"], ["y"])], [port("x", [2, 6]), port("shape", [2], "int64")], ["y"]))
    x = random(2, 6)
    for shape in [(3, 4), (4, 3), (3, 4), (-1, 2)]:
        np.testing.assert_array_equal(m(x, np.int64(shape))[0].numpy(), x.reshape(shape))


def test_a_rank_that_the_file_leaves_open(tmp_path):
    m = loaded(tmp_path, model([node("ReduceSum", ["x"], ["y"], keepdims=0)], [port("x")], ["y"]))
    for shape in [(3,), (2, 3), (2, 2, 2)]:
        x = random(*shape)
        np.testing.assert_allclose(m(x)[0].numpy(), x.sum(), rtol=1e-5)


def test_lstm(tmp_path):
    steps, batch, features, hidden = 3, 2, 4, 5
    x, w, r, b = random(steps, batch, features), random(1, 20, 4, seed=1), random(1, 20, 5, seed=2), random(1, 40, seed=3)
    h = c = np.zeros((batch, hidden), "float32")
    states = []
    for t in range(steps):
        i, o, f, g = np.split(x[t] @ w[0].T + h @ r[0].T + b[0, :20] + b[0, 20:], 4, 1)
        i, o, f = (1 / (1 + np.exp(-v)) for v in (i, o, f))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    one("LSTM", [x, w, r, b], [np.stack(states)[:, None], h[None], c[None]], tmp_path, outputs=3, hidden_size=hidden)


def test_quantised_product(tmp_path):
    a, b = np.uint8([[1, 200], [3, 4]]), np.int8([[-5, 6], [7, -8]])
    one("MatMulInteger", [a, b], a.astype("int32") @ b.astype("int32"), tmp_path)
    # Long sums of the largest products are exact.
    r = np.random.default_rng(0)
    for terms in (0, 256, 257, 1500):
        a = r.choice(np.uint8([0, 1, 254, 255]), (2, 3, terms))
        b, zero = r.choice(np.int8([-128, -127, 126, 127]), (terms, 4)), np.int8([-128, 0, 127, 1])
        one("MatMulInteger", [a, b], a.astype("int32") @ b.astype("int32"), tmp_path)
        wanted = (a.astype("int32") - 255) @ (b.astype("int32") - zero)
        one("MatMulInteger", [a, b, np.uint8(255), zero], wanted, tmp_path)


def test_tensors_of_onnx_files():
    for array in [random(2, 3), np.int64([1, -2]), np.bool_([True, False]), np.float16(3.5), np.zeros((0, 3), "float32")]:
        read = _C.onnx_tensor(tensor(array))
        np.testing.assert_array_equal(read.numpy(), array)
        assert read.dtype.name == array.dtype.name


# what is wrong with a file ---------------------------------------------------------------------------


def sequence_port(name, shape, kind=4):
    """A sequence of tensors (4) or an optional one (9)."""
    inner = field(1, 1) + field(2, b"".join(field(1, field(2, s) if isinstance(s, str) else field(1, s)) for s in shape))
    return field(1, name) + field(2, field(kind, field(1, field(1, inner))))


def test_sequences_among_inputs_and_outputs(tmp_path):
    """Sizes have the names of the file, but each element has sizes of its own."""
    body = graph([node("Add", ["a", "b"], ["c"])], ["c"])
    body = field(11, port("a", ["n"])) + field(11, port("b", ["n"])) + body
    m = loaded(tmp_path, model([node("SequenceMap", ["xs", "y"], ["zs"], body=body), node("SequenceLength", ["xs"], ["count"])],
                               [sequence_port("xs", ["n"]), port("y", [1])], ["zs", "count"], types=False))
    assert m.inputs == ["xs", "y"] and m.shapes["xs"] is None
    for sizes in ([2, 3], [4], [], [3, 2], [1, 1, 1]):
        xs, y = [random(n, seed=n) for n in sizes], np.float32([0.5])
        for zs, count in (m(xs, y), m({"xs": xs, "y": y})):
            assert count.item() == len(sizes) and isinstance(zs, list)
            for z, x in zip(zs, xs, strict=True):
                np.testing.assert_allclose(z.numpy(), x + y)
    with pytest.raises(ValueError, match="'xs' is a sequence"):
        m(random(2), y)
    with pytest.raises(ValueError, match="'y' is a tensor"):
        m([random(2)], [y])
    with pytest.raises(ValueError, match="takes 2 inputs and is given 3|given 3"):
        m([random(2)], y, y)


def test_optionals_among_inputs_and_outputs(tmp_path):
    branches = {"then_branch": graph([node("OptionalGetElement", ["x"], ["a"])], ["a"]), "else_branch": graph([node("Identity", ["other"], ["b"])], ["b"])}
    nodes = [node("OptionalHasElement", ["x"], ["has"]), node("If", ["has"], ["y"], **branches), node("Identity", ["x"], ["same"])]
    m = loaded(tmp_path, model(nodes, [sequence_port("x", ["n"], 9), port("other", [2])], ["y", "same"], types=False))
    x, other = np.float32([1, 2, 3]), np.float32([7, 8])
    y, same = m(x, other)
    np.testing.assert_array_equal(y.numpy(), x)
    np.testing.assert_array_equal(same.numpy(), x)
    y, same = m(None, other)
    np.testing.assert_array_equal(y.numpy(), other)
    assert same is None


@pytest.mark.parametrize("op, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_recurrent_layers_with_lengths(op, gates, direction, tmp_path):
    """Each sequence alone gives the same."""
    steps, lengths, count = 5, np.int32([5, 2, 3]), 2 if direction == "bidirectional" else 1
    w, r, b = random(count, gates * 4, 3, seed=1), random(count, gates * 4, 4, seed=2), random(count, gates * 8, seed=3)
    outputs = ["y", "h", "c"][: 3 if op == "LSTM" else 2]

    def net(has_lengths):
        inputs = ["x", "w", "r", "b", *(["lengths"] if has_lengths else [])]
        ports = [port("x", ["t", "n", 3]), *([port("lengths", ["n"], "int32")] if has_lengths else [])]
        return loaded(tmp_path, model([node(op, inputs, outputs, hidden_size=4, direction=direction)], ports, outputs, {"w": w, "r": r, "b": b}))

    x = random(steps, 3, 3)
    got = [t.numpy() for t in net(True)(x, lengths)]
    alone = net(False)
    for i, length in enumerate(lengths):
        wanted = [t.numpy() for t in alone(x[:length, i : i + 1])]
        np.testing.assert_allclose(got[0][:length, :, i], wanted[0][:, :, 0], rtol=1e-5, atol=1e-6)
        assert not got[0][length:, :, i].any()
        for mine, one in zip(got[1:], wanted[1:]):
            np.testing.assert_allclose(mine[:, i], one[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number, mantissa, bias", [(18, 3, 8), (20, 2, 16)])
def test_floats_without_a_negative_zero(number, mantissa, bias):
    values = np.arange(256)
    content = field(1, 256) + field(2, number) + field(9, values.astype("uint8").tobytes())
    got = _C.onnx_tensor(content).numpy()
    exponent, rest = (values & 127) >> mantissa, values & ((1 << mantissa) - 1)
    wanted = np.where(exponent == 0, rest * 2.0 ** (1 - bias - mantissa), (rest + (1 << mantissa)) * 2.0 ** (exponent - bias - mantissa))
    wanted = np.where(values == 128, np.nan, np.where(values > 128, -wanted, wanted))
    np.testing.assert_array_equal(got, wanted.astype("float32"))


def test_all_unknown_operators_are_listed(tmp_path):
    nodes = [node("Frobnicate", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Other", ["b"], ["y"], domain="my.domain")]
    m = loaded(tmp_path, model(nodes, [port("x", [2])], ["y"]))
    with pytest.raises(NotImplementedError, match="cannot import yet: Frobnicate, my.domain::Other"):
        m(random(2))


def test_a_cycle(tmp_path):
    m = loaded(tmp_path, model([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])], [port("x", [2])], ["b"]))
    with pytest.raises(ValueError, match="Add 'the Add' reads 'b', which nothing before it computes"):
        m(random(2))


def test_a_wrong_dtype_or_size_names_the_input(tmp_path):
    m = loaded(tmp_path, model([node("Relu", ["x"], ["y"])], [port("x", [2, 3])], ["y"]))
    with pytest.raises((TypeError, ValueError), match="'x'"):
        m(np.zeros((2, 3), "int64"))
    with pytest.raises(ValueError, match="'x'"):
        m(random(2, 4))


@pytest.mark.parametrize("sizes, why", [([1 << 62, 1 << 62], "more than can be addressed"), ([-3], "negative"), ([4], "bytes instead of")])
def test_a_weight_that_does_not_fit_its_bytes(sizes, why, tmp_path):
    weight = b"".join(field(1, s) for s in sizes) + field(2, 1) + field(8, "w") + field(9, b"\0" * 8)
    graph = field(1, node("Add", ["x", "w"], ["y"])) + field(5, weight) + field(11, port("x", [2])) + field(12, port("y"))
    with pytest.raises(ValueError, match=why):
        loaded(tmp_path, field(1, 8) + field(7, graph) + field(8, field(2, 17)))


@pytest.mark.parametrize("location", ["../secret", "/etc/hostname", "link/../../secret"])
def test_external_data_stays_in_its_folder(location, tmp_path):
    (tmp_path / "secret").write_bytes(b"\0" * 8)
    folder = tmp_path / "inner"
    folder.mkdir()
    where = field(13, field(1, "location") + field(2, location))
    weight = field(1, 2) + field(2, 1) + field(8, "w") + where + field(14, 1)
    graph = field(1, node("Add", ["x", "w"], ["y"])) + field(5, weight) + field(11, port("x", [2])) + field(12, port("y"))
    with pytest.raises(ValueError, match="outside of the model's folder"):
        loaded(folder, field(1, 8) + field(7, graph))


def test_external_data(tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"junk" + np.float32([3, 4]).tobytes())
    where = b"".join(field(13, field(1, k) + field(2, v)) for k, v in [("location", "weights.bin"), ("offset", "4"), ("length", "8")])
    weight = field(1, 2) + field(2, 1) + field(8, "w") + where + field(14, 1)
    graph = field(1, node("Add", ["x", "w"], ["y"])) + field(5, weight) + field(11, port("x", [2])) + field(12, port("y"))
    m = loaded(tmp_path, field(1, 8) + field(7, graph) + field(8, field(2, 17)))
    np.testing.assert_array_equal(m(np.float32([1, 2]))[0].numpy(), [4, 6])


def test_damaged_files_are_errors(tmp_path):
    """Cut off anywhere, or with random bytes: a model or an error."""
    content = model([node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["y"])],
                    [port("x", ["n", 3, 8, 8])], ["y"], {"w": random(4, 3, 3, 3)})
    rng = np.random.default_rng(1)
    x, errors, runs = random(1, 3, 8, 8), 0, 0
    cut = [content[:n] for n in rng.integers(0, len(content), 150)]
    changed = []
    for _ in range(600):
        data = bytearray(content)
        for at in rng.integers(0, len(data), rng.integers(1, 6)):
            data[at] = rng.integers(0, 256)
        changed.append(bytes(data))
    for data in cut + changed:
        try:
            _C.onnx_model(data, str(tmp_path)).run([oar.to_tensor(x)])
            runs += 1
        except (ValueError, TypeError, RuntimeError, OSError):
            errors += 1
    assert errors > 200 and runs > 50


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        oar.onnx.load(tmp_path / "no.onnx")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        oar.onnx.load(tmp_path)
