"""Calls in static programs as Paddle's users write them: open sizes, shapes that runs decide, arrays, names, feeds."""

import numpy as np
import pytest

import oar
import oar.nn.functional as F
from oar import static


@pytest.fixture(autouse=True)
def program():
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        yield main
    oar.disable_static()


def run(feed, *fetch):
    return static.Executor().run(feed=feed, fetch_list=list(fetch))


def array(*shape):
    return np.random.default_rng(7).normal(size=shape).astype("float32")


# open sizes ----------------------------------------------------------------------------------------


def test_open_sizes_that_a_call_needs_equal_are_checked_by_the_run():
    scores, labels = static.data("scores", [None, 5]), static.data("labels", [None, 1], "int64")
    boxes, quality = static.data("boxes", [None, 4]), static.data("quality", [None])
    loss = F.softmax_with_cross_entropy(oar.concat([scores, scores]), labels)
    kept = oar.vision.ops.nms(boxes, 0.5, quality)
    x, y = array(3, 5), np.arange(6).reshape(6, 1) % 5
    two = np.array([[0, 0, 1, 1], [0, 0, 1, 1]], "float32")
    got = run({"scores": x, "labels": y, "boxes": two, "quality": np.array([0.1, 0.9], "float32")}, loss, kept)
    rows = np.concatenate([x, x])
    wanted = np.log(np.exp(rows).sum(1, keepdims=True)) - np.take_along_axis(rows, y, 1)
    np.testing.assert_allclose(got[0], wanted, rtol=1e-5)
    assert got[1].tolist() == [1]
    with pytest.raises(ValueError, match="here this is 7 and 6"):
        run({"scores": x, "labels": np.zeros([7, 1], "int64"), "boxes": two, "quality": np.zeros(2, "float32")}, loss)


@pytest.mark.parametrize(
    "call, reference",
    [
        (oar.matmul, np.matmul),
        (lambda a, b: oar.concat([a, b.t()], 1), lambda a, b: np.concatenate([a, b.T], 1)),
        (lambda a, b: a + b.t(), lambda a, b: a + b.T),
        (lambda a, b: oar.stack([a, b.t()]), lambda a, b: np.stack([a, b.T])),
        (lambda a, b: oar.where(a > 0, a, b.t()), lambda a, b: np.where(a > 0, a, b.T)),
        (lambda a, b: a.reshape([2, 6]) * b.sum(), lambda a, b: a.reshape(2, 6) * b.sum()),
    ],
)
def test_open_sizes_meet_known_ones(call, reference):
    a, b = static.data("a", [-1, -1]), static.data("b", [4, 3])
    x, y = array(3, 4), array(4, 3)
    np.testing.assert_allclose(run({"a": x, "b": y}, call(a, b))[0], reference(x, y), rtol=1e-5)


def test_an_open_size_is_checked_at_the_run():
    a = static.data("a", [-1, 4])
    out = a + oar.ones([3, 4])
    with pytest.raises(Exception, match="a_0"):
        run({"a": array(5, 4)}, out)


def test_questions_about_open_sizes_bind_nothing():
    a = static.data("a", [-1, 4])
    assert a.shape[0] != 3 and a.shape[0] == -1
    np.testing.assert_equal(tuple(a.shape), (-1, 4))
    assert run({"a": array(3, 4)}, a * 2)[0].shape == (3, 4)


# shapes that only a run knows ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, reference",
    [
        (lambda x, s: oar.full(s, 2.0), lambda x: np.full((2, 3), 2.0)),
        (lambda x, s: x.reshape(s) + 1, lambda x: x.reshape(2, 3) + 1),
        (lambda x, s: oar.expand(x, [s[0], 6]), lambda x: np.broadcast_to(x, (2, 6))),
        (lambda x, s: oar.tile(x, [s[1], 1]), lambda x: np.tile(x, (3, 1))),
        (lambda x, s: oar.uniform(s).shape[0] * 0 + oar.zeros([s[0], 4]), lambda x: np.zeros((2, 4))),
    ],
)
def test_shapes_from_tensors(call, reference):
    x, s = static.data("x", [6]), static.data("s", [2], "int32")
    value = array(6)
    got = run({"x": value, "s": np.array([2, 3], "int32")}, call(x, s))[0]
    np.testing.assert_allclose(got, reference(value), rtol=1e-6)


