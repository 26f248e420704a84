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


def test_complex_and_ordered_values_at_every_protocol():
    value = OrderedDict(z=oar.to_tensor([1 + 2j]), scalar=oar.to_tensor(2.5), empty=oar.zeros([0, 3]), half=oar.ones([2]).astype("bfloat16"))
    for protocol in (2, 3, 4):
        for nested in (value, {"states": value, "n": 1}):
            file = io.BytesIO()
            oar.save(nested, file, protocol=protocol)
            file.seek(0)
            back = oar.load(file)
            back = back.get("states", back)
            assert back["z"].tolist() == [1 + 2j] and back["scalar"].shape == [] and back["empty"].shape == [0, 3]
            assert back["half"].dtype == oar.bfloat16


def test_arrays_next_to_tensors_stay_arrays():
    file = io.BytesIO()
    oar.save({"tensor": oar.ones([1]), "array": np.ones(1)}, file)
    oar.save({"array": np.ones(1)}, file)
    file.seek(0)
    back = oar.load(file)
    assert isinstance(back["tensor"], oar.Tensor) and isinstance(back["array"], np.ndarray)
    assert isinstance(oar.load(file)["array"], oar.Tensor)


@pytest.mark.parametrize("dtype", "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 float8_e4m3fn".split())
@pytest.mark.parametrize("shape", [[], [0, 3], [2, 3]])
def test_binary_format(tmp_path, dtype, shape):
    tensor = oar.full(shape, 1.5).astype(dtype)
    oar.save(tensor, tmp_path / "x", use_binary_format=True)
    back = oar.load(tmp_path / "x")
    assert back.dtype == tensor.dtype and back.shape == shape
    assert np.array_equal(back.numpy(), tensor.numpy())
    assert isinstance(oar.load(tmp_path / "x", return_numpy=True), np.ndarray)


def test_binary_format_of_selected_rows_and_of_damaged_files(tmp_path):
    file = io.BytesIO()
    oar.save(oar.to_tensor([[1.0, 2.0], [3.0, 4.0]]), file, use_binary_format=True)
    tensor = file.getvalue()[12:]  # without the levels of sequences
    rows = struct.pack("<IQqqq", 0, 2, 3, 1, 5) + tensor  # rows 3 and 1 of 5
    assert oar.load(io.BytesIO(rows)).tolist() == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0], [1.0, 2.0], [0.0, 0.0]]
    whole = file.getvalue()
    for damaged in (whole[:-1], whole + b"x", whole[:20], struct.pack("<IQqqq", 0, 2, 3, 1, 1 << 40) + tensor):
        (tmp_path / "bad").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"\[load\] '.*bad' begins like a tensor"):
            oar.load(tmp_path / "bad")
    with pytest.raises(NotImplementedError, match="takes a single tensor, but received dict"):
        oar.save({}, tmp_path / "x", use_binary_format=True)
    with pytest.raises(TypeError, match="use_binary_format should be True or False"):
        oar.save(oar.ones([1]), tmp_path / "x", use_binary_format=1)


class Evaluated:
    """As Paddle pickles a tensor of a static graph."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        return eval, self.arguments


def test_tensors_of_static_graphs_are_read_and_nothing_is_evaluated():
    back = oar.load(io.BytesIO(pickle.dumps({"a": Evaluated("data", {"data": np.arange(3)}), "n": 1})))
    assert back["a"].tolist() == [0, 1, 2]
    for harmful in (("data.any()", {"data": np.arange(3)}), ("data", {"data": 1}, {}), ("data", {"data": 1, "x": 2}), ("1",)):
        with pytest.raises(pickle.UnpicklingError, match="eval"):
            oar.load(io.BytesIO(pickle.dumps(Evaluated(*harmful))))


def test_a_damaged_entry_is_named(tmp_path):
    states = {"first.weight": oar.ones([50]), "first.bias": oar.ones([50])}
    for value, place in ((states, "first.bias"), ({"model": states, "epoch": 1}, "model.first.bias")):
        oar.save(value, tmp_path / "x.pdparams")
        content = (tmp_path / "x.pdparams").read_bytes()
        (tmp_path / "x.pdparams").write_bytes(content[:-150])
        with pytest.raises(pickle.UnpicklingError, match=rf"x.pdparams' .*pickle of {len(content) - 150} bytes .*cut off in '{place}'"):
            oar.load(tmp_path / "x.pdparams")


def test_float8(tmp_path):
    tensor = oar.to_tensor([1.0, 2.5, -3.0]).astype("float8_e4m3fn")
    oar.save({"x": tensor}, tmp_path / "x.safetensors")
    assert oar.load(tmp_path / "x.safetensors")["x"].astype("float32").tolist() == [1.0, 2.5, -3.0]
    with pytest.warns(UserWarning, match="as int8, as Paddle does"):
        oar.save({"x": tensor}, tmp_path / "x.pdparams")
    assert oar.load(tmp_path / "x.pdparams")["x"].dtype == oar.int8


def test_programs(tmp_path):
    oar.enable_static()
    try:
        main = oar.static.Program()
        with oar.static.program_guard(main, oar.static.Program()):
            oar.exp(oar.static.data("x", [2], "float32"))
        oar.save(main, tmp_path / "main")
        assert "exp" in str(oar.load(tmp_path / "main"))
    finally:
        oar.disable_static()


def test_a_prefix_is_answered_with_the_whole_name(tmp_path):
    oar.save({}, tmp_path / "net.pdparams")
    with pytest.raises(ValueError, match=r"Pass the whole name: '.*net.pdparams'"):
        oar.load(tmp_path / "net")
