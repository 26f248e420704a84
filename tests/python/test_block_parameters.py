"""Parameters that a block creates, and how a program names its calls."""

import numpy as np
import pytest

import oar
from oar import pir_utils, static
from oar.nn import initializer


@pytest.fixture(autouse=True)
def static_mode():
    oar.enable_static()
    yield
    oar.disable_static()


def test_a_parameter_belongs_to_the_program_of_its_block():
    first, second = static.Program(), static.Program()
    defaults = [len(list(p.list_vars())) for p in (static.default_main_program(), static.default_startup_program())]
    w = first.global_block().create_parameter([5, 10], "float32", "weight")
    v = second.global_block().create_parameter([3], "float32", "weight")
    assert first.all_parameters() == [w] and second.all_parameters() == [v]
    assert w.shape == [5, 10] and v.shape == [3] and w.name == v.name == "weight"
    assert defaults == [
        len(list(p.list_vars())) for p in (static.default_main_program(), static.default_startup_program())
    ]


def test_a_startup_block_fills_and_a_main_block_keeps():
    main, startup = static.Program(), static.Program()
    startup.global_block().create_parameter([2], "float32", "kept", initializer.Constant(2.5))
    w = main.global_block().create_parameter([2], "float32", "kept", trainable=False)
    assert len(startup.global_block().ops) == 1 and main.global_block().ops == [] and not w.trainable
    executor, scope = static.Executor(), static.Scope()
    with static.scope_guard(scope):
        executor.run(startup)
        assert executor.run(main, fetch_list=[w])[0].tolist() == [2.5, 2.5]
        scope.find_var("kept").get_tensor().set(np.array([1, 4], "float32"))
        assert executor.run(main, fetch_list=[w])[0].tolist() == [1, 4]


def test_a_name_is_created_once_in_a_program():
    block = static.Program().global_block()
    w = block.create_parameter([2, 3], "float32", "w", initializer.Uniform(), need_clip=False)
    assert block.create_parameter([2, 3], "float32", "w", initializer.Uniform()) is w and not w.need_clip
    assert len(block.ops) == 1
    with pytest.raises(ValueError, match=r"'w' has shape \[2, 3\] already; it cannot have \[4\] too"):
        block.create_parameter([4], "float32", "w")


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint16"])
@pytest.mark.parametrize("first, name, attributes, casts", [
    (initializer.Constant(2.25), "fill_constant", {"value": 2.25}, ()),
    (initializer.UniformInitializer(-4.0, 3.0, 7), "uniform_random", {"min": -4.0, "max": 3.0, "seed": 7}, ("float16",)),
    (initializer.NormalInitializer(2.5, 1.5, 9), "gaussian_random", {"mean": 2.5, "std": 1.5, "seed": 9}, ()),
])
def test_older_programs_name_their_calls(dtype, first, name, attributes, casts):
    with pir_utils.OldIrGuard():
        program = static.Program()
    for block in (program.global_block(), program.clone().global_block()):
        block.create_parameter([5, 10], dtype, "w", first)
        op, *after = block.ops
        assert op.type == name and {key: op.attr(key) for key in attributes} == attributes
        assert [o.type for o in after] == ["cast"] * (dtype in casts)
        if after:
            assert after[0].attr("in_dtype") == oar.float32 and after[0].attr("out_dtype") == oar.dtype(dtype)


def test_names_of_calls():
    main = static.Program()
    with static.program_guard(main):
        static.data("x", [2]) * static.data("y", [2])
    (op,) = main.global_block().ops
    assert op.type == "multiply" and op.name() == "pd_op.multiply"


@pytest.mark.parametrize("shape", [[10, 15], [15, 10], [6, 4, 3, 3]])
def test_orthogonal_values_are_those_of_eager_mode(shape):
    attr = oar.ParamAttr(initializer=initializer.Orthogonal(gain=3.0))
    startup = static.Program()
    with static.program_guard(static.Program(), startup):
        w = oar.create_parameter(shape, "float64", attr=attr)
        oar.seed(2021)
        (found,) = static.Executor().run(startup, fetch_list=[w])
    oar.disable_static()
    oar.seed(2021)
    np.testing.assert_array_equal(found, oar.create_parameter(shape, "float64", attr=attr).numpy())
    rows = found.reshape(shape[0], -1)
    product = rows @ rows.T if rows.shape[0] <= rows.shape[1] else rows.T @ rows
    np.testing.assert_allclose(product, 9 * np.eye(len(product)), atol=1e-8)