# arrays --------------------------------------------------------------------------------------------


def test_arrays_are_fed_not_passed():
    x = static.data("x", [3])
    for call in (lambda: oar.exp(np.ones(3)), lambda: oar.add(x, np.ones(3)), lambda: F.relu6(1)):
        with pytest.raises(TypeError, match="must be a tensor"):
            call()
    assert (x * 2 + 1).shape == [3]


def test_eager_mode_takes_arrays():
    oar.disable_static()
    assert oar.exp(np.zeros(2)).tolist() == [1.0, 1.0]
    oar.enable_static()


# names, feeds, files -------------------------------------------------------------------------------


def test_results_take_names(program):
    x = static.data("x", [2])
    out = oar.add(x, x, name="twice")
    assert out.name.startswith("twice.tmp_")
    assert run({"x": np.ones(2, "float32")}, out.name)[0].tolist() == [2.0, 2.0]


def test_a_feed_of_another_shape_warns_and_runs():
    x, y = static.data("x", [3, 1]), static.data("y", [3, 1])
    out = oar.maximum(x, y)
    with pytest.warns(UserWarning, match=r"\[3, 1\], but \[3\] was fed"):
        got = run({"x": array(3), "y": -array(3)}, out)[0]
    np.testing.assert_array_equal(got, np.abs(array(3)))


def test_a_computed_variable_can_be_the_input_of_a_model(tmp_path):
    executor = static.Executor()
    x = oar.randn([2, 3])
    out = x * 2 + 1
    path = str(tmp_path / "model")
    static.save_inference_model(path, [x], [out], executor)
    program, names, results = static.load_inference_model(path, executor)
    value = array(2, 3)
    got = executor.run(program, feed={names[0]: value}, fetch_list=results)[0]
    np.testing.assert_allclose(got, value * 2 + 1, rtol=1e-6)


# training ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [oar.optimizer.Adam, oar.optimizer.AdamW])
def test_betas_can_be_variables(kind):
    def trained(variables):
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup), oar.utils.unique_name.guard():
            x = static.data("x", [4, 3])
            net = oar.nn.Linear(3, 2, weight_attr=oar.nn.initializer.Constant(0.5))
            loss = oar.mean(net(x) ** 2)
            betas = [0.8, 0.95]
            if variables:
                betas = [static.create_global_var([1], beta, "float32", persistable=True) for beta in betas]
            kind(0.1, beta1=betas[0], beta2=betas[1]).minimize(loss)
        executor, scope = static.Executor(), static.Scope()
        with static.scope_guard(scope):
            executor.run(startup)
            return [executor.run(main, feed={"x": array(4, 3)}, fetch_list=[loss])[0] for _ in range(4)]

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-5)


def test_a_loss_without_parameters_warns():
    loss = oar.mean(static.data("x", [3]))
    with pytest.warns(UserWarning, match="no parameter"):
        _, params_grads = oar.optimizer.SGD(0.1).minimize(loss)
    assert params_grads == []


def test_loss_scaling_in_a_program():
    x, found = static.data("g", [3]), static.data("found", [1], "bool")
    scale, good, bad = static.data("scale", [1]), static.data("good", [1], "int32"), static.data("bad", [1], "int32")
    static.amp.amp_nn.update_loss_scaling([x], found, scale, good, bad, 1000, 2, 2.0, 0.8)

    def after(value):
        counts = {"good": np.array([999], "int32"), "bad": np.array([1], "int32")}
        feed = {"g": array(3), "found": np.array([value]), "scale": np.array([2048], "float32"), **counts}
        return run(feed, x, scale, good, bad)

    np.testing.assert_array_equal(after(False)[0], array(3))
    assert [int(v[0]) for v in after(False)[1:]] == [4096, 0, 0]
    assert after(True)[0].tolist() == [0, 0, 0]
    np.testing.assert_allclose([float(v[0]) for v in after(True)[1:]], [2048 * 0.8, 0, 0], rtol=1e-6)
