"""Caffe's models: layers against NumPy, both versions of the format, files that are wrong."""

import numpy as np
import pytest
from onnx_files import field

import oar


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def blob(array, old=False):
    array = np.asarray(array, dtype="float32")
    data = field(5, array.tobytes())
    if old:
        sizes = [1] * (4 - array.ndim) + list(array.shape)
        return b"".join(field(i + 1, size) for i, size in enumerate(sizes)) + data
    return field(7, field(1, b"".join(bytes([s]) for s in array.shape))) + data


def weights(layers, old=False):
    """A .caffemodel: arrays by the names of layers."""
    made = field(1, "net")
    for name, arrays in layers.items():
        blobs = b"".join(field(6 if old else 7, blob(a, old)) for a in arrays)
        made += field(2, field(4, name) + blobs) if old else field(100, field(1, name) + blobs)
    return made


def run(tmp_path, layers, inputs, blobs=None, old=False):
    """The outputs of a net of layers, given as text; inputs by name."""
    text = "".join(f'input: "{n}" input_shape {{ {" ".join(f"dim: {s}" for s in a.shape)} }}\n' for n, a in inputs.items()) + layers
    (tmp_path / "net.prototxt").write_text(text)
    (tmp_path / "net.caffemodel").write_bytes(weights(blobs or {"none": [np.zeros(1)]}, old))
    model = oar.interop.load_caffe(tmp_path / "net.prototxt", tmp_path / "net.caffemodel")
    return [out.numpy() for out in model(inputs)]


def layer(kind, more="", bottoms=("x",), tops=("y",), name="l"):
    ends = " ".join(f'bottom: "{b}"' for b in bottoms) + " " + " ".join(f'top: "{t}"' for t in tops)
    return f'layer {{ name: "{name}" type: "{kind}" {ends} {more} }}\n'


def pooled(x, k, s, p, function, counts_padding=True):
    """Caffe's pooling, window by window."""
    size = x.shape[2]
    count = -(-(size + 2 * p - k) // s) + 1
    if p and (count - 1) * s >= size + p:
        count -= 1
    made = np.zeros((*x.shape[:2], count, count), "float32")
    for i in range(count):
        for j in range(count):
            a, b = i * s - p, j * s - p
            ends = min(a + k, size + p), min(b + k, size + p)
            window = x[:, :, max(a, 0):min(ends[0], size), max(b, 0):min(ends[1], size)]
            whole = (ends[0] - a) * (ends[1] - b)
            made[:, :, i, j] = window.max((2, 3)) if function == "MAX" else window.sum((2, 3)) / whole
    return made


@pytest.mark.parametrize("function", ["MAX", "AVE"])
@pytest.mark.parametrize("size, k, s, p", [(7, 3, 2, 0), (8, 3, 2, 0), (8, 3, 2, 1), (6, 2, 3, 1), (5, 5, 1, 2), (9, 2, 2, 1)])
def test_pooling_rounds_up(function, size, k, s, p, tmp_path):
    x = random(2, 3, size, size)
    text = layer("Pooling", f"pooling_param {{ pool: {function} kernel_size: {k} stride: {s} pad: {p} }}")
    np.testing.assert_allclose(run(tmp_path, text, {"x": x})[0], pooled(x, k, s, p, function), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("old", [False, True])
def test_a_small_net_of_both_versions(old, tmp_path):
    x, w, b, v = random(2, 3, 5, 5), random(4, 3, 1, 1, seed=1), random(4, seed=2), random(6, 100, seed=3)
    if old:
        text = """
            layers { name: 'c' type: CONVOLUTION bottom: 'x' top: 'c' convolution_param { num_output: 4 kernel_size: 1 } }
            layers { name: 'r' type: RELU bottom: 'c' top: 'c' }  # in place
            layers { name: 'd' type: DROPOUT bottom: 'c' top: 'c' dropout_param { dropout_ratio: 0.5 } }
            layers { name: 'i' type: INNER_PRODUCT bottom: 'c' top: 'i' inner_product_param { num_output: 6 bias_term: false } }
            layers { name: 's' type: SOFTMAX bottom: 'i' top: 'prob' }"""
    else:
        text = (layer("Convolution", "convolution_param { num_output: 4 kernel_size: [1, 1] }", tops=["c"], name="c")
                + layer("ReLU", "", ["c"], ["c"], "r") + layer("Dropout", "include { phase: TRAIN }", ["c"], ["c"], "d")
                + layer("InnerProduct", "inner_product_param: { num_output: 6; bias_term: false }", ["c"], ["i"], "i")
                + layer("Softmax", "", ["i"], ["prob"], "s"))
    hidden = np.maximum(np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0]) + b[:, None, None], 0)
    scores = hidden.reshape(2, -1) @ v.T
    wanted = np.exp(scores - scores.max(1, keepdims=True))
    got, = run(tmp_path, text, {"x": x}, {"c": [w, b], "i": [v]}, old)
    np.testing.assert_allclose(got, wanted / wanted.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_normalisations(tmp_path):
    x, mean, var = random(2, 4, 3, 3), random(4, seed=1), np.abs(random(4, seed=2)) + 0.5
    scale, bias = random(4, seed=3), random(4, seed=4)
    column = (slice(None), None, None)
    text = layer("BatchNorm", "batch_norm_param { eps: 0.001 }", tops=["b"], name="b") \
        + layer("Scale", "scale_param { bias_term: true }", ["b"], ["y"], "s")
    got, = run(tmp_path, text, {"x": x}, {"b": [mean * 8, var * 8, [8]], "s": [scale, bias]})
    wanted = (x - mean[column]) / np.sqrt(var[column] + 0.001) * scale[column] + bias[column]
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)

    squares = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    total = squares[:, :4] + squares[:, 1:5] + squares[:, 2:]
    got, = run(tmp_path, layer("LRN", "lrn_param { local_size: 3 alpha: 0.3 beta: 0.5 k: 2 }"), {"x": x})
    np.testing.assert_allclose(got, x / (2 + 0.1 * total) ** 0.5, rtol=1e-5)
    within = pooled(x * x, 3, 1, 1, "AVE")
    got, = run(tmp_path, layer("LRN", "lrn_param { local_size: 3 alpha: 0.3 norm_region: WITHIN_CHANNEL }"), {"x": x})
    np.testing.assert_allclose(got, x * (1 + 0.3 * within) ** -0.75, rtol=1e-4)


