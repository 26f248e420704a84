"""``amp.decorate`` and master weights: parameters in 16 bits, updated in float32."""

import numpy as np
import pytest

import oar
from oar import nn

OPTIMIZERS = ["SGD", "Momentum", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "RMSProp", "ASGD", "Rprop", "NAdam", "RAdam", "Lamb"]
LOW = pytest.mark.parametrize("low", ["float16", "bfloat16"])


def network():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1D(4), nn.LayerNorm(4), nn.Linear(4, 1))


def kinds(net):
    return [str(layer.weight.dtype).removeprefix("oar.") for layer in net]


def adam(net):
    return oar.optimizer.Adam(0.01, parameters=net.parameters())


@LOW
def test_level_o2_casts_all_but_norms(low):
    net = oar.amp.decorate(network(), level="O2", dtype=low)
    assert kinds(net) == [low, "float32", "float32" if low == "float16" else low, low]
    assert net[1]._mean.dtype == oar.float32


def test_level_o1_changes_nothing():
    net = network()
    optimizer = adam(net)
    assert oar.amp.decorate(net, optimizer, level="O1") == (net, optimizer) and oar.amp.decorate(net) is net
    assert kinds(net) == ["float32"] * 4 and not optimizer._multi_precision


def test_what_is_returned_has_the_form_of_what_was_passed():
    first, second = network(), network()
    one, other = adam(first), adam(second)
    assert oar.amp.decorate(first, level="O2") is first
    assert oar.amp.decorate([first, second], level="O2") == [first, second]
    assert oar.amp.decorate([first, second], one, level="O2") == ([first, second], one)
    assert oar.amp.decorate(first, [one, other], level="O2") == (first, [one, other])


def test_excluded_layers():
    net = network()
    oar.amp.decorate(net, level="O2", dtype="bfloat16", excluded_layers=net[0])
    assert kinds(net) == ["float32", "float32", "bfloat16", "bfloat16"]
    net = network()
    oar.amp.decorate(net, level="O2", dtype="bfloat16", excluded_layers=nn.Linear)
    assert kinds(net) == ["float32", "float32", "bfloat16", "float32"]
    net = nn.Sequential(network(), nn.Linear(1, 1))
    oar.amp.decorate(net, level="O2", dtype="bfloat16", excluded_layers=[net[0], nn.LayerNorm])
    assert kinds(net[0]) == ["float32"] * 4 and net[1].weight.dtype == oar.bfloat16


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_master_weights_follow_training_in_float32(kind):
    """With masters, a training in bfloat16 follows the one in float32, whose steps are too small for bfloat16 itself."""

    def train(half):
        oar.seed(5)
        net = nn.Linear(4, 1)
        optimizer = getattr(oar.optimizer, kind)(learning_rate=1e-3, parameters=net.parameters())
        if half:
            net, optimizer = oar.amp.decorate(net, optimizer, level="O2", dtype="bfloat16")
        x = oar.to_tensor(np.random.default_rng(0).integers(-2, 3, [8, 4]).astype("float32"))
        for _ in range(5):
            with oar.amp.auto_cast(enable=half, level="O2", dtype="bfloat16"):
                loss = net(x).astype("float32").mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        return net, optimizer

    plain, _ = train(False)
    net, optimizer = train(True)
    masters = optimizer.state_dict()["master_weights"]
    assert sorted(masters) == sorted(p.name for p in net.parameters())
    for parameter, exact in zip(net.parameters(), plain.parameters()):
        master = masters[parameter.name]
        assert master.dtype == oar.float32 and parameter.dtype == oar.bfloat16
        # The start is rounded to bfloat16, so compare what was added.
        np.testing.assert_allclose(master.numpy(), exact.numpy(), atol=4e-3)
        np.testing.assert_array_equal(master.astype("bfloat16").astype("float32").numpy(), parameter.astype("float32").numpy())


def test_without_master_weights():
    net = network()
    optimizer = adam(net)
    oar.amp.decorate(net, optimizer, level="O2", dtype="bfloat16", master_weight=False)
    net(oar.ones([2, 4]).astype("bfloat16")).sum().backward()
    optimizer.step()
    assert "master_weights" not in optimizer.state_dict()


def test_master_weights_are_saved_and_loaded(tmp_path):
    def one():
        with oar.utils.unique_name.guard():
            net = network()
        return oar.amp.decorate(net, adam(net), level="O2", dtype="bfloat16")

    def step(net, optimizer):
        net(oar.ones([2, 4]).astype("bfloat16")).sum().backward()
        optimizer.step()
        optimizer.clear_grad()

    net, optimizer = one()
    step(net, optimizer)
    oar.save(net.state_dict(), str(tmp_path / "net.pdparams"))
    oar.save(optimizer.state_dict(), str(tmp_path / "net.pdopt"))
    again, restored = one()
    again.set_state_dict(oar.load(str(tmp_path / "net.pdparams")))
    restored.set_state_dict(oar.load(str(tmp_path / "net.pdopt")))
    for pair in ((net, optimizer), (again, restored)):
        step(*pair)
    first, second = optimizer.state_dict()["master_weights"], restored.state_dict()["master_weights"]
    assert sorted(first) == sorted(second) and len(first) == 6
    for name, value in first.items():
        np.testing.assert_array_equal(value.numpy(), second[name].numpy())


