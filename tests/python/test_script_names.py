"""Names and calls that scripts use although Paddle does not document them."""

import copy
import importlib

import numpy as np
import oar
import pytest
from oar import nn

NAMES = """
norm sigmoid core reader version.major version.full_version common_ops_import disable_signal_handler is_compiled_with_custom_device
Size uint16 autocast get_autocast_dtype get_autocast_cpu_dtype get_autocast_gpu_dtype is_autocast_enabled
amp.auto_cast.__init__ autograd.Function device.cuda.synchronize framework.get_default_dtype framework.io.EagerParamBase
framework.random io.dataloader jit.to_static nn.decode nn.functional.activation nn.functional.common
nn.functional.hard_sigmoid nn.functional.hard_swish nn.functional.loss nn.init nn.initializer.Constant nn.layer.common
nn.layer.conv nn.layer.layers.in_declarative_mode nn.layer.norm nn.layer.transformer._convert_attention_mask
optimizer.lr.LRScheduler optimizer.optimizer.Optimizer static.InputSpec static.amp.fp16_guard tensor.creation
tensor.linalg.norm tensor.manipulation tensor.math utils.deprecated utils.download.get_weights_path_from_url
utils.run_check utils.try_import
base.BuildStrategy base.CPUPlace base.CUDAPinnedPlace base.CUDAPlace base.CompiledProgram base.DataFeeder base.Executor
base.LoDTensor base.ParamAttr base.Program base.Scope base.Tensor base.backward.append_backward base.backward.gradients
base.compiler.CompiledProgram base.core.CPUPlace base.core.CUDAPlace base.core.DataType base.core.LoDTensor
base.core.Place base.core.Scope base.core.VarDesc.VarType base.core.XPUPlace base.core.XPUVersion.XPU2
base.core._set_prim_all_enabled base.core._set_prim_backward_blacklist base.core._set_prim_backward_enabled
base.core._set_prim_forward_blacklist base.core.eager.Tensor base.core.get_cuda_device_count
base.core.get_low_precision_op_list base.core.get_xpu_device_version base.core.globals
base.core.is_bfloat16_supported base.core.is_compiled_with_avx base.core.is_compiled_with_cuda
base.core.is_compiled_with_mkldnn base.core.is_compiled_with_rocm base.core.is_compiled_with_xpu
base.core.is_float16_supported base.core.set_prim_eager_enabled base.core.supports_avx512f
base.core.supports_bfloat16 base.cuda_places base.data_feeder.convert_dtype base.default_main_program
base.default_startup_program base.disable_dygraph base.dygraph.base.switch_to_static_graph base.dygraph.grad
base.dygraph.guard base.enable_dygraph base.enable_imperative base.executor.Executor
base.framework.EagerParamBase base.framework.Parameter base.framework.Program base.framework.Variable
base.framework._current_expected_place base.framework._dygraph_tracer
base.framework.convert_np_dtype_to_dtype_ base.framework.default_main_program
base.framework.default_startup_program base.framework.get_flags base.framework.in_dygraph_mode
base.framework.in_pir_mode base.framework.program_guard base.framework.unique_name base.get_flags
base.global_scope base.gradients base.in_dygraph_mode base.is_compiled_with_cuda base.program_guard
base.scope_guard base.set_flags base.unique_name.generate base.unique_name.guard base.variable_index
base.wrapped_decorator.wrap_decorator pir_utils.DygraphOldIrGuard pir_utils.DygraphPirGuard pir_utils.IrGuard
pir_utils.OldIrGuard
""".split()


@pytest.mark.parametrize("name", NAMES)
def test_the_name_is_there(name):
    value = oar
    parts = name.split(".")
    for i, part in enumerate(parts):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module("oar." + ".".join(parts[: i + 1]))
    assert value is not None


def test_amp_state_can_be_imported():
    from oar.amp.auto_cast import amp_state

    with oar.amp.auto_cast(dtype="bfloat16"):
        assert amp_state()["dtype"] == "bfloat16"
        assert oar.is_autocast_enabled()
        assert oar.get_autocast_dtype("cpu") == "bfloat16"
    assert not oar.is_autocast_enabled()
    assert oar.get_autocast_dtype() == "float16"


def test_put_along_axis_takes_a_number():
    x = oar.zeros([2, 3])
    assert oar.put_along_axis(x, oar.to_tensor([[0]]), 5.0, 1).tolist() == [[5, 0, 0], [5, 0, 0]]
    assert x.put_along_axis(oar.to_tensor([[2], [1]]), 7, 1).tolist() == [[0, 0, 7], [0, 7, 0]]


