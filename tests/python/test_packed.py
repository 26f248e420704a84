"""Dtypes that are packed below a byte: storage only, with casts, files, NumPy and DLPack."""

import pickle

import ml_dtypes
import numpy as np
import pytest

import oar

NAMES = ["int4", "uint4", "float4_e2m1fn"]
VALUES = {
    "int4": [1, -8, 7, 0, -1],
    "uint4": [1, 15, 7, 0, 8],
    "float4_e2m1fn": [0.5, -6.0, 1.5, 0.0, 4.0],
}


def packed(name, count=5):
    return oar.to_tensor(VALUES[name][:count], dtype=name)


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    t = packed(name)
    assert t.dtype == getattr(oar, name) and t.shape == [5]
    assert t.tolist() == VALUES[name]
    assert t.astype("float32").tolist() == [float(v) for v in VALUES[name]]
    assert oar.to_tensor(np.array(VALUES[name])).astype(name).tolist() == VALUES[name]
    assert packed(name, 1).item() == VALUES[name][0]
    assert str(VALUES[name][0]).rstrip("0").rstrip(".") in repr(t) and name in repr(t)


@pytest.mark.parametrize("name", NAMES)
def test_numpy_and_back(name):
    t = packed(name)
    a = t.numpy()
    assert a.dtype == np.dtype(getattr(ml_dtypes, name))
    np.testing.assert_array_equal(a.astype("float32"), np.array(VALUES[name], "float32"))
    back = oar.to_tensor(a)
    assert back.dtype == t.dtype and back.tolist() == t.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_casts_are_those_of_ml_dtypes(name):
    values = np.concatenate([np.linspace(-20, 20, 161), [0.25, 0.75, -2.5, 5.0]]).astype("float32")
    got = oar.to_tensor(values).astype(name).astype("float32").numpy()
    np.testing.assert_array_equal(got, values.astype(getattr(ml_dtypes, name)).astype("float32"))




@pytest.mark.parametrize("name", NAMES)
def test_files(name, tmp_path):
    state = {"w": packed(name), "m": oar.reshape(packed(name, 4), [2, 2]), "x": oar.ones([3])}
    path = str(tmp_path / "state.safetensors")
    oar.save(state, path)
    loaded = oar.load(path)
    for key, value in state.items():
        assert loaded[key].dtype == value.dtype and loaded[key].tolist() == value.tolist()
    with pytest.raises(TypeError, match="safetensors"):
        oar.save(state, str(tmp_path / "state.pdparams"))
    again = pickle.loads(pickle.dumps(state["w"]))
    assert again.dtype == state["w"].dtype and again.tolist() == state["w"].tolist()


def test_files_are_packed(tmp_path):
    path = tmp_path / "w.safetensors"
    oar.save({"w": packed("int4")}, str(path))
    assert path.read_bytes()[-3:] == bytes([0x81, 0x07, 0x0F])


def test_ops_refuse_them_by_name():
    t = packed("int4")
    for call in (lambda: t + 1, lambda: t.sum(), lambda: oar.concat([t, t]), lambda: oar.ones([5]) * t,
                 lambda: oar.zeros([3], "int4")):
        with pytest.raises((TypeError, NotImplementedError, RuntimeError), match="int4"):
            call()


def test_views():
    t = oar.to_tensor(list(range(8)), dtype="uint4")
    assert t.reshape([2, 4]).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert t[2:6].tolist() == [2, 3, 4, 5]
    assert t.reshape([2, 4])[1].tolist() == [4, 5, 6, 7]
    with pytest.raises(ValueError, match="whole byte"):
        t[1:3]
    with pytest.raises(ValueError, match="contiguous"):
        t.reshape([2, 4]).t()


def test_dlpack():
    t = packed("uint4")
    back = oar.from_dlpack(oar.to_dlpack(t))
    assert back.dtype == t.dtype and back.tolist() == t.tolist()


def test_captured():
    w = packed("int4")
    step = oar.jit.to_static(lambda x: x * w.astype("float32"))
    x = oar.to_tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    for _ in range(2):
        assert step(x).tolist() == (x * w.astype("float32")).tolist()
