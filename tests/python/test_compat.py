"""`oar.compat`: PyTorch's arguments and results, against NumPy."""

import sys

import numpy as np
import pytest

import oar
from oar import compat
from oar.compat.nn import functional as F

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(name):
    x, y = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
    function, best = getattr(compat, name), getattr(np, name)
    assert float(function(oar.to_tensor(x))) == best(x)
    for dim in (0, 1, -1):
        values, indices = function(oar.to_tensor(x), dim)
        np.testing.assert_array_equal(values.numpy(), best(x, dim))
        np.testing.assert_array_equal(indices.numpy(), getattr(np, f"arg{name}")(x, dim))
    kept = function(oar.to_tensor(x), dim=1, keepdim=True)
    assert kept.values.shape == kept.indices.shape == [3, 1]
    np.testing.assert_array_equal(function(oar.to_tensor(x), oar.to_tensor(y)).numpy(), getattr(np, f"{name}imum")(x, y))
    out = oar.zeros([3], "float64"), oar.zeros([3], "int64")
    assert function(oar.to_tensor(x), 1, out=out).values is out[0]
    np.testing.assert_array_equal(out[0].numpy(), best(x, 1))
    for arguments, keywords in [((), {"keepdim": True}), ((1,), {"other": oar.to_tensor(y)}), ((1, True, 2), {})]:
        with pytest.raises(TypeError, match=name):
            function(oar.to_tensor(x), *arguments, **keywords)


def test_extremes_have_gradients():
    x = oar.to_tensor([[1.0, 5.0], [3.0, 2.0]], stop_gradient=False)
    compat.max(x, 1).values.sum().backward()
    assert x.grad.tolist() == [[0, 1], [1, 0]]


def test_medians():
    x = RNG.normal(size=(3, 6))
    values, indices = compat.median(oar.to_tensor(x), 1)
    np.testing.assert_array_equal(values.numpy(), np.sort(x, 1)[:, 2])
    np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy()[:, None], 1)[:, 0], values.numpy())
    assert float(compat.median(oar.to_tensor(x))) == np.sort(x.ravel())[8]
    x[0, :3] = np.nan
    assert np.isnan(float(compat.median(oar.to_tensor(x))))
    assert float(compat.nanmedian(oar.to_tensor(x))) == np.sort(x.ravel())[7]
    values, _ = compat.nanmedian(oar.to_tensor(x), 1)
    assert float(values[0]) == np.sort(x[0])[1]


def test_orders_parts_and_sets():
    x = RNG.normal(size=(3, 4))
    for descending in (False, True):
        values, indices = compat.sort(oar.to_tensor(x), 0, descending)
        wanted = np.sort(x, 0)[::-1] if descending else np.sort(x, 0)
        np.testing.assert_array_equal(values.numpy(), wanted)
        np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), 0), wanted)
    assert compat.sort(oar.to_tensor(3.0)).indices.item() == 0
    parts = compat.split(oar.to_tensor(x), 3, 1)
    assert isinstance(parts, tuple) and [p.shape for p in parts] == [[3, 3], [3, 1]]
    assert [p.shape for p in compat.split(oar.to_tensor(x), [1, 0, 2])] == [[1, 4], [0, 4], [2, 4]]
    with pytest.raises(ValueError, match="do not add up to 3"):
        compat.split(oar.to_tensor(x), [1, 1])
    with pytest.raises(ValueError, match="at least 1"):
        compat.split(oar.to_tensor(x), 0)
    numbers = RNG.integers(0, 5, (3, 4))
    values, places, counts = compat.unique(oar.to_tensor(numbers), return_inverse=True, return_counts=True)
    wanted, _, amounts = np.unique(numbers, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), wanted)
    np.testing.assert_array_equal(counts.numpy(), amounts)
    np.testing.assert_array_equal(wanted[places.numpy()], numbers)  # in the shape of the input
    assert compat.unique(oar.to_tensor([[3, 1], [3, 1]]), dim=0).tolist() == [[3, 1]]
    assert compat.equal(oar.to_tensor(x), oar.to_tensor(x)) is True and compat.equal(oar.ones([2]), oar.ones([1])) is False
    assert compat.seed() == oar.random.initial_seed()


