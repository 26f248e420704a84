"""Files: Paddle's pickles, safetensors, and malicious files."""

import io
import json
import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

import oar
from oar import nn

DATA = Path(__file__).parent / "data"
RUNS = json.loads((DATA / "optimizer_runs.json").read_text())


def test_state_dict_round_trip(tmp_path):
    net = nn.Linear(3, 2)
    for name in ("net.pdparams", "deep/er/net.safetensors"):
        path = tmp_path / name
        oar.save(net.state_dict(), str(path))
        state = oar.load(str(path))
        assert set(state) == {"weight", "bias"}
        np.testing.assert_array_equal(state["weight"].numpy(), net.weight.numpy())
        assert isinstance(oar.load(path, return_numpy=True)["bias"], np.ndarray)
    assert oar.load(tmp_path / "net.pdparams")["weight"].name == net.weight.name
    assert list(tmp_path.glob("**/*.tmp")) == []


@pytest.mark.parametrize("file", ["linear.pdparams", "linear_protocol2.pdparams"])
def test_parameters_saved_by_paddle(file):
    state = oar.load(DATA / file)
    np.testing.assert_array_equal(state["weight"].numpy(), np.array(RUNS["runs"]["Adam"]["weight"], "float32"))
    assert state["weight"].name == "linear_0.w_0" and set(state) == {"weight", "bias"}
    assert nn.Linear(3, 2).set_state_dict(state) == ([], [])
    table = oar.load(DATA / file, keep_name_table=True)["StructuredToParameterName@@"]
    assert table == {"weight": "linear_0.w_0", "bias": "linear_0.b_0"}


def test_optimizer_saved_by_paddle():
    with oar.framework.unique_name.guard():
        net = nn.Linear(3, 2)
        opt = oar.optimizer.Adam(0.1, parameters=net.parameters())
        opt.set_state_dict(oar.load(DATA / "linear.pdopt"))
        net(oar.zeros([1, 3])).sum().backward()
        opt.step()
        assert abs(float(opt.state_dict()["linear_0.w_0_beta1_pow_acc_0"].numpy()[0]) - 0.9**7) < 1e-6


def test_other_objects_saved_by_paddle():
    value = oar.load(DATA / "nested.pdtensor")
    assert value["a"][0].numpy().tolist() == [1.0, 2.0] and value["a"][1:] == [3, "x"]
    assert str(value["b"].dtype).endswith("bfloat16")
    assert value["b"].astype("float32").numpy().tolist() == [1.5, 2.5]


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_nested_objects(tmp_path, protocol):
    value = {"list": [oar.ones([2]), 1, "text", None], "tuple": (1.5, True), "map": {"x": np.arange(3)}, 3: 2 + 1j}
    oar.save(value, tmp_path / "value", protocol=protocol)
    back = oar.load(tmp_path / "value")
    assert back["list"][0].numpy().tolist() == [1.0, 1.0] and back["list"][1:] == [1, "text", None]
    assert back["tuple"] == (1.5, True) and isinstance(back["map"]["x"], np.ndarray) and back[3] == 2 + 1j


def test_single_tensor_and_buffers(tmp_path):
    oar.save(oar.arange(3), tmp_path / "t")
    assert oar.load(tmp_path / "t").numpy().tolist() == [0, 1, 2]
    buffer = io.BytesIO()
    oar.save({"a": oar.ones([1])}, buffer)
    buffer.seek(0)
    assert oar.load(buffer)["a"].numpy().tolist() == [1.0]


@pytest.mark.parametrize("dtype", "bool uint8 int8 int32 int64 float16 bfloat16 float32 float64".split())
@pytest.mark.parametrize("ending", [".pdparams", ".safetensors"])
def test_dtypes(tmp_path, dtype, ending):
    tensor = oar.to_tensor([0.0, 1.0, 3.0]).astype(dtype)
    path = str(tmp_path / f"x{ending}")
    oar.save({"x": tensor, "scalar": oar.to_tensor(2.5), "empty": oar.zeros([0, 3])}, path)
    back = oar.load(path)
    assert str(back["x"].dtype) == str(tensor.dtype) and back["scalar"].shape == [] and back["empty"].shape == [0, 3]
    np.testing.assert_array_equal(back["x"].astype("float32").numpy(), tensor.astype("float32").numpy())


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ValueError, match="state_dict"):
        oar.save(nn.Linear(1, 1), tmp_path / "x")
    with pytest.raises(ValueError, match="protocol"):
        oar.save({}, tmp_path / "x", protocol=5)
    with pytest.raises(TypeError, match="tensors only"):
        oar.save({"a": 1}, tmp_path / "x.safetensors")
    with pytest.raises(ValueError, match="is not a file"):
        oar.load(tmp_path / "missing")
    assert os.listdir(tmp_path) == []


