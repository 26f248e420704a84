"""Optimizers and learning-rate schedules, against runs of PaddlePaddle where there is one."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import oar
from oar import nn, optimizer
from oar.optimizer import lr

DATA = Path(__file__).parent / "data"
RUNS = json.loads((DATA / "optimizer_runs.json").read_text())
SCHEDULES = json.loads((DATA / "lr_schedules.json").read_text())


def linear():
    layer = nn.Linear(3, 2)
    layer.weight.set_value(np.array(RUNS["W"], "float32"))
    layer.bias.set_value(np.array(RUNS["B"], "float32"))
    return layer


def train(layer, opt, steps):
    x = oar.to_tensor(np.array(RUNS["X"], "float32"))
    for _ in range(steps):
        (layer(x) ** 2).mean().backward()
        opt.step()
        opt.clear_grad()


MAKERS = {
    "SGD": lambda p: optimizer.SGD(0.1, parameters=p, weight_decay=0.01),
    "SGD_L1_clip": lambda p: optimizer.SGD(
        0.1, parameters=p, weight_decay=oar.regularizer.L1Decay(0.05), grad_clip=nn.ClipGradByGlobalNorm(0.5)
    ),
    "Momentum": lambda p: optimizer.Momentum(0.1, 0.9, parameters=p, weight_decay=0.01),
    "Nesterov": lambda p: optimizer.Momentum(0.1, 0.9, parameters=p, use_nesterov=True),
    "Adam": lambda p: optimizer.Adam(0.1, parameters=p, weight_decay=0.02),
    "AdamW": lambda p: optimizer.AdamW(
        0.1, parameters=p, weight_decay=0.1, apply_decay_param_fun=lambda name: name.endswith("w_0")
    ),
    "Adagrad": lambda p: optimizer.Adagrad(0.1, parameters=p, weight_decay=0.01, initial_accumulator_value=0.1),
    "Adadelta": lambda p: optimizer.Adadelta(0.5, epsilon=1e-3, rho=0.8, parameters=p, weight_decay=0.01),
    "Adamax": lambda p: optimizer.Adamax(0.1, beta1=0.8, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(0.5)),
    "RMSProp": lambda p: optimizer.RMSProp(0.05, momentum=0.5, parameters=p),
    "RMSProp_centered": lambda p: optimizer.RMSProp(0.05, rho=0.9, centered=True, parameters=p, weight_decay=0.01),
    "NAdam": lambda p: optimizer.NAdam(0.1, momentum_decay=0.05, parameters=p, weight_decay=0.01),
    "RAdam": lambda p: optimizer.RAdam(0.1, beta2=0.8, parameters=p),
    "Lamb": lambda p: optimizer.Lamb(
        0.1, lamb_weight_decay=0.1, parameters=p, exclude_from_weight_decay_fn=lambda q: len(q.shape) == 1
    ),
    "Lamb_always": lambda p: optimizer.Lamb(0.1, lamb_weight_decay=0.0, always_adapt=True, parameters=p),
    "ASGD": lambda p: optimizer.ASGD(0.1, batch_num=3, parameters=p, weight_decay=0.01),
    "Rprop": lambda p: optimizer.Rprop(0.05, learning_rate_range=(0.01, 0.2), parameters=p, etas=(0.4, 1.5)),
}
STATEFUL = [name for name in MAKERS if not name.startswith("SGD")]


@pytest.mark.parametrize("name", MAKERS)
def test_five_steps_end_where_paddle_ends(name):
    with oar.framework.unique_name.guard():
        layer = linear()
        opt = MAKERS[name](layer.parameters())
        train(layer, opt, 5)
        expected = RUNS["runs"][name]
        np.testing.assert_allclose(layer.weight.numpy(), expected["weight"], rtol=2e-4, atol=1e-5)
        np.testing.assert_allclose(layer.bias.numpy(), expected["bias"], rtol=2e-4, atol=1e-5)
        assert sorted(opt.state_dict()) == expected["keys"]


@pytest.mark.parametrize("name", STATEFUL)
def test_state_dict_continues_a_run(name):
    with oar.framework.unique_name.guard():
        straight = linear()
        opt = MAKERS[name](straight.parameters())
        train(straight, opt, 3)
        state = {key: np.array(value.numpy()) for key, value in opt.state_dict().items()}
        weights = {key: value.numpy() for key, value in straight.state_dict().items()}
        train(straight, opt, 3)
    with oar.framework.unique_name.guard():
        resumed = linear()
        resumed.set_state_dict(weights)
        opt = MAKERS[name](resumed.parameters())
        opt.set_state_dict(state)
        train(resumed, opt, 3)
    np.testing.assert_allclose(resumed.weight.numpy(), straight.weight.numpy(), rtol=1e-5, atol=1e-6)


def test_parameter_without_gradient_keeps_its_own_count():
    with oar.framework.unique_name.guard():
        used, idle = nn.Linear(2, 2), nn.Linear(2, 2)
        opt = optimizer.Adam(0.1, parameters=used.parameters() + idle.parameters())
        for step in range(4):
            out = used(oar.ones([1, 2])).sum()
            if step >= 2:
                out = out + idle(oar.ones([1, 2])).sum()
            out.backward()
            opt.step()
            opt.clear_grad(set_to_zero=False)
        state = opt.state_dict()
        assert abs(float(state["linear_0.w_0_beta1_pow_acc_0"].numpy()[0]) - 0.9**5) < 1e-6
        assert abs(float(state["linear_1.w_0_beta1_pow_acc_0"].numpy()[0]) - 0.9**3) < 1e-6


def test_one_op_call_per_group(monkeypatch):
    calls = []
    real = oar._C.ops.sgd_
    ops = oar._C.ops
    monkeypatch.setattr(ops, "sgd_", lambda *a, **k: (calls.append(len(a[0])), real(*a, **k))[1])
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(5)])
    groups = [{"params": net[0].parameters(), "learning_rate": 0.1}, {"params": net[1:].parameters()}]
    opt = optimizer.SGD(0.5, parameters=groups)
    before = net[0].bias.numpy(), net[4].bias.numpy()
    net(oar.ones([1, 2])).sum().backward()
    opt.step()
    assert sorted(calls) == [2, 8]
    moved = [np.abs(now.numpy() - old) for now, old in zip((net[0].bias, net[4].bias), before)]
    np.testing.assert_allclose(moved[1], 0.5, rtol=1e-5)
    np.testing.assert_allclose(moved[0], 0.05 * np.abs(net[0].bias.grad.numpy()), rtol=1e-4)


def test_parameter_attributes_reach_the_update():
    layer = nn.Linear(2, 2, bias_attr=oar.ParamAttr(learning_rate=0.0), weight_attr=oar.regularizer.L2Decay(1.0))
    opt = optimizer.SGD(0.1, parameters=layer.parameters(), weight_decay=100.0)
    weight, bias = layer.weight.numpy(), layer.bias.numpy()
    (layer(oar.zeros([1, 2])) * 0.0).sum().backward()
    opt.step()
    np.testing.assert_allclose(layer.weight.numpy(), weight * 0.9, rtol=1e-5)
    np.testing.assert_array_equal(layer.bias.numpy(), bias)


def test_lr_ratio_scales_steps():
    layer = nn.Linear(2, 2)
    opt = optimizer.AdamW(0.1, parameters=layer.parameters(), weight_decay=0.0, lr_ratio=lambda p: 0.5)
    weight = layer.weight.numpy()
    layer(oar.ones([1, 2])).sum().backward()
    opt.step()
    np.testing.assert_allclose(np.abs(layer.weight.numpy() - weight), 0.05, rtol=1e-3)


def test_frozen_parameters_stay():
    layer = nn.Linear(2, 2)
    layer.weight.stop_gradient = True
    opt = optimizer.SGD(0.1, parameters=layer.parameters())
    weight = layer.weight.numpy()
    layer(oar.ones([1, 2])).sum().backward()
    opt.step()
    np.testing.assert_array_equal(layer.weight.numpy(), weight)


def test_minimize_uses_the_gradients_there_are():
    layer = nn.Linear(2, 2)
    opt = optimizer.SGD(0.1, parameters=layer.parameters())
    loss = layer(oar.ones([1, 2])).sum()
    loss.backward()
    bias = layer.bias.numpy()
    _, pairs = opt.minimize(loss)
    assert len(pairs) == 2
    np.testing.assert_allclose(layer.bias.numpy(), bias - 0.1, rtol=1e-5)


def test_sparse_gradient_of_an_embedding():
    table = nn.Embedding(6, 2, sparse=True)
    for make in (optimizer.SGD, optimizer.Adam):
        opt = make(0.1, parameters=table.parameters())
        before = table.weight.numpy()
        table(oar.to_tensor([1, 3])).sum().backward()
        opt.step()
        opt.clear_grad()
        moved = np.abs(table.weight.numpy() - before).sum(axis=1) > 0
        assert moved.tolist() == [False, True, False, True, False, False]


def test_learning_rate_accessors():
    layer = nn.Linear(1, 1)
    opt = optimizer.SGD(0.1, parameters=layer.parameters())
    opt.set_lr(0.2)
    assert opt.get_lr() == 0.2
    schedule = lr.StepDecay(0.5, step_size=1, gamma=0.5)
    opt.set_lr_scheduler(schedule)
    assert opt.get_lr() == 0.5
    with pytest.raises(RuntimeError, match="LRScheduler"):
        opt.set_lr(0.1)
    bias = layer.bias.numpy()
    schedule.step()
    layer(oar.ones([1, 1])).sum().backward()
    opt.step()
    np.testing.assert_allclose(bias - layer.bias.numpy(), 0.25, rtol=1e-6)
    assert opt.state_dict()["LR_Scheduler"] == {"last_epoch": 1, "last_lr": 0.25}


def test_a_scheduler_updates_the_rate_tensor_at_once():
    layer = nn.Linear(1, 1)
    schedule = lr.ExponentialDecay(1.0, gamma=0.5)
    opt = optimizer.SGD(schedule, parameters=layer.parameters())
    rate = opt._lr_tensor(1.0)
    schedule.step()
    assert float(rate) == 0.5


def test_wrong_arguments():
    layer = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="learning rate should be float or LRScheduler"):
        optimizer.SGD(1, parameters=layer.parameters())
    with pytest.raises(AttributeError):
        optimizer.SGD(0.1)
    with pytest.raises(TypeError):
        optimizer.SGD(0.1, parameters=layer.weight)
    with pytest.raises(TypeError):
        optimizer.SGD(0.1, parameters=layer.parameters(), grad_clip=1.0)
    with pytest.raises(ValueError, match="beta1"):
        optimizer.Adam(0.1, beta1=1.0, parameters=layer.parameters())
    with pytest.raises(ValueError, match="more than one"):
        optimizer.SGD(0.1, parameters=[{"params": layer.parameters()}, {"params": [layer.weight]}])


@pytest.mark.parametrize("case", SCHEDULES)
def test_schedules_follow_paddle(case):
    entry = SCHEDULES[case]
    schedule = getattr(lr, case.partition("#")[0])(**entry["arguments"])
    values = []
    for _ in entry["values"]:
        values.append(schedule())
        schedule.step()
    np.testing.assert_allclose(values, entry["values"], rtol=1e-9, atol=1e-12)


def test_schedules_from_functions():
    by_lambda = lr.LambdaDecay(0.5, lambda epoch: 0.9**epoch)
    product = lr.MultiplicativeDecay(0.5, lambda epoch: 0.9)
    for epoch in range(5):
        assert abs(by_lambda() - 0.5 * 0.9**epoch) < 1e-12 and abs(product() - by_lambda()) < 1e-12
        by_lambda.step()
        product.step()


def test_warmup_around_another_schedule():
    schedule = lr.LinearWarmup(lr.ExponentialDecay(1.0, 0.5), warmup_steps=2, start_lr=0.0, end_lr=1.0)
    values = []
    for _ in range(5):
        values.append(schedule())
        schedule.step()
    assert values == [0.0, 0.5, 1.0, 0.5, 0.25]
    other = lr.LinearWarmup(lr.ExponentialDecay(1.0, 0.5), warmup_steps=2, start_lr=0.0, end_lr=1.0)
    other.set_state_dict(schedule.state_dict())
    schedule.step()
    other.step()
    assert other() == schedule()


def test_reduce_on_plateau():
    schedule = lr.ReduceOnPlateau(1.0, factor=0.5, patience=1, cooldown=1)
    for metric in (1.0, 1.0, np.array([1.0]), 0.9):
        schedule.step(metric)
    assert schedule() == 0.5
    fresh = lr.ReduceOnPlateau(1.0)
    fresh.set_state_dict(schedule.state_dict())
    assert fresh() == 0.5 and fresh.best == schedule.best
    with pytest.raises(TypeError):
        schedule.step("low")


def test_schedules_can_be_copied_and_pickled():
    schedule = lr.CosineAnnealingDecay(0.5, T_max=4)
    optimizer.SGD(schedule, parameters=nn.Linear(1, 1).parameters())
    for twin in (copy.deepcopy(schedule), pickle.loads(pickle.dumps(schedule))):
        twin.step()
        assert twin() != schedule()
    with pytest.raises(RuntimeError, match="last_lr"):
        schedule.set_state_dict({"last_epoch": 1})


@pytest.mark.parametrize("name", ["NAdam", "RAdam"])
def test_a_number_that_is_saved_for_every_element_is_taken_over(name):
    # Elsewhere the powers of the betas are kept in the parameter's shape.
    with oar.framework.unique_name.guard():
        layer = linear()
        opt = MAKERS[name](layer.parameters())
        train(layer, opt, 2)
        state = {key: value.numpy() for key, value in opt.state_dict().items()}
        weights = {key: value.numpy() for key, value in layer.state_dict().items()}
        train(layer, opt, 2)
    wide = {
        key: np.full([3, 2] if ".w_" in key else [2], value[0]) if value.shape == (1,) else value
        for key, value in state.items()
    }
    with oar.framework.unique_name.guard():
        resumed = linear()
        resumed.set_state_dict(weights)
        opt = MAKERS[name](resumed.parameters())
        opt.set_state_dict(wide)
        train(resumed, opt, 2)
    np.testing.assert_allclose(resumed.weight.numpy(), layer.weight.numpy(), rtol=1e-5)


@pytest.mark.parametrize("name", ["Adamax", "RMSProp", "NAdam", "Lamb", "ASGD", "Rprop"])
def test_half_precision_parameters_follow_their_master_weights(name):
    def run(dtype, multi_precision):
        with oar.framework.unique_name.guard():
            param = oar.create_parameter([4, 3], dtype)
            param.set_value(np.linspace(-1, 1, 12).reshape(4, 3).astype("float32"))
            opt = MAKERS[name]([param])
            opt._multi_precision = multi_precision
            for i in range(4):
                grad = oar.to_tensor(np.cos(np.arange(12.0) + i).reshape(4, 3).astype("float32"))
                (param.astype("float32") * grad).sum().backward()
                opt.step()
                opt.clear_grad()
            return param.astype("float32").numpy(), opt

    expected, _ = run("float32", False)
    made, opt = run("bfloat16", True)
    (master,) = opt.state_dict()["master_weights"].values()
    np.testing.assert_allclose(master.numpy(), expected, rtol=2e-2, atol=2e-2)
    np.testing.assert_allclose(made, master.numpy(), rtol=1e-2)


def test_a_captured_step_moves_the_numbers_that_an_optimizer_keeps():
    def steps(captured):
        with oar.framework.unique_name.guard():
            layer = linear()
            opt = optimizer.NAdam(0.1, parameters=layer.parameters())
            x = oar.to_tensor(np.array(RUNS["X"], "float32"))

            def step(x):
                loss = (layer(x) ** 2).mean()
                loss.backward()
                opt.step()
                opt.clear_grad()
                return loss

            run = oar.jit.capture(step, [x]) if captured else step
            for _ in range(4):
                run(x)
            return layer.weight.numpy()

    np.testing.assert_allclose(steps(True), steps(False), rtol=2e-4)


class TestLBFGS:
    def rosenbrock(self, **options):
        point = oar.create_parameter([2], "float64")
        point.set_value(np.array([-1.2, 1.0]))
        opt = optimizer.LBFGS(parameters=[point], **options)

        def closure():
            opt.clear_grad()
            loss = (1 - point[0]) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2
            loss.backward()
            return loss

        return point, opt, closure

    def test_finds_the_minimum_with_a_line_search(self):
        point, opt, closure = self.rosenbrock(line_search_fn="strong_wolfe", max_iter=50, tolerance_change=1e-15)
        for _ in range(3):
            opt.step(closure)
        np.testing.assert_allclose(point.numpy(), [1, 1], atol=1e-6)

    def test_solves_a_quadratic_without_one(self):
        a = oar.to_tensor(np.diag([1.0, 3.0, 10.0]))
        x = oar.create_parameter([3], "float64")
        x.set_value(np.ones(3))
        opt = optimizer.LBFGS(learning_rate=1.0, max_iter=40, parameters=[x])

        def closure():
            opt.clear_grad()
            loss = 0.5 * (x * oar.matmul(a, x)).sum()
            loss.backward()
            return loss

        assert float(opt.step(closure)) == pytest.approx(7.0)
        np.testing.assert_allclose(x.numpy(), np.zeros(3), atol=1e-6)

    def test_state_dict_continues_a_run(self):
        point, opt, closure = self.rosenbrock(line_search_fn="strong_wolfe", max_iter=4)
        opt.step(closure)
        saved, where = opt.state_dict(), point.numpy()
        opt.step(closure)
        other, opt2, closure2 = self.rosenbrock(line_search_fn="strong_wolfe", max_iter=4)
        other.set_value(where)
        opt2.set_state_dict(saved)
        opt2.step(closure2)
        np.testing.assert_allclose(other.numpy(), point.numpy(), rtol=1e-9)

    def test_says_what_it_cannot_do(self):
        _, opt, closure = self.rosenbrock()
        with pytest.raises(NotImplementedError, match="closure"):
            opt.minimize(closure())
        with pytest.raises(ValueError, match="strong_wolfe"):
            self.rosenbrock(line_search_fn="golden")


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optimizer.Adamax(0.1, beta1=1.0, parameters=p),
        lambda p: optimizer.NAdam(0.1, momentum_decay=-1.0, parameters=p),
        lambda p: optimizer.RMSProp(0.1, rho=-0.5, parameters=p),
        lambda p: optimizer.ASGD(0.1, batch_num=0, parameters=p),
        lambda p: optimizer.Rprop(100.0, parameters=p),
        lambda p: optimizer.Rprop(0.1, etas=(1.2, 0.5), parameters=p),
        lambda p: optimizer.Adagrad(None, parameters=p),
    ],
)
def test_options_out_of_range_are_refused(make):
    with pytest.raises(ValueError):
        make(linear().parameters())