def test_linear_and_margins():
    x, w, b = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 3)), RNG.normal(size=4)
    np.testing.assert_allclose(F.linear(*map(oar.to_tensor, (x, w, b))).numpy(), x @ w.T + b, rtol=1e-6)
    np.testing.assert_allclose(F.linear(oar.to_tensor(x), oar.to_tensor(w[0])).numpy(), x @ w[0], rtol=1e-6)
    np.testing.assert_array_equal(F.pad(oar.to_tensor(x), (1, 2, 0, 1), value=5).numpy(),
                                  np.pad(x, ((0, 1), (1, 2)), constant_values=5))
    image = RNG.normal(size=(1, 2, 4, 5))
    for mode, numpys in [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]:
        wanted = np.pad(image, ((0, 0), (0, 0), (2, 1), (1, 2)), numpys)
        np.testing.assert_array_equal(F.pad(oar.to_tensor(image), (1, 2, 2, 1), mode).numpy(), wanted)
        np.testing.assert_array_equal(F.pad(oar.to_tensor(image[0]), (1, 2, 2, 1), mode).numpy(), wanted[0])
    with pytest.raises(ValueError, match="two numbers for each of up to 2 axes"):
        F.pad(oar.to_tensor(x), (1, 2, 3))
    with pytest.raises(ValueError, match="takes tensors of 2 or 3 axes"):
        F.pad(oar.to_tensor(image), (1, 2), "reflect")
    layer = compat.nn.Linear(3, 4, dtype="float64")
    before = layer.weight.numpy().copy()
    np.testing.assert_allclose(layer(oar.to_tensor(x)).numpy(), x @ before.T + layer.bias.numpy(), rtol=1e-6)
    layer.reset_parameters()
    assert abs(layer.weight.numpy()).max() <= 3**-0.5 and (layer.weight.numpy() != before).any()
    assert repr(layer) == "Linear(in_features=3, out_features=4, bias=True)" and compat.nn.Linear(2, 2, bias=False).bias is None


def test_windows():
    image = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
    columns = compat.nn.Unfold(2, stride=2)(oar.to_tensor(image))
    assert columns.tolist() == F.unfold(oar.to_tensor(image), 2, stride=2).tolist()
    assert columns[0, :, 0].tolist() == [0, 1, 4, 5]
    assert compat.nn.AvgPool2d(2)(oar.to_tensor(image)).tolist() == [[[[2.5, 4.5], [10.5, 12.5]]]]
    small = oar.arange(4, dtype="float32").reshape([1, 1, 2, 2])
    assert compat.nn.AvgPool2D(3, 1, 1, count_include_pad=False)(small).tolist() == [[[[1.5, 1.5], [1.5, 1.5]]]]
    np.testing.assert_allclose(compat.nn.AvgPool2D(3, 1, 1)(small).numpy(), np.full([1, 1, 2, 2], 6 / 9), rtol=1e-6)
    assert compat.nn.AvgPool3D(2, divisor_override=2)(oar.ones([1, 1, 2, 2, 2])).item() == 4.0
    assert compat.nn.AvgPool1d(2)(oar.to_tensor([[[1.0, 3.0]]])).item() == 2.0
    assert compat.nn.Softmax(0)(oar.zeros([2, 1])).tolist() == [[0.5], [0.5]]


def _softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_attention():
    q, k = RNG.normal(size=(2, 4, 3, 8)), RNG.normal(size=(2, 4, 5, 8))
    wanted = _softmax(q @ k.swapaxes(-1, -2) / 8**0.5) @ k
    np.testing.assert_allclose(F.scaled_dot_product_attention(*map(oar.to_tensor, (q, k, k))).numpy(), wanted, rtol=1e-6)
    np.testing.assert_allclose(F.scaled_dot_product_attention(*(oar.to_tensor(a[:, 0]) for a in (q, k, k))).numpy(), wanted[:, 0],
                               rtol=1e-6)  # fmt: skip
    with pytest.raises(ValueError, match="query has 4 heads and key 2"):
        F.scaled_dot_product_attention(*map(oar.to_tensor, (q, k[:, :2], k[:, :2])))


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("sizes", [(None, None), (4, 5)])
@pytest.mark.parametrize("added", [False, True])
def test_attention_with_several_heads(batch_first, sizes, added):
    """Against the definition, with a mask of places and a causal one; the added places are seen by all."""
    layer = compat.nn.MultiheadAttention(6, 2, kdim=sizes[0], vdim=sizes[1], batch_first=batch_first, add_bias_kv=added,
                                         add_zero_attn=added, dtype="float64")  # fmt: skip
    for p in layer.parameters():
        p.set_value(RNG.normal(size=p.shape))
    state = {name: value.numpy() for name, value in layer.state_dict().items()}
    q, k, v = (RNG.normal(size=(2, n, size or 6)) for n, size in ((3, None), (4, sizes[0]), (4, sizes[1])))
    hidden = np.array([[False, False, True, False], [False, False, False, True]])
    later = np.triu(np.ones((3, 4)), 1) > 0
    if sizes[0] is None:
        weights, biases = np.split(state["in_proj_weight"], 3), np.split(state["in_proj_bias"], 3)
    else:
        weights, biases = ([state[f"{letter}_proj_{kind}"] for letter in "qkv"] for kind in ("weight", "bias"))
    projected = [x @ w.T + b for x, w, b in zip((q, k, v), weights, biases)]
    mask = np.where(later[None] | hidden[:, None], -np.inf, 0.0)
    if added:
        for i, letter in ((1, "k"), (2, "v")):
            extra = [np.broadcast_to(state[f"bias_{letter}"], (2, 1, 6)), np.zeros((2, 1, 6))]
            projected[i] = np.concatenate([projected[i], *extra], 1)
        mask = np.concatenate([mask, np.zeros((2, 3, 2))], 2)
    heads = [x.reshape(2, -1, 2, 3).swapaxes(1, 2) for x in projected]
    shares = _softmax(heads[0] @ heads[1].swapaxes(-1, -2) / 3**0.5 + mask[:, None])
    wanted = (shares @ heads[2]).swapaxes(1, 2).reshape(2, 3, 6) @ state["out_proj.weight"].T + state["out_proj.bias"]
    given = [oar.to_tensor(x if batch_first else x.swapaxes(0, 1)) for x in (q, k, v)]
    made, means = layer(*given, key_padding_mask=oar.to_tensor(hidden), attn_mask=oar.to_tensor(later))
    np.testing.assert_allclose(made.numpy() if batch_first else made.numpy().swapaxes(0, 1), wanted, rtol=1e-6)
    np.testing.assert_allclose(means.numpy(), shares.mean(1), rtol=1e-6)
    causal, none = layer(*given, key_padding_mask=oar.to_tensor(hidden), is_causal=True, need_weights=False)
    np.testing.assert_allclose(causal.numpy(), made.numpy(), rtol=1e-6)
    assert none is None