@pytest.mark.parametrize("first", [initializer.Normal(2.0 + 2.0j, 0.5), initializer.NormalInitializer(2.0, 0.5, 3)])
def test_complex_normal_values(first):
    oar.disable_static()
    oar.seed(1)
    made = oar.create_parameter([200, 200], "complex64", default_initializer=first).numpy()
    assert made.dtype == np.complex64
    for part in (made.real, made.imag):
        assert abs(part.mean() - 2) < 0.01 and abs(part.std() - 0.5 / 2**0.5) < 0.01
    assert abs(np.corrcoef(made.real.ravel(), made.imag.ravel())[0, 1]) < 0.02


def test_a_complex_mean_needs_equal_parts():
    with pytest.raises(ValueError, match="its real part should equal its imaginary part"):
        initializer.Normal(1.0 + 2.0j)


def test_a_diagonal_that_does_not_fit():
    first = initializer.UniformInitializer(diag_num=16, diag_step=16)
    startup = static.Program()
    startup.global_block().create_parameter([5, 10], "float32", "w", first)
    with pytest.raises(IndexError, match="index 51 is out of range"):
        static.Executor().run(startup)
    oar.disable_static()
    with pytest.raises(ValueError, match="place 255 is not in a parameter of 50 elements"):
        oar.create_parameter([5, 10], "float32", default_initializer=first)


def test_an_attribute_that_only_paddle_has():
    with pir_utils.OldIrGuard():
        block = static.Program().global_block()
    block.create_parameter([4], "float32", "w", initializer.TruncatedNormal(2.0, 1.5))
    (op,) = block.ops
    assert op.type == "truncated_gaussian_random"
    assert {n: op.attr(n) for n in ("mean", "std", "seed", "a", "b")} == {"mean": 2, "std": 1.5, "seed": 0, "a": -2, "b": 2}
    written = block.append_op(type=op.type, outputs={"Out": block.create_var(shape=[4])}, attrs=op.attrs())
    assert written.attrs() == op.attrs()


def test_setitem_leaves_its_argument():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2, 3])
        y = static.setitem(x, (slice(None), 1), 7.0)
    given = np.arange(6, dtype="float32").reshape(2, 3)
    before, after = static.Executor().run(main, feed={"x": given}, fetch_list=[x, y])
    assert before.tolist() == given.tolist() and after.tolist() == [[0, 7, 2], [3, 7, 5]]


def test_arguments_and_where_they_come_from():
    main = static.Program()
    with static.program_guard(main):
        x = static.data("x", [2, 2], "float64")
        drawn = oar.uniform([2, 2], min=-0.5, max=0.25, seed=7)
        (drawn.astype("float64") * x).sum()
    draw, cast, product = main.global_block().ops[:3]
    names = draw.get_input_names()
    values = {n: draw.operand(i).source().get_defining_op().attrs()["value"] for i, n in enumerate(names)}
    assert values | {"min": -0.5, "max": 0.25, "shape": [2, 2], "seed": 7} == values
    assert draw.num_operands() == len(names) == len(draw.operands_source())
    assert cast.operand_source(0).dtype == oar.float32 and cast.operand_source(0).get_defining_op().idx == draw.idx
    assert product.get_input_names() == ["x", "y"] and product.operand_source(1).dtype == oar.float64
    assert product.operand_source(1).name == "x" and product.operand_source(1).get_defining_op() is None


def test_arguments_of_a_list_have_no_numbers():
    main = static.Program()
    with static.program_guard(main):
        oar.concat([static.data("x", [2]), static.data("y", [2])])
    with pytest.raises(NotImplementedError, match="input_arg_names has the names"):
        main.global_block().ops[0].get_input_names()
    assert main.global_block().ops[0].input_arg_names == ["x", "y"]
