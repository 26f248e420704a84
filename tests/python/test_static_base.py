"""Paddle's older names for programs, as scripts and tests import them."""

import importlib

import numpy as np
import pytest

import oar
from oar import base, pir_utils, static

NAMES = """
base.CPUPlace base.CUDAPlace base.CUDAPinnedPlace base.BuildStrategy base.CompiledProgram base.DataFeeder
base.Executor base.LoDTensor base.ParamAttr base.Program base.Scope base.Tensor base.backward.append_backward
base.backward.gradients base.compiler base.compiler.CompiledProgram base.core.CPUPlace base.core.CUDAPlace
base.core.DataType base.core.LoDTensor base.core.Place base.core.Scope base.core.VarDesc.VarType
base.core.XPUPlace base.core.XPUVersion.XPU2 base.core.XPUVersion.XPU3 base.core._set_prim_all_enabled
base.core._set_prim_backward_blacklist base.core._set_prim_backward_enabled base.core._set_prim_forward_blacklist
base.core.eager base.core.eager.Tensor base.core.get_cuda_device_count base.core.get_low_precision_op_list
base.core.get_xpu_device_version base.core.globals base.core.is_bfloat16_supported base.core.is_compiled_with_avx
base.core.is_compiled_with_cuda base.core.is_compiled_with_mkldnn base.core.is_compiled_with_rocm
base.core.is_compiled_with_xpu base.core.is_float16_supported base.core.set_prim_eager_enabled
base.core.supports_avx512f base.core.supports_bfloat16 base.cuda_places base.data_feeder.convert_dtype
base.default_main_program base.default_startup_program base.disable_dygraph base.dygraph.base.switch_to_static_graph
base.dygraph.grad base.dygraph.guard base.enable_dygraph base.enable_imperative base.executor
base.executor.Executor base.framework.EagerParamBase base.framework.Parameter base.framework.Program
base.framework.Variable base.framework._current_expected_place base.framework._dygraph_tracer
base.framework.convert_np_dtype_to_dtype_ base.framework.default_main_program
base.framework.default_startup_program base.framework.get_flags base.framework.in_dygraph_mode
base.framework.in_pir_mode base.framework.program_guard base.framework.unique_name base.get_flags
base.global_scope base.gradients base.in_dygraph_mode base.is_compiled_with_cuda base.program_guard
base.scope_guard base.set_flags base.unique_name.generate base.unique_name.guard
base.wrapped_decorator.wrap_decorator pir_utils.DygraphOldIrGuard pir_utils.DygraphPirGuard pir_utils.IrGuard
pir_utils.OldIrGuard
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there(name):
    found = oar
    path = "oar"
    for part in name.split("."):
        path += f".{part}"
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
    assert found is not None


def test_the_names_are_those_of_static():
    assert base.Program is static.Program is base.framework.Program
    assert base.executor.Executor is static.Executor and base.core.Scope is static.Scope
    assert base.backward.append_backward is static.append_backward


def test_guards_and_modes():
    with pir_utils.IrGuard():
        assert not oar.in_dynamic_mode() and base.framework._dygraph_tracer() is None
        with base.dygraph.guard():
            assert base.in_dygraph_mode() and base.framework._dygraph_tracer()._has_grad
    assert oar.in_dynamic_mode()

    @base.dygraph.base.switch_to_static_graph
    def inside(a, b=2):
        """Documented."""
        assert not oar.in_dynamic_mode()
        return a + b

    assert inside(1) == 3 and inside.__doc__ == "Documented." and oar.in_dynamic_mode()
    base.disable_dygraph()
    assert not oar.in_dynamic_mode()
    base.enable_dygraph()
    assert oar.in_dynamic_mode()


def test_batches_of_samples():
    with pir_utils.IrGuard(), static.program_guard(static.Program(), static.Program()):
        x, y = static.data("x", [None, 2, 2]), static.data("y", [None, 1], "int64")
        feeder = base.DataFeeder([x, y], base.CPUPlace())
        fed = feeder.feed([([1, 2, 3, 4], 0), ([5, 6, 7, 8], 1)])
        assert fed["x"].shape() == [2, 2, 2] and np.array(fed["y"]).tolist() == [[0], [1]]
        (out,) = base.Executor().run(feed=fed, fetch_list=[oar.sum(x, axis=[1, 2]) + y[:, 0].astype("float32")])
        assert out.tolist() == [10.0, 27.0]
        with pytest.raises(ValueError, match="1 entries for 2 inputs"):
            feeder.feed([([1, 2, 3, 4],)])
        with pytest.raises(ValueError, match=r"feed_list\[1\] is the name 'y'. Give the variable"):
            base.DataFeeder([x, "y"])


def test_scopes():
    scope = base.Scope()
    assert scope.find_var("a") is None
    scope.var("a").get_tensor().set(np.ones((2, 2), "float32"), base.CPUPlace())
    inner = scope.new_scope()
    assert np.array(inner.find_var("a").get_tensor()).sum() == 4.0 and inner.size() == 0
    assert scope.find_var("a").get_tensor().shape() == [2, 2]
    scope.erase(["a"])
    assert scope.find_var("a") is None


def test_flags_as_a_mapping():
    flags = base.core.globals()
    name = flags.keys()[0]
    assert f"FLAGS_{name}" in flags and flags[f"FLAGS_{name}"] == base.get_flags(name)[name]


# what is known before a run --------------------------------------------------------------------------


@pytest.fixture
def program():
    with pir_utils.IrGuard(), static.program_guard(static.Program(), static.Program()):
        yield static.default_main_program()


def test_sizes_travel_as_tensors(program):
    x = static.data("x", [None, 6])
    sizes = oar.shape(x)
    y = oar.reshape(x, oar.concat([sizes[0:1] * 2, oar.full([1], 3, "int32")]))
    z = oar.full([sizes[0] + 1], 1.0)
    assert y.shape == [-1, 3]
    value = np.arange(12.0, dtype="float32").reshape(2, 6)
    got = static.Executor().run(program, {"x": value}, [y, z, sizes, oar.numel(x)])
    np.testing.assert_array_equal(got[0], value.reshape(4, 3))
    assert got[1].shape == (3,) and got[2].tolist() == [2, 6] and got[3] == 12


def test_constants_are_known(program):
    assert int(oar.full([1], 3, "int32") + 1) == 4 and bool(oar.ones([1]) > 0)
    assert oar.reshape(oar.ones([6]), oar.to_tensor([2, 3])).shape == [2, 3]
    x = static.data("x", [1], "int64")
    for question in (int, bool):
        with pytest.raises(Exception, match="value"):
            question(x)
    with pytest.raises(Exception, match="value"):
        int(oar.randint(0, 5, [1]))


def test_lists_of_tensors(program):
    from oar.tensor import array_length, array_read, array_write, create_array

    made = array_write(oar.full([1], 5.0), oar.zeros([1], "int64"))
    array_write(oar.full([1], 6.0), array_length(made), made)
    assert len(create_array("float32", made)) == 2
    out = static.Executor().run(program, fetch_list=[array_read(made, 1), array_length(made)])
    assert out[0].tolist() == [6.0] and out[1].tolist() == [2]
    with pytest.raises(IndexError, match="beyond the end"):
        array_write(made[0], 5, made)
