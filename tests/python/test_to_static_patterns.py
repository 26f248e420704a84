"""Patterns of published networks that must run as one program, with results and gradients of eager mode."""

import collections

from eager_twin import assert_whole

import oar
from oar import nn
from oar.nn import functional as F


def linear(*sizes):
    oar.seed(sum(sizes))
    return nn.Linear(*sizes)


# a layer created in forward ----------------------------------------------------------------------


@assert_whole
def test_an_activation_made_in_forward(static, x):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = linear(3, 3)

        def forward(self, t):
            return nn.Softmax(axis=-1)(nn.LeakyReLU(0.2)(self.fc(t)))

    net = static(Net())
    x.watch(net)
    for rows in (2, 2, 4, 5):
        yield net(x(rows, 3))


@assert_whole
def test_a_loss_layer_made_in_a_function(static, x):
    f = static(lambda t: nn.MSELoss(reduction="sum")(t, oar.zeros_like(t)) + nn.L1Loss()(t, oar.ones_like(t)))
    for _ in range(3):
        yield f(x())


@assert_whole
def test_a_slice_of_a_list_of_layers(static, x):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.blocks = nn.LayerList([linear(3, 3) for _ in range(4)])

        def forward(self, t):
            t = self.blocks[0](t)
            for block in self.blocks[1:]:
                t = block(t).tanh() + t
            for i, block in enumerate(self.blocks[-2:]):
                t = block(t) * (i + 1)
            return t

    net = static(Net())
    x.watch(net)
    for rows in (2, 2, 3):
        yield net(x(rows, 3))


@assert_whole
def test_a_sequential_made_in_forward(static, x):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.one, self.two = linear(3, 4), linear(4, 3)

        def forward(self, t):
            return nn.Sequential(self.one, nn.ReLU(), self.two)(t)

    net = static(Net())
    x.watch(net)
    for _ in range(3):
        yield net(x())


@assert_whole
def test_dropout_made_in_forward(static, x):
    f = static(lambda t: nn.Dropout(0.5)(t) + nn.Flatten()(t))
    for _ in range(3):
        yield f(x())


# sizes as tensors --------------------------------------------------------------------------------


@assert_whole
def test_a_size_as_a_tensor_in_reshape(static, x):
    @static
    def f(t):
        flat = oar.reshape(t, [oar.shape(t)[0], oar.shape(t)[1] * oar.shape(t)[2]])
        return t.reshape([oar.shape(t)[0], -1]) * 2 + flat

    for rows in (2, 2, 4, 5, 3):
        yield f(x(rows, 3, 2))


@assert_whole
def test_sizes_as_tensors_in_creation_and_expansion(static, x):
    @static
    def f(t):
        n, c = oar.shape(t)[0], oar.shape(t)[1]
        made = oar.full([n, c], 2.0) + oar.zeros([n, 1]) + oar.ones([1, c])
        return oar.expand(oar.ones([1, 3]), [n, c]) * t + made

    for rows in (2, 2, 4, 5):
        yield f(x(rows, 3))


