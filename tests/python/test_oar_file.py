"""``.oar`` files: written by ``jit.save`` and ``save_inference_model``, read by ``jit.load``, predictors and the example's reader."""

import importlib.util
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import oar
from oar import nn
from oar.framework.oar_file import load_oar
from oar.static import InputSpec

EXAMPLE = Path(__file__).parents[2] / "examples" / "oar_reader" / "read_oar.py"


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(3, 4, 3)
        self.norm = nn.BatchNorm2D(4)
        self.drop = nn.Dropout(0.5)
        self.linear = nn.Linear(4, 2)
        self.table = np.arange(300, dtype="float32").reshape(150, 2)

    def forward(self, x):
        """Two scores for each image."""
        y = self.linear(self.drop(nn.functional.relu(self.norm(self.conv(x)))).mean([2, 3]))
        return y + (oar.to_tensor(self.table) * y.mean()).sum(0) / 1000

    @oar.jit.to_static(input_spec=[InputSpec([None, 2], "float32", "q")])
    def back(self, q):
        return q @ self.linear.weight.T


def save(net, path, **options):
    oar.jit.save(net, path, input_spec=[InputSpec(["batch", 3, None, None], "float32", "image")], **options)


@pytest.fixture
def saved(tmp_path):
    oar.seed(3)
    net, path = Net(), str(tmp_path / "net.oar")
    save(net, path, metadata={"licence": "MIT", "über": "é\n"}, docs={"image": "RGB, 0 to 1", "output_0": "two scores"})
    net.eval()
    return net, path


def close(a, b):
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-6)


def header_of(path):
    data = Path(path).read_bytes()
    return json.loads(data[64 : 64 + struct.unpack_from("<Q", data, 16)[0]])


def test_one_file_computes_the_same(saved):
    net, path = saved
    assert os.listdir(os.path.dirname(path)) == ["net.oar"]
    loaded = oar.jit.load(path, verify=True)
    loaded.eval()
    for sizes in ([2, 3, 8, 9], [5, 3, 4, 4]):
        x = oar.randn(sizes)
        close(loaded(x), net(x))
    q = oar.randn([3, 2])
    close(loaded.back(q), net.back(q))
    assert sorted(loaded.state_dict()) == sorted(net.state_dict())


