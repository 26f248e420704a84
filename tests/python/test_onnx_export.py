"""Exported models give the numbers of the layers they were, read back by Oar and, where it is installed, by ONNX Runtime."""

import os

import numpy as np
import pytest

import oar
from oar import nn
from oar.static import InputSpec

F = nn.functional


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def flat(value):
    if isinstance(value, oar.Tensor):
        return [value.numpy()]
    return [array for item in value for array in flat(item)]


def by_runtime(path, arrays):
    """The results of ONNX Runtime, or None if it is not installed."""
    runtime = pytest.importorskip("onnxruntime") if os.environ.get("OAR_ONNX_RUNTIME") else None
    if runtime is None:
        return None
    pytest.importorskip("onnx").checker.check_model(path, full_check=True)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {port.name: array for port, array in zip(session.get_inputs(), arrays)})


def check(net, specs, arrays, tmp_path, **options):
    if isinstance(net, nn.Layer):
        net.eval()
    path = str(tmp_path / "model.onnx")
    oar.onnx.export(net, path, specs, **options)
    wanted = flat(net(*[oar.to_tensor(a) for a in arrays]))
    for got in (flat(oar.onnx.load(path)(*arrays)), by_runtime(path, arrays)):
        if got is None:
            continue
        assert len(got) == len(wanted)
        for g, w in zip(got, wanted):
            assert g.shape == w.shape and g.dtype == w.dtype
            largest = max(1.0, np.abs(w).max(initial=0)) if w.dtype.kind == "f" else 0.0  # random weights may let numbers grow
            np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5 * largest)
    return path


class Recurrent(nn.Layer):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(8, 6, 2, direction="bidirect"), nn.GRU(8, 5)
        self.rnn = nn.SimpleRNN(8, 4)

    def forward(self, x):
        return self.lstm(x), self.gru(x), self.rnn(x)