@assert_whole
def test_sizes_as_tensors_in_arithmetic(static, x):
    @static
    def f(t):
        b, n, c = oar.shape(t)
        y = t.reshape([b, n, 2, c // 2]).transpose([0, 2, 1, 3])
        return y.reshape([b * 2, n, c // 2]), t.reshape([b, n * c])

    for rows in (2, 2, 4):
        yield f(x(rows, 3, 4))


@assert_whole
def test_sizes_as_tensors_in_slices_and_ranges(static, x):
    @static
    def f(t):
        n = oar.shape(t)[0]
        positions = oar.arange(n).astype("float32").unsqueeze(-1)
        return t + positions, t[: n - 1], F.interpolate(t.unsqueeze(0).unsqueeze(0), size=[n * 2, oar.shape(t)[1]])

    for rows in (2, 2, 4, 5):
        yield f(x(rows, 3))


@assert_whole
def test_sizes_as_a_list_of_tensors(static, x):
    f = static(lambda t, u: oar.broadcast_to(t, oar.shape(u)) + oar.tile(t, [oar.shape(u)[0] // oar.shape(t)[0], 1]))
    for rows in (2, 2, 4, 6):
        yield f(x(1, 3), x(rows, 3))


# a tensor kept on self ---------------------------------------------------------------------------


@assert_whole
def test_a_tensor_kept_on_self(static, x):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc, self.last = linear(3, 3), None

        def forward(self, t):
            y = self.fc(t)
            self.last = y
            return y * 2

    net = static(Net())
    x.watch(net.fc)
    for rows in (2, 2, 3, 4):
        yield net(x(rows, 3)), net.last


@assert_whole
def test_tensors_kept_in_a_part(static, x):
    class Attention(nn.Layer):
        def forward(self, t):
            self.weights = F.softmax(t @ t.transpose([1, 0]))
            return self.weights @ t

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.attention, self.fc = Attention(), linear(3, 3)

        def forward(self, t):
            y = self.attention(self.fc(t))
            return y + self.attention.weights.sum()

    net = static(Net())
    x.watch(net.fc)
    for rows in (2, 2, 3):
        yield net(x(rows, 3)), net.attention.weights


@assert_whole
def test_a_loss_kept_on_self(static, x):
    class Gate(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc, self.loss = linear(3, 3), None

        def set_loss(self, loss):
            self.loss = loss

        def forward(self, t):
            y = F.softmax(self.fc(t))
            self.set_loss((y**2).mean())
            return y

    gate = Gate()
    x.watch(gate)
    f = static(lambda t: gate(t).sum() + gate.loss * 0.1)
    for _ in range(3):
        yield f(x()), gate.loss


# outputs in classes ------------------------------------------------------------------------------


class ModelOutput(collections.OrderedDict):
    """A dictionary whose entries are attributes, as libraries of language models return it."""

    def __init__(self, **entries):
        super().__init__()
        for name, value in entries.items():
            if value is not None:
                self[name] = value

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        super().__setattr__(key, value)

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


@assert_whole
def test_an_output_class(static, x):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = linear(3, 3)

        def forward(self, t, loss=False):
            y = self.fc(t)
            return ModelOutput(logits=y, hidden=(t * 1, y.tanh()), loss=y.mean() if loss else None)

    net = static(Net())
    x.watch(net)
    for rows in (2, 2, 3):
        out = net(x(rows, 3))
        yield out, type(out).__name__, out.logits is out["logits"], out[0] is out.logits, list(out)
        yield net(x(rows, 3), loss=True)


@assert_whole
def test_an_output_class_that_is_updated(static, x):
    class Encoder(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = linear(3, 3)

        def forward(self, t):
            return ModelOutput(state=self.fc(t))

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.encoder = Encoder()

        def forward(self, t):
            out = self.encoder(t)
            out["pooled"] = out.state.mean(1)
            out.state = out.state * 2
            out.update({"extra": out["pooled"] + 1})
            out.plain = 3
            return out

    net = static(Net())
    x.watch(net)
    for rows in (2, 2, 3):
        yield net(x(rows, 3)), sorted(vars(net(x(rows, 3))))


@assert_whole
def test_an_output_class_inside(static, x):
    fc = linear(3, 3)
    x.watch(fc)

    def model(t):
        return ModelOutput(logits=fc(t), hidden=t)

    @static
    def f(t):
        out = model(t)
        logits, hidden = out.to_tuple()
        return logits.sum() + out["hidden"].mean() + len(out), "loss" in out, out.get("loss")

    for _ in range(3):
        yield f(x())


# a few more that networks do in every forward ----------------------------------------------------


@assert_whole
def test_python_that_only_arranges(static, x):
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.parts = nn.LayerDict({"a": linear(3, 3), "b": linear(3, 3)})
            self.sizes, self.names = [1, 2], ("a", "b")

        def forward(self, inputs, mask=None, **options):
            features, out = [], {}
            for name, size in zip(self.names, self.sizes):
                features.append(self.parts[name](inputs["t"]) * size)
            if mask is not None:
                features = [f * mask for f in features]
            out.update({name: f for name, f in zip(self.names, features)})
            out["all"] = oar.concat(features, axis=-1)
            batch, width = out["all"].shape
            assert width == 6, f"{width} columns of {batch} rows"
            return out if options.get("full", True) else out["all"]

    net = static(Net())
    x.watch(net)
    for rows in (2, 2, 3):
        yield net({"t": x(rows, 3)}), net({"t": x(rows, 3)}, mask=x(rows, 1)), net({"t": x(rows, 3)}, full=False)


@assert_whole
def test_a_training_step(static, x):
    net = nn.Sequential(linear(3, 4), nn.BatchNorm1D(4), nn.ReLU(), nn.Dropout(0.3), linear(4, 2))
    x.watch(net)
    scheduler = oar.optimizer.lr.ExponentialDecay(0.1, 0.9)
    optimizer = oar.optimizer.AdamW(scheduler, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))

    @static
    def step(t):
        loss = F.cross_entropy(net(t.detach()), oar.zeros([t.shape[0]], dtype="int64"))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    for rows in (4, 4, 4, 6, 5):
        yield step(x(rows, 3))
        scheduler.step()