def test_slogdet():
    x = np.array([[[0.0, 2.0], [3.0, 1.0]], [[1.0, 1.0], [1.0, 1.0]]])
    result = compat.slogdet(oar.to_tensor(x))
    sign, logarithm = np.linalg.slogdet(x)
    np.testing.assert_allclose(result.sign, sign)
    np.testing.assert_allclose(result.logabsdet, logarithm)
    out = oar.zeros([2], "float64"), oar.zeros([2], "float64")
    compat.slogdet(oar.to_tensor(x), out=out)
    np.testing.assert_allclose(out[1], logarithm)
    with pytest.raises(TypeError, match="two tensors"):
        compat.slogdet(oar.to_tensor(x), out=out[0])


@pytest.fixture
def no_torch():
    """Whatever a test imports as torch is gone after it."""
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"}
    for name in before:
        del sys.modules[name]
    yield
    if any(type(finder).__module__ == "oar.compat.proxy" for finder in sys.meta_path):
        oar.disable_compat()
    for name in [name for name in sys.modules if name.partition(".")[0] == "torch"]:
        del sys.modules[name]
    sys.modules.update(before)


def test_import_torch(no_torch):
    oar.enable_compat()
    import torch
    import torch.nn.functional as torch_functional
    from torch import nn as torch_nn

    assert torch.sin is oar.sin and torch.float32 is oar.float32 and torch.max is compat.max
    assert torch.nn is torch_nn and torch_nn.Linear is compat.nn.Linear and torch_functional is torch_nn.functional
    assert torch.relu is oar.nn.functional.relu and torch_functional.relu is oar.nn.functional.relu
    with pytest.raises(ModuleNotFoundError, match=r"Oar has no module for torch\.abacus"):
        import torch.abacus  # noqa: F401
    with pytest.raises(AttributeError, match="there is no"):
        torch.abacus
    with oar.use_compat_guard(enable=False):
        assert "torch" not in sys.modules and not any(type(f).__module__ == "oar.compat.proxy" for f in sys.meta_path)
    assert sys.modules["torch"] is torch
    oar.disable_compat()
    assert "torch" not in sys.modules
    with pytest.warns(UserWarning, match="nothing to disable"):
        oar.disable_compat()
    with pytest.raises(ValueError, match="backend must be 'torch'"):
        oar.enable_compat(backend="jax")
    with pytest.raises(TypeError, match="scope must be the name"):
        oar.enable_compat(scope=[1])


def test_import_torch_for_some_packages_only(no_torch, tmp_path, monkeypatch):
    for name in ("torch", "inside_package", "outside_package", "blocked_package"):
        (tmp_path / f"{name}.py").write_text("is_real = True\n" if name == "torch" else
                                             "import torch\ndef late():\n    import torch\n    return torch\n")
    monkeypatch.syspath_prepend(tmp_path)
    oar.enable_compat(scope="inside_package")
    import inside_package
    import outside_package

    assert inside_package.torch.sin is oar.sin and outside_package.torch.is_real and outside_package.late().is_real
    oar.disable_compat()
    import torch as real

    assert real.is_real
    oar.enable_compat(blocked_modules="blocked_package")
    import blocked_package
    import torch

    assert torch.sin is oar.sin and blocked_package.torch.is_real
    with pytest.warns(UserWarning, match="all code already"):
        oar.enable_compat(scope="inside_package")
    oar.disable_compat()
    assert sys.modules["torch"] is real
