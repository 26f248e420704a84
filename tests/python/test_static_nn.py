"""Layers as functions, Python inside programs, measures and averages."""

import numpy as np
import pytest

import oar
from oar import nn, static


@pytest.fixture(autouse=True)
def programs():
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.scope_guard(static.Scope()), oar.framework.unique_name.guard(), static.program_guard(main, startup):
        yield main, startup
    oar.disable_static()


def run(program, feed=None, fetch=()):
    return static.Executor().run(program, feed=feed, fetch_list=list(fetch))


def array(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype("float32")


def value_of(name):
    return static.global_scope()._tensor(name).numpy()


def evaluated(programs, feed, out):
    main, startup = programs
    run(startup)
    return run(main, feed, [out])[0]


def eager(function, *args, **kwargs):
    with oar.base.dygraph.guard():
        made = [oar.to_tensor(a) if isinstance(a, np.ndarray) else a for a in args]
        return function(*made, **kwargs).numpy()


def test_fc(programs):
    x, y = static.data("x", [None, 2, 3]), static.data("y", [None, 4])
    out = static.nn.fc([x, y], 5, activation="tanh")
    a, b = array(6, 2, 3), array(6, 4, seed=1)
    got = evaluated(programs, {"x": a, "y": b}, out)
    names = [p.name for p in programs[0].all_parameters()]
    assert names == ["fc_0.w_0", "fc_0.w_1", "fc_0.b_0"]
    wanted = np.tanh(a.reshape(6, 6) @ value_of(names[0]) + b @ value_of(names[1]) + value_of(names[2]))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
    wide = static.nn.fc(x, 5, num_flatten_dims=2, bias_attr=False)
    assert wide.shape == [-1, 2, 5]


@pytest.mark.parametrize("kind, shape", [("conv2d", (2, 4, 7, 7)), ("conv3d", (2, 4, 5, 5, 5))])
def test_convolutions(programs, kind, shape):
    x = static.data("x", [None, *shape[1:]])
    out = getattr(static.nn, kind)(x, 6, 3, stride=2, padding=1, groups=2, act="relu")
    value = array(*shape)
    got = evaluated(programs, {"x": value}, out)
    weight, bias = (value_of(p.name) for p in programs[0].all_parameters())
    wanted = eager(getattr(nn.functional, kind), value, weight, bias, stride=2, padding=1, groups=2)
    np.testing.assert_allclose(got, np.maximum(wanted, 0), rtol=1e-4, atol=1e-5)


def test_transposed_convolutions(programs):
    x = static.data("x", [None, 3, 5, 5])
    out = static.nn.conv2d_transpose(x, 4, output_size=11, stride=2, bias_attr=False)
    value = array(2, 3, 5, 5)
    got = evaluated(programs, {"x": value}, out)
    (weight,) = programs[0].all_parameters()
    assert weight.shape == [3, 4, 3, 3] and got.shape == (2, 4, 11, 11)
    wanted = eager(nn.functional.conv2d_transpose, value, value_of(weight.name), stride=2)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="cannot both be None"):
        static.nn.conv2d_transpose(x, 4)
    deep = static.data("deep", [None, 3, 3, 3, 3])
    assert static.nn.conv3d_transpose(deep, 2, filter_size=2).shape == [-1, 2, 4, 4, 4]


