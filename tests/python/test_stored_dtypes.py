"""uint32 and uint64 hold numbers but do not compute; pstring and raw are names alone."""

import copy
import pickle

import numpy as np
import pytest

import oar

OTHERS = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "float4_e2m1fn", "uint32", "uint64"]


def content(name, shape=(2, 3)):
    top = np.iinfo(name).max
    return np.array([0, 1, 7, top // 2 + 1, top - 1, top], name).reshape(shape)


@pytest.mark.parametrize("name", ["uint32", "uint64"])
class TestUnsigned:
    def test_numbers(self, name):
        a = content(name)
        x = oar.to_tensor(a)
        assert x.dtype == getattr(oar, name) and x.numpy().dtype == a.dtype
        np.testing.assert_array_equal(x.numpy(), a)
        assert x.tolist() == a.tolist() and x[1, 2].item() == int(a[1, 2]) and x.element_size() == a.itemsize
        assert f"dtype={name}" in repr(x) and str(a[1, 2]) in repr(x)
        assert oar.iinfo(name).max == np.iinfo(name).max and oar.dtype(name) is x.dtype

    def test_creation(self, name):
        for made, wanted in ((oar.zeros([2], name), [0, 0]), (oar.ones([2], name), [1, 1]), (oar.full([2], 5, name), [5, 5]),
                             (oar.to_tensor([3, 4], dtype=name), [3, 4]), (oar.arange(3, dtype=name), [0, 1, 2]),
                             (oar.zeros_like(oar.ones([2], name)), [0, 0])):  # fmt: skip
            assert made.dtype.name == name and made.tolist() == wanted
        assert oar.empty([2, 3], name).shape == [2, 3]

    @pytest.mark.parametrize("other", OTHERS)
    def test_casts(self, name, other):
        a = np.array([0, 1, 2, 3, 6, 1], name)
        there = oar.to_tensor(a).astype(other)
        assert there.dtype.name == other
        values = a.astype(bool).astype(name) if other == "bool" else a
        np.testing.assert_array_equal(there.astype(name).numpy(), values)
        if other in ("int32", "int64", "uint32", "uint64", "float32", "float64"):
            large = content(name)
            np.testing.assert_array_equal(oar.to_tensor(large).astype(other).numpy(), large.astype(other))
        if other.startswith("int") and other != "int4":
            negative = np.array([-1, -2], other)
            np.testing.assert_array_equal(oar.to_tensor(negative).astype(name).numpy(), negative.astype(name))

    def test_views_copies_and_moves(self, name):
        a = content(name)
        x = oar.to_tensor(a)
        for made, wanted in ((x[1], a[1]), (x[:, ::2], a[:, ::2]), (x.T, a.T), (x.reshape([3, 2]), a.reshape(3, 2)),
                             (x.clone(), a), (x.T.contiguous(), a.T), (oar.concat([x, x], 1), np.concatenate([a, a], 1)),
                             (oar.stack([x, x]), np.stack([a, a])), (oar.flip(x, 0), a[::-1]), (oar.tile(x, [2, 1]), np.tile(a, (2, 1))),
                             (copy.deepcopy(x), a), (x.unsqueeze(0).expand([2, 2, 3]), np.broadcast_to(a, (2, 2, 3)))):  # fmt: skip
            assert made.dtype.name == name
            np.testing.assert_array_equal(made.numpy(), wanted)
        y = oar.to_tensor(a)
        y[0].copy_(oar.to_tensor(a[1]))
        np.testing.assert_array_equal(y.numpy(), a[[1, 1]])
        np.testing.assert_array_equal(oar.split(x, 3, 1)[2].numpy(), a[:, 2:])

    def test_files_and_other_libraries(self, name, tmp_path):
        a = content(name)
        x = oar.to_tensor(a)
        oar.save({"x": x}, str(tmp_path / "x.pdparams"))
        loaded = oar.load(str(tmp_path / "x.pdparams"))["x"]
        assert loaded.dtype.name == name and loaded.tolist() == a.tolist()
        assert pickle.loads(pickle.dumps(x)).tolist() == a.tolist()
        np.testing.assert_array_equal(np.from_dlpack(x), a)
        back = oar.utils.dlpack.from_dlpack(oar.utils.dlpack.to_dlpack(x))
        assert back.dtype.name == name and back.tolist() == a.tolist()

    def test_safetensors(self, name, tmp_path):
        from oar.framework.safetensors import load_arrays, save_arrays

        a = content(name)
        with open(tmp_path / "x.safetensors", "wb") as file:
            save_arrays(file, {"x": (a, name)})
        array, dtype = load_arrays(tmp_path / "x.safetensors")[0]["x"]
        assert dtype == name
        np.testing.assert_array_equal(array, a)

    @pytest.mark.parametrize("call", [lambda x: x + x, lambda x: x == x, lambda x: oar.sum(x), lambda x: oar.sort(x), lambda x: -x,
                                      lambda x: x & x, lambda x: oar.matmul(x, x.T), lambda x: oar.where(x, x, x),
                                      lambda x: x * 2, lambda x: oar.maximum(x, x), lambda x: x < 3])  # fmt: skip
    def test_nothing_computes(self, name, call):
        with pytest.raises((TypeError, ValueError), match=f"{name}.*storage|{name}"):
            call(oar.ones([2, 2], name))

    def test_other_dtypes_do_not_mix(self, name):
        with pytest.raises((TypeError, ValueError), match="storage only"):
            oar.ones([2], name) + oar.ones([2])


@pytest.mark.parametrize("name", ["pstring", "raw"])
def test_names_alone(name):
    dtype = getattr(oar, name)
    assert dtype == dtype and dtype != oar.float32 and repr(dtype).endswith(name) and dtype.name == name
    assert hash(dtype) and dtype is oar.dtype(name) and pickle.loads(pickle.dumps(dtype)) is dtype
    for call in (lambda: oar.zeros([2], dtype), lambda: oar.to_tensor([1], dtype=dtype), lambda: oar.ones([2]).astype(dtype)):
        with pytest.raises(TypeError, match=f"{name}"):
            call()


def test_offset():
    x = oar.arange(6, dtype="float32")
    assert (x.offset, x[2:].offset, x.reshape([2, 3])[1].offset, oar.zeros([0]).offset) == (0, 8, 12, 0)
    assert oar.to_tensor(np.arange(4))[3].offset == 24
