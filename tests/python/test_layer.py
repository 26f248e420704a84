"""Layers: registration, state, hooks, copying, containers, initialisers."""

import copy
import gc
import pickle
import warnings
import weakref

import numpy as np
import pytest

import oar
from oar import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Linear(4, 2, bias_attr=False)
        self.register_buffer("kept", oar.ones([2]))
        self.register_buffer("passing", oar.ones([2]), persistable=False)

    def forward(self, x):
        return self.second(nn.functional.relu(self.first(x)))


def test_members_are_registered_in_order():
    net = Net()
    assert [name for name, _ in net.named_parameters()] == ["first.weight", "first.bias", "second.weight"]
    assert [name for name, _ in net.named_buffers()] == ["kept", "passing"]
    assert [name for name, _ in net.named_sublayers()] == ["first", "second"]
    assert net.parameters(include_sublayers=False) == []
    assert list(net.state_dict()) == ["kept", "first.weight", "first.bias", "second.weight"]
    assert "passing" in net.to_static_state_dict()


def test_names_are_unique_and_follow_the_layer():
    with oar.framework.unique_name.guard():
        a, b = nn.Linear(1, 1), nn.Linear(1, 1)
        assert (a.full_name(), b.full_name()) == ("linear_0", "linear_1")
        assert (a.weight.name, a.bias.name, b.weight.name) == ("linear_0.w_0", "linear_0.b_0", "linear_1.w_0")
        assert nn.BatchNorm2D(2).full_name() == "batch_norm2d_0"


def test_attribute_rules():
    net = Net()
    with pytest.raises(TypeError, match="assignment to parameter"):
        net.first.weight = 3
    with pytest.raises(TypeError, match="assignment to sublayer"):
        net.first = 3
    with pytest.raises(TypeError, match="assignment to buffer"):
        net.kept = 3
    net.first.bias = None
    assert net.first.bias is None and len(net.parameters()) == 2
    net.first = None
    assert [name for name, _ in net.named_parameters()] == ["second.weight"]
    del net.second
    assert not hasattr(net, "second")
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'nothing'"):
        net.nothing
    net.plain = oar.zeros([1])
    assert "plain" not in net.state_dict() and "plain" in dict(net.named_buffers())
    assert {"plain", "forward", "kept"} <= set(dir(net))


def test_editing_a_registry_directly_is_seen():
    layer = nn.Linear(2, 2)
    replacement = layer.create_parameter([2, 2])
    layer._parameters["weight"] = replacement
    assert layer.weight is replacement
    del layer._parameters["bias"]
    assert not hasattr(layer, "bias")


def test_registering_before_init_is_refused():
    class Early(nn.Layer):
        def __init__(self):
            self.inner = nn.Linear(1, 1)

    with pytest.raises(ValueError, match="should be called first"):
        Early()


def test_bad_registrations():
    layer = nn.Linear(2, 2)
    with pytest.raises(KeyError):
        layer.register_buffer("a.b", oar.zeros([1]))
    with pytest.raises(KeyError):
        layer.add_parameter("forward", layer.weight)
    with pytest.raises(TypeError):
        layer.add_parameter("p", oar.zeros([1]))
    with pytest.raises(TypeError):
        layer.register_buffer("b", np.zeros(1))


def test_hooks_run_in_order_and_can_be_removed():
    layer = nn.Identity()
    pre = layer.register_forward_pre_hook(lambda self, inputs: (inputs[0] + 1,))
    post = layer.register_forward_post_hook(lambda self, inputs, output: output * 10)
    assert float(layer(oar.to_tensor(1.0))) == 20.0
    pre.remove()
    pre.remove()
    assert float(layer(oar.to_tensor(1.0))) == 10.0
    post.remove()
    assert float(layer(oar.to_tensor(1.0))) == 1.0


def test_calls_pass_all_kinds_of_arguments():
    class Echo(nn.Layer):
        def forward(self, *inputs, **kwargs):
            return inputs, kwargs

    echo = Echo()
    assert echo() == ((), {}) and echo(None) == ((None,), {}) and echo(1, 2) == ((1, 2), {})
    assert echo(1, first=2, inputs=3) == ((1,), {"first": 2, "inputs": 3}) and echo(first=1) == ((), {"first": 1})


def test_state_dict_hook():
    layer = nn.Linear(1, 1)
    handle = layer.register_state_dict_hook(lambda state: {f"x.{key}": value for key, value in state.items()})
    assert list(layer.state_dict()) == ["x.weight", "x.bias"]
    handle.remove()
    assert list(layer.state_dict()) == ["weight", "bias"]


