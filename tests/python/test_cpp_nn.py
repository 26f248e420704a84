"""Layers, optimisers, schedules and checkpoints of C++ against those of Python: the same seed, the same numbers, to the bit."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oar
from oar import nn
from oar.checkpoint import CheckpointManager
from oar.optimizer import lr

PEER = Path(oar._C.__file__).resolve().parents[2] / "bin/oar_nn_peer"
pytestmark = pytest.mark.skipif(not PEER.exists(), reason="the C++ half of this test is not built: run make build")


def run_peer(*arguments: Any) -> None:
    done = subprocess.run([str(PEER), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def values_from(what: str, folder: Path) -> dict[str, np.ndarray]:
    path = folder / f"{what}.safetensors"
    run_peer(what, path)
    return {key: value.numpy() for key, value in oar.load(path).items()}


def same(found: Any, wanted: np.ndarray, what: str) -> None:
    np.testing.assert_array_equal(np.asarray(found.numpy() if hasattr(found, "numpy") else found), wanted, err_msg=what)


# layers ------------------------------------------------------------------------------------------


def on(make: Callable[[], nn.Layer], shape: list[int]) -> Callable[[], tuple[nn.Layer, Any, Any]]:
    def run() -> tuple[nn.Layer, Any, Any]:
        layer = make()
        x = oar.randn(shape)
        x.stop_gradient = False
        return layer, x, layer(x)

    return run


def looked_up(sparse: bool) -> tuple[nn.Layer, Any, Any]:
    layer = nn.Embedding(6, 3, padding_idx=1, sparse=sparse)
    x = oar.to_tensor([[0, 5], [1, 5]])
    return layer, x, layer(x)


def recurrent(make: Callable[[], nn.Layer]) -> tuple[nn.Layer, Any, list[Any]]:
    layer = make()
    x = oar.randn([2, 6, 4])
    x.stop_gradient = False
    out, states = layer(x)
    return layer, x, [out, *(states if isinstance(states, (list, tuple)) else [states])]


def decoded() -> tuple[nn.Layer, Any, Any]:
    layer = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.1, normalize_before=True)
    x, memory = oar.randn([2, 4, 8]), oar.randn([2, 5, 8])
    x.stop_gradient = False
    return layer, x, layer(x, memory, oar.triu(oar.full([4, 4], float("-inf")), 1))


def transformed() -> tuple[nn.Layer, Any, Any]:
    layer = nn.Transformer(8, 2, 2, 2, 16)
    x, target = oar.randn([2, 5, 8]), oar.randn([2, 4, 8])
    x.stop_gradient = False
    return layer, x, layer(x, target)


PLAIN = {
    "relu": nn.ReLU, "relu6": nn.ReLU6, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh, "silu": nn.Silu, "swish": nn.Swish, "mish": nn.Mish,
    "hardswish": nn.Hardswish, "hardsigmoid": nn.Hardsigmoid, "log_sigmoid": nn.LogSigmoid, "softsign": nn.Softsign,
    "tanhshrink": nn.Tanhshrink, "gelu": nn.GELU, "celu": nn.CELU, "elu": nn.ELU, "selu": nn.SELU, "leaky_relu": nn.LeakyReLU,
    "hardshrink": nn.Hardshrink, "softshrink": nn.Softshrink, "hardtanh": nn.Hardtanh, "softplus": nn.Softplus,
    "thresholded_relu": nn.ThresholdedReLU, "softmax": nn.Softmax, "log_softmax": nn.LogSoftmax,
}  # fmt: skip

LAYERS: dict[str, Callable[[], tuple[nn.Layer, Any, Any]]] = {
    "linear": on(lambda: nn.Linear(3, 5), [4, 3]),
    "linear_plain": on(lambda: nn.Linear(3, 5, bias_attr=False), [4, 3]),
    "embedding": lambda: looked_up(False),
    "embedding_sparse": lambda: looked_up(True),
    "conv1d": on(lambda: nn.Conv1D(3, 4, 3, stride=2, padding=1), [2, 3, 9]),
    "conv2d": on(lambda: nn.Conv2D(4, 6, [3, 2], padding=[1, 2], groups=2), [2, 4, 7, 6]),
    "conv2d_same": on(lambda: nn.Conv2D(3, 4, 3, stride=2, padding="SAME"), [1, 3, 6, 6]),
    "conv2d_reflect": on(lambda: nn.Conv2D(3, 4, 3, padding=1, padding_mode="reflect"), [1, 3, 6, 6]),
    "conv3d": on(lambda: nn.Conv3D(2, 3, 2, dilation=2), [1, 2, 4, 5, 6]),
    "conv1d_transpose": on(lambda: nn.Conv1DTranspose(3, 4, 3, stride=2), [2, 3, 5]),
    "conv2d_transpose": on(lambda: nn.Conv2DTranspose(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2), [1, 4, 4, 3]),
    "conv3d_transpose": on(lambda: nn.Conv3DTranspose(2, 3, 2), [1, 2, 3, 3, 3]),
    "max_pool1d": on(lambda: nn.MaxPool1D(3), [1, 2, 9]),
    "max_pool2d": on(lambda: nn.MaxPool2D(3, stride=2, padding=1, ceil_mode=True), [1, 2, 7, 7]),
    "max_pool3d": on(lambda: nn.MaxPool3D(2), [1, 2, 4, 4, 4]),
    "avg_pool1d": on(lambda: nn.AvgPool1D(3), [1, 2, 9]),
    "avg_pool2d": on(lambda: nn.AvgPool2D(3, stride=2, padding=1, exclusive=False), [1, 2, 7, 7]),
    "avg_pool3d": on(lambda: nn.AvgPool3D(2), [1, 2, 4, 4, 4]),
    "adaptive_avg_pool1d": on(lambda: nn.AdaptiveAvgPool1D(4), [1, 2, 9]),
    "adaptive_avg_pool2d": on(lambda: nn.AdaptiveAvgPool2D([3, 2]), [1, 2, 7, 5]),
    "adaptive_avg_pool3d": on(lambda: nn.AdaptiveAvgPool3D(2), [1, 2, 4, 4, 5]),
    "adaptive_max_pool1d": on(lambda: nn.AdaptiveMaxPool1D(4), [1, 2, 9]),
    "adaptive_max_pool2d": on(lambda: nn.AdaptiveMaxPool2D(3), [1, 2, 7, 5]),
    "adaptive_max_pool3d": on(lambda: nn.AdaptiveMaxPool3D(2), [1, 2, 4, 4, 5]),
    "batch_norm1d": on(lambda: nn.BatchNorm1D(3), [4, 3]),
    "batch_norm2d": on(lambda: nn.BatchNorm2D(3, momentum=0.8, epsilon=1e-3), [2, 3, 4, 4]),
    "batch_norm3d": on(lambda: nn.BatchNorm3D(3), [2, 3, 2, 3, 4]),
    "layer_norm": on(lambda: nn.LayerNorm([3, 4]), [2, 3, 4]),
    "rms_norm": on(lambda: nn.RMSNorm(4), [2, 3, 4]),
    "group_norm": on(lambda: nn.GroupNorm(3, 6), [2, 6, 3, 3]),
    "instance_norm1d": on(lambda: nn.InstanceNorm1D(3), [2, 3, 5]),
    "instance_norm2d": on(lambda: nn.InstanceNorm2D(3), [2, 3, 4, 4]),
    "instance_norm3d": on(lambda: nn.InstanceNorm3D(3), [2, 3, 2, 3, 4]),
    "dropout": on(lambda: nn.Dropout(0.3), [8, 8]),
    "dropout2d": on(lambda: nn.Dropout2D(0.5), [4, 6, 2, 2]),
    "dropout3d": on(lambda: nn.Dropout3D(0.5), [4, 6, 2, 2, 2]),
    "flatten": on(nn.Flatten, [2, 3, 4]),
    "prelu": on(lambda: nn.PReLU(3), [2, 3, 4]),
    **{name: on(kind, [3, 5]) for name, kind in PLAIN.items()},
    "gelu_tanh": on(lambda: nn.GELU(approximate=True), [3, 5]),
    "maxout": on(lambda: nn.Maxout(3), [2, 6, 2]),
    "glu": on(nn.GLU, [3, 6]),
    "simple_rnn": lambda: recurrent(lambda: nn.SimpleRNN(4, 5)),
    "lstm": lambda: recurrent(lambda: nn.LSTM(4, 5, num_layers=2, direction="bidirect", dropout=0.2)),
    "gru": lambda: recurrent(lambda: nn.GRU(4, 5, num_layers=2, time_major=True)),
    "attention": on(lambda: nn.MultiHeadAttention(8, 2), [2, 5, 8]),
    "encoder_layer": on(lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"), [2, 5, 8]),
    "decoder_layer": decoded,
    "transformer": transformed,
}


@pytest.fixture(scope="module")
def layers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    return values_from("layers", tmp_path_factory.mktemp("layers"))


def test_the_list_of_layers_is_the_same(layers: dict[str, np.ndarray]) -> None:
    assert {key.split("/")[0] for key in layers} == set(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer(layers: dict[str, np.ndarray], name: str) -> None:
    """Initial values, names, outputs and gradients."""
    wanted = {key[len(name) + 1 :]: value for key, value in layers.items() if key.startswith(f"{name}/")}
    with oar.utils.unique_name.guard():
        oar.seed(11)
        layer, x, results = LAYERS[name]()
    results = results if isinstance(results, list) else [results]
    found: dict[str, Any] = {f"out{i}": out for i, out in enumerate(results)}
    found |= {f"state/{key}": value.clone() for key, value in layer.state_dict().items()}
    sum(((out * out).sum() for out in results[1:]), (results[0] * results[0]).sum()).backward()
    for key, parameter in layer.named_parameters():
        if parameter.grad is not None:
            found[f"grad/{key}"] = parameter.grad.to_dense() if parameter.grad.is_selected_rows() else parameter.grad
        if not parameter.stop_gradient:
            found[f"name/{parameter.name}"] = oar.zeros([1])
    if not x.stop_gradient:
        found["grad_x"] = x.grad
    assert sorted(found) == sorted(wanted)
    for key, value in found.items():
        same(value.detach(), wanted[key], f"{name}: {key}")


# optimisers --------------------------------------------------------------------------------------

SGD, AdamW = oar.optimizer.SGD, oar.optimizer.AdamW
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: SGD(0.1, p, weight_decay=0.02),
    "sgd_l1": lambda p: SGD(0.1, p, weight_decay=oar.regularizer.L1Decay(0.02)),
    "momentum": lambda p: oar.optimizer.Momentum(0.05, parameters=p, weight_decay=0.01),
    "nesterov": lambda p: oar.optimizer.Momentum(0.05, parameters=p, use_nesterov=True),
    "adam": lambda p: oar.optimizer.Adam(0.01, parameters=p, weight_decay=0.02),
    "adamw": lambda p: AdamW(0.01, parameters=p, weight_decay=0.1),
    "adamw_some": lambda p: AdamW(0.01, parameters=p, weight_decay=0.1, apply_decay_param_fun=lambda name: ".w_" in name),
    "adamax": lambda p: oar.optimizer.Adamax(0.01, parameters=p, weight_decay=0.02),
    "adagrad": lambda p: oar.optimizer.Adagrad(0.1, parameters=p, initial_accumulator_value=0.1),
    "adadelta": lambda p: oar.optimizer.Adadelta(1.0, parameters=p),
    "rmsprop": lambda p: oar.optimizer.RMSProp(0.01, parameters=p, momentum=0.9, centered=True),
    "lamb": lambda p: oar.optimizer.Lamb(0.01, parameters=p),
    "clip_value": lambda p: SGD(0.1, p, grad_clip=nn.ClipGradByValue(0.05)),
    "clip_norm": lambda p: SGD(0.1, p, grad_clip=nn.ClipGradByNorm(0.1)),
    "clip_global": lambda p: AdamW(0.1, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(0.1)),
    "groups": lambda p: oar.optimizer.Adam(
        0.01, weight_decay=0.02, parameters=[{"params": p[:2], "learning_rate": 0.5, "weight_decay": 0.3}, {"params": p[2:]}]
    ),
    "float64": lambda p: AdamW(0.01, parameters=p, weight_decay=0.1),
    "masters": lambda p: AdamW(0.01, parameters=p, multi_precision=True),
}
DTYPES = {"float64": "float64", "masters": "bfloat16"}


class Net(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        return self.second(oar.tanh(self.first(x)))


@pytest.fixture(scope="module")
def optimizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, np.ndarray]:
    return values_from("optimizers", tmp_path_factory.mktemp("optimizers"))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_over_20_steps(optimizers: dict[str, np.ndarray], name: str) -> None:
    dtype, compared = DTYPES.get(name, "float32"), 0
    with oar.utils.unique_name.guard():
        oar.seed(5)
        net = Net()
        net.to(dtype=dtype)
        optimizer = OPTIMIZERS[name](net.parameters())
        for step in range(20):
            x = oar.randn([8, 4]).astype(dtype)
            made = net.second(net.first(x).detach()) if step % 5 == 3 else net(x)
            (made * made).mean().backward()
            optimizer.step()
            optimizer.clear_grad(set_to_zero=False)
            for key, value in net.state_dict().items():
                same(value, optimizers[f"{name}/{step}/{key}"], f"{name}, step {step}: {key}")
                compared += 1
        states = {key: value for key, value in optimizer.state_dict().items() if isinstance(value, oar.Tensor)}
    wanted = {key.removeprefix(f"{name}/state/"): value for key, value in optimizers.items() if key.startswith(f"{name}/state/")}
    assert sorted(states) == sorted(wanted)
    for key, value in states.items():
        same(value, wanted[key], f"{name}: {key}")
    assert compared == 80


# schedules ---------------------------------------------------------------------------------------

SCHEDULES: dict[str, Callable[[], Any]] = {
    "noam": lambda: lr.NoamDecay(64, 10, 0.5),
    "piecewise": lambda: lr.PiecewiseDecay([3, 8], [0.3, 0.2, 0.1]),
    "natural_exp": lambda: lr.NaturalExpDecay(0.5, 0.1),
    "inverse_time": lambda: lr.InverseTimeDecay(0.5, 0.1),
    "exponential": lambda: lr.ExponentialDecay(0.5, 0.9),
    "polynomial": lambda: lr.PolynomialDecay(0.5, 10, 0.01, 2.0),
    "polynomial_cycle": lambda: lr.PolynomialDecay(0.5, 7, 0.01, 1.5, True),
    "step": lambda: lr.StepDecay(0.5, 4, 0.3),
    "multi_step": lambda: lr.MultiStepDecay(0.5, [3, 9], 0.3),
    "lambda": lambda: lr.LambdaDecay(0.5, lambda epoch: 1.0 / (epoch + 1)),
    "multiplicative": lambda: lr.MultiplicativeDecay(0.5, lambda _: 0.95),
    "cosine": lambda: lr.CosineAnnealingDecay(0.5, 8, 0.02),
    "warm_restarts": lambda: lr.CosineAnnealingWarmRestarts(0.5, 3, 2, 0.01),
    "one_cycle": lambda: lr.OneCycleLR(0.5, 30),
    "one_cycle_linear": lambda: lr.OneCycleLR(0.5, 30, anneal_strategy="linear", three_phase=True),
    "cyclic": lambda: lr.CyclicLR(0.1, 0.5, 4, 6),
    "cyclic2": lambda: lr.CyclicLR(0.1, 0.5, 4, mode="triangular2"),
    "cyclic_exp": lambda: lr.CyclicLR(0.1, 0.5, 4, mode="exp_range", exp_gamma=0.97),
    "linear": lambda: lr.LinearLR(0.5, 10),
    "warmup": lambda: lr.LinearWarmup(lr.CosineAnnealingDecay(0.5, 8), 5, 0.0, 0.5),
    "warmup_number": lambda: lr.LinearWarmup(0.5, 5, 0.1, 0.5),
}


def test_schedules(tmp_path: Path) -> None:
    wanted = values_from("schedules", tmp_path)
    found: dict[str, list[float]] = {}
    for name, make in SCHEDULES.items():
        schedule = make()
        found[name] = [schedule()]
        for _ in range(25):
            schedule.step()
            found[name].append(schedule())
    plateau = lr.ReduceOnPlateau(0.5, factor=0.5, patience=2, cooldown=1)
    found["plateau"] = []
    for i in range(25):
        plateau.step(1.0 / (i + 1) if i < 5 else 0.3)
        found["plateau"].append(plateau())
    assert sorted(found) == sorted(wanted)
    for name, rates in found.items():
        same(np.array(rates), wanted[name], name)


# checkpoints -------------------------------------------------------------------------------------


class Dropping(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.second = nn.Linear(3, 8), nn.Dropout(0.2), nn.Linear(8, 1)

    def forward(self, x: oar.Tensor) -> oar.Tensor:
        return self.second(self.drop(nn.functional.relu(self.first(x))))


def train(folder: Path, steps: int) -> dict[str, np.ndarray]:
    """What ``train`` of the C++ program does."""
    with oar.utils.unique_name.guard():
        oar.seed(3)
        np.random.seed(3)
        net = Dropping()
        rate = lr.CosineAnnealingDecay(0.05, 30)
        optimizer = AdamW(rate, parameters=net.parameters())
        data = oar.io.TensorDataset([oar.randn([20, 3]), oar.randn([20, 1])])
        loader = oar.io.DataLoader(data, batch_size=4, shuffle=True)
        manager = CheckpointManager(folder, max_to_keep=100, model=net, optimizer=optimizer, loader=loader)
        found = manager.restore()
        step = found.step if found else 0
        assert found is None or found.extra == {"step": step}
        while step < steps:
            for x, y in loader:
                nn.functional.mse_loss(net(x), y).backward()
                optimizer.step()
                optimizer.clear_grad(set_to_zero=False)
                rate.step()
                step += 1
                if step % 2 == 0:
                    manager.save(step, extra={"step": step})
                if step == steps:
                    break
        return {key: value.numpy() for key, value in net.state_dict().items()}


def cpp_result(folder: Path, ending: str = "safetensors") -> dict[str, np.ndarray]:
    return {key: value.numpy() for key, value in oar.load(folder / f"final.{ending}").items()}


def expect_same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert sorted(found) == sorted(wanted)
    for key, value in found.items():
        same(value, wanted[key], key)


def test_each_language_resumes_what_the_other_saved(tmp_path: Path) -> None:
    wanted = train(tmp_path / "python", 13)
    run_peer("train", tmp_path / "whole", 13)
    expect_same(cpp_result(tmp_path / "whole"), wanted)
    expect_same(cpp_result(tmp_path / "whole", "pdparams"), wanted)

    train(tmp_path / "begun_here", 6)
    run_peer("train", tmp_path / "begun_here", 13)
    expect_same(cpp_result(tmp_path / "begun_here"), wanted)

    run_peer("train", tmp_path / "begun_there", 6)
    expect_same(train(tmp_path / "begun_there", 13), wanted)

    run_peer("train", tmp_path / "twice", 6)
    run_peer("train", tmp_path / "twice", 13)
    expect_same(cpp_result(tmp_path / "twice"), wanted)


def test_a_damaged_checkpoint_is_named_by_both(tmp_path: Path) -> None:
    run_peer("train", tmp_path / "run", 6)
    for damage in (lambda data: data[:-40], lambda data: data[:400] + bytes([data[400] ^ 1]) + data[401:]):
        shutil.copytree(tmp_path / "run", tmp_path / "copy")
        path = tmp_path / "copy/step_00000006/optimizer.pdopt"
        path.write_bytes(damage(path.read_bytes()))
        done = subprocess.run([str(PEER), "train", str(tmp_path / "copy"), "13"], capture_output=True, text=True, timeout=300)
        assert done.returncode == 1
        assert f"'{path}' is damaged" in done.stderr, done.stderr
        assert "[2, 4, 6]" in done.stderr
        with pytest.raises(oar.checkpoint.CheckpointError, match="optimizer.pdopt' is damaged"):
            train(tmp_path / "copy", 13)
        assert (tmp_path / "copy/step_00000004/optimizer.pdopt").read_bytes() == (tmp_path / "run/step_00000004/optimizer.pdopt").read_bytes()
        shutil.rmtree(tmp_path / "copy")