@pytest.mark.parametrize("decay", [oar.regularizer.L1Decay(0.5), oar.regularizer.L2Decay(0.5), None])
def test_master_gradients(decay):
    net = nn.Linear(2, 1)
    optimizer = oar.optimizer.Momentum(0.1, parameters=net.parameters(), weight_decay=decay, grad_clip=nn.ClipGradByGlobalNorm(1.0))
    oar.amp.decorate(net, optimizer, level="O2", dtype="bfloat16", master_grad=True)
    for _ in range(2):  # gradients add up in float32
        net(oar.full([1, 2], 1 / 3).astype("bfloat16")).sum().backward()
    assert net.weight.dtype == oar.bfloat16 and net.weight.grad.dtype == oar.float32
    optimizer.step()
    optimizer.clear_grad()
    assert np.isfinite(net.weight.astype("float32").numpy()).all()
    oar.amp.decorate(net, optimizer, level="O2", dtype="bfloat16", master_grad=True)  # again: no second hook
    net(oar.ones([1, 2]).astype("bfloat16")).sum().backward()
    assert net.weight.grad.dtype == oar.float32


def test_master_gradients_without_master_weights():
    net = nn.Linear(2, 1)
    optimizer = oar.optimizer.SGD(0.5, parameters=net.parameters())
    oar.amp.decorate(net, optimizer, level="O2", dtype="bfloat16", master_grad=True, master_weight=False)
    before = net.weight.astype("float32").numpy()
    net(oar.ones([1, 2]).astype("bfloat16")).sum().backward()
    optimizer.step()
    np.testing.assert_allclose(net.weight.astype("float32").numpy(), before - 0.5, atol=1e-2)


@pytest.mark.parametrize("saved", ["float32", "float64", "float16"])
def test_save_dtype(saved):
    net = oar.amp.decorate(network(), level="O2", dtype="bfloat16", save_dtype=saved)
    state = net.state_dict()
    assert {str(value.dtype) for value in state.values()} == {f"oar.{saved}"}
    assert state["0.weight"].name == net[0].weight.name and net[0].weight.dtype == oar.bfloat16


def test_a_norm_after_a_lookup_computes_in_float32():
    net = nn.Sequential(nn.Embedding(20, 8), nn.LayerNorm(8), nn.Linear(8, 20))
    optimizer = oar.optimizer.AdamW(0.05, parameters=net.parameters())
    net, optimizer = oar.amp.decorate(net, optimizer, level="O2", dtype="bfloat16")
    words = oar.to_tensor([1, 2, 3])
    assert net[1].weight.dtype == oar.bfloat16
    losses = []
    for _ in range(3):
        with oar.amp.auto_cast(level="O2", dtype="bfloat16"):
            found = net[0](words)
            shown = net[1](found)
            loss = nn.functional.cross_entropy(net[2](shown).astype("float32"), words)
        assert found.dtype == oar.float32 and shown.dtype == oar.float32
        loss.backward()
        assert net[1].weight.grad.dtype == oar.bfloat16
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    assert losses[2] < losses[1] < losses[0]


BAD = {
    "level": (lambda: oar.amp.decorate(network(), level="O3"), ValueError, "level should be 'O1' or 'O2', but received 'O3'"),
    "dtype": (lambda: oar.amp.decorate(network(), level="O2", dtype="float64"), ValueError, "'float16' or 'bfloat16'"),
    "models": (lambda: oar.amp.decorate(1, level="O2"), TypeError, "a single model or a list of models, but received int"),
    "model": (lambda: oar.amp.decorate([1], level="O2"), RuntimeError, "models should be Layers"),
    "optimizers": (lambda: oar.amp.decorate(network(), 1, level="O2"), TypeError, "a single optimizer or a list"),
    "optimizer": (lambda: oar.amp.decorate(network(), [1], level="O2"), RuntimeError, "optimizers should be Optimizers"),
    "excluded": (lambda: oar.amp.decorate(network(), level="O2", excluded_layers=111), TypeError, "excluded_layers must be"),
    "excluded type": (lambda: oar.amp.decorate(network(), level="O2", excluded_layers=[int]), TypeError, "excluded_layers must be"),
    "save_dtype": (lambda: oar.amp.decorate(network(), level="O2", save_dtype="int8"), ValueError, "save_dtype should be one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes(case):
    call, error, text = BAD[case]
    with pytest.raises(error, match=text):
        call()


def test_states_of_masters_have_the_names_of_paddle():
    with oar.utils.unique_name.guard():
        net = nn.Linear(2, 1)
    optimizer = oar.optimizer.AdamW(0.1, parameters=net.parameters(), multi_precision=True)
    net.bfloat16()
    net(oar.ones([1, 2]).astype("bfloat16")).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert state["master_weights"]["linear_0.w_0"].name == "linear_0.w_0_fp32_master_0"
    assert {"linear_0.w_0_fp32_master_0_moment1_0", "linear_0.b_0_fp32_master_0_beta2_pow_acc_0"} <= set(state)
    # What was saved in float32 goes on in 16 bits.
    plain = {key.replace("_fp32_master_0", ""): value for key, value in state.items() if key != "master_weights"}
    other = oar.optimizer.AdamW(0.1, parameters=net.parameters(), multi_precision=True)
    other.set_state_dict(plain)
    other.step()
    moments = [value for key, value in other.state_dict().items() if "moment1" in key]
    assert len(moments) == 2 and all(float(value.abs().sum()) > 0 for value in moments)
