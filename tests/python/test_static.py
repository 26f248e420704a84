"""Programs written call by call: what they compute, what they keep, what they reject."""

import weakref

import numpy as np
import pytest

import oar
from oar import nn, static


@pytest.fixture(autouse=True)
def static_mode():
    oar.enable_static()
    with static.scope_guard(static.Scope()), oar.framework.unique_name.guard():
        yield
    oar.disable_static()


@pytest.fixture
def programs():
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        yield main, startup


def run(program, feed=None, fetch=()):
    return static.Executor().run(program, feed=feed, fetch_list=list(fetch))


def array(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype("float32")


def test_a_program_computes_what_was_written_down(programs):
    main, _ = programs
    x = static.data("x", [None, 3])
    y = oar.exp(x) + oar.full([3], 2.0)
    assert isinstance(x, static.Variable) and not isinstance(np.ones(3), static.Variable)
    assert not isinstance(main, static.Variable)
    for rows in (1, 2, 5):
        value = array(rows, 3)
        (out,) = run(main, {"x": value}, [y])
        np.testing.assert_allclose(out, np.exp(value) + 2.0, rtol=1e-6)


def test_open_sizes_are_minus_one(programs):
    x = static.data("x", [None, -1, 4])
    assert x.shape == [-1, -1, 4]
    assert oar.matmul(x, oar.ones([4, 5])).shape == [-1, -1, 5]
    assert x.shape[0] != 3


def test_calls_without_operands_are_variables(programs):
    main, _ = programs
    drawn = oar.rand([4])
    assert isinstance(drawn, static.Variable) and isinstance(oar.full([2], 1.0), static.Variable)
    oar.seed(3)
    first = run(main, fetch=[drawn])[0]
    second = run(main, fetch=[drawn])[0]
    assert not np.array_equal(first, second)
    oar.seed(3)
    np.testing.assert_array_equal(run(main, fetch=[drawn])[0], first)


def test_a_program_may_be_run_and_written_on(programs):
    main, _ = programs
    x = static.data("x", [2])
    y = x * 2.0
    value = array(2)
    np.testing.assert_array_equal(run(main, {"x": value}, [y])[0], value * 2)
    z = y + 1.0
    np.testing.assert_array_equal(run(main, {"x": value}, [z, y])[0], value * 2 + 1)


# states --------------------------------------------------------------------------------------------


def test_parameters_are_made_by_the_startup_program(programs):
    main, startup = programs
    x = static.data("x", [None, 3])
    out = static.nn.fc(x, 2, weight_attr=oar.ParamAttr(name="w", initializer=nn.initializer.Constant(0.5)))
    assert [p.name for p in main.all_parameters()] == ["w", "fc_0.b_0"]
    with pytest.raises(RuntimeError, match="Run the startup program first"):
        run(main, {"x": array(4, 3)}, [out])
    run(startup)
    value = array(4, 3)
    np.testing.assert_allclose(run(main, {"x": value}, [out])[0], value.sum(1, keepdims=True).repeat(2, 1) / 2, rtol=1e-5)
    static.global_scope().find_var("w").get_tensor().set(np.zeros((3, 2), "float32"))
    assert not run(main, {"x": value}, [out])[0].any()
    run(startup)
    assert run(main, {"x": value}, [out])[0].any()


def test_a_parameter_is_shared_by_its_name(programs):
    main, _ = programs
    x = static.data("x", [None, 3])
    for _ in range(2):
        static.nn.fc(x, 3, weight_attr="shared", bias_attr=False)
    assert len(main.all_parameters()) == 1
    with pytest.raises(ValueError, match="has shape"):
        static.nn.fc(x, 4, weight_attr="shared")


def test_an_input_asked_for_again_is_the_one_that_is_there(programs):
    main, _ = programs
    twice = [static.data("x", [None, 3]) * factor for factor in (2.0, 3.0)]
    assert static.data("x", (-1, 3), "float32") is static.data("x", [None, 3])
    value = array(4, 3)
    for out, factor in zip(run(main, {"x": value}, twice), (2.0, 3.0)):
        np.testing.assert_allclose(out, value * factor, rtol=1e-6)


def test_a_global_seed_is_that_of_programs_to_come():
    before, first = static.Program(), static.Program()
    first.global_seed(11)
    try:
        assert [p.random_seed for p in (before, first, static.Program())] == [0, 11, 11]
        with pytest.raises(ValueError, match="must be an integer"):
            first.global_seed("11")
        assert static.Program().random_seed == 11
    finally:
        first.global_seed(0)
    assert static.Program().random_seed == 0


def test_equal_layers_of_a_seeded_program_differ_and_are_those_of_eager_mode(programs):
    main, startup = programs
    startup.random_seed = 5
    layers = [oar.nn.Linear(3, 4) for _ in range(2)]
    run(startup)
    static_weights = run(main, {}, [layer.weight for layer in layers])
    assert (static_weights[0] != static_weights[1]).any()
    oar.disable_static()
    try:
        oar.seed(5)
        eager = [oar.nn.Linear(3, 4).weight.numpy() for _ in range(2)]
    finally:
        oar.enable_static()
    np.testing.assert_array_equal(static_weights, eager)


def test_scopes_keep_apart(programs):
    main, startup = programs
    startup.random_seed = 5
    out = static.nn.fc(static.data("x", [1, 2]), 1)
    counter = static.create_global_var([1], 0.0, "float32", persistable=True, name="counter")
    oar.increment(counter)
    exe, scopes = static.Executor(), [static.Scope(), static.Scope()]
    for scope in scopes:
        exe.run(startup, scope=scope)
    feed = {"x": array(1, 2)}
    seen = [exe.run(main, feed, [out, counter], scope=scope) for scope in (scopes[0], scopes[0], scopes[1])]
    assert [float(c[0]) for _, c in seen] == [1.0, 2.0, 1.0]
    np.testing.assert_array_equal(seen[0][0], seen[2][0])


def test_state_dicts(programs):
    main, startup = programs
    loss = oar.mean(static.nn.fc(static.data("x", [1, 2]), 1))
    oar.optimizer.Momentum(0.1).minimize(loss)
    with pytest.raises(ValueError, match="Run the startup program first"):
        main.state_dict()
    run(startup)
    assert set(main.state_dict("param")) == {"fc_0.w_0", "fc_0.b_0"}
    assert set(main.state_dict("opt")) > {"fc_0.w_0_velocity_0"}
    saved = {name: t.numpy() for name, t in main.state_dict().items()}
    run(main, {"x": array(1, 2)}, [loss])
    main.set_state_dict(saved)
    np.testing.assert_array_equal(main.state_dict()["fc_0.w_0"].numpy(), saved["fc_0.w_0"])


# training equals eager mode ------------------------------------------------------------------------


class Mlp(nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.head(nn.functional.relu(self.stem(x)))


class Convolutions(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2D(2, 4, 3, padding=1), nn.BatchNorm2D(4)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(4 * 6 * 6, 3)

    def forward(self, x):
        y = nn.functional.relu(self.norm(self.conv(x)))
        return self.head(self.drop(oar.flatten(y, 1)))


def trained_eagerly(make, optimizer, batches):
    with oar.base.dygraph.guard(), oar.framework.unique_name.guard():
        oar.seed(11)
        net = make()
        opt = optimizer(net.parameters())
        losses = []
        for x, y in batches:
            loss = nn.functional.cross_entropy(net(oar.to_tensor(x)), oar.to_tensor(y))
            loss.backward()
            opt.step()
            opt.clear_grad()
            losses.append(loss.numpy())
        return losses, {name: t.numpy() for name, t in net.state_dict().items()}


@pytest.mark.parametrize("make, shape", [(Mlp, (6,)), (Convolutions, (2, 6, 6))])
@pytest.mark.parametrize("optimizer", [
    lambda p: oar.optimizer.Adam(0.01, parameters=p),
    lambda p: oar.optimizer.AdamW(0.01, parameters=p, weight_decay=0.1),
    lambda p: oar.optimizer.Momentum(0.1, parameters=p, weight_decay=1e-3,
                                     grad_clip=nn.ClipGradByGlobalNorm(0.5)),
    lambda p: oar.optimizer.SGD(0.1, parameters=p, grad_clip=nn.ClipGradByValue(0.1),
                                weight_decay=oar.regularizer.L1Decay(1e-3)),
], ids=["adam", "adamw", "momentum", "sgd"])
def test_training_equals_eager_mode(programs, make, shape, optimizer):
    main, startup = programs
    rng = np.random.RandomState(1)
    batches = [(rng.randn(8, *shape).astype("float32"), rng.randint(0, 3, (8,))) for _ in range(5)]
    expected, state = trained_eagerly(make, optimizer, batches)
    net = make()
    x, y = static.data("x", [None, *shape]), static.data("y", [None], "int64")
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer(net.parameters()).minimize(loss)
    oar.seed(11)
    run(startup)
    for (a, b), wanted in zip(batches, expected):
        np.testing.assert_array_equal(run(main, {"x": a, "y": b}, [loss])[0], wanted)
    names = {name: variable.name for name, variable in net.state_dict().items()}
    for name, value in state.items():
        np.testing.assert_array_equal(static.global_scope()._tensor(names[name]).numpy(), value)


def test_a_copy_for_tests_evaluates(programs):
    main, startup = programs
    net = Convolutions()
    x, y = static.data("x", [None, 2, 6, 6]), static.data("y", [None], "int64")
    logits = net(x)
    loss = nn.functional.cross_entropy(logits, y)
    test = main.clone(for_test=True)
    oar.optimizer.SGD(0.1).minimize(loss)
    later = main.clone(for_test=True)
    run(startup)
    feed = {"x": array(8, 2, 6, 6), "y": np.zeros(8, "int64")}
    for _ in range(3):
        run(main, feed, [loss])
    before = {name: t.numpy() for name, t in main.state_dict().items()}
    outs = [run(p, feed, [logits, loss])[0] for p in (test, later, test)]
    np.testing.assert_array_equal(outs[0], outs[1])
    np.testing.assert_array_equal(outs[0], outs[2])
    for name, t in main.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), before[name])
    with oar.base.dygraph.guard():
        twin = Convolutions()
        twin.set_state_dict({k: oar.to_tensor(before[v.name]) for k, v in net.state_dict().items()})
        twin.eval()
        np.testing.assert_allclose(twin(oar.to_tensor(feed["x"])).numpy(), outs[0], rtol=1e-5, atol=1e-6)


def test_schedules_work_outside(programs):
    main, startup = programs
    w = static.create_parameter([1], "float32", default_initializer=nn.initializer.Constant(0.0))
    loss = oar.sum(w)
    schedule = oar.optimizer.lr.StepDecay(1.0, step_size=1, gamma=0.5)
    oar.optimizer.SGD(schedule).minimize(loss)
    run(startup)
    seen = []
    for _ in range(3):
        seen.append(float(run(main, fetch=[w])[0][0]))
        schedule.step()
    assert seen == [-1.0, -1.5, -1.75]


def test_the_learning_rate_can_be_set(programs):
    main, startup = programs
    w = static.create_parameter([1], "float32", default_initializer=nn.initializer.Constant(0.0))
    optimizer = oar.optimizer.SGD(1.0)
    optimizer.minimize(oar.sum(w))
    run(startup)
    run(main)
    optimizer.set_lr(0.25)
    assert float(run(main, fetch=[w])[0][0]) == -1.25


# gradients -----------------------------------------------------------------------------------------


def test_gradients(programs):
    main, _ = programs
    x = static.data("x", [3])
    x.stop_gradient = False
    y = x * x * x
    (first,) = static.gradients(y, x)
    (second,) = static.gradients(first, x)
    assert first.name == "x@GRAD"
    value = array(3)
    out = run(main, {"x": value}, [first, second])
    np.testing.assert_allclose(out[0], 3 * value**2, rtol=1e-5)
    np.testing.assert_allclose(out[1], 6 * value, rtol=1e-5)


def test_gradients_start_with_what_is_given(programs):
    main, _ = programs
    x = static.data("x", [2])
    x.stop_gradient = False
    y = x * 3.0
    (grad,) = static.gradients([y], [x], [oar.full([2], 5.0)])
    assert run(main, {"x": array(2)}, [grad])[0].tolist() == [15.0, 15.0]
    with pytest.raises(ValueError, match="cannot start with"):
        static.gradients([y], [x], [oar.ones([3])])
    still = static.data("still", [2])
    assert static.gradients(y, still) == [None]


def test_append_backward(programs):
    main, startup = programs
    x = static.data("x", [None, 2])
    a = static.nn.fc(x, 1, weight_attr="a", bias_attr=False)
    b = static.nn.fc(x, 1, weight_attr="b", bias_attr=False)
    loss = oar.sum(a) + 2.0 * oar.sum(b)
    pairs = static.append_backward(loss)
    assert [(p.name, g.name) for p, g in pairs] == [("a", "a@GRAD"), ("b", "b@GRAD")]
    assert [p.name for p, _ in static.append_backward(loss, parameter_list=["b"])] == ["b"]
    assert [p.name for p, _ in static.append_backward(loss, no_grad_set={"a"})] == ["b"]
    run(startup)
    value = array(4, 2)
    out = run(main, {"x": value}, ["a@GRAD", pairs[1][1]])
    np.testing.assert_allclose(out[0][:, 0], value.sum(0), rtol=1e-5)
    np.testing.assert_allclose(out[1][:, 0], 2 * value.sum(0), rtol=1e-5)
    with pytest.raises(ValueError, match="one element"):
        static.append_backward(a)


# mistakes ------------------------------------------------------------------------------------------


def test_mistakes_are_named(programs):
    main, _ = programs
    x, y = static.data("x", [None, 3]), static.data("y", [None, 3], "int64")
    out = x + 1.0
    feed = {"x": array(2, 3)}
    with pytest.warns(UserWarning, match="no input 'z'.*The inputs are 'x', 'y'"):
        run(main, {"x": array(2, 3), "z": array(2, 3)}, [out])
    with pytest.raises(ValueError, match="needs 'x'"):
        run(main, {}, [out])
    with pytest.raises(ValueError, match="float64 was fed"):
        run(main, {"x": np.ones((2, 3))}, [out])
    with pytest.raises(ValueError, match="no variable 'nothing' to fetch"):
        run(main, feed, ["nothing"])
    with pytest.raises(TypeError, match="fetch_list should hold variables"):
        run(main, feed, [3])
    with pytest.raises(TypeError, match="program should be a Program"):
        run(42)
    with pytest.raises(TypeError, match="feed requires dict"):
        run(main, 3.0, [out])
    with pytest.raises(ValueError, match=r"has an input 'x' already, of shape \[x_0, 3\].*cannot be \[1\]"):
        static.data("x", [1])
    with pytest.raises(ValueError, match="cannot be .*int64 too"):
        static.data("x", [None, 3], "int64")
    with pytest.raises(TypeError, match="main_program should be a Program"), static.program_guard(3):
        pass
    other = static.Program()
    with pytest.raises(ValueError, match="not part of this program"):
        run(other, fetch=[out])
    assert y.dtype == oar.int64


def test_values_are_not_there_before_a_run(programs):
    x = static.data("x", [1])
    with pytest.raises(Exception, match="value|captur"):
        x.numpy()
    with pytest.raises(Exception, match="value|captur"):
        bool(x > 0)


def test_modes():
    assert not oar.in_dynamic_mode()
    with oar.base.dygraph.guard():
        assert oar.in_dynamic_mode() and oar.ones([1]).item() == 1.0
        with static.program_guard(static.Program()):
            assert oar.ones([2]).tolist() == [1.0, 1.0]
    assert not oar.in_dynamic_mode()
    oar.disable_static()
    assert oar.in_dynamic_mode()
    with pytest.raises(RuntimeError, match="enable_static"):
        static.data("x", [1])
    with pytest.raises(RuntimeError, match="enable_static"):
        static.nn.fc(oar.ones([1, 2]), 3)


def test_reading_a_program(programs):
    main, _ = programs
    x = static.data("x", [2, 3])
    y = oar.sum(oar.transpose(x, [1, 0]), axis=0)
    y.name = "total"
    block = main.global_block()
    assert [op.type for op in block.ops] == ["transpose", "sum"]
    assert block.ops[0].attr("perm") == [1, 0] and block.ops[1].output_arg_names == ["total"]
    assert block.has_var("x") and not block.has_var("y") and block.var("total").shape == [2]
    assert y.block.program is main and {v.name for v in main.list_vars()} == {"x", "total"}
    assert "transpose" in str(main) and main.num_blocks == 1
    with pytest.raises(ValueError, match="no variable 'y'"):
        block.var("y")
    again = static.Program.parse_from_string(main.to_string())
    assert [op.type for op in again.global_block().ops] == ["transpose", "sum"]


def test_in_place_calls_are_calls(programs):
    main, _ = programs
    x = static.data("x", [2])
    y = x.exp_()
    counter = oar.full([1], 1.0)
    oar.increment(counter)
    got = run(main, {"x": np.zeros(2, "float32")}, [x, y, counter])
    assert got[0].tolist() == [0.0, 0.0] and got[1].tolist() == [1.0, 1.0] and got[2].tolist() == [2.0]


def test_a_pruned_run_writes_nothing(programs):
    main, startup = programs
    w = static.create_parameter([1], "float32", default_initializer=nn.initializer.Constant(1.0))
    loss = oar.sum(w * w)
    ops, _ = oar.optimizer.SGD(0.25).minimize(loss)
    assert [op.type for op in ops] == ["sgd_"]
    run(startup)
    exe = static.Executor()
    for fetch, wanted in (([loss], 1.0), ([loss], 1.0), ([loss, ops], 1.0), ([loss], 0.25)):
        assert float(exe.run(main, fetch_list=fetch, use_prune=True)[0]) == wanted


def test_gradients_may_be_asked_for_later(programs):
    main, _ = programs
    x = static.data("x", [3])
    y = oar.tanh(x) * x
    x.stop_gradient = False
    (first,) = static.gradients(y, x)
    (second,) = static.gradients(first, x)
    value = array(3)
    got = run(main, {"x": value}, [first, second])
    t = np.tanh(value)
    np.testing.assert_allclose(got[0], t + value * (1 - t**2), rtol=1e-5)
    np.testing.assert_allclose(got[1], 2 * (1 - t**2) - 2 * value * t * (1 - t**2), rtol=1e-4, atol=1e-6)


def test_a_copy_can_be_trained(programs):
    main, startup = programs
    x = static.data("x", [None, 2])
    loss = oar.mean(static.nn.fc(x, 1, weight_attr="w", bias_attr=False) ** 2)
    loss.name = "loss"
    twin = main.clone()
    with static.program_guard(twin, startup):
        ((weight, grad),) = static.append_backward(twin.global_block().var("loss"))
    run(startup)
    value = array(5, 2)
    (got,) = run(twin, {"x": value}, [grad])
    w = static.global_scope()._tensor("w").numpy()
    np.testing.assert_allclose(got, 2 * value.T @ (value @ w) / 5, rtol=1e-4)
    assert weight.name == "w"


def test_an_input_without_axes(programs):
    x = static.data("x", [], "float32")
    (found,) = run(programs[0], {"x": np.float32(3)}, [x * 2])
    assert found.shape == () and found == 6


def test_a_block_keeps_its_program():
    """A program that only its block refers to still exists; one that nothing refers to is freed at once."""
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2])
        y = x * 2
    block = static.normalize_program(main, [x], [y]).global_block()
    assert [op.type for op in block.ops] and block.program.global_block() is block
    freed = weakref.ref(block.program)
    del block
    assert freed() is None


