"""``amp.GradScaler``: scaled losses, skipped steps, the scale's way, eager and captured."""

import warnings

import numpy as np
import pytest

import oar
from oar import nn

INF = float("inf")


def parameter(value=2.0, dtype="float32"):
    return oar.create_parameter([2], dtype, default_initializer=nn.initializer.Constant(value))


def step(scaler, optimizer, weight, factor):
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.clear_grad()


def scale_of(scaler):
    return float(scaler.state_dict()["scale"][0])


def test_steps_are_those_without_a_scaler():
    w = parameter()
    optimizer, scaler = oar.optimizer.SGD(0.5, parameters=[w]), oar.amp.GradScaler(init_loss_scaling=1024.0)
    step(scaler, optimizer, w, 3.0)
    assert w.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("bad", [INF, -INF, float("nan")])
def test_a_step_that_is_not_finite_changes_the_scale_alone(bad):
    w = parameter()
    optimizer = oar.optimizer.Adam(0.5, parameters=[w])
    scaler = oar.amp.GradScaler(init_loss_scaling=8.0)
    step(scaler, optimizer, w, bad)
    assert w.tolist() == [2.0, 2.0] and scale_of(scaler) == 4.0
    step(scaler, optimizer, w, 1.0)
    assert w.tolist() != [2.0, 2.0] and scale_of(scaler) == 4.0


def test_the_scale_follows_counts_in_a_row():
    w = parameter()
    optimizer = oar.optimizer.SGD(0.0, parameters=[w])
    scaler = oar.amp.GradScaler(init_loss_scaling=8.0, incr_ratio=3.0, decr_ratio=0.25, incr_every_n_steps=2, decr_every_n_nan_or_inf=2)
    scales = []
    for factor in (1.0, INF, 1.0, 1.0, INF, INF, INF, 1.0, INF, INF):
        step(scaler, optimizer, w, factor)
        scales.append(scale_of(scaler))
    assert scales == [8, 8, 8, 24, 24, 6, 6, 6, 6, 1.5]
    assert (scaler.state_dict()["incr_count"], scaler.state_dict()["decr_count"]) == (0, 0)


def test_a_fixed_scale():
    w = parameter()
    optimizer = oar.optimizer.SGD(1.0, parameters=[w])
    scaler = oar.amp.GradScaler(init_loss_scaling=8.0, use_dynamic_loss_scaling=False)
    for factor in (INF, 1.0):
        step(scaler, optimizer, w, factor)
    assert w.tolist() == [1.0, 1.0] and scale_of(scaler) == 8.0 and not scaler.is_use_dynamic_loss_scaling()


def test_minimize_is_step_and_update():
    w = parameter()
    optimizer, scaler = oar.optimizer.SGD(0.5, parameters=[w]), oar.amp.GradScaler(init_loss_scaling=8.0)
    loss = scaler.scale((w * 2).sum())
    loss.backward()
    ops, pairs = scaler.minimize(optimizer, loss)
    assert ops == [] and pairs[0][0] is w and w.tolist() == [1.0, 1.0]
    optimizer.clear_grad()
    loss = scaler.scale((w * INF).sum())
    loss.backward()
    assert scaler.minimize(optimizer, loss) == (None, None) and scale_of(scaler) == 4.0


def test_unscaled_gradients_can_be_clipped():
    w = parameter()
    optimizer, scaler = oar.optimizer.SGD(1.0, parameters=[w]), oar.amp.GradScaler(init_loss_scaling=1024.0)
    scaler.scale((w * 30).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [30.0, 30.0]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    nn.utils.clip_grad_value_([w], 1.0)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called since"):
        scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0, 1.0]


def test_several_optimizers_skip_each_for_itself_and_share_the_scale():
    first, second = parameter(), parameter()
    optimizers = [oar.optimizer.SGD(1.0, parameters=[w]) for w in (first, second)]
    scaler = oar.amp.GradScaler(init_loss_scaling=8.0)
    scaler.scale((first * INF).sum() + (second * 1.0).sum()).backward()
    for optimizer in optimizers:
        scaler.unscale_(optimizer)
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert first.tolist() == [2.0, 2.0] and second.tolist() == [1.0, 1.0] and scale_of(scaler) == 4.0


