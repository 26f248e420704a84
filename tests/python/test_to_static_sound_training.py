"""Captured training steps never train with what was: optimizers, rates, clipping, decay, accumulated gradients."""

import threading

import numpy as np
import pytest
from eager_twin import Box, raised, run_side_by_side, side_by_side

import oar
from oar import nn
from oar.jit import to_static
from oar.nn import functional as F


def network():
    oar.seed(5)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def training(static, net, optimizer, extra=None):
    @static
    def step(t):
        loss = (net(t) ** 2).mean()
        if extra is not None:
            loss = loss + extra(t)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    return step


# What is done to a network and its optimizer between two steps.
EDITS = {
    "nothing": lambda net, opt: None,
    "set_lr": lambda net, opt: opt.set_lr(0.5),
    "set_lr to 0": lambda net, opt: opt.set_lr(0.0),
    "factor of a parameter": lambda net, opt: net[0].weight.optimize_attr.__setitem__("learning_rate", 5.0),
    "optimize_attr": lambda net, opt: setattr(net[0].weight, "optimize_attr", {"learning_rate": 0.0}),
    "need_clip": lambda net, opt: setattr(net[2].weight, "need_clip", False),
    "regularizer": lambda net, opt: setattr(net[0].weight, "regularizer", oar.regularizer.L2Decay(2.0)),
    "norm of the clip": lambda net, opt: setattr(opt._grad_clip, "clip_norm", 0.001),
    "clip removed": lambda net, opt: setattr(opt, "_grad_clip", None),
    "another clip": lambda net, opt: setattr(opt, "_grad_clip", nn.ClipGradByValue(0.001)),
    "frozen": lambda net, opt: setattr(net[0].weight, "stop_gradient", True),
    "scheduler": lambda net, opt: opt.set_lr_scheduler(oar.optimizer.lr.ExponentialDecay(1.0, 0.1)),
    "state loaded": lambda net, opt: opt.set_state_dict(
        {k: v * 0 if isinstance(v, oar.Tensor) else v for k, v in opt.state_dict().items()}),
    "weights loaded": lambda net, opt: net.set_state_dict({k: v * 2 for k, v in net.state_dict().items()}),
    "gradient left": lambda net, opt: (net(oar.ones([2, 3])) ** 2).sum().backward(),
    "gradient set": lambda net, opt: setattr(net[0].weight, "grad", oar.ones([3, 4])),
    "parameter hook": lambda net, opt: net[0].weight.register_hook(lambda g: g * 0),
    "weight replaced": lambda net, opt: setattr(
        net[0], "weight", oar.create_parameter([3, 4], "float32", default_initializer=nn.initializer.Constant(0.1))),
    "layer appended": lambda net, opt: net.append(nn.ReLU()),
    "eval": lambda net, opt: net.eval(),
}


OPTIMIZERS = {
    "sgd": lambda net: oar.optimizer.SGD(0.1, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5)),
    "adamw": lambda net: oar.optimizer.AdamW(
        0.1, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5), weight_decay=0.1),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("name", EDITS)
def test_between_two_steps(name, kind, tmp_path):
    def scenario(static, x):
        net = network()
        optimizer = OPTIMIZERS[kind](net)
        x.watch(net)
        step = training(static, net, optimizer)
        for _ in range(3):
            yield step(x())
        EDITS[name](net, optimizer)
        for rows in (2, 2, 4):
            yield step(x(rows, 3)), optimizer.get_lr()
        yield step(x()), [v for k, v in optimizer.state_dict().items() if isinstance(v, oar.Tensor)]

    run_side_by_side(scenario, False, tmp_path, rtol=1e-4)


@side_by_side
def test_a_cleared_gradient_is_zeros_or_none_as_in_eager_mode(static, x):
    net, c = network(), Box(zeros=True)
    unused = nn.Linear(3, 2)
    optimizer = oar.optimizer.SGD(0.1, parameters=[*net.parameters(), *unused.parameters()], weight_decay=0.1)

    @static
    def step(t):
        (net(t) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=c.zeros)

    for c.zeros in (True, True, False, True):
        yield step(x()), [p.grad for p in [*net.parameters(), *unused.parameters()]], unused.weight
    f = static(lambda t: t * 2 if net[0].weight.grad is None else t - 1)
    yield f(x())
    net.clear_gradients()
    yield f(x())
    net[0].weight.clear_gradient(False)
    yield f(x())


@side_by_side
def test_the_rate_in_the_loss(static, x):
    net = network()
    x.watch(net)
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())
    step = training(static, net, optimizer, lambda t: (t.detach() * optimizer.get_lr()).sum())
    for rate in (0.1, 0.1, 0.2, 0.1):
        optimizer.set_lr(rate)
        yield step(x())
    net = network()
    scheduler = oar.optimizer.lr.StepDecay(0.5, step_size=2)
    optimizer = oar.optimizer.SGD(scheduler, parameters=net.parameters())
    step = training(static, net, optimizer, lambda t: t.detach().sum() * optimizer.get_lr() + scheduler.last_epoch)
    for _ in range(5):
        yield step(x())
        scheduler.step()


