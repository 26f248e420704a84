"""The states of optimizers: what they are called, that they are live, and what happens where they do not fit."""

import warnings

import numpy as np
import pytest

import oar
from oar import nn

BETAS = {"beta1_pow_acc": 0.9, "beta2_pow_acc": 0.999}


def step(optimizer, layer, count=1):
    for _ in range(count):
        layer(oar.ones([2, 3])).sum().backward()
        optimizer.step()
        optimizer.clear_grad()


def arrays(optimizer):
    return {name: np.array(value.numpy()) for name, value in optimizer.state_dict().items()}


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
@pytest.mark.parametrize("captured", [False, True])
def test_all_tensors_of_a_state_dict_follow_the_steps(kind, captured):
    layer = nn.Linear(3, 2)
    optimizer = getattr(oar.optimizer, kind)(0.1, parameters=layer.parameters())

    def train():
        step(optimizer, layer)

    call = oar.jit.to_static(train) if captured else train
    call()
    state = optimizer.state_dict()
    for count in (2, 3, 4):
        call()
        for name, value in state.items():
            np.testing.assert_array_equal(value.numpy(), optimizer.state_dict()[name].numpy())
            for stem, beta in BETAS.items():
                if stem in name:
                    assert list(value.shape) == [1] and float(value) == pytest.approx(beta ** (count + 1), rel=1e-5)


def test_powers_stay_with_their_parameter_when_others_join():
    layer = nn.Linear(3, 2)
    optimizer = oar.optimizer.Adam(0.1, parameters=layer.parameters())
    layer.bias.stop_gradient = True
    step(optimizer, layer, 2)
    power = optimizer.state_dict()[f"{layer.weight.name}_beta1_pow_acc_0"]
    layer.bias.stop_gradient = False
    step(optimizer, layer)
    state = optimizer.state_dict()
    assert float(power) == pytest.approx(0.9**4, rel=1e-6)
    assert float(state[f"{layer.bias.name}_beta1_pow_acc_0"]) == pytest.approx(0.9**2, rel=1e-6)


def test_the_name_of_an_optimizer_is_in_the_names_of_its_states():
    layer = nn.Linear(3, 2)
    optimizer = oar.optimizer.Momentum(0.1, parameters=layer.parameters(), name="mine")
    step(optimizer, layer)
    assert sorted(optimizer.state_dict()) == [f"{p.name}_mine_velocity_0" for p in (layer.bias, layer.weight)]