def test_shifts_are_operators():
    x = oar.to_tensor([1, 2])
    assert (x << 3).tolist() == [8, 16]
    assert (x >> 1).tolist() == [0, 1]


def test_nonzero_as_a_tuple():
    rows, columns = oar.to_tensor([[0, 1], [2, 0]]).nonzero(as_tuple=True)
    assert rows.flatten().tolist() == [0, 1]
    assert columns.flatten().tolist() == [1, 0]


def test_train_takes_the_mode():
    layer = nn.Sequential(nn.Dropout(0.5))
    assert layer.train(False) is layer
    assert not layer[0].training


def test_adam_with_amsgrad():
    layer = nn.Linear(2, 2)
    optimizer = oar.optimizer.Adam(parameters=layer.parameters(), amsgrad=True)
    layer(oar.ones([1, 2])).sum().backward()
    before = layer.weight.numpy()
    optimizer.step()
    assert np.allclose(before - layer.weight.numpy(), 1e-3, atol=1e-5)


def test_a_copy_of_a_result():
    x = oar.ones([2], dtype="float32").detach()
    x.stop_gradient = False
    assert copy.deepcopy(x * 2).tolist() == [2.0, 2.0]


def test_an_initializer_as_a_class():
    layer = nn.Linear(2, 2, weight_attr=oar.ParamAttr(initializer=nn.initializer.XavierNormal))
    assert layer.weight.shape == [2, 2]


def test_add_n_says_what_it_needs():
    with pytest.raises(ValueError, match="at least one tensor"):
        oar.add_n([])
    with pytest.raises(TypeError, match="a list of tensors"):
        oar.add_n([1])


def test_full_reads_numbers_from_texts():
    assert oar.full([2], "-inf").tolist() == [-float("inf")] * 2
    assert oar.full([1], fill_value="3.5", dtype="float64").tolist() == [3.5]


def test_assign_of_another_shape():
    parameter = oar.create_parameter([2, 2], "float32")
    nn.initializer.Assign(np.arange(4, dtype="float32"))(parameter)
    assert parameter.flatten().tolist() == [0, 1, 2, 3]


def test_initializers_write_tensors():
    x = oar.full([50], 9.0)
    nn.initializer.TruncatedNormal()(x)
    assert bool((x.abs() <= 2.0).all())


def test_flags_of_other_devices():
    oar.set_flags({"FLAGS_cudnn_deterministic": True})
    with pytest.raises(ValueError, match="there is no flag"):
        oar.set_flags({"FLAGS_of_nobody": 1})


def test_a_dataset_with_a_type():
    assert oar.io.Dataset[int] is not None


def test_padding_by_a_numpy_number():
    assert nn.Pad1D(np.int64(1))(oar.ones([1, 1, 2])).tolist() == [[[0, 1, 1, 0]]]


def test_batch_norm_with_an_activation():
    x = oar.to_tensor(np.linspace(-1, 1, 8).reshape(1, 2, 2, 2).astype("float32"))
    plain, active = nn.BatchNorm(2), nn.BatchNorm(2, act="hard_swish")
    assert np.allclose(active(x).numpy(), nn.functional.hardswish(plain(x)).numpy())


def test_a_sparse_gradient_as_an_array():
    layer = nn.Embedding(3, 2, sparse=True)
    layer(oar.to_tensor([1])).sum().backward()
    assert layer.weight.grad.numpy().tolist() == [[0, 0], [1, 1], [0, 0]]


def test_a_device_by_call():
    device = oar.device("cpu")
    assert (device.type, device.index) == ("cpu", None)
    assert oar.ones([1]).device == device
    assert oar.device("gpu", 1) == "gpu:1"


def test_initial_values_by_pytorchs_names():
    weight = nn.Linear(4, 6).weight
    assert nn.init.kaiming_normal_(weight, mode="fan_out") is weight
    nn.init.xavier_uniform_(weight)
    assert float(weight.abs().max()) <= np.sqrt(6 / 10)
    nn.init.eye_(weight)
    assert weight.tolist() == np.eye(4, 6).tolist()
    assert not weight.stop_gradient


def test_exponential_numbers_are_not_below_zero():
    drawn = oar.zeros([1 << 20]).exponential_(2.0).numpy()
    assert not np.signbit(drawn).any()


def test_meshgrid_with_indexing():
    x, y = np.arange(2.0), np.arange(3.0)
    for indexing in ("ij", "xy"):
        found = oar.meshgrid(oar.to_tensor(x), oar.to_tensor(y), indexing=indexing)
        for one, wanted in zip(found, np.meshgrid(x, y, indexing=indexing), strict=True):
            assert np.array_equal(one.numpy(), wanted)