def test_norms(programs):
    value = array(4, 6, 3, 3)
    x = static.data("x", [None, 6, 3, 3])
    outs = [
        static.nn.layer_norm(x),
        static.nn.group_norm(x, 3),
        static.nn.instance_norm(x),
        static.nn.batch_norm(x),
        static.nn.batch_norm(x, is_test=True),
    ]
    main, startup = programs
    run(startup)
    got = run(main, {"x": value}, outs)
    centred = value - value.mean((1, 2, 3), keepdims=True)
    np.testing.assert_allclose(got[0], centred / np.sqrt(value.var((1, 2, 3), keepdims=True) + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[1], eager(nn.functional.group_norm, value, 3), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[2], eager(nn.functional.instance_norm, value), rtol=1e-4, atol=1e-5)
    axes = (0, 2, 3)
    normal = (value - value.mean(axes, keepdims=True)) / np.sqrt(value.var(axes, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got[3], normal, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[4], value / np.sqrt(1 + 1e-5), rtol=1e-5)
    np.testing.assert_allclose(value_of("batch_norm_0.w_1"), 0.1 * value.mean(axes), rtol=1e-4, atol=1e-6)


def test_data_norm(programs):
    main, startup = programs
    value = array(5, 3)
    x = static.data("x", [None, 3])
    out = static.nn.data_norm(x, name="d", param_attr={"batch_size": 10.0, "batch_sum": 2.0, "batch_square": 20.0})
    test = main.clone(for_test=True)
    run(startup)
    np.testing.assert_allclose(run(main, {"x": value}, [out])[0], (value - 0.2) * np.sqrt(0.5), rtol=1e-5)
    np.testing.assert_allclose(value_of("d.batch_size"), [15.0] * 3, rtol=1e-5)
    np.testing.assert_allclose(value_of("d.batch_sum"), 2.0 + value.sum(0), rtol=1e-5)
    run(test, {"x": value}, [out])
    np.testing.assert_allclose(value_of("d.batch_size"), [15.0] * 3, rtol=1e-5)


def test_embedding_and_products(programs):
    main, startup = programs
    ids = static.data("ids", [None, 2], "int64")
    rows = static.nn.embedding(ids, [7, 4], padding_idx=-1)
    x, y = static.data("x", [None, 3]), static.data("y", [None, 2])
    product = static.nn.bilinear_tensor_product(x, y, 5)
    slopes = static.nn.prelu(x, "channel")
    run(startup)
    i, a, b = np.array([[0, 3], [6, 2], [1, 1]]), array(3, 3), array(3, 2, seed=1)
    got = run(main, {"ids": i, "x": a, "y": b}, [rows, product, slopes])
    table = value_of("embedding_0.w_0").copy()
    table[6] = 0
    np.testing.assert_array_equal(got[0], table[i])
    wanted = np.einsum("ni,kij,nj->nk", a, value_of("bilinear_tensor_product_0.w_0"), b)
    np.testing.assert_allclose(got[1], wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got[2], np.where(a > 0, a, a * 0.25), rtol=1e-6)


@pytest.mark.parametrize("sampler", ["uniform", "log_uniform", "custom_dist"])
def test_nce(programs, sampler):
    main, startup = programs
    x, y = static.data("x", [None, 4]), static.data("y", [None, 1], "int64")
    chances = [0.4, 0.3, 0.2, 0.1]
    loss = static.nn.nce(x, y, 4, num_neg_samples=3, sampler=sampler, custom_dist=chances,
                         param_attr="w", bias_attr="b")
    draws = [op for op in main.global_block().ops if op.type in ("randint", "uniform")]
    assert len(draws) == 1
    oar.optimizer.Adam(0.1).minimize(oar.mean(loss))
    run(startup)
    data, labels = np.eye(4, dtype="float32").repeat(8, 0), np.arange(4).repeat(8)[:, None]
    first = run(main, {"x": data, "y": labels}, [loss])[0]
    assert first.shape == (32, 1) and (first > 0).all()
    for _ in range(60):
        last = run(main, {"x": data, "y": labels}, [loss])[0]
    assert last.mean() < first.mean() * 0.6
    scores = data @ value_of("w").T + value_of("b")[:, 0]
    assert (scores.argmax(1) == labels[:, 0]).all()


def test_row_conv_and_spectral_norm(programs):
    main, startup = programs
    x = static.data("x", [None, None, 3])
    out = static.nn.row_conv(x, 2, param_attr="w")
    weight = static.create_parameter([4, 3], "float32", name="m")
    normal = static.nn.spectral_norm(weight, power_iters=30)
    run(startup)
    value = array(2, 5, 3)
    got = run(main, {"x": value}, [out, normal])
    padded, w = np.concatenate([value, np.zeros((2, 2, 3), "float32")], 1), value_of("w")
    np.testing.assert_allclose(got[0], sum(padded[:, k : k + 5] * w[k] for k in range(3)), rtol=1e-5, atol=1e-6)
    assert abs(np.linalg.svd(got[1])[1][0] - 1.0) < 1e-3


def test_weights_of_length_and_direction(programs):
    main, startup = programs
    x = static.data("x", [None, 4])
    out = static.nn.fc(x, 3, weight_attr=static.WeightNormParamAttr(dim=1, name="w"), bias_attr=False)
    oar.optimizer.SGD(0.1).minimize(oar.sum(out * out))
    run(startup)
    v, g = value_of("w_v"), value_of("w_g")
    np.testing.assert_allclose(g[0], np.linalg.norm(v, axis=0), rtol=1e-5)
    value = array(5, 4)
    np.testing.assert_allclose(run(main, {"x": value}, [out])[0], value @ v, rtol=1e-4, atol=1e-5)
    assert not np.allclose(value_of("w_g"), g)


# Python inside programs ------------------------------------------------------------------------------


def test_py_func(programs):
    main, _ = programs
    x = static.data("x", [None, 3])
    x.stop_gradient = False
    out = main.global_block().create_var(name="cube", shape=[-1, 3], dtype="float32")
    calls = []

    def cube(value):
        calls.append(value.shape)
        return np.asarray(value) ** 3

    static.py_func(cube, x, out, lambda x, y, dy: 3 * np.asarray(x) ** 2 * np.asarray(dy))
    (grad,) = static.gradients(oar.sum(out), x)
    value = array(2, 3)
    got = run(main, {"x": value}, [out, grad])
    np.testing.assert_allclose(got[0], value**3, rtol=1e-5)
    np.testing.assert_allclose(got[1], 3 * value**2, rtol=1e-5)
    assert len(calls) == 1
    run(main, {"x": value}, [x * 1.0])
    assert len(calls) == 2


def test_print(programs, capfd):
    main, _ = programs
    x = static.data("x", [2])
    x.stop_gradient = False
    y = static.Print(x, first_n=1, message="look:")
    (grad,) = static.gradients(oar.sum(y * 2.0), x)
    for _ in range(2):
        assert run(main, {"x": np.array([1.0, 2.0], "float32")}, [grad])[0].tolist() == [2.0, 2.0]
    shown = capfd.readouterr().err
    assert shown.count("look:") == 2 and "x@GRAD" in shown and "[1.0, 2.0]" in shown


def test_static_pylayer(programs):
    main, _ = programs
    x = static.data("x", [2])
    x.stop_gradient = False
    y = static.nn.static_pylayer(lambda a: a * a, [x], lambda dy: dy * 10.0)
    (grad,) = static.gradients(y, x)
    got = run(main, {"x": np.array([3.0, 4.0], "float32")}, [y, grad])
    assert got[0].tolist() == [9.0, 16.0] and got[1].tolist() == [10.0, 10.0]


# measures and averages -------------------------------------------------------------------------------


def test_accuracy_and_auc(programs):
    main, startup = programs
    scores, label = static.data("scores", [None, 2]), static.data("label", [None, 1], "int64")
    share = static.accuracy(scores, label)
    area, recent, counts = static.auc(scores, label)
    run(startup)
    rng = np.random.RandomState(2)
    p, truth = [], []
    for _ in range(3):
        one = rng.rand(20).astype("float32")
        y = (rng.rand(20) < one).astype("int64")
        p.append(one)
        truth.append(y)
        feed = {"scores": np.stack([1 - one, one], 1), "label": y[:, None]}
        got = run(main, feed, [share, area, recent, *counts])
        assert abs(got[0] - ((one > 0.5) == y).mean()) < 1e-6
        np.testing.assert_allclose(got[1], rank_auc(np.concatenate(p), np.concatenate(truth)), atol=2e-3)
        np.testing.assert_allclose(got[2], rank_auc(one, y), atol=2e-3)
    assert got[5].sum() == sum(y.sum() for y in truth)


def rank_auc(p, y):
    pairs = (p[y == 1][:, None] - p[y == 0][None]).ravel()
    return ((pairs > 0) + 0.5 * (pairs == 0)).mean()


def test_moving_averages(programs):
    main, startup = programs
    w = static.create_parameter([1], "float32", name="w", default_initializer=nn.initializer.Constant(4.0))
    oar.optimizer.SGD(1.0).minimize(oar.sum(w))
    average = static.ExponentialMovingAverage(0.5)
    average.update()
    exe = static.Executor()
    run(startup)
    for _ in range(2):
        run(main)
    assert value_of("w").tolist() == [2.0]
    with average.apply(exe):
        np.testing.assert_allclose(value_of("w"), (0.25 * 3 + 0.5 * 2) / 0.75, rtol=1e-6)
    assert value_of("w").tolist() == [2.0]


def test_assert(programs):
    from oar.static.nn.host import Assert

    main, _ = programs
    x = static.data("x", [None])
    Assert(oar.all(x > 0), [x], name="positive")
    run(main, {"x": np.ones(3, "float32")})
    with pytest.raises(ValueError, match="one element"):
        Assert(oar.ones([2]) > 0)
    with pytest.raises(ValueError, match=r"positive does not hold. x = \[-1.0\]"):
        run(main, {"x": -np.ones(1, "float32")})
