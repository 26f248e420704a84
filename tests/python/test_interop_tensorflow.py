"""TensorFlow's models: operators against NumPy, functions, variables, weights of TensorFlow.js, files that are wrong."""

import base64
import random as chances

import numpy as np
import pytest
import tensorflow_files as tf
from tensorflow_files import Function, Type, const, field, graph, node, placeholder

import oar


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


@pytest.fixture
def load(tmp_path):
    """Loads the bytes of a frozen graph."""

    def loading(content, **options):
        path = tmp_path / "graph.pb"
        path.write_bytes(content)
        return oar.interop.load_tensorflow(path, **options)

    return loading


def one(load, op, inputs, outputs=1, **attributes):
    """What a graph of one operator computes. Arrays that are not the first one are constants."""
    nodes = [placeholder("x", *inputs[0].shape, dtype=inputs[0].dtype.name), *(const(f"c{i}", array) for i, array in enumerate(inputs[1:]))]
    nodes.append(node("y", op, "x", *(f"c{i}" for i in range(len(inputs) - 1)), **attributes))
    made = [m.numpy() for m in load(graph(nodes), outputs=[f"y:{i}" for i in range(outputs)])(inputs[0])]
    return made[0] if outputs == 1 else made


def padded_windows(x, kernel, stride, same, fill=0.0):
    """Windows of an image [n, h, w, c], as [n, y, x, kh, kw, c]."""
    pads = [(0, 0)]
    for size, k, s in zip(x.shape[1:3], kernel, stride):
        total = max((-(-size // s) - 1) * s + k - size, 0) if same else 0
        pads.append((total // 2, total - total // 2))
    x = np.pad(x, [*pads, (0, 0)], constant_values=fill)
    view = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=(1, 2))[:, ::stride[0], ::stride[1]]
    return np.moveaxis(view, 3, -1)


@pytest.mark.parametrize("padding, stride", [("SAME", (1, 1)), ("SAME", (2, 2)), ("VALID", (1, 2))])
def test_convolutions_and_pooling(load, padding, stride):
    x, w = random(2, 7, 6, 3), random(3, 2, 3, 4, seed=1)
    windows = padded_windows(x, (3, 2), stride, padding == "SAME")
    steps = {"strides": [1, *stride, 1], "padding": padding}
    wanted = np.einsum("nyxhwc,hwco->nyxo", windows, w)
    np.testing.assert_allclose(one(load, "Conv2D", [x, w], **steps), wanted, rtol=1e-4, atol=1e-5)
    first = {"strides": [1, 1, *stride], "padding": padding, "data_format": "NCHW"}
    np.testing.assert_allclose(one(load, "Conv2D", [x.transpose(0, 3, 1, 2).copy(), w], **first), wanted.transpose(0, 3, 1, 2), rtol=1e-4, atol=1e-5)
    w = random(3, 2, 3, 2, seed=3)
    wanted = np.einsum("nyxhwc,hwcm->nyxcm", windows, w).reshape(*windows.shape[:3], 6)
    np.testing.assert_allclose(one(load, "DepthwiseConv2dNative", [x, w], **steps), wanted, rtol=1e-4, atol=1e-5)
    holes = padded_windows(x, (3, 2), stride, padding == "SAME", np.nan)
    steps["ksize"] = [1, 3, 2, 1]
    np.testing.assert_allclose(one(load, "MaxPool", [x], **steps), np.nanmax(holes, (3, 4)), rtol=1e-6)
    np.testing.assert_allclose(one(load, "AvgPool", [x], **steps), np.nanmean(holes, (3, 4)), rtol=1e-5, atol=1e-6)


def test_explicit_padding_and_fused_nodes(load):
    x, w, b = random(1, 5, 5, 2), random(3, 3, 2, 3, seed=1), random(3, seed=2)
    padded = np.pad(x, [(0, 0), (2, 0), (0, 1), (0, 0)])
    sums = np.einsum("nyxhwc,hwco->nyxo", padded_windows(padded, (3, 3), (1, 1), False), w) + b
    fused = field(1, field(2, "BiasAdd") + field(2, "Relu6"))
    nodes = [placeholder("x", *x.shape), const("w", w), const("b", b),
             node("y", "_FusedConv2D", "x", "w", "b", strides=[1, 1, 1, 1], padding="EXPLICIT", explicit_paddings=[0, 0, 2, 0, 0, 1, 0, 0])
             + field(5, field(1, "fused_ops") + field(2, fused))]
    np.testing.assert_allclose(load(graph(nodes))(x)[0].numpy(), np.clip(sums, 0, 6), rtol=1e-4, atol=1e-5)


def test_transposed_convolution(load):
    x, w = random(1, 3, 3, 2), random(2, 2, 1, 2, seed=1)
    wanted = np.zeros((1, 6, 6, 1), "float32")
    for i in range(3):
        for j in range(3):
            wanted[0, 2 * i:2 * i + 2, 2 * j:2 * j + 2, 0] += np.einsum("hwc,c->hw", w[:, :, 0], x[0, i, j])
    nodes = [placeholder("x", *x.shape), const("s", np.int32([1, 6, 6, 1])), const("w", w),
             node("y", "Conv2DBackpropInput", "s", "w", "x", strides=[1, 2, 2, 1], padding="SAME")]
    np.testing.assert_allclose(load(graph(nodes))(x)[0].numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_normalisation(load):
    x, scale, offset, mean, variance = random(2, 3, 3, 4), random(4), random(4, seed=1), random(4, seed=2), np.abs(random(4, seed=3)) + 0.1
    wanted = (x - mean) / np.sqrt(variance + 0.01) * scale + offset
    got = one(load, "FusedBatchNormV3", [x, scale, offset, mean, variance], epsilon=0.01, is_training=False)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    wanted = (x - x.mean((0, 1, 2))) / np.sqrt(x.var((0, 1, 2)) + 0.01) * scale + offset
    empty = np.zeros(0, "float32")
    got = one(load, "FusedBatchNormV3", [x, scale, offset, empty, empty], epsilon=0.01, is_training=True)
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
    squares = np.stack([np.square(x[..., max(i - 1, 0):i + 2]).sum(-1) for i in range(4)], -1)
    np.testing.assert_allclose(one(load, "LRN", [x], depth_radius=1, alpha=0.5, beta=0.75, bias=2.0), x / (2 + 0.5 * squares) ** 0.75, rtol=1e-4)


X = random(2, 3, 4)
I = np.int32([[7, -7, 5], [-2, 9, 3]])  # noqa: E741
CASES = {
    "add": ("AddV2", [X, random(4)], {}, X + random(4)), "divide": ("RealDiv", [X, random(4)], {}, X / random(4)),
    "divide integers": ("Div", [I, np.int32(2)], {}, np.trunc(I / 2).astype("int32")), "floor": ("FloorDiv", [I, np.int32(2)], {}, I // 2),
    "rest": ("FloorMod", [I, np.int32(4)], {}, I % 4), "rest towards zero": ("TruncateMod", [I, np.int32(4)], {}, np.fmod(I, 4)),
    "no division by zero": ("DivNoNan", [X, np.float32([1, 0, 2, 0])], {}, X / np.float32([1, np.inf, 2, np.inf])),
    "leaky": ("LeakyRelu", [X], {"alpha": 0.5}, np.where(X > 0, X, X / 2)), "prelu": ("Prelu", [X, random(4)], {}, np.where(X > 0, X, X * random(4))),
    "bias": ("BiasAdd", [X, random(3)], {"data_format": "NCHW"}, X + random(3)[:, None]),
    "cast": ("Cast", [X * 3], {"DstT": Type("int32")}, (X * 3).astype("int32")), "clip": ("ClipByValue", [X, np.float32(-1), np.float32(0.5)], {},
                                                                                         np.clip(X, -1, 0.5)),
    "mean": ("Mean", [X, np.int32([1])], {"keep_dims": True}, X.mean(1, keepdims=True)), "max": ("Max", [X, np.int32([0, -1])], {}, X.max((0, 2))),
    "sum of no axes": ("Sum", [X, np.zeros(0, "int32")], {}, X), "arg max": ("ArgMax", [X, np.int32(-1)], {"output_type": Type("int32")}, X.argmax(-1)),
    "softmax": ("Softmax", [X], {}, np.exp(X) / np.exp(X).sum(-1, keepdims=True)), "sums": ("Cumsum", [X, np.int32(1)], {}, X.cumsum(1)),
    "exclusive sums backwards": ("Cumsum", [X, np.int32(1)], {"exclusive": True, "reverse": True}, X[:, ::-1].cumsum(1)[:, ::-1] - X),
    "reshape": ("Reshape", [X, np.int32([4, -1])], {}, X.reshape(4, 6)), "transpose": ("Transpose", [X, np.int32([2, 0, 1])], {}, X.transpose(2, 0, 1)),
    "expand": ("ExpandDims", [X, np.int32(1)], {}, X[:, None]), "squeeze": ("Squeeze", [X[:1]], {"squeeze_dims": [0]}, X[0]),
    "pad": ("PadV2", [X, np.int32([[0, 0], [1, 2], [0, 1]]), np.float32(3)], {}, np.pad(X, [(0, 0), (1, 2), (0, 1)], constant_values=3)),
    "mirror": ("MirrorPad", [X, np.int32([[0, 0], [2, 1], [1, 3]])], {"mode": "REFLECT"}, np.pad(X, [(0, 0), (2, 1), (1, 3)], "reflect")),
    "slice": ("Slice", [X, np.int32([0, 1, 1]), np.int32([-1, 2, 2])], {}, X[:, 1:3, 1:3]),
    "strided": ("StridedSlice", [X, np.int32([0, -1, 3]), np.int32([9, 0, -9]), np.int32([1, 1, -2])],
                {"begin_mask": 1, "end_mask": 5, "shrink_axis_mask": 2}, X[:, -1, 3::-2]),
    "gather": ("GatherV2", [X, np.int32([[2, 0], [1, 1]]), np.int32(1)], {}, X[:, [[2, 0], [1, 1]]]),
    "gather in batches": ("GatherV2", [X, np.int32([[2, 0], [1, 1]]), np.int32(1)], {"batch_dims": 1}, np.stack([X[0, [2, 0]], X[1, [1, 1]]])),
    "gather points": ("GatherNd", [X, np.int32([[1, 2], [0, 0]])], {}, X[[1, 0], [2, 0]]),
    "one hot": ("OneHot", [np.int32([1, 5, 0]), np.int32(3), np.float32(2), np.float32(-1)], {"axis": -1},
                np.float32([[-1, 2, -1], [-1, -1, -1], [2, -1, -1]])),
    "tile": ("Tile", [X, np.int32([1, 2, 1])], {}, np.tile(X, (1, 2, 1))), "reverse": ("ReverseV2", [X, np.int32([-1])], {}, X[..., ::-1]),
    "product": ("BatchMatMulV2", [X, random(2, 5, 4)], {"adj_y": True}, X @ random(2, 5, 4).transpose(0, 2, 1)),
    "matrix": ("MatMul", [X[0], random(3, 5)], {"transpose_a": True}, X[0].T @ random(3, 5)),
    "einsum": ("Einsum", [X, random(4, 5)], {"equation": "abc,cd->abd"}, X @ random(4, 5)),
    "resize": ("ResizeNearestNeighbor", [random(1, 2, 3, 1), np.int32([4, 6])], {}, random(1, 2, 3, 1).repeat(2, 1).repeat(2, 2)),
    "depth to space": ("DepthToSpace", [np.arange(16, dtype="float32").reshape(1, 1, 2, 8)], {"block_size": 2},
                       np.arange(16, dtype="float32").reshape(1, 1, 2, 2, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(1, 2, 4, 2)),
    "space to batch": ("SpaceToBatchND", [random(1, 4, 4, 2), np.int32([2, 2]), np.int32([[0, 0], [0, 0]])], {},
                       random(1, 4, 4, 2).reshape(1, 2, 2, 2, 2, 2).transpose(2, 4, 0, 1, 3, 5).reshape(4, 2, 2, 2)),
    "batch to space": ("BatchToSpaceND", [random(4, 2, 2, 2), np.int32([2, 2]), np.int32([[0, 1], [1, 0]])], {},
                       random(4, 2, 2, 2).reshape(2, 2, 1, 2, 2, 2).transpose(2, 3, 0, 4, 1, 5).reshape(1, 4, 4, 2)[:, :3, 1:]),
    "band": ("MatrixBandPart", [X, np.int32(0), np.int32(-1)], {}, np.triu(X)),
}


@pytest.mark.parametrize("name", CASES)
def test_operators(load, name):
    op, inputs, attributes, wanted = CASES[name]
    got = one(load, op, inputs, **attributes)
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_several_outputs(load):
    x = np.float32([[1, 3, 3, 0], [5, 2, 8, 8]])
    values, places = one(load, "TopKV2", [x, np.int32(3)], outputs=2)
    np.testing.assert_array_equal(values, [[3, 3, 1], [8, 8, 5]])
    np.testing.assert_array_equal(places, [[1, 2, 0], [2, 3, 0]])
    nodes = [placeholder("x", *x.shape), const("axis", np.int32(1)), node("parts", "Split", "axis", "x", num_split=2),
             node("y", "Sub", "parts", "parts:1")]
    np.testing.assert_array_equal(load(graph(nodes))(x)[0].numpy(), x[:, :2] - x[:, 2:])


def test_inputs_and_outputs(load):
    """Placeholders that nothing needs are no inputs; any tensor can be one."""
    nodes = [placeholder("unused", 3), placeholder("x", -1, 4), const("w", X[0]), node("y", "MatMul", "x", "w", T=Type("float32"), transpose_b=True),
             node("z", "Relu", "y"), node("ready", "NoOp", "^z")]
    model = load(graph(nodes))
    assert (model.inputs, model.outputs, model.shapes) == (["x"], ["z"], {"x": ["x_0", 4]})
    for rows in (1, 5):
        np.testing.assert_allclose(model(random(rows, 4))[0].numpy(), np.maximum(random(rows, 4) @ X[0].T, 0), rtol=1e-4, atol=1e-5)
    inner = load(graph(nodes), inputs=["y"], outputs=["z", "y"])
    assert inner.shapes == {"y": None}
    np.testing.assert_array_equal(inner(X)[0].numpy(), np.maximum(X, 0))
    with pytest.raises(ValueError, match="no node 'nowhere'"):
        load(graph(nodes), outputs=["nowhere"])
    for wrong in ("z:99999999999999999999", "z:part:0"):
        with pytest.raises(Exception, match="z:"):
            load(graph(nodes), outputs=[wrong])
        with pytest.raises(Exception, match="z:"):
            load(graph(nodes), inputs=[wrong])


def test_constants_of_repeated_values(load):
    few = field(1, 1) + field(2, tf.shape_of([2, 3])) + field(5, 1.5) + field(5, 2.5)
    nodes = [placeholder("x", 2, 3), node("c", "Const", dtype=Type("float32"), value=few), node("y", "Add", "x", "c")]
    np.testing.assert_array_equal(load(graph(nodes))(np.zeros((2, 3), "float32"))[0].numpy(), [[1.5, 2.5, 2.5], [2.5, 2.5, 2.5]])


def test_sizes_are_constants(load):
    """A shape that is computed from the shape of an open input."""
    nodes = [placeholder("x", -1, 6), node("s", "Shape", "x"), const("zero", np.int32([0])), const("first", np.int32([1])),
             node("n", "StridedSlice", "s", "zero", "first", "first", shrink_axis_mask=1), const("two", np.int32(2)), const("three", np.int32(3)),
             node("t", "Pack", "n", "two", "three"), node("y", "Reshape", "x", "t")]
    model = load(graph(nodes))
    assert list(model(random(4, 6))[0].shape) == [4, 2, 3]
    assert "shape=[4, 2, 3]" in model.program(random(4, 6)).text()


def test_a_branch_on_a_constant(load):
    """tf.cond of old graphs: both branches hold a constant."""
    for truth in (False, True):
        nodes = [placeholder("x", 2), const("training", np.bool_(truth)), node("cond/Switch", "Switch", "training", "training"),
                 node("cond/no", "Identity", "cond/Switch"), node("cond/yes", "Identity", "cond/Switch:1"),
                 const("one", np.float32(1)) + field(3, "^cond/no"), const("ten", np.float32(10)) + field(3, "^cond/yes"),
                 node("cond/Merge", "Merge", "one", "ten"), node("y", "Mul", "x", "cond/Merge")]
        np.testing.assert_array_equal(load(graph(nodes))(np.float32([1, 2]))[0].numpy(), np.float32([1, 2]) * (10 if truth else 1))


def test_places_that_depend_on_the_content(load):
    """Where: the model runs step by step."""
    nodes = [placeholder("x", -1), const("zero", np.float32(0)), node("good", "Greater", "x", "zero"), node("where", "Where", "good"),
             node("y", "GatherNd", "x", "where")]
    model = load(graph(nodes))
    for seed in range(3):
        x = random(7, seed=seed)
        np.testing.assert_array_equal(model(x)[0].numpy(), x[x > 0])
    with pytest.raises(NotImplementedError, match="step by step"):
        model.program(random(7))


def test_boxes(load):
    boxes = np.float32([[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, 2, 1, 3], [1, 1, 0, 0]])
    nodes = [placeholder("boxes", 4, 4), placeholder("scores", 4), const("most", np.int32(3)), const("overlap", np.float32(0.5)), const("least", np.float32(0.2)),
             const("sigma", np.float32(0)), node("y", "NonMaxSuppressionV5", "boxes", "scores", "most", "overlap", "least", "sigma",
                                                 pad_to_max_output_size=True)]
    places, scores, count = load(graph(nodes), outputs=["y", "y:1", "y:2"])(boxes, np.float32([0.5, 0.9, 0.3, 0.1]))
    np.testing.assert_array_equal(places.numpy(), [1, 2, 0])
    assert count.item() == 2
    np.testing.assert_allclose(scores.numpy()[:2], [0.9, 0.3])


COUNTING = tf.function("more", ["i", "x"], {"r": "less:z:0"}, [const("three", np.int32(3)), node("less", "Less", "i", "three:output:0")])
DOUBLING = tf.function("double", ["i", "x"], {"a": "next:z:0", "b": "twice:z:0"},
                       [const("one", np.int32(1)), node("next", "AddV2", "i", "one:output:0"), node("twice", "AddV2", "x", "x")])


def test_functions_and_loops(load):
    nodes = [placeholder("x", 2), const("zero", np.int32(0)), node("loop", "While", "zero", "x", cond=Function("more"), body=Function("double")),
             node("y", "Identity", "loop:1")]
    model = load(graph(nodes, [COUNTING, DOUBLING]))
    np.testing.assert_array_equal(model(np.float32([1, 2]))[0].numpy(), [8, 16])
    assert model.program(np.float32([1, 2])) is not None  # a known number of iterations is part of the program

    negated = tf.function("negated", ["x"], {"r": "n:y:0"}, [node("n", "Neg", "x")])
    same = tf.function("same", ["x"], {"r": "x"}, [])
    nodes = [placeholder("x", 2), const("axes", np.int32([0])), const("zero", np.float32(0)), node("total", "Sum", "x", "axes"),
             node("low", "Less", "total", "zero"), node("y", "If", "low", "x", then_branch=Function("negated"), else_branch=Function("same"))]
    model = load(graph(nodes, [negated, same]))
    for x in ([1, 2], [-5, 2]):
        np.testing.assert_array_equal(model(np.float32(x))[0].numpy(), np.float32(x) * (1 if sum(x) > 0 else -1))


def test_lists(load):
    nodes = [placeholder("x", 3, 2), const("shape", np.int32([2])), const("one", np.int32(1)), const("row", np.float32([7, 8])),
             node("l", "TensorListFromTensor", "x", "shape", element_dtype=Type("float32")), node("set", "TensorListSetItem", "l", "one", "row"),
             node("y", "TensorListStack", "set", "shape", element_dtype=Type("float32"))]
    x = random(3, 2)
    wanted = x.copy()
    wanted[1] = [7, 8]
    np.testing.assert_array_equal(load(graph(nodes))(x)[0].numpy(), wanted)


# ---- SavedModels ---------------------------------------------------------------------------------


W, B = random(4, 3, seed=5), random(3, seed=6)
SIGNATURES = {"serving_default": ({"data": ("x:0", (-1, 4))}, {"result": "call:0"}), "half": ({"data": ("x:0", (-1, 4))}, {"part": "call:1"}),
              "__saved_model_init_op": ({}, {"init": "restore"})}


def small_saved_model():
    nodes, restoring = tf.restoring(["w", "b"])
    dense = tf.function("dense", ["x", "w", "b"], {"sum": "add:z:0", "product": "product:product:0"}, [
        node("w/read", "ReadVariableOp", "w"), node("b/read", "ReadVariableOp", "b"), node("product", "MatMul", "x", "w/read:value:0"),
        node("add", "AddV2", "product:product:0", "b/read:value:0"), node("check", "Assert", "add:z:0")])
    nodes += [placeholder("x", -1, 4), node("call", "StatefulPartitionedCall", "x", "w", "b", f=Function("dense"))]
    return tf.saved_model(graph(nodes, [dense, restoring]), SIGNATURES, "restore")


def test_saved_model(tmp_path):
    folder = tf.write_saved_model(tmp_path, small_saved_model(), *tf.checkpoint({"key/w": W, "key/b": B}))
    x = random(2, 4)
    for path in (folder, folder / "saved_model.pb"):
        model = oar.interop.load_tensorflow(path)
        assert (model.inputs, model.outputs, model.shapes) == (["data"], ["result"], {"data": ["data_0", 4]})
        np.testing.assert_allclose(model({"data": x})[0].numpy(), x @ W + B, rtol=1e-4, atol=1e-5)
    half = oar.interop.load_tensorflow(folder, "half")
    np.testing.assert_allclose(half(x)[0].numpy(), x @ W, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="no signature 'third'; it has: half, serving_default"):
        oar.interop.load_tensorflow(folder, "third")


@pytest.mark.parametrize("wrong, message", [({"offset": 1 << 40}, "outside of its file"), ({"size": -1}, "outside of its file"), ({"size": 4}, "checksum"),
                                            ({"shard": 7}, "the file 7 of 1")])
def test_variables_that_are_wrong(tmp_path, wrong, message):
    folder = tf.write_saved_model(tmp_path, small_saved_model(), *tf.checkpoint({"key/w": W, "key/b": B}, **wrong))
    with pytest.raises(ValueError, match=message):
        oar.interop.load_tensorflow(folder)


def test_saved_models_that_are_wrong(tmp_path):
    index, data = tf.checkpoint({"key/w": W, "key/b": B})
    folder = tf.write_saved_model(tmp_path, small_saved_model())
    with pytest.raises(RuntimeError, match="variables.index"):
        oar.interop.load_tensorflow(folder)
    tf.write_saved_model(tmp_path, small_saved_model(), index[:-1] + b"x", data)
    with pytest.raises(ValueError, match="mark at its end"):
        oar.interop.load_tensorflow(folder)
    for place in range(0, len(index) - 100, 7):  # before the notes, which are not read
        broken = bytearray(index)
        broken[place] ^= 0x55
        tf.write_saved_model(tmp_path, small_saved_model(), bytes(broken), data)
        with pytest.raises((ValueError, NotImplementedError)):
            oar.interop.load_tensorflow(folder)
    tf.write_saved_model(tmp_path, small_saved_model(), index, data[:-1])
    with pytest.raises(ValueError, match="outside of its file"):
        oar.interop.load_tensorflow(folder)
    other = tmp_path / "elsewhere"
    other.write_bytes(data)
    inside = tf.write_saved_model(tmp_path / "inside", small_saved_model(), index, data)
    shard = inside / "variables" / "variables.data-00000-of-00001"
    shard.unlink()
    shard.symlink_to(other)
    with pytest.raises(ValueError, match="outside of its folder"):
        oar.interop.load_tensorflow(inside)


def test_a_model_that_writes_is_refused(tmp_path):
    nodes, restoring = tf.restoring(["w"])
    counting = tf.function("count", ["x", "w"], {"r": "x"}, [node("keep", "AssignVariableOp", "w", "x")])
    nodes += [placeholder("x", 2), node("call", "StatefulPartitionedCall", "x", "w", f=Function("count"))]
    content = tf.saved_model(graph(nodes, [counting, restoring]), {"serving_default": ({"x": ("x:0", (2,))}, {"y": "call:0"})}, "restore")
    folder = tf.write_saved_model(tmp_path, content, *tf.checkpoint({"key/w": W}))
    with pytest.raises(NotImplementedError, match="AssignVariableOp"):
        oar.interop.load_tensorflow(folder)


# ---- TensorFlow.js -------------------------------------------------------------------------------


def text(value):
    return {"s": base64.b64encode(value.encode()).decode()}


NODES = [{"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": {"shape": {"dim": [{"size": "-1"}, {"size": "4"}]}}}},
         {"name": "w", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}}, {"name": "b", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}}},
         {"name": "y", "op": "_FusedMatMul", "input": ["x", "w", "b"], "attr": {"num_args": {"i": "1"}, "transpose_b": {"b": False},
                                                                               "fused_ops": {"list": {"s": [text("BiasAdd")["s"], text("Relu")["s"]]}}}}]


def write_web_model(folder, stored, entry, paths=("part1", "part2"), **more):
    weights = [{"name": "w", "shape": [4, 3], "dtype": "float32", **entry}, {"name": "b", "shape": [3], "dtype": "float32"}]
    content = stored + B.tobytes()
    (folder / "part1").write_bytes(content[:5])
    (folder / "part2").write_bytes(content[5:])
    (folder / "model.json").write_text(tf.web_model(NODES, weights, list(paths), **more))
    return folder


@pytest.mark.parametrize("stored", ["float32", "float16", "uint8", "uint16"])
def test_web_model(tmp_path, stored):
    """Weights in two files, plain and quantised."""
    if stored.startswith("uint"):
        scale = float((W.max() - W.min()) / (255 if stored == "uint8" else 65535))
        packed = np.round((W - W.min()) / scale).astype(stored)
        real = (packed * scale + W.min()).astype("float32")
        entry = {"quantization": {"dtype": stored, "scale": scale, "min": float(W.min())}}
    else:
        packed = W.astype(stored)
        real = packed.astype("float32")
        entry = {"quantization": {"dtype": stored}} if stored == "float16" else {}
    signature = {"inputs": {"image": {"name": "x:0", "tensorShape": {"dim": [{"size": "-1"}, {"size": "4"}]}}}, "outputs": {"out": {"name": "y:0"}}}
    folder = write_web_model(tmp_path, packed.tobytes(), entry, signature=signature)
    model = oar.interop.load_tensorflow(folder)
    assert (model.shapes, model.outputs) == ({"image": ["image_0", 4]}, ["out"])
    np.testing.assert_allclose(model(X[0])[0].numpy(), np.maximum(X[0] @ real + B, 0), rtol=1e-4, atol=1e-5)
    assert oar.interop.load_tensorflow(folder / "model.json").outputs == ["out"]


def test_web_models_that_are_wrong(tmp_path):
    outside = tmp_path / "secret"
    outside.write_bytes(W.tobytes() + B.tobytes())
    folder = tmp_path / "model"
    folder.mkdir()
    for path in ("../secret", str(outside)):
        write_web_model(folder, W.tobytes(), {}, [path])
        with pytest.raises(ValueError, match="outside of its folder"):
            oar.interop.load_tensorflow(folder)
    write_web_model(folder, W.tobytes(), {}, ["nowhere"])
    with pytest.raises(RuntimeError, match="nowhere"):
        oar.interop.load_tensorflow(folder)
    write_web_model(folder, W.tobytes(), {"shape": [1 << 40, 1 << 40]})
    with pytest.raises(ValueError):
        oar.interop.load_tensorflow(folder)
    write_web_model(folder, W.tobytes(), {"shape": [4000, 3]})
    with pytest.raises(ValueError, match="needs 48000 bytes"):
        oar.interop.load_tensorflow(folder)
    (folder / "model.json").write_text('{"modelTopology": {"model_config": {}}, "weightsManifest": []}')
    with pytest.raises(ValueError, match="no architecture"):
        oar.interop.load_tensorflow(folder)
    with pytest.raises(ValueError, match="one of layers"):
        oar.interop.load_tensorflow(folder, inputs=["x"])


# ---- files that are wrong ------------------------------------------------------------------------


GOOD = graph([placeholder("x", 2, 3), const("c", random(3)), node("sum", "AddV2", "x", "c"), const("order", np.int32([1, 0])),
              node("y", "Transpose", "sum", "order")])


def test_files_that_are_wrong(load, tmp_path):
    assert list(load(GOOD)(random(2, 3))[0].shape) == [3, 2]
    with pytest.raises(NotImplementedError, match="cannot import yet: LSTMBlockCell, QuantizedAdd"):
        load(graph([placeholder("x", 1), node("a", "QuantizedAdd", "x"), node("b", "LSTMBlockCell", "a")]))
    with pytest.raises(ValueError, match="cycle"):
        load(graph([placeholder("x", 1), node("a", "AddV2", "x", "b"), node("b", "Neg", "a"), node("c", "Neg", "b")]))(random(1))
    with pytest.raises(ValueError, match="reads 'nowhere'"):
        load(graph([placeholder("x", 1), node("a", "AddV2", "x", "nowhere")]))(random(1))
    with pytest.raises(ValueError, match="two nodes"):
        load(graph([placeholder("x", 1), placeholder("x", 1)]))
    with pytest.raises(ValueError, match="each other"):
        again = tf.function("again", ["x"], {"r": "c:output:0"}, [node("c", "PartitionedCall", "x", f=Function("again"))])
        load(graph([placeholder("x", 1), node("y", "PartitionedCall", "x", f=Function("again"))], [again]))(random(1))
    with pytest.raises(NotImplementedError, match="is a text"):
        load(graph([placeholder("x", dtype="string"), node("y", "Identity", "x")]))
    with pytest.raises(NotImplementedError, match="elements of the same value"):
        huge = field(1, 1) + field(2, tf.shape_of([1 << 30])) + field(5, 0.0)
        load(graph([placeholder("x", 1), node("c", "Const", value=huge), node("y", "AddV2", "x", "c")]))(random(1))
    with pytest.raises(ValueError):
        load(b"")
    with pytest.raises(FileNotFoundError):
        oar.interop.load_tensorflow(tmp_path / "nowhere.pb")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RuntimeError, match="without saved_model.pb"):
        oar.interop.load_tensorflow(tmp_path / "empty")


def test_deep_graphs(load):
    nodes = [placeholder("x", 1), *(node(f"n{i}", "Identity", f"n{i - 1}" if i else "x") for i in range(20000)), node("y", "Neg", "n19999")]
    np.testing.assert_array_equal(load(graph(nodes))(np.float32([3]))[0].numpy(), [-3])


def test_damaged_files_are_errors(load):
    chance = chances.Random(0)
    for _ in range(1500):
        broken = bytearray(GOOD)
        for _ in range(chance.randint(1, 4)):
            broken[chance.randrange(len(broken))] = chance.choice([0, 1, 2, 127, 255, chance.randrange(256)])
        if chance.random() < 0.2:
            del broken[chance.randrange(len(broken)):]
        try:
            made = load(bytes(broken))
            if made.shapes.get("x") == [2, 3] and made.dtypes["x"] == "float32" and len(made.inputs) == 1:
                made(random(2, 3))
        except (ValueError, NotImplementedError, RuntimeError, IndexError, MemoryError, TypeError, FileNotFoundError) as error:
            assert "internal" not in str(error).lower(), error


