"""Sequences of different lengths in programs: inputs with lengths, and the layers that read them."""

import numpy as np
import pytest

import oar
from oar import base, static

LENGTHS = [[2, 0, 3, 1], [4], [1, 1], [0, 0], [], [0, 5]]
POOLS = ["sum", "average", "sqrt", "max", "first", "last"]


@pytest.fixture(autouse=True)
def programs():
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.scope_guard(static.Scope()), oar.framework.unique_name.guard(), static.program_guard(main, startup):
        yield main, startup
    oar.disable_static()


def run(program, feed=None, fetch=(), **options):
    return static.Executor().run(program, feed=feed, fetch_list=list(fetch), **options)


def array(*shape, seed=0, dtype="float64"):
    return np.random.RandomState(seed).randn(*shape).astype(dtype)


def rows(lengths, *rest, seed=0, dtype="float64"):
    return base.create_lod_tensor(array(sum(lengths), *rest, seed=seed, dtype=dtype), [lengths])


def zeros(lengths):
    return base.create_lod_tensor(np.zeros([sum(lengths), 1], "int64"), [lengths])


def parts(x, lengths):
    return np.split(np.asarray(x), np.cumsum(lengths)[:-1]) if lengths else []


def pooled(x, lengths, how, pad):
    pools = {
        "sum": lambda p: p.sum(0),
        "average": lambda p: p.mean(0),
        "sqrt": lambda p: p.sum(0) / np.sqrt(len(p)),
        "max": lambda p: p.max(0),
        "first": lambda p: p[0],
        "last": lambda p: p[-1],
    }
    x = np.asarray(x)
    made = [pools[how](p) if len(p) else np.full(x.shape[1:], pad) for p in parts(x, lengths)]
    return np.stack(made) if made else np.zeros((0, *x.shape[1:]))


def slopes(function, x, step=1e-6):
    """The gradient of the sum of a function by finite differences."""
    made = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        made[place] = (function(up) - function(down)) / (2 * step)
    return made


@pytest.mark.parametrize("how", POOLS)
def test_pool(programs, how):
    x = static.data("x", [None, 3], "float64", lod_level=1)
    flat = static.data("flat", [-1], "float64", lod_level=1)
    out = static.nn.sequence_pool(x, how, pad_value=7.0)
    of_flat = static.nn.sequence_pool(flat, how.upper())
    assert out.lod_level == 0 and x.lod_level == 1 and out.shape == [-1, 3]
    for lengths in LENGTHS:
        feed = {"x": rows(lengths, 3), "flat": rows(lengths, seed=1)}
        got, got_flat = run(programs[0], feed, [out, of_flat])
        np.testing.assert_allclose(got, pooled(feed["x"], lengths, how, 7.0), rtol=1e-12)
        np.testing.assert_allclose(got_flat, pooled(feed["flat"], lengths, how, 0.0), rtol=1e-12)


@pytest.mark.parametrize("how", POOLS)
def test_pool_gradient(programs, how):
    x = static.data("x", [None, 2], "float64", lod_level=1)
    x.stop_gradient = False
    weight = static.data("weight", [None, 2], "float64")
    loss = oar.sum(static.nn.sequence_pool(x, how, pad_value=1.0) * weight)
    (slope,) = static.gradients(loss, x)
    lengths, w = [2, 0, 3], array(3, 2, seed=4)
    feed = rows(lengths, 2)
    (got,) = run(programs[0], {"x": feed, "weight": w}, [slope])
    wanted = slopes(lambda value: (pooled(value, lengths, how, 1.0) * w).sum(), np.array(feed))
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)


def test_of_equal_rows_the_first_is_the_highest(programs):
    x = static.data("x", [None, 1], lod_level=1)
    x.stop_gradient = False
    (slope,) = static.gradients(static.nn.sequence_pool(x, "max"), x)
    feed = base.create_lod_tensor(np.array([[1], [2], [2], [5], [5]], "float32"), [[3, 2]])
    np.testing.assert_array_equal(run(programs[0], {"x": feed}, [slope])[0].ravel(), [0, 1, 0, 1, 0])