def test_it_trains_further_and_leaves_the_file_alone(saved):
    net, path = saved
    before = Path(path).read_bytes()
    loaded = oar.jit.load(path)
    x, weight = oar.randn([4, 3, 8, 8]), loaded.state_dict()["linear.weight"].numpy().copy()
    optimizer = oar.optimizer.SGD(0.1, parameters=loaded.parameters())
    loaded.train()
    for _ in range(2):
        (loaded(x) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()
    assert not np.array_equal(loaded.state_dict()["linear.weight"].numpy(), weight)
    assert not np.array_equal(loaded.state_dict()["norm._mean"].numpy(), np.zeros(4, "float32"))
    assert Path(path).read_bytes() == before
    save(net, path)  # replaced while its weights are in use
    close(loaded.state_dict()["conv.weight"].shape, [4, 3, 3, 3])


def test_the_header_describes_the_model(saved):
    net, path = saved
    header = header_of(path)
    forward = header["methods"]["forward"]
    assert header["format"] == "oar model" and header["metadata"] == {"licence": "MIT", "über": "é\n"}
    assert forward["doc"] == "Two scores for each image."
    (image,) = forward["inputs"]
    assert (image["name"], image["dtype"], image["doc"]) == ("image", "float32", "RGB, 0 to 1")
    assert image["shape"][:2] == ["batch", 3] and set(forward["sizes"]) == {"batch", *image["shape"][2:]}
    assert forward["outputs"] == [{"name": "output_0", "dtype": "float32", "shape": ["batch", 2], "doc": "two scores"}]
    assert forward["ops"]["conv"] == 1
    assert sorted(header["methods"]) == ["back", "forward"]


def test_large_constants_are_tensors_of_the_file(saved):
    net, path = saved
    content = load_oar(path)
    constants = [t for name, t in content.tensors.items() if ".constant." in name]
    assert any(t.shape == [150, 2] and np.array_equal(t.numpy(), net.table) for t in constants)
    assert b"299.0" not in content.programs["forward"][0]


def test_the_same_model_gives_the_same_bytes(saved):
    net, path = saved
    other = path.replace("net.oar", "again.oar")
    save(net, other), save(net, path)
    assert Path(path).read_bytes() == Path(other).read_bytes()


WRITER = """
import sys, oar
oar.seed(1)
net = oar.nn.Sequential(oar.nn.Conv2D(3, 4, 3), oar.nn.BatchNorm2D(4), oar.nn.Flatten(), oar.nn.Linear(16, 2))
oar.jit.save(net, sys.argv[1], input_spec=[oar.static.InputSpec(["n", 3, 4, 4])], metadata={"b": "1", "a": "2"})
"""


def test_other_processes_write_the_same_bytes(tmp_path):
    written = []
    for seed in ("1", "2"):  # the order of sets and dicts differs between them
        path = tmp_path / f"{seed}.oar"
        subprocess.run([sys.executable, "-c", WRITER, str(path)], check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        written.append(path.read_bytes())
    assert written[0] == written[1]


def test_weights_are_aligned(tmp_path):
    path = str(tmp_path / "wide.oar")
    net = nn.Sequential(nn.Linear(3, 300), nn.Linear(300, 301))
    oar.jit.save(net, path, input_spec=[InputSpec([None, 3])])
    data = Path(path).read_bytes()
    start = -(-(64 + struct.unpack_from("<Q", data, 16)[0]) // 4096) * 4096
    for entry in header_of(path)["tensors"].values():
        begin, end = entry["data_offsets"]
        assert (start + begin) % (4096 if end - begin >= 65536 else 64) == 0


def test_shards(tmp_path, saved):
    net, _ = saved
    path = str(tmp_path / "large.oar")
    save(net, path, shard_size=200)
    files = sorted(os.listdir(tmp_path))
    assert len(header_of(path)["shards"]) > 2 and not header_of(path)["tensors"]
    loaded = oar.jit.load(path, verify=True)
    loaded.eval()
    x = oar.randn([2, 3, 6, 6])
    close(loaded(x), net(x))
    save(net, path, shard_size=600)  # the shards that nothing names any more go
    fewer = sorted(os.listdir(tmp_path))
    assert len(fewer) < len(files) and {row["file"] for row in header_of(path)["shards"]} < set(fewer)
    os.unlink(tmp_path / header_of(path)["shards"][0]["file"])
    with pytest.raises(Exception, match="large-00001-of"):
        oar.jit.load(path)


def test_static_models(tmp_path):
    path = str(tmp_path / "static.oar")
    oar.enable_static()
    try:
        main, startup = oar.static.Program(), oar.static.Program()
        with oar.static.program_guard(main, startup):
            x = oar.static.data("x", [None, 3])
            y = oar.static.nn.fc(x, size=2)
        executor = oar.static.Executor()
        executor.run(startup)
        given = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")
        (wanted,) = executor.run(main, feed={"x": given}, fetch_list=[y])
        oar.static.save_inference_model(path, [x], [y], executor, program=main, metadata={"task": "demo"}, docs={"x": "numbers"})
        with oar.static.scope_guard(oar.static.Scope()):
            program, names, results = oar.static.load_inference_model(path, executor, verify=True)
            close(executor.run(program, feed={names[0]: given}, fetch_list=results)[0], wanted)
    finally:
        oar.disable_static()
    assert header_of(path)["metadata"] == {"task": "demo"}
    predictor = oar.inference.create_predictor(oar.inference.Config(path))
    close(predictor.run([oar.to_tensor(given)])[0], wanted)
    close(oar.jit.load(path)(oar.to_tensor(given)), wanted)


def test_predictors_take_what_jit_save_wrote(saved):
    net, path = saved
    predictor = oar.inference.create_predictor(oar.inference.Config(path))
    assert predictor.get_input_names() == ["image"]
    x = oar.randn([2, 3, 7, 7])
    close(predictor.run([x])[0], net(x))


@pytest.mark.parametrize(("options", "said"), [
    ({"metadata": {"a": 1}}, "metadata should map texts"),
    ({"docs": {"imag": "x"}}, "'imag', which is no input"),
    ({"shard_size": 0}, "number of bytes"),
    ({"shards": 2}, "no option 'shards'"),
])
def test_mistakes_are_named(tmp_path, options, said):
    with pytest.raises((TypeError, ValueError), match=said):
        save(Net(), str(tmp_path / "net.oar"), **options)
    assert os.listdir(tmp_path) == []


def test_damage_is_named(saved):
    _, path = saved
    data = bytearray(Path(path).read_bytes())
    with pytest.raises(ValueError, match="has no method 'other'; it has back, forward"):
        oar.static.load_inference_model(path, None, method="other")
    data[-1] ^= 1  # of the last tensor
    Path(path).write_bytes(data)
    oar.jit.load(path)
    with pytest.raises(ValueError, match="tensor 'linear.* has the checksum"):
        oar.jit.load(path, verify=True)
    data[70] ^= 1
    Path(path).write_bytes(data)
    with pytest.raises(ValueError, match="the header has the checksum"):
        oar.jit.load(path)
    Path(path).write_bytes(data[:100])
    with pytest.raises(ValueError, match="it has 100 bytes, but should have"):
        oar.jit.load(path)
    data[8] = 9
    Path(path).write_bytes(data)
    with pytest.raises(Exception, match=r"version 9\.0.*newer one"):
        oar.jit.load(path)


def test_a_large_file_opens_at_once(tmp_path):
    path = str(tmp_path / "large.oar")
    net = nn.Linear(4096, 4096)
    oar.jit.save(net, path, input_spec=[InputSpec([None, 4096])])
    oar.jit.load(path)
    start = time.perf_counter()
    load_oar(path)
    assert time.perf_counter() - start < 0.05  # reading 64 MB takes longer


def test_a_full_disk_leaves_the_old_file(saved, monkeypatch):
    net, path = saved
    before = Path(path).read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        save(net, path, shard_size=200)
    assert Path(path).read_bytes() == before and os.listdir(os.path.dirname(path)) == ["net.oar"]


# the stand-alone reader --------------------------------------------------------------------------


@pytest.mark.parametrize("shard_size", [None, 200])
def test_the_example_reads_weights_with_numpy_alone(saved, shard_size):
    net, path = saved
    save(net, path, shard_size=shard_size, metadata={"licence": "MIT"})
    spec = importlib.util.spec_from_file_location("read_oar", EXAMPLE)
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    assert "oar" not in {line.split()[1].split(".")[0] for line in EXAMPLE.read_text().splitlines()
                         if line.startswith(("import ", "from "))}
    model = reader.read(path, verify=True)
    for name, tensor in load_oar(path).tensors.items():
        assert np.array_equal(model.weights[name], tensor.numpy())
    assert model.weights["linear_0.w_0"].dtype == np.float32 if "linear_0.w_0" in model.weights else True
    assert model.program("forward").splitlines()[1].startswith("program ")
    listed = subprocess.run([sys.executable, str(EXAMPLE), path], check=True, capture_output=True, text=True).stdout
    assert "image: float32[batch, 3" in listed and "licence" in listed


def test_the_example_finds_damage(saved):
    _, path = saved
    spec = importlib.util.spec_from_file_location("read_oar", EXAMPLE)
    reader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reader)
    data = bytearray(Path(path).read_bytes())
    for at in (3, 9, 30, 80, len(data) - 1):
        changed = bytearray(data)
        changed[at] ^= 1
        Path(path).write_bytes(changed)
        with pytest.raises(ValueError):
            reader.read(path, verify=True)
    Path(path).write_bytes(data[:-1])
    with pytest.raises(ValueError):
        reader.read(path)
