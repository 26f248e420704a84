"""Captured functions never give a stale result: layers, their parts, modes and hooks."""

import copy

import pytest
from eager_twin import Box, raised, run_side_by_side, side_by_side

import oar
from oar import nn
from oar.nn import functional as F


def linear(*sizes):
    oar.seed(sum(sizes))
    return nn.Linear(*sizes)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = linear(3, 3), nn.Linear(3, 3)
        self.act, self.drop, self.norm = nn.LeakyReLU(), nn.Dropout(0.5), nn.LayerNorm(3)
        self.scale = 1.0
        self.register_buffer("shift", oar.zeros([3]))

    def forward(self, t):
        return self.second(self.drop(self.act(self.norm(self.first(t))))) * self.scale + self.shift


def _replace_weight(net):
    net.first.weight = net.create_parameter([3, 3], default_initializer=nn.initializer.Constant(0.3))


def _share_weight(net):
    net.second.weight = net.first.weight


def _no_bias(net):
    net.first.bias = None


def _new_shape(net):
    net.first, net.second, net.norm = linear(3, 6), linear(6, 3), nn.LayerNorm(6)


def _freeze(net):
    for p in net.first.parameters():
        p.stop_gradient = True


def _hook(kind):
    def edit(net):
        if kind == "pre":
            net.first.register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 2,))
        else:
            net.first.register_forward_post_hook(lambda layer, inputs, outputs: outputs + 1)

    return edit


def _class_forward(net):
    class Other(type(net)):
        def forward(self, t):
            return super().forward(t) * 7

    net.__class__ = Other


# What is done to a network between two calls.
EDITS = {
    "nothing": lambda net: None,
    "eval": lambda net: net.eval(),
    "eval of a part": lambda net: net.drop.eval(),
    "training by hand": lambda net: setattr(net.drop, "training", False),
    "slope": lambda net: setattr(net.act, "_negative_slope", 0.7),
    "rate of dropout": lambda net: setattr(net.drop, "p", 0.0),
    "epsilon": lambda net: setattr(net.norm, "_epsilon", 2.0),
    "plain attribute": lambda net: setattr(net, "scale", 3.0),
    "weight written": lambda net: net.first.weight.set_value(net.first.weight.numpy() * 2),
    "weight replaced": _replace_weight,
    "weight shared": _share_weight,
    "bias removed": _no_bias,
    "sublayer replaced": lambda net: setattr(net, "act", nn.Tanh()),
    "sublayer replaced by a function of it": lambda net: setattr(net.act, "forward", lambda t: t * 5),
    "sublayers of another size": _new_shape,
    "sublayer deleted": lambda net: delattr(net, "act"),
    "sublayer is None": lambda net: setattr(net, "act", None),
    "buffer written": lambda net: net.shift.add_(oar.ones([3])),
    "buffer replaced": lambda net: setattr(net, "shift", oar.full([3], 4.0)),
    "buffer registered again": lambda net: net.register_buffer("shift", oar.full([2, 1], 4.0)),
    "buffer in the dictionary": lambda net: net._buffers.__setitem__("shift", oar.full([3], 6.0)),
    "parameter in the dictionary": lambda net: net.first._parameters.__setitem__("bias", None),
    "frozen": _freeze,
    "pre-hook": _hook("pre"),
    "post-hook": _hook("post"),
    "state loaded": lambda net: net.set_state_dict({k: v * 0.5 for k, v in net.state_dict().items()}),
    "double": lambda net: net.to(dtype="float64"),
    "another class": _class_forward,
    "applied": lambda net: net.apply(lambda layer: setattr(layer, "scale", 2.0)),
    "a part is wrapped": lambda net: setattr(net, "act", nn.Sequential(nn.ReLU(), net.act)),
    "weight norm": lambda net: nn.utils.weight_norm(net.first),
    "attribute in the dictionary": lambda net: net.__dict__.__setitem__("scale", 8.0),
}


@pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
@pytest.mark.parametrize("whole", [True, False], ids=["layer", "function"])
@pytest.mark.parametrize("name", EDITS)
def test_a_network_is_edited(name, whole, derivatives, tmp_path):
    def scenario(static, x):
        net = Net()
        x.watch(net)
        f = static(net) if whole else static(lambda t: net(t) * 2)
        if whole and name == "another class" and "forward" not in vars(net):
            net.forward = net.forward  # a static layer has the forward that it was made static with
        yield f(x())
        yield f(x())
        EDITS[name](net)
        for rows in (2, 2, 4):
            yield raised(f, x(rows, 3).astype(net.second.weight.dtype), message=False)
        net.scale = 5.0
        yield raised(f, x().astype(net.second.weight.dtype), message=False)

    run_side_by_side(scenario, derivatives, tmp_path)


