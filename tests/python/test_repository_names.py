"""Inner names that public repositories of Paddle models import: each is there and does what it does in Paddle."""

import importlib
import multiprocessing as standard
import os
import subprocess
import sys

import numpy as np
import oar
import pytest
from oar import _C, nn
from oar.framework import core

NAMES = """
DataParallel long short int __git_commit__ dataset.common.md5file framework._no_check_dy2st_diff framework._current_expected_place_
framework.recall_error.LOSS_NAN_ERROR framework.io_utils.is_persistable framework.io._parse_every_object
framework.random.get_cuda_rng_state framework.random.set_cuda_rng_state jit.api.set_dynamic_shape incubate.jit.is_inference_mode
utils.download.logger io.dataloader.collate.default_collate_fn io.dataloader.batch_sampler.BatchSampler io.dataloader.dataset.Dataset
io.dataloader.sampler.Sampler io.dataloader.worker.get_worker_info io.dataloader.dataloader_iter._DataLoaderIterBase
io.reader.use_pinned_memory base.reader.use_pinned_memory base.layers base.libpaddle.Place base.framework.in_cinn_mode
base.framework.in_pir_executor_mode base.framework._stride_in_no_check_dy2st_diff base.core.EOFException base.core.AmpLevel.O0
base.core.VarDesc.VarType.STRINGS base.core.VarDesc.VarType.RAW base.core.is_compiled_with_dist base.core.eager.ops.legacy
base.core.default_cpu_generator nn.parameter.Parameter nn.initializer.kaiming.KaimingNormal tensor.top_p_sampling
amp.autocast amp.OptimizerState.STEPPED autograd.no_grad vision.transforms.transforms._get_image_size
vision.transforms.transforms._check_input static.Variable.view static.Variable.masked_fill incubate.multiprocessing.Queue incubate.multiprocessing.get_context
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


def test_dtypes_have_the_names_of_numpys():
    assert oar.int == oar.int32 and oar.long == oar.int64 and oar.short == oar.int16
    assert oar.zeros([1], oar.long).dtype == oar.int64


def test_data_parallel_in_one_process():
    net = nn.Linear(3, 2)
    whole = oar.DataParallel(net, find_unused_parameters=True)
    x = oar.randn([4, 3])
    np.testing.assert_array_equal(whole(x).numpy(), net(x).numpy())
    with whole.no_sync():
        whole.scale_loss(whole(x).sum()).backward()
    whole.apply_collective_grads()
    np.testing.assert_allclose(net.bias.grad.numpy(), [4, 4])
    assert list(whole.state_dict()) == list(net.state_dict()) and len(whole.parameters()) == 2
    whole.set_state_dict({"weight": np.zeros((3, 2), "float32"), "bias": np.ones(2, "float32")})
    assert net(x).numpy().tolist() == [[1, 1]] * 4


def test_data_parallel_before_the_processes_are_connected():
    done = subprocess.run([sys.executable, "-c", "import oar; oar.DataParallel(oar.nn.Linear(3, 2))"], text=True, capture_output=True,
                          env={**os.environ, "PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ID": "0"})
    assert done.returncode == 1
    assert "the 2 processes are not connected. hint: call init_parallel_env() first." in done.stderr


def test_groups_of_tensors_to_send():
    sizes = [(10, "float32"), (10, "float32"), (5, "float64"), (100, "float32"), (1, "float32"), (7, "float64"), (2, "float32")]
    tensors = [oar.zeros([size], dtype) for size, dtype in sizes]
    group, none = core.eager_assign_group_by_size, [False] * 7
    assert group(tensors, none, [80, 400]) == [[0, 1], [2, 5], [3], [4, 6]]
    assert group(tensors, [True, *none[1:]], [80, 400]) == [[0], [1, 3], [2, 5], [4, 6]]
    assert group(tensors, none, [80, 400], [6, 5, 4, 3, 2, 1, 0]) == [[6, 5], [3], [4, 1], [2, 0]]


def test_questions_about_devices():
    assert core.device_memory_stat_current_value("Allocated", 0) == core.device_memory_stat_peak_value("Reserved", 0) == 0
    for call in (core.default_cuda_generator, lambda: core.get_custom_device_count("npu")):
        with pytest.raises(RuntimeError, match="there is no"):
            call()
    assert oar.framework.random.set_cuda_rng_state(oar.framework.random.get_cuda_rng_state()) is None
    assert oar.device._convert_to_place("cpu").is_cpu_place()
    with pytest.raises(RuntimeError, match="gpu:0"):
        oar.device._convert_to_place("gpu:0")
    assert core.run_cmd("echo hello") == "hello\n" and core.run_cmd("exit 3", 20, 5) == ""


def test_files_and_sums(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes(b"abc")
    assert oar.dataset.common.md5file(str(file)) == "900150983cd24fb0d6963f7d28e17f72"
    endpoints = ["1.1.1.1:80", "1.1.1.1:81", "2.2.2.2:1"]
    assert oar.utils.download._get_unique_endpoints(endpoints) == {"1.1.1.1:80", "2.2.2.2:1"}


def test_what_a_program_loads_in_its_own_way():
    from oar.framework.io import _parse_every_object, _to_LodTensor, _transformed_from_lodtensor

    nest = {"a": [np.ones(2), ("name", np.zeros(1))], "b": (3, "text")}
    made = _parse_every_object(nest, _transformed_from_lodtensor, lambda a: _to_LodTensor(a[1] if isinstance(a, tuple) else a))
    assert made is nest and made["b"] == (3, "text") and made["a"][0].tolist() == [1, 1] and made["a"][1].tolist() == [0]
    with pytest.raises(NotImplementedError, match="range"):
        _parse_every_object([range(2)], _transformed_from_lodtensor, _to_LodTensor)


def test_a_pass_over_a_loader_has_a_class():
    from oar.io.dataloader.dataloader_iter import _DataLoaderIterBase

    loader = oar.io.DataLoader(oar.io.TensorDataset([oar.arange(5)]), batch_size=2)
    batches = iter(loader)
    assert isinstance(batches, _DataLoaderIterBase) and batches._batch_sampler is loader.batch_sampler and len(batches) == 3
    assert [batch[0].tolist() for batch in batches] == [[0, 1], [2, 3], [4]]
    with pytest.raises(StopIteration):
        next(batches)


def test_norms_that_clipping_takes():
    assert nn.clip._squared_l2_norm(oar.to_tensor([3.0, 4.0])).tolist() == [25.0]
    switch = nn.clip._clip_by_global_norm_using_mp_type
    assert [switch(True), switch(False), switch()] == [False, True, False]


def test_the_state_of_autocast():
    from oar.amp.auto_cast import amp_global_state

    _C.forget_autocast_dtype()  # of tests before
    assert amp_global_state().amp_dtype == "float32"
    with oar.amp.auto_cast(dtype="bfloat16"):
        assert amp_global_state().amp_dtype == "bfloat16"


def test_tensors_change_place_by_the_inner_name():
    x = oar.to_tensor([1.5])
    assert x._to("cpu", "float64").dtype == oar.float64 and x._to() is x and x._to(copy_tensor=True) is not x


def _answer(questions, answers):
    tensor, parameter = questions.get()
    answers.put((tensor * 2, parameter.name, parameter.stop_gradient, parameter.numpy().sum()))


def test_queues_carry_tensors():
    multiprocessing = oar.incubate.multiprocessing
    context = multiprocessing.get_context("fork")
    questions, answers = context.Queue(), context.Queue()
    parameter = nn.Linear(2, 2).weight
    process = context.Process(target=_answer, args=(questions, answers))
    process.start()
    questions.put((oar.to_tensor([1.0, 2.0]), parameter))
    tensor, name, stopped, total = answers.get(timeout=60)
    process.join()
    assert tensor.tolist() == [2.0, 4.0] and tensor.stop_gradient and name == parameter.name and not stopped
    np.testing.assert_allclose(total, parameter.numpy().sum(), rtol=1e-6)
    x = oar.ones([2])
    x.stop_gradient = False
    with pytest.raises(RuntimeError, match="detach"):
        standard.reduction.ForkingPickler.dumps(x * 2)


def test_ops_by_their_inner_path():
    x = oar.to_tensor([[1.0, 2.0]])
    assert core.eager.ops is oar._C_ops and core.eager.ops.legacy is oar._legacy_C_ops
    assert core.eager.ops.matmul(x, x, False, True).tolist() == [[5.0]]


def test_convolutions_by_their_inner_name():
    conv = nn.functional.conv._conv_nd
    x, w, w3 = oar.randn([2, 4, 6, 6]), oar.randn([4, 1, 3, 3]), oar.randn([2, 4, 3, 3, 3])
    made = conv(x, w, stride=[2, 2], padding=[1, 1], padding_algorithm="EXPLICIT", groups=4, op_type="depthwise_conv2d")
    np.testing.assert_array_equal(made.numpy(), nn.functional.conv2d(x, w, stride=2, padding=1, groups=4).numpy())
    deep = x.reshape([2, 4, 6, 6, 1])
    made = conv(deep, w3, padding=[0, 0, 0], padding_algorithm="SAME", data_format="NCDHW", op_type="conv3d")
    np.testing.assert_array_equal(made.numpy(), nn.functional.conv3d(deep, w3, padding="SAME").numpy())
    with pytest.raises(ValueError, match="conv9d"):
        conv(x, w, op_type="conv9d")


def test_kinds_of_norms():
    base = nn.layer.norm._InstanceNormBase
    assert isinstance(nn.InstanceNorm2D(3), base) and not isinstance(nn.BatchNorm2D(3), base)


def test_layers_keep_their_arguments_where_programs_read_them():
    up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
    assert (up.size, up.scale_factor, up.mode, up.align_corners, up.align_mode, up.data_format) == (None, 2, "bilinear", True, 0, None)
    up.scale_factor = 3
    assert list(up(oar.ones([1, 1, 2, 2])).shape) == [1, 1, 6, 6] and "scale_factor=3" in repr(up)
    table = nn.Embedding(5, 3, padding_idx=-1)
    assert table.padding_idx == table._padding_idx == -1 and table._size == [5, 3]
    assert nn.AdaptiveAvgPool2D((2, None)).output_size == (2, None)
    for layer in (nn.BatchNorm2D(3, bias_attr=False), nn.GroupNorm(1, 3, bias_attr=False), nn.LayerNorm(3, bias_attr=False)):
        assert layer._weight_attr is None and layer._bias_attr is False
    assert nn.BatchNorm(3, param_attr=oar.ParamAttr(name="scale_of_norm"))._param_attr.name == "scale_of_norm"
    assert list(nn.Sequential(nn.ReLU())._modules) == ["0"]
    x = oar.to_tensor([0.5])
    assert nn.GRUCell(2, 2)._activation(x).item() == x.tanh().item() and nn.LSTMCell(2, 2)._gate_activation(x).item() == oar.sigmoid(x).item()


@pytest.mark.parametrize("arguments, expected", [
    (((4, 4, 3), {"padding": 1}), ([1, 1], "EXPLICIT", "conv2d", 1)),
    (((4, 8, 3), {"padding": "SAME", "groups": 4}), ([0, 0], "SAME", "depthwise_conv2d", 1)),
    (((2, 2, 3), {"padding": 1, "padding_mode": "reflect"}), ([0, 0], "EXPLICIT", "conv2d", 1)),
    (((4, 4, 3), {"padding": (1, 2), "data_format": "NHWC"}), ([1, 2], "EXPLICIT", "conv2d", 3)),
])  # fmt: skip
def test_what_a_convolution_hands_to_its_op(arguments, expected):
    layer = nn.Conv2D(*arguments[0], **arguments[1])
    assert (layer._updated_padding, layer._padding_algorithm, layer._op_type, layer._channel_dim) == expected
    x = oar.randn([1, 8, 8, 4] if expected[3] == 3 else [1, arguments[0][0], 8, 8])
    if layer._padding_mode == "zeros":
        made = nn.functional.conv._conv_nd(
            x, layer.weight, layer.bias, layer._stride, layer._updated_padding, layer._padding_algorithm, layer._dilation,
            layer._groups, layer._data_format, layer._channel_dim, layer._op_type, layer._use_cudnn)
        np.testing.assert_array_equal(made.numpy(), layer(x).numpy())
    assert nn.Conv2DTranspose(2, 2, 3, groups=2)._op_type == "conv2d" and nn.Conv3D(2, 2, 3)._op_type == "conv3d"


def test_optimizers_say_what_they_are():
    class Mine(oar.optimizer.AdamW):
        pass

    parameter = oar.create_parameter([2], "float32")
    mine = Mine(parameters=[parameter])
    assert mine.type == "adamw" and oar.optimizer.RMSProp(0.1, parameters=[parameter]).type == "rmsprop"
    parameter.sum().backward()
    mine.zero_grad(set_to_none=False)
    assert parameter.grad.tolist() == [0, 0]
    mine.zero_grad()
    assert parameter.grad is None


def test_memory_and_gradients_by_inner_names():
    x = oar.to_tensor([1.0, 2.0, 3.0], stop_gradient=False)
    (x * x).sum().backward()
    assert x._grad_ivar().tolist() == [2, 4, 6] and x._numel() == 3
    assert x._md5sum() == "6e55f044605a4991f15fd4505d83faf4"  # of 1, 2, 3 as float32
    whole, part = x.detach().clone(), oar.zeros([1, 2])
    whole._share_buffer_to(part)
    whole[1] = 9.0
    assert part.tolist() == [[1, 9]] and whole._is_shared_buffer_with(part) and whole._slice(1, 3).tolist() == [9, 3]
    with pytest.raises(ValueError, match="needs 4"):
        whole._share_buffer_to(oar.zeros([4]))
    copy = whole._copy_to(oar.CPUPlace(), True)
    assert copy.tolist() == [1, 9, 3] and not copy._is_shared_buffer_with(whole)
    other = oar.zeros([3])
    other.stop_gradient = False
    other._copy_gradient_from(x)
    assert other.grad.tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="parameters"):
        other._set_grad_ivar(x)
    parameter = oar.create_parameter([3], "float32")
    parameter._set_grad_ivar(oar.ones([3]))
    assert parameter.grad.tolist() == [1, 1, 1]
    copy._clear_data()
    assert copy.size == 0


# Inner paths ----------------------------------------------------------------------------------------------------------------------

INNER = """
import sys
import paddle
import paddle.optimizer.adamw, paddle.jit.dy2static.logging_utils as logging_utils
from paddle.nn.functional.loss import cross_entropy
from paddle.nn.functional.activation import hardswish
from paddle.nn.utils.clip_grad_norm_ import clip_grad_norm_
from paddle.distributed.parallel import ParallelEnv
from paddle.tensor.ops import abs_
from paddle.base.unique_name import guard