@pytest.mark.parametrize("text, function", [
    (layer("ReLU", "relu_param { negative_slope: 0.1 }"), lambda x: np.where(x > 0, x, x * np.float32(0.1))),
    (layer("ELU", "elu_param { alpha: 2 }"), lambda x: np.where(x > 0, x, 2 * np.expm1(x))),
    (layer("Sigmoid"), lambda x: 1 / (1 + np.exp(-x))), (layer("TanH"), np.tanh), (layer("AbsVal"), np.abs),
    (layer("Power", "power_param { power: 2 scale: 0.5 shift: 3 }"), lambda x: (3 + 0.5 * x) ** 2),
    (layer("Exp", "exp_param { base: 2 }"), np.exp2), (layer("BNLL"), lambda x: np.log1p(np.exp(x))),
    (layer("Threshold", "threshold_param { threshold: 0.2 }"), lambda x: (x > 0.2).astype("float32")),
    (layer("Flatten"), lambda x: x.reshape(2, -1)), (layer("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 2 } }"),
                                                     lambda x: x.reshape(2, -1, 2)),
    (layer("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }"), lambda x: x.transpose(0, 2, 3, 1)),
    (layer("Softmax", "softmax_param { axis: 2 }"), lambda x: np.exp(x) / np.exp(x).sum(2, keepdims=True)),
    (layer("Tile", "tile_param { tiles: 3 }"), lambda x: np.tile(x, (1, 3, 1, 1))),
    (layer("Reduction", "reduction_param { operation: ASUM axis: 1 }"), lambda x: np.abs(x).sum((1, 2, 3))),
    (layer("ArgMax", "argmax_param { axis: 1 }"), lambda x: x.argmax(1)[:, None].astype("float32")),
    (layer("MVN"), lambda x: (x - x.mean((2, 3), keepdims=True)) / (x.std((2, 3), keepdims=True) + 1e-9)),
    (layer("ShuffleChannel", "shuffle_channel_param { group: 2 }"), lambda x: x[:, [0, 2, 1, 3]]),
    (layer("Pooling", "pooling_param { pool: AVE global_pooling: true }"), lambda x: x.mean((2, 3), keepdims=True)),
])
def test_layers_without_weights(text, function, tmp_path):
    x = random(2, 4, 4, 2)
    got, = run(tmp_path, text, {"x": x})
    np.testing.assert_allclose(got, function(x), rtol=1e-4, atol=1e-5)