def test_open_sizes_beside_known_ones(programs):
    """An open size takes the known one that it is combined with."""
    main, _ = programs
    x = static.data("x", [-1, 3])
    table = oar.to_tensor(np.arange(6, dtype="float32").reshape(2, 3))
    total, product, less = x + table, table * x, x < table
    wide = oar.broadcast_to(x, [4, 2, 3])
    value = np.float32([[5, 1, 0], [2, 2, 9]])
    known = np.arange(6, dtype="float32").reshape(2, 3)
    got = run(main, {"x": value}, [total, product, less, wide])
    wanted = [value + known, value * known, value < known, np.broadcast_to(value, [4, 2, 3])]
    for made, expected in zip(got, wanted):
        np.testing.assert_array_equal(made, expected)
    with pytest.raises((ValueError, RuntimeError)):
        run(main, {"x": np.ones([3, 3], "float32")}, [total])


def test_numpy_functions_of_a_variable_call_its_methods(programs):
    main, _ = programs
    x = static.data("x", [2])
    value = np.float32([0.5, 2])
    got = run(main, {"x": value}, [np.log(x), np.sqrt(x) + 1])
    np.testing.assert_allclose(got[0], np.log(value), rtol=1e-6)
    np.testing.assert_allclose(got[1], np.sqrt(value) + 1, rtol=1e-6)