assert cross_entropy is paddle.nn.functional.cross_entropy and hardswish is paddle.nn.functional.hardswish
assert paddle.optimizer.adamw.AdamW is paddle.optimizer.AdamW and paddle.optimizer.momentum.Momentum is paddle.optimizer.Momentum
assert clip_grad_norm_ is paddle.nn.utils.clip_grad_norm_ and callable(clip_grad_norm_)
assert ParallelEnv is paddle.distributed.ParallelEnv and abs_ is paddle.abs_ and guard is paddle.utils.unique_name.guard
assert logging_utils.set_verbosity is paddle.jit.set_verbosity
import paddle.incubate.nn.functional.swiglu  # a module of the name of a function, which stays
assert paddle.incubate.nn.functional.swiglu(paddle.ones([2])).shape == [1]
for wanted in ("from paddle.optimizer.adamw import Nothing", "import paddle.optimizer.nothing", "paddle.nn.functional.loss.nothing"):
    try:
        exec(wanted)
    except (ImportError, AttributeError) as error:
        assert "nothing" in str(error).lower(), error
    else:
        raise AssertionError(wanted)
"""


def test_public_names_at_the_paths_where_paddle_defines_them(tmp_path):
    script = tmp_path / "inner.py"
    script.write_text(INNER)
    ran = subprocess.run([sys.executable, "-m", "oar.as_paddle", str(script)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_every_inner_path_leads_to_the_public_name():
    from oar import _inner_paths

    for module, names in _inner_paths._public_paths().items():
        for name, public in names.items():
            if public == f"{module}.{name}":
                continue
            value = oar
            for part in public.split("."):
                value = getattr(value, part, None)
            found = _inner_paths.value(module, name)
            assert (found is value) if value is not None else (found is _inner_paths.NOT_HERE), (module, name)


def test_a_subclass_of_resnet_with_blocks_of_its_own():
    from oar.vision.models.resnet import BottleneckBlock, ResNet

    class Other(ResNet):
        def __init__(self):
            super().__init__(BottleneckBlock, 50, num_classes=3)
            self.inplanes = 64
            self.layer1 = self._make_layer(BottleneckBlock, 64, 1)
            self.layer4 = nn.Sequential()
            self.layer3 = self.layer2 = nn.Sequential()
            self.more = self._make_layer(BottleneckBlock, 32, 2, stride=2, dilate=True)

    net = Other()
    assert net.dilation == 2 and net.inplanes == 128
    block = net.more[0]
    assert block.downsample is not None and block.conv2._stride == [1, 1]
    assert net.more(oar.randn([1, 256, 8, 8])).shape == [1, 128, 8, 8]


def test_layers_of_a_list_by_their_keys():
    layers = nn.LayerList([nn.Linear(1, 1) for _ in range(3)])
    assert layers["1"] is layers[1]
    layers["1"] = other = nn.Linear(2, 2)
    assert layers[1] is other and len(layers) == 3
    last = layers[2]
    del layers["1"]
    assert layers[1] is last and len(layers) == 2
    with pytest.raises(KeyError):
        layers["x"]


def test_arguments_by_paddles_names():
    x = oar.to_tensor([3.0, 1.0, 3.0])
    assert oar.unique(x, sorted=False).tolist() == [1, 3]
    assert x.repeat_interleave(2, output_size=6).tolist() == [3, 3, 1, 1, 3, 3]
    assert x.repeat(repeats=[2]).tolist() == [3, 1, 3, 3, 1, 3] and x.repeat(2, 1).shape == [2, 3] and x.repeat([2, 1]).shape == [2, 3]
    assert x.requires_grad_(requires_grad=True).stop_gradient is False
    assert x.new_empty(size=[2, 3]).shape == [2, 3] and x.new_ones(size=[2]).tolist() == [1, 1] and x.new_zeros(2, 1).shape == [2, 1]