SLOPES = {
    "leaky_relu": (nn.LeakyReLU, "_negative_slope"), "elu": (nn.ELU, "_alpha"), "celu": (nn.CELU, "_alpha"),
    "hardtanh": (nn.Hardtanh, "_max"), "softplus": (nn.Softplus, "_beta"), "hardshrink": (nn.Hardshrink, "_threshold"),
    "softshrink": (nn.Softshrink, "_threshold"), "gelu": (nn.GELU, "_approximate"), "softmax": (nn.Softmax, "_axis"),
    "dropout": (nn.Dropout, "p"), "flatten": (nn.Flatten, "start_axis"),
}


@pytest.mark.parametrize("name", SLOPES)
def test_the_settings_of_layers(name, tmp_path):
    kind, attribute = SLOPES[name]

    def scenario(static, x):
        layer = kind()
        assert hasattr(layer, attribute)
        f = static(lambda t: layer(t))
        yield f(x())
        yield f(x())
        values = (True, False) if name == "gelu" else (0, 1) if name in ("softmax", "flatten") else (0.25, 0.75)
        for value in (*values, values[0]):
            setattr(layer, attribute, value)
            yield f(x())

    run_side_by_side(scenario, True, tmp_path)


@side_by_side
def test_containers_of_layers(static, x):
    net, parts = nn.Sequential(linear(3, 3), nn.ReLU()), nn.LayerList([linear(3, 3)])
    table = nn.LayerDict({"a": nn.Tanh()})
    x.watch(net, parts)

    @static
    def f(t):
        t = net(t)
        for part in parts:
            t = part(t)
        for name, part in table.items():
            t = part(t) * len(name)
        return t + len(parts)

    edits = [
        lambda: None, lambda: net.append(nn.Tanh()), lambda: net.__setitem__(0, nn.Linear(3, 3)),
        lambda: net.__delitem__(1), lambda: net.insert(0, nn.Sigmoid()), lambda: parts.append(linear(3, 3)),
        lambda: parts.__setitem__(0, nn.ReLU()), lambda: parts.insert(0, linear(3, 3)), lambda: parts.__delitem__(0),
        lambda: table.update({"bb": nn.Sigmoid()}), lambda: table.pop("a"), lambda: table.__setitem__("bb", nn.ReLU()),
        lambda: net.add_sublayer("late", nn.Tanh()),
    ]
    for edit in edits:
        edit()
        yield f(x()), f(x())


@side_by_side
def test_lists_and_dictionaries_of_parameters(static, x):
    def parameter(value):
        return oar.create_parameter([3], "float32", default_initializer=nn.initializer.Constant(value))

    held = nn.ParameterList([parameter(1.0)])
    table = nn.ParameterDict({"a": parameter(2.0)})
    plain = [parameter(3.0)]
    f = static(lambda t: sum(p * t for p in held) + table["a"] * len(table) + plain[0])
    yield f(x())
    held.append(parameter(4.0))
    yield f(x())
    table["b"] = parameter(5.0)
    yield f(x())
    table["a"] = parameter(6.0)
    yield f(x())
    plain[0] = parameter(7.0)
    yield f(x())
    held[0] = parameter(8.0)
    yield f(x())


@side_by_side
def test_hooks_come_and_go(static, x):
    net, c, seen = linear(3, 3), Box(s=2.0), []
    x.watch(net)
    f = static(lambda t: net(t))
    yield f(x())
    one = net.register_forward_post_hook(lambda layer, inputs, outputs: outputs * c.s)
    yield f(x())
    c.s = 3.0
    yield f(x())
    two = net.register_forward_pre_hook(lambda layer, inputs: seen.append(len(inputs)))
    yield f(x()), seen
    yield f(x()), seen
    one.remove()
    yield f(x()), seen
    two.remove()
    yield f(x()), seen


@side_by_side
def test_hooks_of_a_static_layer(static, x):
    net, seen = static(linear(3, 3)), []
    x.watch(net)
    yield net(x())
    hook = net.register_forward_post_hook(lambda layer, inputs, outputs: seen.append(1) or outputs * 2)
    yield net(x()), seen
    yield net(x()), seen
    hook.remove()
    yield net(x()), seen


@side_by_side
def test_modes_in_the_middle(static, x):
    net = Net()
    x.watch(net)

    @static
    def f(t):
        net.train()
        a = net(t)
        net.eval()
        b = net(t)
        return a, b, net.training, net.drop.training

    yield f(x()), net.training
    net.train()
    yield f(x()), net.training
    yield f(x()), net.training


@side_by_side
def test_batch_norm_and_its_statistics(static, x):
    norm = nn.BatchNorm1D(3)
    x.watch(norm)
    f = static(lambda t: norm(t))
    for edit in (lambda: None, lambda: norm.eval(), lambda: norm.train(), lambda: setattr(norm, "_momentum", 0.1),
                 lambda: norm._mean.zero_(), lambda: setattr(norm, "_use_global_stats", True),
                 lambda: setattr(norm, "_epsilon", 1.0)):
        edit()
        yield f(x(4, 3)), f(x(4, 3))


