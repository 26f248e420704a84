"""``static.amp``: programs that are cast, and trained with a scaled loss."""

import numpy as np
import pytest

import oar
from oar import nn, static


@pytest.fixture(autouse=True)
def in_static_mode():
    oar.enable_static()
    with static.scope_guard(static.Scope()):
        yield
    oar.disable_static()


def programs():
    return static.Program(), static.Program()


def kind(variable):
    return str(variable.dtype).removeprefix("oar.")


LOW = pytest.mark.parametrize("low", ["float16", "bfloat16"])


def network(x):
    hidden = nn.Linear(4, 8)(x)
    soft = nn.functional.softmax(nn.functional.relu(hidden))
    return hidden, soft, nn.Linear(8, 1)(soft)


@LOW
def test_levels(low):
    expected = {"O1": [low, "float32", low], "O2": [low, low, low], "OD": [low, "float32", low]}
    for level, kinds in expected.items():
        main, startup = programs()
        with static.program_guard(main, startup):
            made = network(static.data("x", [3, 4]))
            names = static.amp.cast_model_to_fp16(main, use_fp16_guard=False, dest_type=low, level=level, use_promote=level == "O2")
        assert [kind(variable) for variable in made] == kinds, level
        assert names == ({p.name for p in main.all_parameters()} if level == "O2" else set())
        assert all(kind(p) == "float32" for p in main.all_parameters())


@LOW
def test_a_cast_program_computes_the_same(low):
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        out = network(x)[2]
        name = out.name
        plain = main.clone()
        static.amp.cast_model_to_fp16(main, use_fp16_guard=False, dest_type=low, level="O1")
    executor, data = static.Executor(), np.random.default_rng(0).random([5, 4], "float32")
    executor.run(startup)
    exact = executor.run(plain, feed={"x": data}, fetch_list=[name])[0]
    cast = executor.run(main, feed={"x": data}, fetch_list=[out], return_numpy=False)[0].astype("float32").numpy()
    np.testing.assert_allclose(cast, exact, atol=0.02)
    assert not np.array_equal(cast, exact)


def test_a_guard_and_black_variables():
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 2])
        with static.amp.fp16_guard():
            inside = x @ x
        outside = inside @ inside
        static.amp.cast_model_to_fp16(main)
    assert (kind(inside), kind(outside)) == ("float16", "float32")
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 2])
        first = x @ x
        second = first @ first
        second.name = "kept"
        lists = static.amp.CustomOpLists(custom_black_varnames={"kept"})
        static.amp.cast_model_to_fp16(main, lists, use_fp16_guard=False)
    assert (kind(first), kind(second)) == ("float16", "float32")


def test_custom_lists():
    lists = static.amp.AutoMixedPrecisionLists({"exp"}, {"matmul_v2"})
    assert "exp" in lists.white_list and "exp" not in lists.black_list and "matmul_v2" in lists.black_list
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 2])
        product, power = x @ x, x.exp()
        static.amp.cast_model_to_fp16(main, lists, use_fp16_guard=False, level="O1")
    assert (kind(product), kind(power)) == ("float32", "float16")
    with pytest.raises(ValueError, match="exp: in custom_white_list and in custom_black_list"):
        static.amp.CustomOpLists(["exp"], ["exp"])
    with pytest.raises(ValueError, match="'float16' or 'bfloat16'"):
        static.amp.CustomOpLists(dtype="float64")


def train(level, dtype, steps=4, bad=None, dropout=False, **options):
    oar.seed(1)
    main, startup = programs()
    with oar.utils.unique_name.guard(), static.program_guard(main, startup):
        x = static.data("x", [None, 4])
        out = nn.Linear(8, 1)(nn.functional.tanh(nn.Linear(4, 8)(x)))
        loss = oar.mean(oar.square(nn.functional.dropout(out, 0.5) if dropout else out))
        optimizer = static.amp.decorate(oar.optimizer.Adam(0.01), level=level, dtype=dtype, **options)
        made = optimizer.minimize(loss)
    executor = static.Executor()
    executor.run(startup)
    optimizer.amp_init(oar.CPUPlace())
    losses = []
    for i in range(steps):
        data = np.full([2, 4], np.inf if i == bad else 1.0, "float32")
        losses.append(float(executor.run(main, feed={"x": data}, fetch_list=[loss])[0]))
    return losses, optimizer, executor, main, made


@pytest.mark.parametrize("level", ["O0", "OD", "O1", "O2"])
@LOW
def test_training_follows_float32(level, low):
    exact = train("O0", "float16", use_dynamic_loss_scaling=False, init_loss_scaling=1.0)[0]
    losses, *_ = train(level, low, **({"init_loss_scaling": 128.0} if low == "float16" else {}))
    np.testing.assert_allclose(losses, exact, rtol=0.15 if low == "bfloat16" else 0.03)
    assert losses[-1] < losses[0]