def test_a_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "x"
    oar.save([1], path)
    with pytest.raises(TypeError):
        oar.save([lambda: None], path)
    assert oar.load(path) == [1] and os.listdir(tmp_path) == ["x"]


class Harmful:
    def __init__(self, function, *arguments):
        self.what = (function, arguments)

    def __reduce__(self):
        return self.what


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        Harmful(os.system, "touch harmed"),
        Harmful(eval, "1"),
        {"weight": [np.ones(2), Harmful(print, "x")]},
        Harmful(np.load, "x"),
        np.array([object()]),
        os.system,
        OrderedDict,
    ],
)
def test_loading_never_runs_code(tmp_path, monkeypatch, value, protocol):
    monkeypatch.chdir(tmp_path)
    Path("bad.pdparams").write_bytes(pickle.dumps(value, protocol=protocol))
    with pytest.raises(pickle.UnpicklingError):
        oar.load("bad.pdparams")
    assert os.listdir() == ["bad.pdparams"]


def test_allowed_functions_cannot_be_changed():
    # GLOBAL numpy dtype, then BUILD with a slot state that sets an attribute.
    attack = b"\x80\x02cnumpy\ndtype\nN}U\x08__call__I1\ns\x86b."
    with pytest.raises(pickle.UnpicklingError):
        oar.load(io.BytesIO(attack))
    assert oar.load(DATA / "linear.pdparams")


def test_damaged_pickles_are_errors_not_crashes():
    whole = (DATA / "linear.pdparams").read_bytes()
    random = np.random.RandomState(0)
    refused = 0
    for _ in range(300):
        damaged = bytearray(whole[: random.randint(1, len(whole) + 1)])
        for _ in range(random.randint(1, 4)):
            damaged[random.randint(len(damaged))] = random.randint(256)
        try:
            oar.load(io.BytesIO(bytes(damaged)))
        except (pickle.UnpicklingError, ValueError, TypeError, AttributeError, KeyError):
            refused += 1
    assert refused > 200  # a damaged number is read like any other


def sealed(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "not even"),
        (struct.pack("<Q", 1 << 60) + b"{}", "claims"),
        (sealed(b"{nope"), "malformed JSON"),
        (sealed([1]), "expected '{'"),
        (sealed({"a": F32}), "needs 4 bytes"),
        (sealed({"a": {**F32, "data_offsets": [4, 8]}}, b"\0" * 8), "gap"),
        (sealed({"a": F32, "b": F32}, b"\0" * 4), "overlaps"),
        (sealed({"a": F32}, b"\0" * 5), "cover"),
        (sealed({"a": {**F32, "dtype": "F31"}}, b"\0" * 4), "unknown dtype"),
        (sealed({"a": {**F32, "shape": [-1]}}, b"\0" * 4), "at least 0"),
        (sealed({"a": {**F32, "shape": [1 << 61, 1 << 61]}}, b"\0" * 4), "larger than any memory"),
        (sealed({"a": {**F32, "data_offsets": [0, True]}}, b"\0" * 4), "at least 0"),
        (sealed({"a": 3}), "expected '{'"),
        (sealed(b'{"a":' + json.dumps(F32).encode() + b',"a":1}', b"\0" * 4), "expected a new key"),
    ],
)
def test_bad_safetensors(tmp_path, content, text):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=text):
        oar.load(path)


def test_safetensors_layout(tmp_path):
    path = tmp_path / "x.safetensors"
    oar.save({"b": oar.ones([2]), "a": oar.to_tensor([1, 2])}, path)
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    assert size % 8 == 0 and header["a"] == {"dtype": "I64", "shape": [2], "data_offsets": [0, 16]}
    assert header["b"]["data_offsets"] == [16, 24] and len(content) == 8 + size + 24
