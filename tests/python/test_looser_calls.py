"""Calls that programs for Paddle contain: numbers for tensors, texts for numbers, classes for objects, other shapes."""

import copy

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn import functional as F


def test_shifts():
    x = oar.to_tensor([1, 5, -8])
    a = x.numpy()
    for made, wanted in [(x << 3, a << 3), (x >> 1, a >> 1), (x << x.abs(), a << abs(a)), (1 << x.abs(), 1 << abs(a)),
                         (64 >> x.abs(), 64 >> abs(a))]:  # fmt: skip
        np.testing.assert_array_equal(made.numpy(), wanted)
        assert made.dtype == oar.int64
    with pytest.raises(TypeError):
        x << 1.5
    assert oar.jit.to_static(lambda v: v << 2)(x).tolist() == (a << 2).tolist()


def test_numbers_put_along_an_axis():
    x, places = oar.zeros([2, 3]), oar.to_tensor([[0], [2]])
    wanted = np.zeros((2, 3), "float32")
    np.put_along_axis(wanted, places.numpy(), 7.0, 1)
    np.testing.assert_array_equal(oar.put_along_axis(x, places, 7.0, 1).numpy(), wanted)
    assert oar.put_along_axis(x, oar.to_tensor([[0, 0]]), 1.5, 1, "add").tolist() == [[3, 0, 0], [3, 0, 0]]
    assert x.put_along_axis_(places, 7, 1) is x and x.tolist() == wanted.tolist()
    assert oar.zeros([2], "int64").put_along_axis(oar.to_tensor([1]), 3, 0).dtype == oar.int64
    with pytest.raises(TypeError, match="values"):
        oar.put_along_axis(x, places, "7", 1)


def test_places_that_are_not_zero():
    x = oar.to_tensor([[0, 3], [4, 0]])
    for made, wanted in zip(x.nonzero(as_tuple=True), x.numpy().nonzero()):
        assert made.tolist() == wanted.tolist()


def test_sums_of_lists():
    with pytest.raises(ValueError, match="the list of tensors is empty"):
        oar.add_n([])
    with pytest.raises(ValueError, match="must be a list of tensors"):
        oar.add_n([1])


def test_modes_of_layers():
    net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    assert net.train(False) is net and not net[1].training
    assert net.train() is net and net[1].training and net.eval() is net and not net[1].training


def test_copies_of_results():
    x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 2
    twin = copy.deepcopy(y)
    assert twin.is_leaf and not twin.stop_gradient and twin.tolist() == [2, 4]
    twin.sum().backward()
    assert x.grad is None and twin.grad.tolist() == [1, 1]
    y.fill_(0)
    assert twin.tolist() == [2, 4]


def test_initialisers():
    weight = nn.Linear(2, 2, weight_attr=oar.ParamAttr(initializer=nn.initializer.XavierNormal)).weight
    assert float(weight.abs().sum()) > 0
    value = np.arange(6, dtype="float32")
    taken = oar.create_parameter([2, 2], "float32", default_initializer=nn.initializer.Assign(value))
    assert taken.tolist() == value.tolist()  # as in Paddle, the value's shape
    for other in (value, oar.to_tensor(value), value.tolist()):
        same_size = oar.create_parameter([2, 3], "float32", default_initializer=nn.initializer.Assign(other))
        assert same_size.shape == [6]
    assert oar.create_parameter([1], "float32", default_initializer=nn.initializer.Assign(2.0)).shape == [1]
    x = oar.zeros([100])
    nn.initializer.TruncatedNormal(0.0, 0.5)(x, x.block)
    assert 0.2 < float(x.std()) < 0.6


def test_parameters_of_tensors():
    data = oar.ones([2])
    p = nn.Parameter(data)
    assert p.trainable and isinstance(p, nn.Parameter) and p.tolist() == [1, 1]
    assert nn.Parameter(data, False).stop_gradient and nn.Parameter(data=data, requires_grad=False).stop_gradient
    layer = nn.Module()
    layer.scale = nn.Parameter(data)
    assert [name for name, _ in layer.named_parameters()] == ["scale"]