def test_a_run_that_is_not_finite_changes_the_scale_alone():
    losses, optimizer, executor, main, (ops, pairs) = train("O1", "float16", bad=1, init_loss_scaling=128.0)
    assert ops and len(pairs) == 4 and not np.isfinite(losses[1])
    scale = executor.run(main, feed={"x": np.ones([2, 4], "float32")}, fetch_list=[optimizer.get_loss_scaling()])[0]
    assert scale.tolist() == [64.0] and optimizer.get_scaled_loss() is not None
    exact = train("O1", "float16", steps=3, init_loss_scaling=128.0)[0]
    np.testing.assert_allclose([losses[0], *losses[2:]], exact, rtol=1e-3)


def test_dropout_is_cast_too():
    losses, *_ = train("O1", "bfloat16", dropout=True)
    assert np.isfinite(losses).all()


def test_bfloat16_has_no_scale():
    with pytest.warns(UserWarning, match="the loss is not scaled"):
        _, optimizer, *_ = train("O1", "bfloat16", use_dynamic_loss_scaling=True)
    with pytest.raises(AssertionError, match="call minimize"):
        optimizer.get_loss_scaling()


def test_the_older_arguments():
    optimizer = static.amp.decorate(oar.optimizer.SGD(0.1), None, 128.0, use_pure_fp16=True, use_bf16=False)
    assert (optimizer._amp_level, optimizer._init_loss_scaling, optimizer._use_fp16_guard) == ("O2", 128.0, True)
    optimizer = static.amp.decorate(oar.optimizer.SGD(0.1), use_bf16=True, use_dynamic_loss_scaling=False)
    assert (optimizer._amp_level, optimizer._amp_dtype) == ("O1", "bfloat16") and optimizer.get_lr() == 0.1
    optimizer = static.amp.decorate(oar.optimizer.SGD(0.1), level="o2", use_amp_guard=True)
    assert (optimizer._amp_level, optimizer._use_fp16_guard) == ("O2", True)


def test_a_scaler_in_a_program():
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 4])
        net = nn.Linear(4, 1)
        optimizer = oar.optimizer.AdamW(0.1, parameters=net.parameters())
        scaler = oar.amp.GradScaler(init_loss_scaling=16.0)
        with oar.amp.auto_cast(dtype="float16"):
            loss = net(x).mean()
        scaler.minimize(optimizer, scaler.scale(loss))
    executor = static.Executor()
    executor.run(startup)
    losses = [float(executor.run(main, feed={"x": np.full([2, 4], value, "float32")}, fetch_list=[loss])[0])
              for value in (1.0, np.inf, 1.0, 1.0)]
    assert losses[0] > losses[2] > losses[3]


def test_bf16_names():
    bf16 = static.amp.bf16
    lists = bf16.AutoMixedPrecisionListsBF16({"exp"}, {"matmul_v2"})
    assert "exp" in lists.bf16_list and "matmul_v2" in lists.fp32_list
    with pytest.raises(ValueError, match="custom_bf16_list and in custom_fp32_list"):
        bf16.AutoMixedPrecisionListsBF16({"exp"}, {"exp"})
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 2])
        with bf16.bf16_guard():
            y = nn.Linear(2, 2)(x)
        loss = y.mean()
        optimizer = bf16.decorate_bf16(oar.optimizer.SGD(0.1), use_pure_bf16=True)
        optimizer.minimize(loss)
    executor = static.Executor()
    executor.run(startup)
    optimizer.amp_init(oar.CPUPlace(), rewrite_master_weight=True)
    before = static.global_scope().find_var(main.all_parameters()[0].name).get_tensor()
    numbers = np.array(before)
    np.testing.assert_array_equal(numbers, oar_bfloat16(numbers))
    losses = [float(executor.run(main, feed={"x": np.ones([2, 2], "float32")}, fetch_list=[loss])[0]) for _ in range(2)]
    assert losses[1] < losses[0]


def oar_bfloat16(numbers):
    bits = static.amp.bf16.convert_float_to_uint16(numbers).astype("uint32") << 16
    return bits.view("float32")


def test_calls_of_a_program_by_dtype(capsys):
    main, startup = programs()
    with static.program_guard(main, startup):
        x = static.data("x", [2, 2])
        with oar.amp.auto_cast(dtype="bfloat16"):
            y = x @ x
        y.astype("float32") @ x
    units = static.amp.debugging._get_op_stats_list(main)[0]
    assert units["matmul_v2"].convert_to_list() == [0, 1, 1, 0]
    static.amp.debugging.collect_operator_stats(main)
    assert "matmul_v2" in capsys.readouterr().out


def test_mistakes():
    with pytest.raises(ValueError, match="level should be O0, OD, O1 or O2, but received 'O4'"):
        static.amp.decorate(oar.optimizer.SGD(0.1), level="O4")
    with pytest.raises(RuntimeError, match="should be an Optimizer, but received Linear"):
        static.amp.decorate(nn.Linear(1, 1))
    with pytest.raises(AssertionError, match="call the minimize method first"):
        static.amp.decorate(oar.optimizer.SGD(0.1)).amp_init(oar.CPUPlace())
    with pytest.warns(UserWarning, match="amp_lists is not used"):
        static.amp.decorate(oar.optimizer.SGD(0.1), static.amp.CustomOpLists(), level="OD")