def test_modes_and_apply():
    net = Net()
    net.eval()
    assert not any(layer.training for layer in net.sublayers(include_self=True))
    net.train()
    assert all(layer.training for layer in net.sublayers(include_self=True))
    seen = []
    assert net.apply(lambda layer: seen.append(layer)) is net
    assert seen == [net.first, net.second, net]


def test_set_state_dict_reports_what_does_not_fit():
    net = Net()
    state = {"kept": np.zeros(2, "float32"), "first.weight": np.zeros([3, 5], "float32"), "odd": np.zeros(1)}
    with pytest.warns(UserWarning, match=r"missing \['first.bias', 'second.weight'\]; unexpected \['odd'\]; "
                      r"mismatched \{'first.weight': has shape \[3, 5\], expected \[3, 4\]\}"):
        missing, unexpected = net.set_state_dict(state)
    assert missing == ["first.weight", "first.bias", "second.weight"] and unexpected == ["first.weight", "odd"]
    assert net.kept.numpy().tolist() == [0.0, 0.0]
    other = Net()
    assert other.load_dict(net.state_dict()) == ([], [])
    np.testing.assert_array_equal(other.first.weight.numpy(), net.first.weight.numpy())


def test_state_by_parameter_name():
    source, target = nn.Linear(2, 2), nn.Linear(2, 2)
    state = {mine.name: theirs for mine, theirs in zip(target.parameters(), source.parameters())}
    assert target.set_state_dict(state, use_structured_name=False) == ([], [])
    np.testing.assert_array_equal(target.weight.numpy(), source.weight.numpy())


def test_deepcopy_is_independent():
    net = Net()
    twin = copy.deepcopy(net)
    assert twin.first.weight is not net.first.weight
    assert twin.first.weight.name != net.first.weight.name
    twin.first.weight.set_value(np.zeros([3, 4], "float32"))
    assert np.abs(net.first.weight.numpy()).sum() > 0
    assert twin.first.weight is twin.first._parameters["weight"]


def test_pickle_round_trip():
    layer = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
    layer[0].weight.optimize_attr["learning_rate"] = 0.5
    copied = pickle.loads(pickle.dumps(layer))
    np.testing.assert_array_equal(copied[0].weight.numpy(), layer[0].weight.numpy())
    assert copied[0].weight.name == layer[0].weight.name
    assert copied[0].weight.optimize_attr == {"learning_rate": 0.5}
    assert isinstance(copied[0].weight, oar.framework.Parameter)


def test_layers_are_freed_without_the_collector():
    gc.disable()
    try:
        alive = weakref.ref(nn.Linear(2, 2))
        assert alive() is None
    finally:
        gc.enable()


def test_printing():
    net = nn.Sequential(("a", nn.Linear(3, 2)), ("b", nn.Sequential(nn.ReLU())))
    assert repr(net) == (
        "Sequential(\n  (a): Linear(in_features=3, out_features=2, dtype=float32)\n"
        "  (b): Sequential(\n    (0): ReLU()\n  )\n)"
    )
    assert repr(nn.Conv2D(1, 2, 3, padding=1)) == "Conv2D(1, 2, kernel_size=[3, 3], padding=1, data_format=NCHW)"


def test_parameter_behaviour():
    parameter = oar.create_parameter([2, 3], "float32", attr=oar.ParamAttr(learning_rate=0.1, need_clip=False))
    assert isinstance(parameter, oar.Tensor) and parameter.trainable and parameter.persistable
    assert parameter.optimize_attr == {"learning_rate": 0.1} and parameter.need_clip is False
    parameter.trainable = False
    assert parameter.stop_gradient
    with pytest.raises(ValueError):
        parameter.trainable = 1
    assert repr(parameter).startswith("Parameter containing:\n")
    assert nn.Linear(2, 2).create_parameter([2], attr=False) is None


def test_shared_parameters_count_once():
    a, b = nn.Linear(2, 2), nn.Linear(2, 2)
    b.weight = a.weight
    both = nn.LayerList([a, b])
    assert len(both.parameters()) == 3
    assert len(list(both.named_parameters(remove_duplicate=False))) == 4


def test_containers():
    layers = nn.LayerList([nn.Linear(1, 1) for _ in range(3)])
    layers.append(nn.ReLU()).insert(1, nn.Tanh())
    assert [type(layer).__name__ for layer in layers] == ["Linear", "Tanh", "Linear", "Linear", "ReLU"]
    del layers[0]
    assert len(layers) == 4 and isinstance(layers[-1], nn.ReLU) and list(layers._sub_layers) == list("0123")
    assert len(layers[1:3]) == 2
    with pytest.raises(IndexError):
        layers[9]
    mapping = nn.LayerDict({"a": nn.Linear(1, 1)})
    mapping.update([("b", nn.ReLU())])
    assert list(mapping) == ["a", "b"] and "b" in mapping and isinstance(mapping.pop("b"), nn.ReLU)
    chain = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    chain[0] = nn.Linear(2, 5)
    chain.insert(1, nn.Tanh())
    assert chain(oar.ones([1, 2])).shape == [1, 5] and len(chain) == 3
    listed = nn.ParameterList([p for p in chain.parameters()])
    assert len(listed) == 2 and len(listed.parameters()) == 2