def test_highest_of_nan(programs):
    x = static.data("x", [None, 1], lod_level=1)
    out = static.nn.sequence_pool(x, "max")
    feed = base.create_lod_tensor(np.array([[1], [np.nan], [2], [5]], "float32"), [[3, 1]])
    np.testing.assert_array_equal(run(programs[0], {"x": feed}, [out])[0].ravel(), [np.nan, 5])


def test_first_and_last_step(programs):
    x = static.data("x", [None, 2], "float64", lod_level=1)
    fetch = [static.nn.sequence_first_step(x), static.nn.sequence_last_step(x)]
    feed = rows([2, 0, 3], 2)
    for got, how in zip(run(programs[0], {"x": feed}, fetch), ("first", "last")):
        np.testing.assert_array_equal(got, pooled(feed, [2, 0, 3], how, 0.0))


def test_pool_of_two_levels(programs):
    x = static.data("x", [None, 1], "float64", lod_level=2)
    inner = static.nn.sequence_pool(x, "sum")
    outer = static.nn.sequence_pool(inner, "max", pad_value=-1.0)
    assert (x.lod_level, inner.lod_level, outer.lod_level) == (2, 1, 0)
    content = np.array([[1], [3], [2], [4], [6], [5], [1]], "float64")
    feed = {"x": base.create_lod_tensor(content, [[2, 0, 3], [1, 2, 1, 0, 3]])}
    got, top = run(programs[0], feed, [inner, outer])
    np.testing.assert_array_equal(got.ravel(), [1, 5, 4, 0, 12])
    np.testing.assert_array_equal(top.ravel(), [5, -1, 12])
    (kept,) = run(programs[0], feed, [inner], return_numpy=False)
    assert kept.recursive_sequence_lengths() == [[2, 0, 3]]


def softmax(x, lengths):
    made = [np.exp(p - p.max()) / np.exp(p - p.max()).sum() for p in parts(x, lengths) if len(p)]
    return np.concatenate(made) if made else np.asarray(x)


@pytest.mark.parametrize("rest", [(), (1,)])
def test_softmax(programs, rest):
    x = static.data("x", [7, *rest], "float64", lod_level=1)
    x.stop_gradient = False
    weight = static.data("weight", [None, *rest], "float64")
    out = static.nn.sequence_softmax(x)
    assert out.lod_level == 1
    (slope,) = static.gradients(oar.sum(out * weight), x)
    for lengths in LENGTHS:
        feed, w = rows(lengths, *rest), array(sum(lengths), *rest, seed=2)
        got, gradient = run(programs[0], {"x": feed, "weight": w}, [out, slope])
        np.testing.assert_allclose(got, softmax(feed, lengths), rtol=1e-12)
        wanted = slopes(lambda value: (softmax(value, lengths) * w).sum(), np.array(feed))
        np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-8)


def test_softmax_of_large_numbers(programs):
    x = static.data("x", [None], lod_level=1)
    out = static.nn.sequence_softmax(x)
    feed = base.create_lod_tensor(np.array([1000, 1000, -1000], "float32"), [[2, 1]])
    np.testing.assert_array_equal(run(programs[0], {"x": feed}, [out])[0], [0.5, 0.5, 1.0])


def convolved(x, lengths, weight, bias, start, size):
    made = []
    for part in parts(x, lengths):
        for row in range(len(part)):
            seen = [part[i] if 0 <= i < len(part) else np.zeros(x.shape[1])
                    for i in range(row + start, row + start + size)]
            made.append(np.concatenate(seen) @ weight + bias)
    return np.stack(made) if made else np.zeros((0, weight.shape[1]))