@pytest.mark.parametrize("kind", ["Adam", "Momentum", "Adamax"])
def test_a_second_optimizer_goes_on_where_the_first_stopped(kind):
    layer = nn.Linear(3, 2)
    first = getattr(oar.optimizer, kind)(0.1, parameters=layer.parameters())
    step(first, layer, 3)
    weight, state = layer.weight.numpy(), arrays(first)
    step(first, layer)
    wanted = layer.weight.numpy()
    layer.weight.set_value(weight)
    second = getattr(oar.optimizer, kind)(0.1, parameters=layer.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second.set_state_dict(state)
        step(second, layer)
    np.testing.assert_allclose(layer.weight.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["Adam", "Momentum"])
def test_states_of_other_parameters_are_an_error(kind):
    layer, other = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizers = [getattr(oar.optimizer, kind)(0.1, parameters=net.parameters()) for net in (layer, other)]
    step(optimizers[0], layer)
    with pytest.warns(UserWarning, match=rf"belong to no parameter of this {kind}.*{layer.weight.name}"):
        optimizers[1].set_state_dict(arrays(optimizers[0]))
    with pytest.raises(AssertionError, match=rf"does not have {other.weight.name}"):
        step(optimizers[1], other)
    step(fresh := getattr(oar.optimizer, kind)(0.1, parameters=other.parameters()), other)
    with pytest.raises(AssertionError, match="not found"):
        fresh.set_state_dict(arrays(optimizers[0]))


def test_parameters_that_had_no_state_begin_anew_with_a_warning():
    layer = nn.Linear(3, 2)
    optimizer = oar.optimizer.Momentum(0.1, parameters=[layer.weight])
    step(optimizer, layer)
    both = oar.optimizer.Momentum(0.1, parameters=layer.parameters())
    both.set_state_dict(arrays(optimizer))
    layer.clear_gradients()
    with pytest.warns(UserWarning, match=rf"does not have {layer.bias.name}_velocity_\d: these start afresh"):
        step(both, layer)
    np.testing.assert_allclose(both.state_dict()[f"{layer.weight.name}_velocity_1"].numpy(), 2 * 1.9, rtol=1e-6)


def test_the_state_of_a_scheduler_without_a_scheduler():
    layer = nn.Linear(3, 2)
    optimizer = oar.optimizer.SGD(0.1, parameters=layer.parameters())
    with pytest.warns(UserWarning, match="it stays 0.1"):
        optimizer.set_state_dict({"LR_Scheduler": {"last_epoch": 3, "last_lr": 0.5}})
    assert optimizer.get_lr() == 0.1


class TestLazyAdam:
    """Rows that a sparse gradient does not name stay as they are, moments too; by NumPy."""

    table = np.random.default_rng(3).standard_normal((6, 3)).astype("float32")
    batches = ([[1, 2, 1], [5, 0, 1]], [[1, 1, 4], [5, 1, 1]], [[1, 2, 1], [5, 0, 1]])

    def train(self, make, dtype="float32", clip=None, **options):
        layer = nn.Embedding(6, 3, sparse=True)
        layer.weight.set_value(self.table)
        if dtype != "float32":
            layer.to(dtype=dtype)
        optimizer = make(0.1, parameters=layer.parameters(), grad_clip=clip, **options)
        for numbers in self.batches:
            (layer(oar.to_tensor(numbers)).astype("float32") ** 2).sum().backward()
            assert layer.weight.grad.is_selected_rows()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
        return layer.weight.astype("float32").numpy(), optimizer

    def wanted(self, lazy, decay=0.0, bound=None):
        weight, m, v = self.table.astype("float64"), np.zeros((6, 3)), np.zeros((6, 3))
        for count, numbers in enumerate(self.batches, 1):
            grad = np.zeros((6, 3))
            np.add.at(grad, np.ravel(numbers), 2 * weight[np.ravel(numbers)])
            if bound is not None:
                grad *= bound / max(np.linalg.norm(grad), bound)
            rows = np.unique(numbers) if lazy else np.arange(6)
            m[rows] = 0.9 * m[rows] + 0.1 * grad[rows]
            v[rows] = 0.999 * v[rows] + 0.001 * grad[rows] ** 2
            change = m[rows] / (1 - 0.9**count) / (np.sqrt(v[rows] / (1 - 0.999**count)) + 1e-8)
            weight[rows] = weight[rows] * (1 - 0.1 * decay) - 0.1 * change
        return weight, m, v

    @pytest.mark.parametrize("lazy", [False, True])
    def test_adam(self, lazy):
        weight, optimizer = self.train(oar.optimizer.Adam, lazy_mode=lazy)
        wanted = self.wanted(lazy)
        np.testing.assert_allclose(weight, wanted[0], rtol=1e-4, atol=1e-5)
        state = list(optimizer.state_dict().values())
        np.testing.assert_allclose(state[0].numpy(), wanted[1], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state[1].numpy(), wanted[2], rtol=1e-4, atol=1e-8)
        assert (weight[3] == self.table[3]).all()

    def test_adamw_decays_the_rows_that_it_updates(self):
        weight, _ = self.train(oar.optimizer.AdamW, lazy_mode=True, weight_decay=0.2)
        np.testing.assert_allclose(weight, self.wanted(True, decay=0.2)[0], rtol=1e-4, atol=1e-5)
        assert (weight[3] == self.table[3]).all()

    def test_under_a_clip(self):
        weight, _ = self.train(oar.optimizer.Adam, lazy_mode=True, clip=nn.ClipGradByGlobalNorm(0.5))
        np.testing.assert_allclose(weight, self.wanted(True, bound=0.5)[0], rtol=1e-4, atol=1e-5)

    def test_with_master_weights(self):
        weight, optimizer = self.train(oar.optimizer.Adam, "bfloat16", lazy_mode=True, multi_precision=True)
        np.testing.assert_allclose(weight, self.wanted(True)[0], rtol=3e-2, atol=2e-2)
        (master,) = optimizer.state_dict()["master_weights"].values()
        assert master.dtype == oar.float32

    def test_a_whole_step_under_to_static_gives_the_same(self):
        tables = []
        for wrap in (lambda train: train, oar.jit.to_static):
            layer = nn.Embedding(6, 3, sparse=True)
            layer.weight.set_value(self.table)
            optimizer = oar.optimizer.Adam(0.1, parameters=layer.parameters(), lazy_mode=True)

            def train(numbers, layer=layer, optimizer=optimizer):
                (layer(numbers) ** 2).sum().backward()
                optimizer.step()
                optimizer.clear_grad()

            call = wrap(train)
            for numbers in self.batches:
                call(oar.to_tensor(numbers))
            tables.append(layer.weight.numpy())
        np.testing.assert_allclose(tables[0], self.wanted(True)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(*tables)
        with pytest.raises(NotImplementedError, match="cannot be captured"):
            oar.jit.capture(train, [oar.static.InputSpec([2, 3], "int64")])

    def test_in_a_written_program(self):
        main, startup = oar.static.Program(), oar.static.Program()
        oar.enable_static()
        try:
            with oar.static.program_guard(main, startup), oar.static.scope_guard(oar.static.Scope()):
                numbers = oar.static.data("numbers", [2, 3], "int64")
                attr = oar.ParamAttr(initializer=nn.initializer.Assign(self.table))
                layer = nn.Embedding(6, 3, sparse=True, weight_attr=attr)
                loss = (layer(numbers) ** 2).sum()
                oar.optimizer.Adam(0.1, lazy_mode=True).minimize(loss)
                executor = oar.static.Executor()
                executor.run(startup)
                for batch in self.batches:
                    executor.run(main, feed={"numbers": np.array(batch)}, fetch_list=[loss])
                (weight,) = executor.run(main.clone(for_test=True), feed={"numbers": np.array(batch)}, fetch_list=[layer.weight])
        finally:
            oar.disable_static()
        np.testing.assert_allclose(weight, self.wanted(True)[0], rtol=1e-4, atol=1e-5)
        assert (weight[3] == self.table[3]).all()

    def test_weight_decay_in_the_gradient_reaches_every_row(self):
        weight, _ = self.train(oar.optimizer.Adam, lazy_mode=True, weight_decay=0.1)
        assert (weight[3] != self.table[3]).all()
