"""Ops in the forms of Paddle's inner interfaces: ``_C_ops``, ``_legacy_C_ops``, ``append_op``, ``LayerHelper``."""

import inspect

import numpy as np
import pytest

import oar
from oar import _C_ops, _legacy_C_ops, static
from oar.base import operators
from oar.base.layer_helper import LayerHelper

RNG = np.random.default_rng(7)


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


@pytest.fixture
def static_mode():
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        yield main, startup
    oar.disable_static()


@pytest.mark.parametrize("name", operators.names(), ids=lambda name: f"op_{name}")
def test_every_line_fits_its_function(name):
    form = operators.find(name)
    passed = {a.target for a in form.arguments if a.target}
    assert len(passed) == len([a for a in form.arguments if a.target])
    try:
        parameters = inspect.signature(form.function).parameters
    except ValueError:
        pytest.fail(f"{name}: no signature")
    kinds = {p.kind for p in parameters.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        assert passed <= set(parameters), f"{name} passes {passed - set(parameters)}"
    required = {p.name for p in parameters.values()
                if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    assert required <= passed, f"{name} does not pass {required - passed}"


X, Y, IMAGE, MATRIX = array(3, 4), array(3, 4), array(2, 3, 6, 6), array(6, 6, 5)


def t(values, **kwargs):
    return oar.to_tensor(values, **kwargs)


@pytest.mark.parametrize("made, expected", [
    (lambda: _C_ops.add(t(X), t(Y)), X + Y),
    (lambda: _C_ops.matmul(t(X), t(Y), False, True), X @ Y.T),
    (lambda: _C_ops.sum(t(X), [], None, False), X.sum()),
    (lambda: _C_ops.mean(t(X), [1], True), X.mean(1, keepdims=True)),
    (lambda: _C_ops.prod(t(X), [0], False, True), X.prod()),
    (lambda: _C_ops.scale(t(X), 2.0, 1.0, False), (X + 1) * 2),
    (lambda: _C_ops.full([2, 3], 1.5, "float32", oar.CPUPlace()), np.full([2, 3], 1.5)),
    (lambda: _C_ops.slice(t(X), [0, 1], [1, 0], [2, 3], [1, 1], [0]), X[1, :3]),
    (lambda: _C_ops.cumsum(t(X), 1, False, True, False), np.cumsum(X, 1) - X),
    (lambda: _C_ops.cumsum(t(X), 1, False, False, True), np.cumsum(X[:, ::-1], 1)[:, ::-1]),
    (lambda: _C_ops.cumprod(t(X), 0, False, False), np.cumprod(X, 0)),
    (lambda: _C_ops.argmax(t(X), 0, False, True, "int64"), X.argmax()),
    (lambda: _C_ops.argsort(t(X), 1, True, False)[0], np.sort(X, 1)[:, ::-1]),
    (lambda: _C_ops.norm(t(X), 1, 1e-10, False)[0], X / np.linalg.norm(X, axis=1, keepdims=True)),
    (lambda: _C_ops.squared_l2_norm(t(X)), [(X * X).sum()]),
    (lambda: _C_ops.l1_norm(t(X)), np.abs(X).sum()),
    (lambda: _C_ops.clip_by_norm(t(X), 0.5), X * 0.5 / np.linalg.norm(X)),
    (lambda: _C_ops.huber_loss(t(X), t(Y), 0.3), np.where(np.abs(X - Y) <= 0.3, (X - Y) ** 2 / 2, 0.3 * (np.abs(X - Y) - 0.15))),
    (lambda: _C_ops.hinge_loss(t(X), t((Y > 0).astype("float32"))), np.maximum(1 - np.sign(Y) * X, 0)),
    (lambda: _C_ops.matmul_with_flatten(t(IMAGE), t(MATRIX), 2, 2), np.tensordot(IMAGE, MATRIX, 2)),
    (lambda: _C_ops.partial_concat([t(X), t(Y)], 1, 2), np.concatenate([X[:, 1:3], Y[:, 1:3]], 1)),
    (lambda: _C_ops.partial_sum([t(X), t(Y)], 0, -1), X + Y),
    (lambda: _C_ops.pad(t(X), [1, 0, 0, 2], 9.0), np.pad(X, [(1, 0), (0, 2)], constant_values=9)),
    (lambda: _C_ops.split_with_num(t(X), 2, 1)[1], X[:, 2:]),
    (lambda: _C_ops.expand_as(t(X[0]), None, [3, 4]), np.broadcast_to(X[0], [3, 4])),
    (lambda: _C_ops.einsum([t(X), t(Y)], "ij,kj->ik")[0], X @ Y.T),
    (lambda: _C_ops.set_value(t(X), [0], [2], [1], [0], [], [], [1], [5.0]), np.concatenate([np.full([2, 4], 5.0), X[2:]])),
    (lambda: _C_ops.set_value_with_tensor(t(X), t(Y[0]), [1], [2], [1], [0], [0], []), np.stack([X[0], Y[0], X[2]])),
    (lambda: _C_ops.assign_value_(oar.zeros([1]), [2, 2], "float32", [1, 2, 3, 4]), [[1, 2], [3, 4]]),
    (lambda: _C_ops.full_batch_size_like(t(X), [-1, 2], "float32", 3.0, 0, 0), np.full([3, 2], 3.0)),
    (lambda: _C_ops.index_select_strided(t(X), 1, 1), X[:, 1]),
    (lambda: _C_ops.pool2d(t(IMAGE), [2, 2], [2, 2], [0, 0], False, True, "NCHW", "avg", False, False, "EXPLICIT"),
     IMAGE.reshape(2, 3, 3, 2, 3, 2).mean((3, 5))),
    (lambda: _C_ops.pool2d(t(IMAGE), [2, 2], [2, 2], [0, 0], False, True, "NCHW", "max", True, False, "EXPLICIT"),
     IMAGE.max((2, 3), keepdims=True)),
    (lambda: _C_ops.pool2d(t(IMAGE.transpose(0, 2, 3, 1)), [1, 1], [1, 1], [0, 0], False, True, "NHWC", "max", False, True, "EXPLICIT"),
     IMAGE.max((2, 3))[:, None, None]),
    (lambda: _C_ops.max_pool2d_with_index(t(IMAGE), [6, 6], [6, 6], [0, 0], False, False, False)[1],
     IMAGE.reshape(2, 3, 36).argmax(-1)[..., None, None]),
    (lambda: _C_ops.nearest_interp(t(IMAGE), None, None, None, "NCHW", 0, 12, 12, [], "nearest", False, 0),
     IMAGE.repeat(2, 2).repeat(2, 3)),
    (lambda: _C_ops.bilinear_interp(t(IMAGE), t([3, 3]), None, None, "NCHW", 0, 0, 0, [], "bilinear", False, 0),
     IMAGE.reshape(2, 3, 3, 2, 3, 2).mean((3, 5))),
    (lambda: _C_ops.layer_norm(t(X), None, None, 0.0, 1), (X - X.mean(1, keepdims=True)) / X.std(1, keepdims=True)),
])
def test_values(made, expected):
    np.testing.assert_allclose(np.asarray(made().numpy()), expected, rtol=2e-5, atol=1e-6)


def test_convolutions_take_layouts_of_any_rank():
    volume, weight = t(array(1, 2, 3, 4, 5)), t(array(2, 3, 2, 2, 2))
    plain = oar.nn.functional.conv3d_transpose(volume, weight, stride=2, padding=1)
    made = _C_ops.conv3d_transpose(volume, weight, [2, 2, 2], [1, 1, 1], [], [], "EXPLICIT", 1, [1, 1, 1], "NCHW")
    np.testing.assert_allclose(made.numpy(), plain.numpy(), rtol=1e-5, atol=1e-6)
    last = _C_ops.conv2d(t(IMAGE.transpose(0, 2, 3, 1)), t(array(4, 3, 2, 2)), [1, 1], [0, 0], "SAME", [1, 1], 1, "NHWC")
    assert last.shape == [2, 6, 6, 4]


def test_softmax_with_cross_entropy_gives_both():
    label = t(np.array([[0], [3], [1]]))
    softmax, loss = _C_ops.cross_entropy_with_softmax(t(X), label, False, True, True, -100, -1)
    shares = np.exp(X) / np.exp(X).sum(1, keepdims=True)
    np.testing.assert_allclose(softmax.numpy(), shares, rtol=1e-5)
    np.testing.assert_allclose(loss.numpy(), -np.log(shares[[0, 1, 2], [0, 3, 1]])[:, None], rtol=1e-5)
    _, again = _C_ops.cross_entropy_with_softmax(t(shares), label, False, False, True, -100, -1)
    np.testing.assert_allclose(again.numpy(), loss.numpy(), rtol=1e-4)


def test_batch_norm_gives_statistics():
    mean, variance = oar.zeros([3]), oar.ones([3])
    out, new_mean, _, saved, spread, _ = _C_ops.batch_norm(
        t(IMAGE), mean, variance, oar.ones([3]), oar.zeros([3]), False, 0.9, 1e-5, "NCHW", False, False)
    assert new_mean is mean
    np.testing.assert_allclose(mean.numpy(), 0.1 * IMAGE.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(saved.numpy(), IMAGE.mean((0, 2, 3)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(spread.numpy(), 1 / np.sqrt(IMAGE.var((0, 2, 3)) + 1e-5), rtol=1e-4)
    assert abs(float(out.mean())) < 1e-5


def test_rnn_is_the_layer():
    for mode, layer in (("LSTM", oar.nn.LSTM(4, 5, 2, "bidirect")), ("GRU", oar.nn.GRU(4, 5)), ("RNN_TANH", oar.nn.SimpleRNN(4, 5))):
        cells = [c for part in layer for c in ([part.cell] if hasattr(part, "cell") else [part.cell_fw, part.cell_bw])]
        weights = [w for c in cells for w in (c.weight_ih, c.weight_hh)] + [b for c in cells for b in (c.bias_ih, c.bias_hh)]
        x = t(array(2, 3, 4))
        zeros = oar.zeros([len(cells), 2, 5])
        states = [zeros, zeros] if mode == "LSTM" else [zeros]
        out, _, final = _C_ops.rnn(oar.transpose(x, [1, 0, 2]), states, weights, None, None, 0.0, len(cells) > 1, 4, 5,
                                   2 if mode == "LSTM" else 1, mode, 0, True)
        expected, last = layer(x)
        np.testing.assert_allclose(out.numpy(), expected.numpy().transpose(1, 0, 2), rtol=1e-5, atol=1e-6)
        last = last if isinstance(last, tuple) else (last,)
        for a, b in zip(final, last):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)


def test_seeded_dropout_repeats_and_leaves_the_stream_alone():
    oar.seed(3)
    expected = oar.rand([2]).numpy()
    oar.seed(3)
    first = _C_ops.dropout(oar.ones([100]), None, 0.5, False, "upscale_in_train", 11, True)
    second = _C_ops.dropout(oar.ones([100]), None, 0.5, False, "upscale_in_train", 11, True)
    assert (first == second).all() and 0 < float(first.sum()) < 200
    np.testing.assert_array_equal(oar.rand([2]).numpy(), expected)


def test_dropout_that_scales_in_evaluation():
    made = _C_ops.dropout(t(X), None, 0.25, True, "downgrade_in_infer", 0, False)
    np.testing.assert_allclose(made.numpy(), X * 0.75, rtol=1e-6)


def test_writing_form():
    x = t(X)
    assert _C_ops.relu_(x) is x
    np.testing.assert_array_equal(x.numpy(), np.maximum(X, 0))
    assert _C_ops.reshape_(x, [4, 3]) is x and list(x.shape) == [4, 3]


def test_gradients_pass():
    x = t(X, stop_gradient=False)
    _C_ops.pool2d(_C_ops.reshape(x, [1, 1, 3, 4]), [3, 4], [1, 1], [0, 0], False, True, "NCHW", "avg", False, False, "EXPLICIT").backward()
    np.testing.assert_allclose(x.grad.numpy(), np.full([3, 4], 1 / 12), rtol=1e-6)


def test_errors():
    with pytest.raises(AttributeError, match="no op 'no_such_op'"):
        _C_ops.no_such_op  # noqa: B018
    with pytest.raises(TypeError, match="at most 2 arguments"):
        _C_ops.add(t(X), t(Y), 1)
    with pytest.raises(TypeError, match="'z' is unknown"):
        _C_ops.add(t(X), z=t(Y))
    with pytest.raises(ValueError, match="nested sequences"):
        _C_ops.warpctc(oar.zeros([4, 2, 3]), oar.zeros([2, 1], "int32"), None, None, 0, False)


# older names -------------------------------------------------------------------------------------


def test_legacy_calls():
    np.testing.assert_allclose(_legacy_C_ops.matmul_v2(t(X), t(Y), "trans_x", False, "trans_y", True).numpy(), X @ Y.T, rtol=1e-5)
    assert _legacy_C_ops.flatten2(t(IMAGE), "axis", 2).shape == [6, 36]
    np.testing.assert_allclose(_legacy_C_ops.elementwise_add(t(X), t(Y[:, 0]), "axis", 0).numpy(), X + Y[:, :1], rtol=1e-6)
    np.testing.assert_allclose(_legacy_C_ops.reduce_sum(t(X), "dim", [0], "reduce_all", True).numpy(), X.sum(), rtol=1e-5)
    values, places = _legacy_C_ops.top_k(t(X), "k", 2)
    np.testing.assert_array_equal(places.numpy(), np.argsort(-X, 1)[:, :2])
    with pytest.raises(TypeError, match="pairs"):
        _legacy_C_ops.matmul_v2(t(X), t(Y), "trans_x")
    with pytest.raises(AttributeError, match="no op"):
        _legacy_C_ops.no_such_op  # noqa: B018


def test_append_op(static_mode):
    main, _ = static_mode
    block = main.global_block()
    x, y = static.data("x", [3, 4]), static.data("y", [3, 4])
    total = block.create_var(name="total", shape=[1], dtype="float32")
    written = block.append_op(type="elementwise_add", inputs={"X": [x], "Y": [y]}, outputs={"Out": [total]}, attrs={"axis": -1})
    assert written.type == "add" and block.ops[-1].type == "add"
    assert list(total.shape) == [3, 4] and block.var("total") is not None
    parts = [block.create_var(name=f"part{i}", shape=[1], dtype="float32") for i in range(2)]
    block.append_op(type="split", inputs={"X": total}, outputs={"Out": parts}, attrs={"axis": 1, "sections": [1, 3], "use_mkldnn": False})
    made = static.Executor().run(main, feed={"x": X, "y": Y}, fetch_list=[total, *parts])
    for got, expected in zip(made, (X + Y, (X + Y)[:, :1], (X + Y)[:, 1:])):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    block.append_op(type="relu", inputs={"X": ["total"]}, outputs={"Out": "part0"})
    np.testing.assert_allclose(static.Executor().run(main, feed={"x": X, "y": Y}, fetch_list=["part0"])[0],
                               np.maximum(X + Y, 0), rtol=1e-6)
    with pytest.raises(ValueError, match="no op 'no_such_op'"):
        block.append_op(type="no_such_op")
    with pytest.raises(ValueError, match="no attribute 'keepdims'"):
        block.append_op(type="reduce_sum", inputs={"X": x}, outputs={"Out": total}, attrs={"keepdims": True})


def test_append_op_takes_attributes_from_tensors(static_mode):
    main, _ = static_mode
    block = main.global_block()
    x = static.data("x", [3, 4])
    out = block.create_var(shape=[1], dtype="float32")
    block.append_op(type="scale", inputs={"X": x, "ScaleTensor": oar.full([1], 3.0)}, outputs={"Out": out}, attrs={"scale": 5.0})
    np.testing.assert_allclose(static.Executor().run(main, feed={"x": X}, fetch_list=[out])[0], X * 3, rtol=1e-6)


def test_layer_helper_makes_a_trainable_layer(static_mode):
    main, startup = static_mode

    def layer(input, size, param_attr=None, bias_attr=None, act=None, name=None):
        helper = LayerHelper("my_fc", **locals())
        x = helper.input()
        weight = helper.create_parameter(helper.param_attr, [x.shape[1], size], helper.input_dtype())
        made = helper.create_variable_for_type_inference(x.dtype)
        helper.append_op(type="mul", inputs={"X": x, "Y": weight}, outputs={"Out": made}, attrs={"x_num_col_dims": 1, "y_num_col_dims": 1})
        return helper.append_activation(helper.append_bias_op(made))

    x = static.data("x", [None, 4])
    out = layer(x, 2, act="relu")
    loss = oar.mean(out)
    oar.optimizer.SGD(0.1).minimize(loss)
    names = [p.name for p in main.all_parameters()]
    assert len(names) == 2 and all(name.startswith("my_fc_") for name in names)
    executor = static.Executor()
    executor.run(startup)
    weight = static.global_scope().find_var(names[0]).get_tensor()
    before = np.array(weight)
    made, = executor.run(main, feed={"x": X}, fetch_list=[out])
    np.testing.assert_allclose(made, np.maximum(X @ before, 0), rtol=1e-5, atol=1e-6)
    pull = (X @ before > 0) / made.size
    np.testing.assert_allclose(np.array(weight), before - 0.1 * X.T @ pull, rtol=1e-4, atol=1e-6)
    assert LayerHelper("my_fc").get_parameter(names[0]) is main.all_parameters()[0]


def test_layer_helper_refuses_what_does_not_fit(static_mode):
    x = static.data("x", [3, 4])
    helper = LayerHelper("thing", input=[x, x], act=3)
    with pytest.raises(ValueError, match="one input"):
        helper.input()
    with pytest.raises(TypeError, match="activation"):
        helper.append_activation(x)
    with pytest.raises(ValueError, match="several dtypes"):
        LayerHelper("thing", input=[x, static.data("i", [1], "int64")]).input_dtype()
    assert LayerHelper("thing").create_parameter(False, [2]) is None


def test_layer_helper_in_dynamic_mode():
    helper = LayerHelper("thing")
    out = helper.create_variable_for_type_inference("float32")
    helper.append_op(type="relu", inputs={"X": t(X)}, outputs={"Out": out})
    np.testing.assert_array_equal(out.numpy(), np.maximum(X, 0))


def test_append_op_of_a_registered_op(static_mode):
    main, _ = static_mode
    oar.utils.register_op("test_operators_twice(Tensor x, float by = 2.0) -> Tensor", lambda x, by: x * by)
    helper = LayerHelper("twice")
    x = static.data("x", [3, 4])
    out = helper.create_variable_for_type_inference("float32")
    helper.append_op(type="test_operators_twice", inputs={"X": x}, outputs={"Y": out}, attrs={"by": 3.0})
    np.testing.assert_allclose(static.Executor().run(main, feed={"x": X}, fetch_list=[out])[0], X * 3, rtol=1e-6)


# steps of optimisers -----------------------------------------------------------------------------


def test_adamw_is_the_optimizer():
    weight, steps = array(3, 4), [array(3, 4) for _ in range(3)]
    layer_weight = oar.create_parameter([3, 4], "float32", default_initializer=oar.nn.initializer.Assign(weight))
    optimizer = oar.optimizer.AdamW(0.1, parameters=[layer_weight], weight_decay=0.02)
    param, zeros = t(weight), lambda: oar.zeros([3, 4])
    moment1, moment2, power1, power2 = zeros(), zeros(), t([0.9]), t([0.999])
    for grad in steps:
        (layer_weight * t(grad)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        made = _C_ops.adamw_(param, t(grad), t([0.1]), moment1, moment2, power1, power2, None, None, 0.9, 0.999, 1e-8, 1.0, 0.02,
                             True, False, 1000, False, False)
        assert made[0] is param
    np.testing.assert_allclose(param.numpy(), layer_weight.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(power1.numpy(), [0.9**4], rtol=1e-5)


@pytest.mark.parametrize("name, states, call", [
    ("SGD", 0, lambda p, g, s: _C_ops.sgd_(p, t([0.1]), g, None, False)),
    ("Momentum", 1, lambda p, g, s: _C_ops.momentum_(p, g, s[0], t([0.1]), None, 0.9, False, "", 0.0, False, 1.0)),
    ("Adagrad", 1, lambda p, g, s: _C_ops.adagrad_(p, g, s[0], t([0.1]), None, 1e-6, False)),
    ("Adadelta", 2, lambda p, g, s: _C_ops.adadelta_(p, g, s[0], s[1], t([0.1]), None, 0.95, 1e-6, False)),
    ("RMSProp", 2, lambda p, g, s: _C_ops.rmsprop_(p, s[0], g, s[1], t([0.1]), None, None, 1e-6, 0.95, 0.0, False, False)),
])
def test_steps_are_those_of_the_optimizers(name, states, call):
    weight, grads = array(3, 4), [array(3, 4) for _ in range(2)]
    parameter = oar.create_parameter([3, 4], "float32", default_initializer=oar.nn.initializer.Assign(weight))
    optimizer = getattr(oar.optimizer, name)(learning_rate=0.1, parameters=[parameter])
    param, kept = t(weight), [oar.zeros([3, 4]) for _ in range(states)]
    for grad in grads:
        (parameter * t(grad)).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        call(param, t(grad), kept)
    np.testing.assert_allclose(param.numpy(), parameter.numpy(), rtol=1e-5, atol=1e-6)


def test_step_on_a_master_copy():
    master = t(X)
    param = master.astype("float16")
    _C_ops.sgd_(param, t([0.5]), t(Y).astype("float32"), master, True)
    np.testing.assert_allclose(master.numpy(), X - 0.5 * Y, rtol=1e-6)
    np.testing.assert_array_equal(param.numpy(), (X - np.float32(0.5) * Y).astype("float16"))


def test_loss_scaling():
    fine, broken = t([2.0, 4.0]), t([1.0, np.inf])
    made, found = _C_ops.check_finite_and_unscale_([fine], t([2.0]))
    assert not bool(found) and made[0].tolist() == [1.0, 2.0]
    _, found = _C_ops.check_finite_and_unscale_([fine, broken], t([2.0]))
    assert bool(found)
    scale, good, bad = t([8.0]), t([3], dtype="int32"), t([1], dtype="int32")
    made, *_ = _C_ops.update_loss_scaling_([broken], found, scale, good, bad, 1000, 2, 2.0, 0.5, False)
    assert made[0].tolist() == [0.0, 0.0] and scale.tolist() == [4.0] and good.tolist() == [0] and bad.tolist() == [0]


# aligned operands --------------------------------------------------------------------------------


def test_aligned_operands():
    from oar.tensor import math

    wide, narrow = array(2, 3, 4), array(3)
    np.testing.assert_allclose(math._add_with_axis(t(wide), t(narrow), 1).numpy(), wide + narrow[:, None], rtol=1e-6)
    np.testing.assert_allclose(math._divide_with_axis(t(narrow), t(wide), 1).numpy(), narrow[:, None] / wide, rtol=1e-6)
    np.testing.assert_allclose(math._multiply_with_axis(t(wide), t(wide[0, 0])).numpy(), wide * wide[0, 0], rtol=1e-6)
    np.testing.assert_allclose(math._subtract_with_axis(t(wide), t(wide)).numpy(), 0 * wide)
    with pytest.raises(ValueError, match="axis 3 does not place"):
        math._add_with_axis(t(wide), t(narrow), 3)


def test_spectral_norm_divides_by_the_largest_singular_value():
    made = _C_ops.spectral_norm(t(X), t(array(3)), t(array(4)), 0, 100, 1e-12)
    np.testing.assert_allclose(made.numpy(), X / np.linalg.svd(X)[1][0], rtol=1e-4)