def test_casting_keeps_the_objects():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer.to(dtype="float64")
    assert layer.weight is weight and str(weight.dtype).endswith("float64")
    layer.float()
    assert str(layer.weight.dtype).endswith("float32")


@pytest.mark.parametrize(
    ("make", "check"),
    [
        (nn.initializer.Constant(2.0), lambda a: (a == 2).all()),
        (nn.initializer.Uniform(0.0, 1.0), lambda a: 0 <= a.min() and a.max() <= 1 and abs(a.mean() - 0.5) < 0.05),
        (nn.initializer.Normal(1.0, 2.0), lambda a: abs(a.mean() - 1) < 0.2 and abs(a.std() - 2) < 0.2),
        (nn.initializer.TruncatedNormal(0.0, 1.0), lambda a: np.abs(a).max() <= 2 and abs(a.std() - 0.88) < 0.06),
        (nn.initializer.XavierUniform(), lambda a: abs(np.abs(a).max() - (6 / 100) ** 0.5) < 0.01),
        (nn.initializer.XavierNormal(), lambda a: abs(a.std() - (2 / 100) ** 0.5) < 0.015),
        (nn.initializer.KaimingUniform(), lambda a: abs(np.abs(a).max() - (6 / 40) ** 0.5) < 0.01),
        (nn.initializer.KaimingNormal(), lambda a: abs(a.std() - (2 / 40) ** 0.5) < 0.02),
        (nn.initializer.Orthogonal(), lambda a: np.allclose(a @ a.T, np.eye(40), atol=1e-5)),
        (nn.initializer.Assign(np.arange(2400.0).reshape(40, 60)), lambda a: a[1, 0] == 60),
    ],
)
def test_initializers(make, check):
    oar.seed(3)
    assert check(oar.create_parameter([40, 60], "float32", default_initializer=make).numpy())


def test_more_initializers():
    dirac = oar.create_parameter([2, 2, 3], "float32", default_initializer=nn.initializer.Dirac()).numpy()
    assert dirac[:, :, 1].tolist() == [[1, 0], [0, 1]] and dirac.sum() == 2
    assert nn.initializer.calculate_gain("tanh") == 5 / 3
    nn.initializer.set_global_initializer(nn.initializer.Constant(5.0), nn.initializer.Constant(6.0))
    try:
        layer = nn.Linear(1, 1)
        assert layer.weight.numpy() == 5 and layer.bias.numpy() == 6
    finally:
        nn.initializer.set_global_initializer(None)
    with oar.nn.initializer.LazyGuard():
        late = nn.Linear(2, 2)
    late.weight.initialize()
    assert np.abs(late.weight.numpy()).sum() > 0


def test_seed_repeats_initialisation():
    oar.seed(7)
    first = nn.Linear(4, 4).weight.numpy()
    oar.seed(7)
    np.testing.assert_array_equal(nn.Linear(4, 4).weight.numpy(), first)