@side_by_side
def test_a_scheduler_is_stepped_inside(static, x):
    net = network()
    x.watch(net)
    scheduler = oar.optimizer.lr.ExponentialDecay(0.5, 0.5)
    optimizer = oar.optimizer.SGD(scheduler, parameters=net.parameters())

    @static
    def step(t):
        scheduler.step()
        rate = scheduler.last_lr
        loss = (net(t) ** 2).mean() * scheduler.get_lr()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        scheduler.step()
        return loss.detach(), rate, scheduler.last_epoch, optimizer.get_lr()

    for _ in range(4):
        yield step(x()), scheduler.last_epoch, scheduler.last_lr
    scheduler.step(0)
    yield step(x()), scheduler.last_epoch, scheduler.last_lr


@side_by_side
def test_set_lr_inside(static, x):
    net = network()
    x.watch(net)
    optimizer = oar.optimizer.Momentum(0.5, parameters=net.parameters())
    c = Box(rate=0.5)

    @static
    def step(t):
        optimizer.set_lr(c.rate)
        loss = (net(t) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.set_lr(optimizer.get_lr() / 2)
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach(), optimizer.get_lr()

    for c.rate in (0.5, 0.5, 0.25, 1.0):
        yield step(x()), optimizer.get_lr()
    optimizer.set_lr(7.0)
    yield step(x()), optimizer.get_lr()


@side_by_side
def test_a_scheduler_that_watches_the_loss(static, x):
    net = network()
    x.watch(net)
    scheduler = oar.optimizer.lr.ReduceOnPlateau(0.5, patience=0, factor=0.5)
    optimizer = oar.optimizer.SGD(scheduler, parameters=net.parameters())

    @static
    def step(t):
        loss = (net(t) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        scheduler.step(loss)
        return loss.detach()

    for _ in range(5):
        yield step(x()), scheduler.last_lr, scheduler.num_bad_epochs


@side_by_side
def test_a_lambda_that_sets_the_rate(static, x):
    net, c = network(), Box(s=1.0)
    x.watch(net)
    scheduler = oar.optimizer.lr.LambdaDecay(0.5, lambda epoch: c.s / (epoch + 1))
    optimizer = oar.optimizer.SGD(scheduler, parameters=net.parameters())
    step = training(static, net, optimizer)
    for c.s in (1.0, 1.0, 3.0, 0.0):
        yield step(x()), optimizer.get_lr()
        scheduler.step()


@side_by_side
def test_gradients_are_accumulated(static, x):
    net, c = network(), Box(count=0, every=2)
    x.watch(net)
    optimizer = oar.optimizer.Adam(0.1, parameters=net.parameters())

    @static
    def step(t):
        loss = (net(t) ** 2).mean() / c.every
        loss.backward()
        c.count += 1
        if c.count % c.every == 0:
            optimizer.step()
            optimizer.clear_grad()
        return loss.detach()

    for _ in range(5):
        yield step(x()), c
    c.every = 3
    for _ in range(4):
        yield step(x()), c


@side_by_side
def test_a_step_that_depends_on_the_loss(static, x):
    net, log = network(), []
    x.watch(net)
    optimizer = oar.optimizer.SGD(0.3, parameters=net.parameters())

    @static
    def step(t):
        loss = (net(t) ** 2).mean()
        loss.backward()
        if loss < 0.5:
            optimizer.step()
            log.append(True)
        optimizer.clear_grad()
        return loss.detach()

    for _ in range(6):
        yield step(x()), log


@side_by_side
def test_two_optimizers(static, x):
    one, two, c = network(), network(), Box(turn=0)
    x.watch(one, two)
    first = oar.optimizer.Adam(0.1, parameters=one.parameters())
    second = oar.optimizer.SGD(0.1, parameters=two.parameters())

    @static
    def step(t):
        a, b = one(t), two(t)
        loss = (a * b).mean() if c.turn else (a - b.detach()).square().mean()
        loss.backward()
        (second if c.turn else first).step()
        first.clear_grad()
        second.clear_grad()
        return loss.detach()

    for c.turn in (0, 0, 1, 1, 0):
        yield step(x())
    first, second = second, first
    for c.turn in (0, 1):
        yield step(x())


@side_by_side
def test_an_optimizer_is_replaced(static, x):
    net = network()
    x.watch(net)
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())

    @static
    def step(t):
        (net(t) ** 2).mean().backward()
        optimizer.step()
        optimizer.clear_grad()

    yield step(x())
    yield step(x())
    optimizer = oar.optimizer.SGD(0.7, parameters=net[2].parameters())
    yield step(x())
    net.clear_gradients()
    optimizer = oar.optimizer.Adam(0.1, parameters=net.parameters())
    yield step(x())
    net = network()
    yield step(x()), net.state_dict()


@side_by_side
def test_an_optimizer_made_inside(static, x):
    net = network()
    x.watch(net)

    @static
    def step(t):
        optimizer = oar.optimizer.Adam(0.1, parameters=net.parameters())
        loss = (net(t) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    for _ in range(3):
        yield step(x())


@side_by_side
def test_a_loss_chosen_outside(static, x):
    net, c = network(), Box(loss=F.mse_loss, weight=1.0, reduction="mean")
    x.watch(net)
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())

    @static
    def step(t):
        loss = c.loss(net(t), oar.ones([t.shape[0], 2]), reduction=c.reduction) * c.weight
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    choices = ((F.mse_loss, 1.0, "mean"), (F.mse_loss, 1.0, "mean"), (F.l1_loss, 1.0, "mean"), (F.l1_loss, 2.0, "mean"),
               (F.smooth_l1_loss, 2.0, "sum"))
    for c.loss, c.weight, c.reduction in choices:
        yield step(x())


@side_by_side
def test_a_moving_average_of_weights(static, x):
    net = network()
    average = {k: v * 1 for k, v in net.state_dict().items()}
    x.watch(net)
    optimizer, c = oar.optimizer.SGD(0.1, parameters=net.parameters()), Box(decay=0.9)

    @static
    def step(t):
        loss = (net(t) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        with oar.no_grad():
            for name, value in net.state_dict().items():
                average[name].set_value(average[name] * c.decay + value * (1 - c.decay))
        return loss.detach()

    for c.decay in (0.9, 0.9, 0.5):
        yield step(x()), average


@side_by_side
def test_a_penalty_on_gradients(static, x):
    net, c = network(), Box(weight=0.1)
    x.watch(net)
    optimizer = oar.optimizer.SGD(0.1, parameters=net.parameters())

    @static
    def step(t):
        t = t.detach()
        t.stop_gradient = False
        y = net(t).sum()
        (g,) = oar.grad(y, t, create_graph=True)
        loss = (g**2).sum() * c.weight + y**2
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    for c.weight in (0.1, 0.1, 2.0):
        yield step(x())


@side_by_side
def test_the_trainer_as_an_object(static, x):
    class Trainer:
        def __init__(self):
            self.net = network()
            self.optimizer = oar.optimizer.SGD(0.1, parameters=self.net.parameters())
            self.history, self.steps, self.best, self.scale = [], 0, None, 1.0

        @static
        def step(self, t):
            loss = (self.net(t) ** 2).mean() * self.scale
            loss.backward()
            self.optimizer.step()
            self.optimizer.clear_grad()
            self.steps += 1
            value = loss.item()
            self.history.append(value)
            if self.best is None or value < self.best:
                self.best = value
            return loss.detach()

    trainer = Trainer()
    x.watch(trainer.net)
    for trainer.scale in (1.0, 1.0, 2.0, 1.0):
        yield trainer.step(x()), trainer.steps, trainer.history, trainer.best


@side_by_side
def test_an_error_in_the_middle_of_a_step(static, x):
    net, c = network(), Box(at="nowhere")
    x.watch(net)
    optimizer = oar.optimizer.Momentum(0.1, parameters=net.parameters())

    @static
    def step(t):
        loss = (net(t) ** 2).mean()
        if c.at == "forward":
            raise ValueError("forward")
        loss.backward()
        if c.at == "backward":
            raise ValueError("backward")
        optimizer.step()
        if c.at == "step":
            raise ValueError("step")
        optimizer.clear_grad()
        return loss.detach()

    for c.at in ("nowhere", "nowhere", "forward", "nowhere", "backward", "nowhere", "step", "nowhere"):
        yield raised(step, x())


def test_two_threads_train_two_networks():
    """One function, two networks, two threads: as if each had been trained alone."""
    def train(step, net, optimizer, results):
        for i in range(12):
            results.append(float(step(net, optimizer, oar.to_tensor(np.full([2, 3], 0.1 * i, "float32")))))

    def plain(net, optimizer, t):
        loss = (net(t) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss.detach()

    def pair(rate):
        net = network()
        return net, oar.optimizer.Adam(rate, parameters=net.parameters())

    wanted = [[], []]
    for results, rate in zip(wanted, (0.1, 0.3)):
        train(plain, *pair(rate), results)
    step, got, pairs = to_static(plain), [[], []], [pair(0.1), pair(0.3)]
    threads = [threading.Thread(target=train, args=(step, *p, r)) for p, r in zip(pairs, got)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    np.testing.assert_allclose(got, wanted, rtol=1e-4)