def test_sparse_gradients_as_arrays():
    table = nn.Embedding(4, 2, sparse=True)
    table(oar.to_tensor([1, 1, 3])).sum().backward()
    np.testing.assert_array_equal(table.weight.grad.numpy(), [[0, 0], [2, 2], [0, 0], [1, 1]])
    values, rows = table.weight.gradient()
    assert rows.tolist() == table.weight.grad.rows() == [1, 1, 3] and values.shape == (3, 2)
    with pytest.raises(RuntimeError, match="holds all of its rows"):
        oar.ones([2]).rows()


def test_sizes_of_numpy_and_annotations():
    assert nn.Pad1D(np.int64(1))(oar.ones([1, 1, 2])).shape == [1, 1, 4]

    class Numbers(oar.io.Dataset[int]):
        def __getitem__(self, i):
            return i

    assert Numbers()[3] == 3 and isinstance(Numbers(), oar.io.Dataset)


def test_flags_of_other_engines():
    assert oar.get_flags("FLAGS_cudnn_exhaustive_search") == {"FLAGS_cudnn_exhaustive_search": False}
    try:
        oar.set_flags({"FLAGS_cudnn_exhaustive_search": True, "FLAGS_max_inplace_grad_add": 8})
        assert oar.get_flags(["max_inplace_grad_add"]) == {"max_inplace_grad_add": 8}
    finally:
        oar.set_flags({"FLAGS_cudnn_exhaustive_search": False, "FLAGS_max_inplace_grad_add": 0})
    for call in (lambda: oar.get_flags("FLAGS_no_such"), lambda: oar.set_flags({"FLAGS_no_such": 1})):
        with pytest.raises(ValueError, match="there is no flag 'FLAGS_no_such'"):
            call()


