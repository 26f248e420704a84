"""NumPy and DLPack: shared memory where it is legal, copies elsewhere, and lifetimes."""

import gc
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import oar

NUMPY_DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
                "complex128"]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_round_trip(dtype, shape):
    a = np.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 5).astype(dtype)
    t = oar.to_tensor(a)
    assert t.dtype.name == dtype and tuple(t.shape) == shape
    b = t.numpy()
    assert b.dtype == a.dtype and b.shape == a.shape
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.asarray(t), a)
    np.testing.assert_array_equal(np.from_dlpack(t), a)
    np.testing.assert_array_equal(oar.from_dlpack(a.copy()).numpy(), a)


def test_to_tensor_copies():
    a = np.zeros(3)
    t = oar.to_tensor(a)
    a[0] = 1
    t[1] = 2.0
    np.testing.assert_array_equal(t.numpy(), [0, 2, 0])
    np.testing.assert_array_equal(a, [1, 0, 0])


def test_numpy_copies_and_view_shares():
    t = oar.zeros([3], "float64")
    copied, view = t.numpy(), t._numpy_view()
    t[0] = 5.0
    assert copied[0] == 0 and view[0] == 5
    view[1] = 7
    assert t[1].item() == 7


def test_strides():
    a = np.arange(24.0).reshape(2, 3, 4)
    for b in (a.T, a[:, ::2], a[::-1], a[..., ::-2], np.broadcast_to(a[:1], a.shape), np.asfortranarray(a)):
        np.testing.assert_array_equal(oar.to_tensor(b).numpy(), b)
    t = oar.to_tensor(a)
    np.testing.assert_array_equal(oar.transpose(t, [2, 0, 1]).numpy(), a.transpose(2, 0, 1))
    np.testing.assert_array_equal(np.from_dlpack(t[:, ::2]), a[:, ::2])
    np.testing.assert_array_equal(oar.from_dlpack(a[:, ::2]).numpy(), a[:, ::2])


def test_dlpack_shares_both_ways():
    t = oar.zeros([4], "float32")
    a = np.from_dlpack(t)
    t[0] = 3.0
    assert a[0] == 3
    b = np.zeros(4, np.float32)
    u = oar.from_dlpack(b)
    b[1] = 4
    assert u[1].item() == 4
    u[2] = 5.0
    assert b[2] == 5
    assert t.__dlpack_device__() == (1, 0)


def test_dlpack_lifetimes():
    t = oar.full([1000], 3.0)
    a = np.from_dlpack(t)
    del t
    gc.collect()
    oar.full([1000], 9.0)
    assert (a == 3).all()
    b = np.full(1000, 4.0)
    u = oar.from_dlpack(b)
    del b
    gc.collect()
    np.full(1000, 8.0)
    assert (u.numpy() == 4).all()
    v = u[10:20]
    del u
    gc.collect()
    assert (v.numpy() == 4).all()


def test_dlpack_capsule():
    t = oar.arange(5)
    capsule = oar.utils.dlpack.to_dlpack(t) if hasattr(oar.utils, "dlpack") else t.__dlpack__()
    u = oar.from_dlpack(capsule)
    assert u.data_ptr() == t.data_ptr()
    with pytest.raises(ValueError, match="used already"):
        oar.from_dlpack(capsule)
    t.__dlpack__()  # an unused capsule frees itself
    gc.collect()
    with pytest.raises((TypeError, ValueError)):
        oar.from_dlpack(3)


def test_operators_with_arrays_give_tensors():
    x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    a = np.array([[0.5, 1.0], [2.0, -1.0]], np.float32)
    for made, wanted in [(a * x, a * x.numpy()), (a - x, a - x.numpy()), (x / a, x.numpy() / a), (a ** x, a ** x.numpy()),
                         (a @ x, a @ x.numpy()), (x @ a, x.numpy() @ a), (a < x, a < x.numpy()),
                         (np.sqrt(2.0) * x, np.sqrt(np.float32(2)) * x.numpy())]:
        assert isinstance(made, oar.Tensor)
        np.testing.assert_allclose(made.numpy(), wanted, rtol=1e-6)
    assert isinstance(np.sin(x), np.ndarray)  # NumPy's own functions still give arrays
    np.testing.assert_array_equal(np.maximum(a, x), np.maximum(a, x.numpy()))
    assert np.add.reduce(x, axis=None) == 10
    a += x
    assert isinstance(a, np.ndarray)
    np.testing.assert_array_equal(a, [[1.5, 3.0], [5.0, 3.0]])