def test_layers_with_several_inputs_or_outputs(tmp_path):
    a, b = random(2, 3, 4, 4), random(2, 3, 4, 4, seed=1)
    sides = {"a": a, "b": b}
    for text, wanted in [
        ("coeff: 2 coeff: -1", 2 * a - b), ("operation: PROD", a * b), ("operation: MAX", np.maximum(a, b)),
    ]:
        got, = run(tmp_path, layer("Eltwise", f"eltwise_param {{ {text} }}", sides), sides)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    got, = run(tmp_path, layer("Concat", "", sides), sides)
    np.testing.assert_array_equal(got, np.concatenate([a, b], 1))
    first, rest = run(tmp_path, layer("Slice", "slice_param { slice_point: 1 }", ["a"], ["p", "q"]), {"a": a})
    np.testing.assert_array_equal(first, a[:, :1])
    np.testing.assert_array_equal(rest, a[:, 1:])
    small = random(2, 3, 2, 3, seed=2)
    got, = run(tmp_path, layer("Crop", "crop_param { axis: 2 offset: 1 }", ["a", "s"]), {"a": a, "s": small})
    np.testing.assert_array_equal(got, a[:, :, 1:3, 1:4])


def test_deconvolution_and_prelu(tmp_path):
    x, w, slope = random(1, 2, 3, 3), random(2, 1, 2, 2, seed=1), random(2, seed=2)
    wanted = np.zeros((1, 2, 6, 6), "float32")
    for i in range(3):
        for j in range(3):
            wanted[:, :, 2 * i:2 * i + 2, 2 * j:2 * j + 2] += x[:, :, i, j, None, None] * w[None, :, 0]
    text = layer("Deconvolution", "convolution_param { num_output: 2 kernel_size: 2 stride: 2 group: 2 bias_term: false }", name="d",
                 tops=["d"]) + layer("PReLU", "", ["d"], name="p")
    got, = run(tmp_path, text, {"x": x}, {"d": [w], "p": [slope]})
    np.testing.assert_allclose(got, np.where(wanted > 0, wanted, wanted * slope[:, None, None]), rtol=1e-5, atol=1e-6)


def test_other_sizes_run_too(tmp_path):
    run(tmp_path, layer("Pooling", "pooling_param { kernel_size: 2 stride: 2 }"), {"x": random(1, 1, 4, 4)})
    model = oar.interop.load_caffe(tmp_path / "net.prototxt", tmp_path / "net.caffemodel")
    assert (model.inputs, model.outputs, model.shapes) == (["x"], ["y"], {"x": [1, 1, 4, 4]})
    assert list(model(random(3, 1, 7, 5))[0].shape) == [3, 1, 4, 3]
    with pytest.raises(ValueError, match="has 2 axes, but the model takes"):
        model(random(3, 1))
    with pytest.raises(ValueError, match="dtype"):
        model(np.zeros((1, 1, 4, 4), "int32"))


@pytest.mark.parametrize("text, error, message", [
    ("layer {", ValueError, "line 1 of the text is wrong: a message has no end"),
    ("layer { name 'x' }", ValueError, "after a name comes"), ("a: 'b\n'", ValueError, "a string has no end"),
    ("a {" * 100, ValueError, "nested too deeply"), ("name: 'x'", ValueError, "the file has no layers"),
    ("input: 'x' " + layer("ReLU"), ValueError, "not as many shapes"),
    (layer("Data") + layer("ReLU"), NotImplementedError, "the net has no inputs"),
    ("input: 'x' input_dim: [1,1,1,-1]" + layer("ReLU"), ValueError, "no shape that is possible"),
    ("input: 'x' input_dim: [1,1,1,1]" + layer("Proposal") + layer("ROIPooling"), NotImplementedError, "Proposal, ROIPooling"),
])
def test_files_that_are_wrong(text, error, message, tmp_path):
    (tmp_path / "net.prototxt").write_text(text)
    (tmp_path / "net.caffemodel").write_bytes(weights({"l": [np.zeros(1)]}))
    with pytest.raises(error, match=message):
        oar.interop.load_caffe(tmp_path / "net.prototxt", tmp_path / "net.caffemodel")


def test_weights_that_are_wrong(tmp_path):
    convolution = layer("Convolution", "convolution_param { num_output: 4 kernel_size: 1 }")
    with pytest.raises(NotImplementedError, match="the file of weights has 0 for it, but it needs"):
        run(tmp_path, convolution, {"x": random(1, 3, 2, 2)})
    with pytest.raises(NotImplementedError, match="its windows do not fit"):
        run(tmp_path, layer("Pooling", "pooling_param { kernel_size: 9 }"), {"x": random(1, 3, 2, 2)})
    (tmp_path / "net.caffemodel").write_bytes(field(100, field(1, "l") + field(7, field(7, field(1, b"\x05")) + field(5, b"\0" * 8))))
    with pytest.raises(ValueError, match="has 2 numbers, but its shape"):
        oar.interop.load_caffe(tmp_path / "net.prototxt", tmp_path / "net.caffemodel")
    with pytest.raises(FileNotFoundError, match=r"load_caffe\] 'nowhere"):
        oar.interop.load_caffe("nowhere.prototxt", "nowhere.caffemodel")