@pytest.mark.parametrize(("kind", "decay"), [("Adam", None), ("AdamW", 0.2)])
@pytest.mark.parametrize("captured", [False, True])
def test_adam_with_the_largest_mean(kind, decay, captured):
    """Against the update rule; the state is saved and loaded."""
    rng = np.random.default_rng(3)
    w = oar.create_parameter([3, 2], "float64")
    start = w.numpy().copy()
    make = lambda: getattr(oar.optimizer, kind)(0.1, parameters=[w], amsgrad=True, weight_decay=decay)  # noqa: E731
    optimizer = make()

    def step(g):
        (w * g).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    run = oar.jit.to_static(step) if captured else step
    p, m, v, largest = start.copy(), 0.0, 0.0, 0.0
    for t in range(1, 7):
        g = rng.normal(size=(3, 2)) * (3.0 if t == 2 else 0.3)
        if t == 4:
            state = optimizer.state_dict()
            assert any("moment2_max" in key for key in state)
            if not captured:
                optimizer = make()
                optimizer.set_state_dict(state)
        run(oar.to_tensor(g))
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        largest = np.maximum(largest, v)
        p = p * (1 - 0.1 * (decay or 0.0)) - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(largest / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(w.numpy(), p, rtol=1e-6)


@pytest.mark.parametrize("act", ["hard_swish", "hard_sigmoid", "relu"])
def test_activations_after_batch_norm(act):
    x = oar.randn([4, 2, 3, 3])
    made, plain = nn.BatchNorm(2, act=act)(x), nn.BatchNorm(2)(x)
    np.testing.assert_allclose(made.numpy(), getattr(F, act)(plain).numpy(), rtol=1e-6)


def test_layers_of_one_kind_of_border():
    x = np.arange(12, dtype="float32").reshape(1, 2, 2, 3)
    around = ((0, 0), (0, 0), (1, 1), (1, 2))
    for layer, mode in [(nn.ReflectionPad2D, "reflect"), (nn.ReplicationPad2D, "edge"), (nn.CircularPad2D, "wrap")]:
        np.testing.assert_array_equal(layer([1, 2, 1, 1])(oar.to_tensor(x)).numpy(), np.pad(x, around, mode))
    made = nn.ConstantPad2D([1, 2, 1, 1], 5.0)(oar.to_tensor(x)).numpy()
    np.testing.assert_array_equal(made, np.pad(x, around, constant_values=5.0))
    assert repr(nn.ConstantPad1D(1, 3.0)) == "ConstantPad1D(padding=[1, 1], mode=constant, value=3.0, data_format=NCL)"
    for n in (1, 3):
        for kind in ("Constant", "Reflection", "Replication", "Circular"):
            pad = getattr(nn, f"{kind}Pad{n}d")(1, *([0.0] if kind == "Constant" else []))
            assert pad(oar.ones([1, 1, *[3] * n])).shape == [1, 1, *[5] * n]


def test_convolutions_with_the_keywords_of_pytorch():
    layer = nn.Conv2d(2, 3, 3, bias=False, dtype="float64", device="cpu")
    assert layer.bias is None and layer.weight.dtype == oar.float64
    assert nn.Conv2d is nn.Conv2D and nn.SiLU is nn.Silu and nn.ModuleList is nn.LayerList
    x = oar.ones([2])
    assert nn.SiLU(inplace=True)(x) is x and abs(x[0].item() - 0.7310586) < 1e-6


def _margin_loss(x, label):
    losses = []
    for row, classes in zip(x, label):
        end = classes.tolist().index(-1) if -1 in classes else len(classes)
        targets = classes[:end]
        others = [k for k in range(len(row)) if k not in targets]
        losses.append(sum(max(0.0, 1 - (row[t] - row[k])) for t in targets for k in others) / len(row))
    return np.array(losses)


def test_margins_of_several_labels():
    x = np.random.default_rng(0).normal(size=(4, 5))
    label = np.array([[3, 0, -1, 1, 2], [0, -1, -1, -1, -1], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0]])
    wanted = _margin_loss(x, label)
    scores = oar.to_tensor(x, stop_gradient=False)
    for reduction, value in [("none", wanted), ("mean", wanted.mean()), ("sum", wanted.sum())]:
        made = nn.MultiLabelMarginLoss(reduction)(scores, oar.to_tensor(label))
        np.testing.assert_allclose(made.numpy(), value, rtol=1e-6)
    F.multi_label_margin_loss(scores, oar.to_tensor(label), "sum").backward()
    moved = x + 1e-6 * np.eye(4, 5)
    numeric = (_margin_loss(moved, label).sum() - wanted.sum()) / 1e-6
    assert abs(np.trace(scores.grad.numpy()[:, :4]) - numeric) < 1e-3
    np.testing.assert_allclose(F.multi_label_margin_loss(scores[0], oar.to_tensor(label[0])).item(), wanted[0], rtol=1e-6)
    with pytest.raises(ValueError, match="input and label must both be"):
        F.multi_label_margin_loss(scores, oar.to_tensor(label[:2]))


def test_channels_of_sequences_are_dropped_whole():
    made = F.dropout1d(oar.ones([20, 50, 3]), 0.25).numpy()
    sums = made.sum(-1)
    assert set(np.round(np.unique(sums), 4)) == {0.0, 4.0} and 0.15 < (sums == 0).mean() < 0.35
    assert F.dropout1d(oar.ones([2, 3]), training=False).tolist() == [[1] * 3] * 2
    with pytest.raises(ValueError, match="two or three axes"):
        F.dropout1d(oar.ones([3]))