@pytest.mark.parametrize("number, dtype", [
    (np.float64(2), "float64"), (np.complex128(2), "complex128"), (np.float32(2), "float32"), (np.int32(2), "int32"),
    (np.bool_(True), "bool"), (2.0, "float32"), (2, "int64"), (True, "bool"), (2j, "complex64"),
    ([np.float64(2)], "float32"),
])
def test_dtype_of_numbers(number, dtype):
    assert oar.to_tensor(number).dtype.name == dtype
    assert oar.to_tensor(number, dtype="float16").dtype.name == "float16"


def test_readonly_arrays():
    a = np.arange(4.0)
    a.flags.writeable = False
    t = oar.to_tensor(a)
    t[0] = 9.0
    assert a[0] == 0
    try:
        u = oar.from_dlpack(a)
    except (BufferError, ValueError, TypeError):
        return
    with pytest.raises(ValueError, match="read-only"):
        u[0] = 1.0
    assert a[0] == 0


def test_dlpack_of_a_recorded_tensor():
    x = oar.ones([2])
    x.stop_gradient = False
    with pytest.raises((BufferError, RuntimeError, ValueError)):
        np.from_dlpack(x)
    np.from_dlpack(x.detach())


def test_bfloat16():
    t = oar.to_tensor([1.0, 2.5, -3.0], dtype="bfloat16")
    assert t.numpy().dtype == np.uint16
    a = t.numpy().view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(a.astype(np.float32), [1, 2.5, -3])
    back = oar.to_tensor(a)
    assert back.dtype.name == "bfloat16" and back.astype("float32").tolist() == [1, 2.5, -3]
    assert pickle.loads(pickle.dumps(t)).astype("float32").tolist() == [1, 2.5, -3]


def test_numpy_functions_and_operands():
    t = oar.to_tensor([1.0, 2.0])
    assert np.add.reduce(t) == 3 and np.asarray(t, dtype=np.int32).dtype == np.int32
    assert isinstance(t + np.array([1.0, 2.0], np.float32), oar.Tensor)
    assert (t * np.float32(2)).dtype.name == "float32"
    assert isinstance(np.array([1.0, 2.0], np.float32) + t, oar.Tensor)
    np.testing.assert_array_equal(np.stack([t, t]), [[1, 2], [1, 2]])


def test_lists_and_scalars():
    assert oar.to_tensor([[1, 2], [3, 4]]).dtype.name == "int64"
    assert oar.to_tensor([1.0, 2]).dtype.name == "float32"
    assert oar.to_tensor([True]).dtype.name == "bool" and oar.to_tensor(1j).dtype.name == "complex64"
    assert oar.to_tensor([np.float64(1)]).dtype.name in ("float32", "float64")
    assert oar.to_tensor([oar.ones([2]), oar.zeros([2])]).tolist() == [[1, 1], [0, 0]]
    assert oar.to_tensor([]).shape == [0] and oar.to_tensor(()).shape == [0]
    assert oar.to_tensor(range(3)).tolist() == [0, 1, 2]
    for bad in ([[1], [1, 2]], "text", object(), [object()], {"a": 1}):
        with pytest.raises((TypeError, ValueError)):
            oar.to_tensor(bad)


def test_byte_order_and_structures():
    for dtype in (">i4", "datetime64[s]", "S3", "O"):
        with pytest.raises(TypeError):
            oar.to_tensor(np.zeros(2, dtype))


def test_large_array_is_shared_by_from_dlpack():
    a = np.zeros((1000, 1000), np.float32)
    assert oar.from_dlpack(a).data_ptr() == a.ctypes.data


def test_a_refused_dlpack_capsule_is_released_once():
    """The import owns the tensor even if it rejects it: the capsule must not free it again."""
    code = (
        "import numpy as np, oar\n"
        "for _ in range(200):\n"
        "    capsule = np.arange(64, dtype='uint16').__dlpack__()\n"
        "    try:\n"
        "        oar.from_dlpack(capsule)\n"
        "    except (TypeError, ValueError, NotImplementedError):\n"
        "        pass\n"
        "    else:\n"
        "        raise SystemExit('uint16 was accepted')\n"
        "    del capsule\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