def test_forward_of_layers():
    x = oar.to_tensor(np.random.RandomState(0).randn(2, 3, 8, 8).astype("float32"))
    assert nn.Conv2D(3, 5, 3, stride=2, padding=1)(x).shape == [2, 5, 4, 4]
    assert nn.MaxPool2D(2)(x).shape == [2, 3, 4, 4]
    np.testing.assert_allclose(
        nn.AvgPool2D(8)(x).numpy()[..., 0, 0], x.numpy().mean(axis=(2, 3)), rtol=1e-4, atol=1e-5
    )
    assert nn.Flatten()(x).shape == [2, 192]
    norm = nn.BatchNorm2D(3)
    out = norm(x).numpy()
    np.testing.assert_allclose(out.mean(axis=(0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(norm._mean.numpy(), 0.1 * x.numpy().mean(axis=(0, 2, 3)), atol=1e-5)
    assert list(norm.state_dict()) == ["weight", "bias", "_mean", "_variance"]
    norm.eval()
    before = norm._mean.numpy()
    norm(x)
    np.testing.assert_array_equal(norm._mean.numpy(), before)
    with pytest.raises(ValueError, match="4-D"):
        norm(oar.ones([2, 3]))
    rows = nn.LayerNorm(8)(x).numpy()
    np.testing.assert_allclose(rows.mean(axis=-1), 0, atol=1e-5)


def test_embedding_and_dropout():
    table = nn.Embedding(5, 4, padding_idx=-1)
    assert table.weight.numpy()[4].tolist() == [0.0] * 4
    np.testing.assert_array_equal(table(oar.to_tensor([1, 2])).numpy(), table.weight.numpy()[[1, 2]])
    drop = nn.Dropout(0.5)
    out = drop(oar.ones([1000])).numpy()
    assert set(np.unique(out)) <= {0.0, 2.0} and 300 < (out == 0).sum() < 700
    drop.eval()
    assert (drop(oar.ones([10])).numpy() == 1).all()


def test_losses_and_activations():
    logits = oar.to_tensor([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    label = oar.to_tensor([0, 1])
    logp = logits.numpy() - np.log(np.exp(logits.numpy()).sum(-1, keepdims=True))
    expected = -(logp[0, 0] + logp[1, 1]) / 2
    assert abs(float(nn.CrossEntropyLoss()(logits, label)) - expected) < 1e-5
    assert abs(float(nn.NLLLoss()(nn.LogSoftmax()(logits), label)) - expected) < 1e-5
    assert abs(float(nn.MSELoss()(logits, logits + 2)) - 4) < 1e-6
    assert abs(float(nn.L1Loss(reduction="sum")(logits, logits + 2)) - 12) < 1e-5
    np.testing.assert_allclose(nn.Softmax()(logits).numpy(), np.exp(logp), rtol=1e-5)
    with pytest.raises(ValueError, match="reduction"):
        nn.MSELoss(reduction="most")
    for layer in (nn.ReLU(), nn.GELU(), nn.Silu(), nn.Sigmoid(), nn.Tanh()):
        assert layer(logits).shape == [2, 3]


def test_gradients_reach_parameters_and_are_clipped():
    net = Net()
    (net(oar.ones([4, 3])) * 100.0).sum().backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    assert float(norm) > 1
    total = sum((p.grad.numpy() ** 2).sum() for p in net.parameters()) ** 0.5
    assert abs(total - 1) < 1e-3
    net.clear_gradients()
    assert all(p.grad is None or not p.grad.numpy().any() for p in net.parameters())


def test_parameters_as_vector():
    net = Net()
    vector = nn.utils.parameters_to_vector(net.parameters())
    assert vector.shape == [3 * 4 + 4 + 4 * 2]
    nn.utils.vector_to_parameters(vector * 0.0, net.parameters())
    assert not net.first.weight.numpy().any()


@pytest.mark.parametrize(
    ("clip", "expected"),
    [
        (nn.ClipGradByValue(1.0), [1.0, 1.0]),
        (nn.ClipGradByNorm(1.0), [0.6, 0.8]),
        (nn.ClipGradByGlobalNorm(1.0), [0.6, 0.8]),
        (nn.ClipGradByGlobalNorm(10.0, auto_skip_clip=True), [3.0, 4.0]),
    ],
)
def test_gradient_clips(clip, expected):
    parameter = oar.create_parameter([2], "float32", is_bias=True)
    spared = oar.create_parameter([2], "float32", attr=oar.ParamAttr(need_clip=False), is_bias=True)
    grad = oar.to_tensor([3.0, 4.0])
    clipped = clip([(parameter, grad), (spared, grad)])
    np.testing.assert_allclose(clipped[0][1].numpy(), expected, rtol=1e-5)
    np.testing.assert_array_equal(clipped[1][1].numpy(), [3.0, 4.0])


@pytest.mark.parametrize("value", [np.array(3.0, "float32"), 3.0, oar.full([], 3.0)])
def test_assign_of_one_number_keeps_its_shape(value):
    class Scale(nn.Layer):
        def __init__(self):
            super().__init__()
            self.scale = self.create_parameter([], default_initializer=nn.initializer.Assign(value))

    net, other = Scale(), Scale()
    assert list(net.scale.shape) == [] and float(net.scale) == 3
    net.scale.set_value(np.array(5.0, "float32"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert other.set_state_dict(net.state_dict()) == ([], [])
    assert float(other.scale) == 5


def test_values_that_wait_for_their_parameters():
    layer = nn.Layer()
    parameter = layer.create_parameter([2])
    layer._loaddict_holder[parameter.name] = oar.to_tensor([3.0, 4.0])
    layer.add_parameter("held", parameter)
    assert layer.held.tolist() == [3.0, 4.0]
    with pytest.raises(AssertionError, match="not among those that were loaded"):
        layer.add_parameter("other", layer.create_parameter([2]))