@side_by_side
def test_a_tensor_kept_on_the_layer(static, x):
    class Keeping(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc, self.last, self.calls = linear(3, 3), None, 0

        def forward(self, t):
            y = self.fc(t)
            self.calls += 1
            self.last = y
            self.shape = y.shape
            return y * self.calls

    net = static(Keeping())
    x.watch(net.fc)
    for rows in (2, 2, 3, 5):
        yield net(x(rows, 3)), net.last, net.calls, net.shape
    net.calls, net.last = 10, None
    yield net(x()), net.last, net.calls


@side_by_side
def test_a_cache_that_grows_on_the_layer(static, x):
    class Cached(nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = {}

        def forward(self, t):
            n = t.shape[0]
            if n not in self.table:
                self.table[n] = oar.full([n, 1], float(n))
            return t * self.table[n]

    net = static(Cached())
    for rows in (2, 3, 2, 4, 3, 5):
        yield net(x(rows, 3)), net.table
    net.table[2] = oar.full([2, 1], -1.0)
    yield net(x(2, 3))


@side_by_side
def test_lazy_parameters(static, x):
    class Lazy(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = None

        def forward(self, t):
            if self.fc is None:
                oar.seed(2)
                self.fc = nn.Linear(t.shape[1], 2)
            return self.fc(t)

    net = static(Lazy())
    for rows in (2, 2, 3):
        yield net(x(rows, 3)), net.fc.weight
    net.fc = None
    yield net(x(2, 4)), net.fc.weight


@side_by_side
def test_layers_made_at_every_call(static, x):
    f = static(lambda t: nn.Softmax()(nn.Linear(3, 3, weight_attr=nn.initializer.Constant(0.5))(t)))
    for _ in range(3):
        yield f(x())
    g = static(lambda t: nn.Linear(3, 2)(t))
    yield g(x()), g(x()), oar.rand([2])


@side_by_side
def test_slices_of_a_list_of_layers(static, x):
    parts, c = nn.LayerList([linear(3, 3) for _ in range(3)]), Box(begin=1)
    x.watch(parts)

    @static
    def f(t):
        for part in parts[c.begin:]:
            t = part(t).tanh()
        return t

    for c.begin in (1, 1, 0, 2, 3):
        yield f(x())


@side_by_side
def test_layers_that_are_arguments(static, x):
    f = static(lambda net, t: net(t) * 2)
    one, two = linear(3, 3), linear(3, 2)
    x.watch(one, two)
    for net in (one, one, two, one, nn.ReLU(), nn.Tanh(), nn.ReLU()):
        yield f(net, x())
    one.bias.set_value(oar.ones([3]))
    yield f(one, x())
    one.register_forward_post_hook(lambda layer, inputs, outputs: outputs * 3)
    yield f(one, x())


@side_by_side
def test_a_copy_of_a_static_layer(static, x):
    net = static(Net())
    net.eval()
    yield net(x())
    other = copy.deepcopy(net)
    other.scale = 9.0
    yield net(x()), other(x()), net(x())
    net.scale = 4.0
    yield net(x()), other(x())


@side_by_side
def test_static_methods_of_a_layer(static, x):
    class Model(nn.Layer):
        def __init__(self, s):
            super().__init__()
            self.fc, self.s = linear(3, 3), s

        @static
        def forward(self, t):
            return self.fc(t) * self.s

        @static
        def other(self, t, k=1.0):
            return self.forward(t) + k + self.s

    one, two = Model(1.0), Model(2.0)
    yield one(x()), two(x()), one.other(x()), two.other(x(), k=3.0)
    one.s = 5.0
    yield one(x()), two(x()), one.other(x()), two.other(x())


@side_by_side
def test_functions_of_parameters(static, x):
    net = linear(3, 3)
    x.watch(net)
    f = static(lambda t: net(t) + sum((p**2).sum() for p in net.parameters()) * 0.1)
    g = static(lambda t: F.linear(t, net.state_dict()["weight"]) + len(list(net.named_parameters())))
    yield f(x()), g(x())
    net.extra = nn.Linear(2, 2, weight_attr=nn.initializer.Constant(1.0))
    yield f(x()), g(x())
    net.weight.set_value(net.weight * 3)
    yield f(x()), g(x())


@side_by_side
def test_recurrent_and_attention_layers(static, x):
    oar.seed(4)
    lstm, attention = nn.LSTM(3, 4), nn.MultiHeadAttention(4, 2)
    x.watch(lstm, attention)

    @static
    def f(t):
        y, (h, c) = lstm(t)
        return attention(y), h, c

    yield f(x(2, 5, 3))
    yield f(x(2, 6, 3))
    yield f(x(2, 7, 3))
    attention.q_proj.weight.set_value(attention.q_proj.weight * 0)
    yield f(x(2, 7, 3))
    attention.num_heads, attention.head_dim = 4, 1
    yield f(x(2, 7, 3))
