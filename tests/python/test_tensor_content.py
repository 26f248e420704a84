"""Methods that exchange the content of tensors, files mapped into memory, and draws from the most probable elements."""

import numpy as np
import pytest

import oar


def test_content_is_shared_and_replaced():
    x = oar.to_tensor([1.0, 2.0])
    content = x.get_tensor()
    x[0] = 5.0
    np.testing.assert_array_equal(np.array(content), [5.0, 2.0])
    content.set(np.arange(3), oar.CPUPlace())
    assert x.tolist() == [0, 1, 2] and x.dtype == oar.int64 and content.shape() == [3]
    x.set_tensor(oar.ones([2, 2]), oar.CPUPlace())
    assert x.shape == [2, 2] and x.type == oar.base.core.VarDesc.VarType.DENSE_TENSOR
    with pytest.raises(TypeError, match="must be a Tensor, not list"):
        x.set_tensor([1.0])
    with pytest.raises(TypeError, match="must be a Tensor, not float"):
        x.reconstruct_from_(1.0)
    assert oar.sparse.sparse_coo_tensor([[0]], [1.0], [2]).type is None
    with oar.IrGuard(), oar.static.program_guard(oar.static.Program()):
        assert oar.static.data("x", [None, 2]).type == oar.base.core.VarDesc.VarType.DENSE_TENSOR


def test_a_tensor_becomes_another():
    x, w = oar.to_tensor([1.0]), oar.to_tensor([3.0], stop_gradient=False)
    name = x.name
    x.reconstruct_from_(w * 2.0)
    assert x.name == name and not x.stop_gradient
    x.backward()
    assert w.grad.tolist() == [2.0]


def test_what_does_not_depend_on_the_tensor():
    x = oar.ones([2])
    assert x.create_parameter([3], "float32").shape == [3] and oar.Tensor.create_tensor("int32").dtype == oar.int32
    a, b = oar.to_tensor([[1], [2]]), oar.to_tensor([[3], [4]])
    assert oar.Tensor.multiplex([a, b], oar.to_tensor([[1], [0]], "int32")).tolist() == [[3], [2]]
    for name, arguments in (("set_vocab", ({"a": 1},)), ("set_string_list", (["a"],)), ("get_map_tensor", ())):
        with pytest.raises(TypeError, match=rf"\[{name}\] a tensor holds numbers"):
            getattr(x, name)(*arguments)


def test_mapped_files(tmp_path):
    path = str(tmp_path / "numbers.bin")
    numbers = np.arange(20, dtype="float32")
    numbers.tofile(path)
    storage = oar.MmapStorage(path, 80)
    np.testing.assert_array_equal(storage.get_slice("float32", 0, 20), numbers)
    np.testing.assert_array_equal(storage.get_slice("float32", 8, 8 + 10), numbers[2:12])
    np.testing.assert_array_equal(storage.get_slice("float32", 8, 8 + 10, 3), numbers[2:12:3])
    np.testing.assert_array_equal(storage.get_slice("int16", 2), numbers.view("int16")[1:])
    shared = storage.get_slice(start=4, stop=8)
    shared.add_(oar.ones([4], "uint8"))
    np.testing.assert_array_equal(storage.get_slice(start=4, stop=8), shared)
    np.testing.assert_array_equal(np.fromfile(path, "float32"), numbers)
    assert storage.get_slice("float32", 5, 2).shape == [0]
    for arguments, text in ((("float32", 0, 21), "there are 20 elements of float32, not 21"), (("uint8", 81), "start must be"),
                            (("uint8", 0, 4, 0), "step must be")):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            storage.get_slice(*arguments)
    with pytest.raises(ValueError, match="has 80 bytes, less than the 800"):
        oar.MmapStorage(path, 800)
    with pytest.raises(FileNotFoundError):
        oar.MmapStorage(path + ".not", 8)


def _shares(ids: oar.Tensor) -> np.ndarray:
    return np.bincount(ids.numpy().ravel(), minlength=3) / ids.shape[0]


def test_top_p_sampling():
    oar.seed(4)
    rows = 20_000
    x, ps = oar.tile(oar.to_tensor([[0.1, 0.7, 0.2]]), [rows, 1]), oar.full([rows], 0.8)
    scores, ids = x.top_p_sampling(ps)
    np.testing.assert_allclose(_shares(ids), [0.0, 7 / 8, 1 / 8], atol=0.01)
    np.testing.assert_array_equal(scores, oar.take_along_axis(x, ids, 1))
    np.testing.assert_allclose(_shares(x.top_p_sampling(ps, mode="non-truncated")[1]), [0.0, 7 / 9, 2 / 9], atol=0.015)
    np.testing.assert_allclose(_shares(x.top_p_sampling(ps, threshold=oar.full([rows], 0.3))[1]), [0.0, 1.0, 0.0])
    assert x[:2].top_p_sampling(oar.zeros([2]))[1].tolist() == [[1], [1]]
    few, seeds = x[:64], oar.full([64], 7, "int64")
    drawn = few.top_p_sampling(oar.ones([64]), topp_seed=seeds, k=2, return_top=True)
    assert len(set(drawn[1].flatten().tolist())) == 1 and drawn[3][0].tolist() == [1, 2]
    np.testing.assert_allclose(drawn[2][0], [0.7, 0.2])
    np.testing.assert_array_equal(few.top_p_sampling(oar.ones([64]), seed=5)[1], few.top_p_sampling(oar.ones([64]), seed=5)[1])
    with pytest.raises(ValueError, match="mode must be"):
        x.top_p_sampling(ps, mode="none")
    with pytest.raises(ValueError, match="rows of probabilities"):
        x[0].top_p_sampling(ps)