@pytest.mark.parametrize("size, start", [(3, None), (1, None), (2, 0), (3, 1), (2, -4), (4, -1)])
def test_conv(programs, size, start):
    main, startup = programs
    x = static.data("x", [None, 2], "float64", lod_level=1)
    x.stop_gradient = False
    made = static.nn.sequence_conv(x, 3, size, padding_start=start, bias_attr=oar.ParamAttr(
        initializer=oar.nn.initializer.Constant(0.5)))
    gradients = static.gradients(oar.sum(made * made), [x, *main.all_parameters()])
    run(startup)
    names = [p.name for p in main.all_parameters()]
    weight, bias = (static.global_scope()._tensor(name).numpy() for name in names)
    assert names == ["sequence_conv_0.w_0", "sequence_conv_0.b_0"] and weight.shape == (2 * size, 3)
    begin = -(size // 2) if start is None else start
    for lengths in LENGTHS:
        feed = rows(lengths, 2)
        got, of_x, of_weight, _ = run(main, {"x": feed}, [made, *gradients])
        content = np.array(feed)

        def loss(x, weight):
            return (convolved(x, lengths, weight, bias, begin, size) ** 2).sum()

        np.testing.assert_allclose(got, convolved(content, lengths, weight, bias, begin, size), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(of_x, slopes(lambda v: loss(v, weight), content), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(of_weight, slopes(lambda v: loss(content, v), weight), rtol=1e-5, atol=1e-7)


def test_expand_rows(programs):
    x = static.data("x", [None, 2], "float64")
    y = static.data("y", [None, 1], "int64", lod_level=1)
    x.stop_gradient = False
    out = static.nn.sequence_expand(x, y)
    assert out.lod_level == 1  # there are as many rows as in y
    (slope,) = static.gradients(out, x)
    for lengths in LENGTHS:
        feed = {"x": array(len(lengths), 2), "y": zeros(lengths)}
        got, gradient = run(programs[0], feed, [out, slope])
        np.testing.assert_array_equal(got, np.repeat(feed["x"], lengths, 0))
        np.testing.assert_array_equal(gradient, np.repeat(np.array(lengths, "float64")[:, None], 2, 1))
    with pytest.raises(ValueError, match="x_0|y_lengths"):
        run(programs[0], {"x": array(3, 2), "y": zeros([1, 1])}, [out])


def test_expand_sequences(programs):
    x = static.data("x", [None, 1], lod_level=1)
    y = static.data("y", [None, 1], lod_level=2)
    x.stop_gradient = False
    out = static.nn.sequence_expand(x, y, ref_level=0)
    last = static.nn.sequence_last_step(out)
    (slope,) = static.gradients(out, x)
    feed = {
        "x": base.create_lod_tensor(np.array([[1], [2], [3], [4], [5]], "float32"), [[2, 3, 0]]),
        "y": base.create_lod_tensor(np.zeros([8, 1], "float32"), [[3, 0, 1], [3, 3, 1, 1]]),
    }
    (got,) = run(programs[0], feed, [out], return_numpy=False)
    assert np.array(got).ravel().tolist() == [1, 2, 1, 2, 1, 2] and got.recursive_sequence_lengths() == [[2, 2, 2, 0]]
    rest = run(programs[0], feed, [last, slope])
    assert [r.ravel().tolist() for r in rest] == [[2, 2, 2, 0], [3, 3, 0, 0, 0]]


def test_training(programs):
    """Words, embedded, convolved, weighed and summed, learn which sequences hold the word 3."""
    main, startup = programs
    words = static.data("words", [None, 1], "int64", lod_level=1)
    label = static.data("label", [None, 1])
    embedded = oar.reshape(static.nn.embedding(words, [8, 6]), [-1, 6])
    hidden = static.nn.sequence_conv(embedded, 6, act="tanh")
    weight = static.nn.sequence_softmax(static.nn.fc(hidden, 1))
    assert embedded.lod_level == hidden.lod_level == weight.lod_level == 1
    score = static.nn.fc(static.nn.sequence_pool(hidden * weight, "sum"), 1)
    loss = oar.mean((score - label) ** 2)
    test = main.clone(for_test=True)
    oar.optimizer.Adam(0.05).minimize(loss)
    main.random_seed = startup.random_seed = 3
    run(startup)
    random, losses = np.random.RandomState(0), []
    for _ in range(60):
        lengths = random.randint(1, 6, random.randint(4, 12)).tolist()
        content = random.randint(0, 8, [sum(lengths), 1])
        wanted = np.array([[3 in part] for part in parts(content, lengths)], "float32")
        feed = {"words": base.create_lod_tensor(content, [lengths]), "label": wanted}
        losses.append(float(run(main, feed, [loss])[0]))
    assert np.mean(losses[-10:]) < 0.3 * np.mean(losses[:10]), losses
    np.testing.assert_allclose(run(test, feed, [score])[0], run(main, feed, [score], use_prune=True)[0], rtol=1e-6)


def test_a_copy_goes_on(programs):
    x = static.data("x", [None, 1], "float64", lod_level=1)
    twin = programs[0].clone()
    with static.program_guard(twin):
        out = static.nn.sequence_pool(twin.global_block().var("x"), "sum")
    feed = rows([2, 3], 1)
    np.testing.assert_allclose(run(twin, {"x": feed}, [out])[0], pooled(feed, [2, 3], "sum", 0.0))
    assert x.lod_level == 1


def test_a_copy_with_sizes_of_its_own(programs):
    x = static.data("x", [None, 1], "float64", lod_level=1)
    y = static.data("y", [None, 1], "float64", lod_level=1)
    assert static.nn.sequence_expand(x, y).lod_level == 1
    twin = programs[0].clone()
    with static.program_guard(twin):
        copied = twin.global_block().var("x")
        assert oar.masked_select(copied, copied > 0).lod_level == 0


def test_in_a_branch(programs):
    x = static.data("x", [None, 2], "float64", lod_level=1)
    out = static.nn.cond(
        oar.sum(x) > 0, lambda: static.nn.sequence_pool(x * 2, "sum"), lambda: static.nn.sequence_pool(x, "max")
    )
    for sign, how in ((2.0, "sum"), (-1.0, "max")):
        content = sign * np.abs(array(5, 2))
        (got,) = run(programs[0], {"x": base.create_lod_tensor(content, [[2, 3]])}, [out])
        np.testing.assert_allclose(got, pooled(content * max(sign, 1.0), [2, 3], how, 0.0))
    y = static.data("y", [None, 2], "float64", lod_level=1)
    with pytest.raises(ValueError, match="may differ. hint.*outside branches"):
        static.nn.cond(oar.sum(x) > 0, lambda: static.nn.sequence_pool(x + y, "sum"), lambda: oar.zeros([1, 2]))


def test_inference_model(programs, tmp_path):
    x = static.data("x", [None, 2], "float64", lod_level=1)
    out = static.nn.sequence_pool(x, "average")
    static.save_inference_model(str(tmp_path / "model"), [x], [out], static.Executor())
    program, names, fetches = static.load_inference_model(str(tmp_path / "model"), static.Executor())
    assert names == ["x", "x.lengths_0"]
    feed = rows([2, 0, 3], 2)
    wanted = pooled(feed, [2, 0, 3], "average", 0.0)
    np.testing.assert_allclose(run(program, {"x": feed}, fetches)[0], wanted)
    apart = {"x": np.array(feed), "x.lengths_0": np.array([2, 0, 3])}
    np.testing.assert_allclose(run(program, apart, fetches)[0], wanted)


def test_fetches_keep_lengths(programs):
    x = static.data("x", [None, 2], "float64", lod_level=1)
    doubled, total = x * 2, oar.sum(x)
    feed = rows([1, 2], 2)
    got, plain = run(programs[0], {"x": feed}, [doubled, total], return_numpy=False)
    assert got.lod() == [[0, 1, 3]] and np.array_equal(np.array(got), np.array(feed) * 2)
    assert isinstance(plain, oar.Tensor)
    (bare,) = run(programs[0], {"x": np.array(feed)}, [doubled], return_numpy=False)
    assert isinstance(bare, oar.Tensor)


def test_feeds_that_do_not_fit(programs):
    x = static.data("x", [None, 2], "float64", lod_level=1)
    out = static.nn.sequence_pool(x, "sum")
    with pytest.raises(ValueError, match=r"needs 'x.lengths_0'.*create_lod_tensor"):
        run(programs[0], {"x": array(3, 2)}, [out])
    for lengths in ([1, 1], [4], [5, -2], []):
        with pytest.raises(ValueError, match="do not divide the 3 rows"):
            run(programs[0], {"x": array(3, 2), "x.lengths_0": np.array(lengths, "int64")}, [out])
    two = base.create_lod_tensor(array(3, 2), [[1, 1], [1, 2]])
    with pytest.raises(ValueError, match="has 1 levels of lengths, but 2 were fed"):
        run(programs[0], {"x": two}, [out])
    stale = rows([1, 2], 2)
    stale.set(array(5, 2))
    with pytest.raises(ValueError, match="do not divide the 5 rows"):
        run(programs[0], {"x": stale}, [out])


def test_unknown_lengths():
    plain = static.data("plain", [None, 2])
    with pytest.raises(ValueError, match=r"\[sequence_pool\] the rows of input.*lod_level=1"):
        static.nn.sequence_pool(plain, "sum")
    x, y = (static.data(name, [None, 2], lod_level=1) for name in "xy")
    with pytest.raises(ValueError, match="no sequence lengths.*before the number of rows changes"):
        static.nn.sequence_softmax(oar.concat([x, x])[:, :1])
    both = x + y
    with pytest.raises(ValueError, match="x.lengths_0 and y.lengths_0, which may differ. hint"):
        static.nn.sequence_pool(both, "sum")
    assert static.nn.sequence_pool(x, "sum").shape == [-1, 2]


def test_arguments_that_do_not_fit():
    x = static.data("x", [None, 2], lod_level=1)
    deep = static.data("deep", [None, 2], lod_level=2)
    whole = static.data("whole", [None, 2], "int64", lod_level=1)
    fixed = static.data("fixed", [3, 2])
    calls = [
        (ValueError, "pool_type is 'mean'; it can be 'average'", lambda: static.nn.sequence_pool(x, "mean")),
        (TypeError, "input should be float32 or float64, but is int64", lambda: static.nn.sequence_pool(whole, "sum")),
        (TypeError, "input should be a variable", lambda: static.nn.sequence_pool([1.0], "sum")),
        (ValueError, r"shape \[N\] or \[N, 1\]", lambda: static.nn.sequence_softmax(x)),
        (ValueError, "filter_stride is 2", lambda: static.nn.sequence_conv(x, 2, filter_stride=2)),
        (ValueError, "2 levels of lengths; one is expected", lambda: static.nn.sequence_conv(deep, 2)),
        (ValueError, "ref_level is 1, but y has 1 levels", lambda: static.nn.sequence_expand(fixed, x, 1)),
        (ValueError, "x has 2 levels of lengths", lambda: static.nn.sequence_expand(deep, x)),
        (ValueError, "leave the first size of x open", lambda: static.nn.sequence_expand(fixed, x)),
        (ValueError, "lengths divide the rows", lambda: static.data("none", [], lod_level=1)),
    ]
    for kind, message, call in calls:
        with pytest.raises(kind, match=message):
            call()


def test_eager_tensors_have_no_lengths():
    with oar.base.dygraph.guard(), pytest.raises(RuntimeError, match="tensor of eager mode.*hint"):
        static.nn.sequence_pool(oar.ones([3, 2]), "sum")


def test_there_is_no_ipu():
    with pytest.raises(RuntimeError, match=r"\[static.IpuStrategy\] there is no IPU.*hint"):
        static.IpuStrategy()
    with pytest.raises(ValueError, match="there is no IPU.*hint: give the program itself to Executor.run"):
        static.IpuCompiledProgram(static.Program())
    with pytest.raises(ValueError, match="there is no IPU.*hint: leave the guard out"), static.ipu_shard_guard(index=0):
        pass
    with pytest.raises(ValueError, match="there is no IPU.*hint: call the function"):
        static.set_ipu_shard(oar.nn.Linear, index=0)