class Words(nn.Layer):
    """Embeddings, a mask, an encoder, a pooled result: as BERT."""

    def __init__(self):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(50, 16, padding_idx=0), nn.Embedding(20, 16), nn.LayerNorm(16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, activation="gelu"), 2)
        self.pool = nn.Linear(16, 16)

    def forward(self, ids):
        mask = (ids == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        places = oar.arange(ids.shape[1], dtype="int64").unsqueeze(0)
        x = self.encoder(self.norm(self.words(ids) + self.places(places)), mask)
        return x, oar.tanh(self.pool(x[:, 0]))


class Ranks(nn.Layer):
    """Factors of pairs and a deep part: as DeepFM."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.dense = nn.Embedding(100, 1), nn.Embedding(100, 8), nn.Linear(4, 8)
        self.deep = nn.Sequential(nn.Linear(48, 32), nn.ReLU(), nn.BatchNorm1D(32), nn.Dropout(0.3), nn.Linear(32, 1))

    def forward(self, ids, numbers):
        linear = self.first(ids).squeeze(-1).sum(1, keepdim=True)
        e = oar.concat([self.second(ids), self.dense(numbers).unsqueeze(1)], 1)
        pairs = 0.5 * (e.sum(1).square() - e.square().sum(1)).sum(1, keepdim=True)
        return F.sigmoid(linear + pairs + self.deep(e.reshape([-1, 48])))


class Images(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.group = nn.Conv2DTranspose(3, 4, 3, stride=2, padding=1, output_padding=1), nn.GroupNorm(2, 4)
        self.slope, self.norm = nn.PReLU(4), nn.InstanceNorm2D(4)

    def forward(self, x):
        y = self.norm(self.slope(self.group(self.up(x))))
        return (F.interpolate(y, scale_factor=2, mode="nearest"), F.interpolate(y, size=[20, 20], mode="bilinear"),
                F.pad(y, [1, 1, 2, 2], mode="reflect"), y[:, 1:3, ::2, -1], oar.topk(y, 3, axis=1), oar.argmax(y, axis=1),
                oar.cumsum(y, axis=2), oar.flip(y, [2]), F.pixel_shuffle(y, 2), oar.split(y, 2, axis=1), oar.tril(y),
                oar.floor_divide(y, oar.full_like(y, 0.3)), oar.any(y > 1), F.mish(y), F.gelu(y), oar.std(y, 1),
                oar.where(y > 0, y, -y), F.max_pool2d(y, 3, 2, ceil_mode=True), F.avg_pool2d(y, 3, 2, 1))


class Choices(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = oar.static.nn.cond(x.sum() > 0, lambda: self.linear(x), lambda: x * 2)
        i = oar.zeros([1], "int64")
        return oar.static.nn.while_loop(lambda i, y: (i < 3).all(), lambda i, y: [i + 1, oar.tanh(self.linear(y))], [i, y])[1]


CASES = {
    "recurrent": (Recurrent, [InputSpec([None, None, 8], "float32", "x")], [random(3, 7, 8)]),
    "words": (Words, [InputSpec(["n", 5], "int64", "ids")], [np.int64([[1, 2, 3, 0, 0], [4, 5, 6, 7, 8]])]),
    "ranks": (Ranks, [InputSpec(["n", 5], "int64", "ids"), InputSpec(["n", 4], "float32", "numbers")],
              [np.arange(15).reshape(3, 5), random(3, 4)]),
    "images": (Images, [InputSpec(["n", 3, 6, 6], "float32", "x")], [random(2, 3, 6, 6)]),
    "choices": (Choices, [InputSpec([None, 4], "float32", "x")], [random(3, 4)]),
    "transformer": (lambda: nn.Transformer(16, 2, 1, 1, 32),
                    [InputSpec(["n", 5, 16], "float32", "a"), InputSpec(["n", 6, 16], "float32", "b")], [random(2, 5, 16), random(2, 6, 16)]),
    "lenet": (oar.vision.models.LeNet, [InputSpec([None, 1, 28, 28], "float32", "image")], [random(2, 1, 28, 28)]),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_stay(name, tmp_path):
    oar.seed(0)
    make, specs, arrays = CASES[name]
    check(make(), specs, arrays, tmp_path)


@pytest.mark.skipif(not os.environ.get("OAR_ONNX_RUNTIME"), reason="slow; set OAR_ONNX_RUNTIME with onnx and onnxruntime installed")
@pytest.mark.parametrize("name", [n for n in dir(oar.vision.models) if n[0].islower() and callable(getattr(oar.vision.models, n))])
def test_all_vision_models(name, tmp_path):
    size = 299 if "inception" in name else 224
    check(getattr(oar.vision.models, name)(), [InputSpec([None, 3, size, size], "float32", "image")], [random(1, 3, size, size)], tmp_path)


def test_open_sizes_stay_open(tmp_path):
    path = check(nn.Linear(3, 2), [InputSpec(["rows", 3], "float32", "x")], [random(4, 3)], tmp_path)
    model = oar.onnx.load(path)
    for rows in (1, 7):
        assert model(random(rows, 3))[0].shape == [rows, 2]


def test_names(tmp_path):
    oar.onnx.export(nn.Linear(3, 2), tmp_path / "named", [InputSpec([None, 3], "float32", "x")], input_names=["in"], output_names=["out"])
    model = oar.onnx.load(tmp_path / "named.onnx")
    assert (model.inputs, model.outputs) == (["in"], ["out"])


def test_weights_in_a_file_of_their_own(tmp_path):
    check(nn.Linear(40, 30), [InputSpec([None, 40], "float32", "x")], [random(2, 40)], tmp_path, largest_inside=100)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 40 * 30 * 4
    assert (tmp_path / "model.onnx").stat().st_size < 4000


def test_mistakes(tmp_path):
    spec = [InputSpec([3, 3], "float32", "x")]
    with pytest.raises(ValueError, match="there is no option 'zip'"):
        oar.onnx.export(nn.Linear(3, 2), tmp_path / "m", spec, zip=True)
    with pytest.raises(ValueError, match="version 17 to 23"):
        oar.onnx.export(nn.Linear(3, 2), tmp_path / "m", spec, opset_version=99)
    with pytest.raises(TypeError, match="a Layer, a function or a program"):
        oar.onnx.export(3, tmp_path / "m", spec)
    with pytest.raises(NotImplementedError, match="no counterpart for: erfinv, lgamma"):
        oar.onnx.export(lambda x: oar.lgamma(oar.erfinv(x)), tmp_path / "m", spec)
    assert not list(tmp_path.glob("*.onnx"))


def test_cells_of_all_steps_are_refused(tmp_path):
    """ONNX's node has only the last one: another must not take its place."""
    weight, start = oar.to_tensor(random(12, 3)), oar.zeros([2, 3])

    def cells(x):
        return oar._C.ops.recurrent(x, weight, start, start)[1]

    spec = [InputSpec([5, 2, 12], "float32", "x")]
    with pytest.raises(NotImplementedError, match="no counterpart for: recurrent"):
        oar.onnx.export(cells, tmp_path / "all", spec)
    with pytest.raises(NotImplementedError, match="no counterpart for: recurrent"):
        oar.onnx.export(lambda x: cells(x)[2], tmp_path / "middle", spec)
    oar.onnx.export(lambda x: cells(x)[4], tmp_path / "last", spec)
    x = random(5, 2, 12, seed=1)
    (found,) = oar.onnx.load(tmp_path / "last.onnx")(x)
    np.testing.assert_allclose(found.numpy(), cells(oar.to_tensor(x))[4].numpy(), rtol=1e-5, atol=1e-6)