def test_ends_that_are_variables(programs):
    main, _ = programs
    low, high = static.data("low", []), static.data("high", [1])
    got = run(main, {"low": np.float32(1), "high": np.float32([3])},
              [oar.linspace(low, high, 5), oar.logspace(low, high, 3, base=low + 1)])
    np.testing.assert_allclose(got[0], np.linspace(1, 3, 5), rtol=1e-6)
    np.testing.assert_allclose(got[1], np.logspace(1, 3, 3, base=2), rtol=1e-6)


@pytest.mark.parametrize("arguments", [{}, {"density": True}, {"ranges": [-1.0, 1.0, 0.0, 2.0]}, {"weights": True}])
def test_histograms(programs, arguments):
    main, _ = programs
    value = np.random.default_rng(3).normal(size=[20, 2]).astype("float32")
    weights = np.arange(20, dtype="float32") if arguments.get("weights") else None
    given = {**arguments, "weights": oar.to_tensor(weights)} if weights is not None else arguments
    x = static.data("x", [20, 2])
    counts, edges = oar.histogramdd(x, bins=[3, 4], **given)
    ends = oar.histogram_bin_edges(x, 5)
    got = run(main, {"x": value}, [counts, *edges, ends])
    ranges = arguments.get("ranges")
    wanted, bounds = np.histogramdd(value, [3, 4], ranges and [ranges[:2], ranges[2:]], bool(arguments.get("density")), weights)
    np.testing.assert_allclose(got[0], wanted, rtol=1e-5)
    for made, expected in zip(got[1:3], bounds):
        np.testing.assert_allclose(made, expected, rtol=1e-5)
    np.testing.assert_allclose(got[3], np.histogram_bin_edges(value, 5), rtol=1e-5)