def test_gradients_in_float16_are_divided_in_float32():
    # 2 ** 16 is infinite in float16.
    w = parameter(dtype="float16")
    optimizer = oar.optimizer.SGD(1.0, parameters=[w], multi_precision=True)
    scaler = oar.amp.GradScaler()
    scaler.scale((w.astype("float32") * 2.0**-20).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad.dtype == oar.float16 and w.grad.tolist() == [2.0**-20] * 2


def test_groups_and_parameters_without_gradients():
    used, unused = parameter(), parameter()
    optimizer = oar.optimizer.SGD(1.0, parameters=[{"params": [used]}, {"params": [unused], "learning_rate": 0.1}])
    scaler = oar.amp.GradScaler(init_loss_scaling=8.0)
    step(scaler, optimizer, used, 1.0)
    assert used.tolist() == [1.0, 1.0] and unused.tolist() == [2.0, 2.0]


def test_rows_of_an_embedding():
    table = nn.Embedding(4, 2, sparse=True)
    before = table.weight.numpy()
    optimizer = oar.optimizer.SGD(1.0, parameters=table.parameters())
    scaler = oar.amp.GradScaler(init_loss_scaling=8.0)
    scaler.scale(table(oar.to_tensor([1])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    np.testing.assert_allclose(before - table.weight.numpy(), [[0, 0], [1, 1], [0, 0], [0, 0]], atol=1e-6)


def test_bfloat16_switches_it_off():
    with oar.amp.auto_cast(dtype="bfloat16"):
        earlier = oar.amp.GradScaler()
    other = oar.amp.GradScaler()
    assert other.scale(parameter().sum()).item() == 4.0 * 2**16  # what ran before it does not count
    scaler = oar.amp.GradScaler()
    with oar.amp.auto_cast(dtype="bfloat16"):
        loss = (parameter() * 1.0).sum()
    with pytest.warns(UserWarning, match="the scaler is off"):
        earlier.scale(loss)
    with pytest.warns(UserWarning, match="the scaler is off"):
        assert scaler.scale(loss) is loss
    assert not scaler.is_enable() and scaler.state_dict() == {} and scaler.get_init_loss_scaling() == 1.0
    fixed = oar.amp.GradScaler(init_loss_scaling=2.0, use_dynamic_loss_scaling=False)
    assert fixed.scale(loss).item() == 2 * loss.item()


def test_disabled():
    w = parameter()
    optimizer, scaler = oar.optimizer.SGD(1.0, parameters=[w]), oar.amp.GradScaler(enable=False)
    step(scaler, optimizer, w, 1.0)
    assert w.tolist() == [1.0, 1.0] and scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_a_loss_that_is_never_finite_is_told_of_once():
    w = parameter()
    optimizer, scaler = oar.optimizer.SGD(1.0, parameters=[w]), oar.amp.GradScaler(init_loss_scaling=4.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(200):
            step(scaler, optimizer, w, float("nan"))
    assert ["not the scale" in str(w.message) for w in caught] == [True]
    assert scale_of(scaler) > 0 and w.tolist() == [2.0, 2.0]


def test_the_scale_stays_finite():
    w = parameter()
    optimizer, scaler = oar.optimizer.SGD(0.0, parameters=[w]), oar.amp.GradScaler(init_loss_scaling=2.0**126, incr_every_n_steps=1)
    for _ in range(4):
        step(scaler, optimizer, w, 0.0)
    assert scale_of(scaler) == 2.0**127


# settings and states -------------------------------------------------------------------------------


def test_settings():
    scaler = oar.amp.GradScaler(init_loss_scaling=1024, incr_ratio=2.0, decr_ratio=0.5, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2)
    values = {"init_loss_scaling": 1000, "incr_ratio": 3.0, "decr_ratio": 0.1, "incr_every_n_steps": 2000, "decr_every_n_nan_or_inf": 3}
    for name, value in values.items():
        getattr(scaler, f"set_{name}")(value)
        assert getattr(scaler, f"get_{name}")() == value
    assert scale_of(scaler) == 1000.0
    other = oar.amp.GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == {**scaler.state_dict(), "scale": other.state_dict()["scale"]} and scale_of(other) == 1000.0
    scaler.set_init_loss_scaling(7.0)
    assert scale_of(other) == 1000.0


def test_states_pass_through_files(tmp_path):
    w = parameter()
    optimizer, scaler = oar.optimizer.SGD(0.0, parameters=[w]), oar.amp.GradScaler(init_loss_scaling=8.0)
    step(scaler, optimizer, w, 1.0)
    oar.save(scaler.state_dict(), str(tmp_path / "scaler"))
    other = oar.amp.GradScaler()
    other.load_state_dict(oar.load(str(tmp_path / "scaler")))
    assert scale_of(other) == 8.0 and other.state_dict()["incr_count"] == 1


BAD = {
    "incr_ratio": (lambda: oar.amp.GradScaler(incr_ratio=1.0), AssertionError, "incr_ratio must be > 1.0"),
    "decr_ratio": (lambda: oar.amp.GradScaler(decr_ratio=1.0), AssertionError, "decr_ratio must be < 1.0"),
    "new ratio": (lambda: oar.amp.GradScaler().set_incr_ratio(0.5), AssertionError, "new_incr_ratio must be > 1.0"),
    "scale": (lambda: oar.amp.GradScaler(init_loss_scaling=0.0), ValueError, "positive number, but received 0.0"),
    "count": (lambda: oar.amp.GradScaler(incr_every_n_steps=0), ValueError, "1 or more"),
    "count type": (lambda: oar.amp.GradScaler(incr_every_n_steps=1.5), TypeError, "an int, but received float"),
    "loss": (lambda: oar.amp.GradScaler().scale(1.0), TypeError, r"\[GradScaler.scale\] var should be a Tensor"),
    "optimizer": (lambda: oar.amp.GradScaler().step(nn.Linear(1, 1)), TypeError, "should be an Optimizer, but received Linear"),
    "empty": (lambda: oar.amp.GradScaler().load_state_dict({}), RuntimeError, "state dict is empty"),
    "state": (lambda: oar.amp.GradScaler().load_state_dict({"scale": [1.0]}), KeyError, "has no incr_ratio"),
    "no dict": (lambda: oar.amp.GradScaler().load_state_dict([1]), TypeError, "takes a dict"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes(case):
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call()


# programs ------------------------------------------------------------------------------------------

OPTIMIZERS = ["SGD", "Momentum", "Adam", "AdamW", "Lamb", "RMSProp", "NAdam"]


def train(kind, captured, half=False):
    oar.seed(3)
    net = nn.Linear(4, 1)
    optimizer = getattr(oar.optimizer, kind)(learning_rate=0.1, parameters=net.parameters())
    if half:
        net, optimizer = oar.amp.decorate(net, optimizer, level="O2", dtype="float16")
    scaler = oar.amp.GradScaler(init_loss_scaling=16.0, incr_every_n_steps=2)

    def one(x):
        with oar.amp.auto_cast(level="O2" if half else "O1"):
            loss = net(x).astype("float32").square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        return loss

    call = oar.jit.to_static(one) if captured else one
    for value in (1.0, 2.0, INF, 3.0, 1.0):
        call(oar.full([2, 4], value))
    state = optimizer.state_dict()
    masters = state.pop("master_weights", {})
    numbers = [value.numpy() for value in (*net.parameters(), *state.values(), *masters.values())]
    return numbers, scale_of(scaler), call


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_captured_step_does_what_an_eager_one_does(kind, half):
    eager, scale, _ = train(kind, False, half)
    program, also, call = train(kind, True, half)
    assert scale == also == 32.0 and len(eager) == len(program)
    for one, other in zip(eager, program):
        assert np.isfinite(other.astype("float32")).all()
        np.testing.assert_allclose(one, other, rtol=2e-3 if half else 1e-5)