def test_names_that_pytorch_has():
    x, i = oar.to_tensor([[1.0, 0.0], [0.0, 2.0]]), oar.to_tensor([1, 3])
    s = x.to_sparse_coo(2)
    sparse = oar.sparse
    for made, expected in (
        (sparse.add(input=s, other=s), x + x),
        (sparse.subtract(input=s, other=s), x - x),
        (sparse.divide(input=s, other=2.0), x / 2.0),
        (sparse.sum(input=s, dim=1), x.sum(1)),
        (sparse.transpose(input=s, dims=[1, 0]), x.T),
        (sparse.coalesce(input=s), x),
        (sparse.cast(input=s, value_dtype="float64"), x.astype("float64")),
        (sparse.nn.functional.relu(input=s), x),
    ):
        assert made.to_dense().tolist() == expected.tolist()
    assert sparse.is_same_shape(input=s, other=x)
    assert oar.pdist(input=x).tolist() == pytest.approx([5**0.5])
    assert oar.numel(input=x) == 4 and oar.clone(input=x).tolist() == x.tolist()
    assert oar.unique(input=i, dim=0).tolist() == [1, 3]
    assert oar.bitwise_left_shift(input=i, other=i).tolist() == [2, 24]
    assert oar.index_fill(input=x, dim=0, index=oar.to_tensor([0]), value=7.0).tolist() == [[7, 7], [0, 2]]
    assert [p.shape for p in oar.hsplit(input=x, sections=2)] == [[2, 1]] * 2
    pooled = oar.nn.functional.avg_pool1d(input=x.reshape([1, 2, 2]), kernel_size=2)
    assert pooled.tolist() == [[[0.5], [1.0]]]
    assert oar.nn.functional.gumbel_softmax(input=x, dim=1).sum(1).tolist() == pytest.approx([1, 1])


def test_hooks_take_keywords():
    layer, seen = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda layer, args, kwargs, out: seen.append(kwargs), with_kwargs=True)
    layer(input=oar.ones([1, 2]))
    assert list(seen[0]) == ["input"]
    assert oar.static.Variable.clone is oar.Tensor.clone


def test_annotated_samplers():
    class Two(oar.io.Sampler[int]):
        def __iter__(self):
            return iter([1, 0])

    assert list(Two()) == [1, 0]


def test_linear_with_weights_and_biases_of_other_shapes():
    rng = np.random.default_rng(0)
    shapes = [([3, 4], [4]), ([4], [4]), ([2, 3, 4], [4]), ([3, 4], [5, 4, 2]), ([2, 1, 3, 4], [5, 4, 2]), ([4], [5, 4, 2]), ([3, 4], [4, 2])]
    for x_shape, weight_shape in shapes:
        for bias_shape in (None, [], [1], [3], [2], [3, 2], [5, 1, 1]):
            arrays = [None if shape is None else rng.normal(size=shape) for shape in (x_shape, weight_shape, bias_shape)]
            tensors = [None if a is None else oar.to_tensor(a, stop_gradient=False) for a in arrays]
            product = arrays[0] @ arrays[1]
            try:
                expected = product if bias_shape is None else product + arrays[2]
            except ValueError:
                with pytest.raises(ValueError, match=r"\[linear\].*broadcast"):
                    F.linear(*tensors)
                continue
            out = F.linear(*tensors)
            np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12)
            cotangent = rng.normal(size=expected.shape)
            (out * oar.to_tensor(cotangent)).sum().backward()
            for tensor, array in zip(tensors, arrays):
                if tensor is None:
                    continue
                step = rng.normal(size=array.shape)
                moved = [array + 1e-6 * step if a is array else a for a in arrays]
                after = moved[0] @ moved[1] + (0 if bias_shape is None else moved[2])
                slope = ((after - expected) * cotangent).sum() / 1e-6
                np.testing.assert_allclose((tensor.grad.numpy() * step).sum(), slope, rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match=r"\[linear\] weight of shape \[3\] takes 3 features"):
        F.linear(oar.ones([2, 4]), oar.ones([3]))
    with pytest.raises(ValueError, match="0-d"):
        F.linear(oar.ones([2, 4]), oar.ones([]))
