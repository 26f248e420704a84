"""Calls as PyTorch's users write them: names of arguments, sizes one by one, ``out``, layers and methods.

``data/torch_style.txt`` holds calls that PaddlePaddle 3.3 accepts, with its results. The functions of ``nn.init`` return the tensor
here, as in PyTorch; in Paddle they return None.
"""

import inspect
import json
import pathlib
import pickle

import numpy as np
import oar
import pytest
from oar import nn
from oar.nn import functional as F

ROWS = [line.rstrip("\n").split("\t")
        for line in (pathlib.Path(__file__).parent / "data/torch_style.txt").read_text().splitlines()[1:]]


def _names():
    return {
        "P": oar, "nn": nn, "F": F, "np": np,
        "x": oar.to_tensor([[0.5, -1.5, 2.0], [3.0, 0.25, -1.0]]), "y": oar.to_tensor([[1.0, 2.0, -3.0], [0.5, 0.5, 4.0]]),
        "v": oar.to_tensor([1.0, 2.0, 3.0]), "b": oar.to_tensor([[True, False, True], [False, False, True]]),
        "i": oar.to_tensor([[0, 2, 1], [1, 1, 0]]), "k": oar.to_tensor([[1, 2, 3], [3, 1, 0]]),
        "c": oar.to_tensor([[1.0, 2.0, 3.0], [0.5, 1.0, 2.0]]),
        "im": oar.arange(16, dtype="float32").reshape([1, 1, 4, 4]), "q4": oar.ones([1, 2, 2, 4]),
    }  # fmt: skip


def _plain(value):
    if isinstance(value, oar.Tensor):
        numbers = np.asarray(value.numpy(), dtype="float64").tolist()
        return ["tensor", value.dtype.name, list(value.shape), numbers, value.stop_gradient]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, oar.Size):
        return list(value)
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value if isinstance(value, (int, float, str, type(None))) else type(value).__name__


def _assert_same(found, wanted):
    if isinstance(wanted, list):
        assert isinstance(found, list)
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            _assert_same(f, w)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-5, abs=2e-5, nan_ok=True)
    else:
        assert found == wanted


@pytest.mark.parametrize("call, wanted", ROWS, ids=[row[0] for row in ROWS])
def test_it_returns_what_paddle_returns(call, wanted):
    _assert_same(_plain(eval(call, _names())), json.loads(wanted))


def test_there_are_many():
    assert len(ROWS) > 800


def test_out_is_written_and_returned():
    x, out = oar.to_tensor([1.0, 4.0]), oar.zeros([2])
    view = out[1:]
    assert oar.sqrt(x, out=out) is out
    assert out.tolist() == [1.0, 2.0]
    assert view.tolist() == [2.0]  # the same memory


def test_out_takes_the_shape_and_dtype_of_the_result():
    out = oar.zeros([5], dtype="int64")
    oar.add(oar.ones([2]), 1.0, out=out)
    assert out.tolist() == [2.0, 2.0]
    assert out.dtype == oar.float32


def test_gradients_pass_out():
    x, out = oar.to_tensor([1.0, 2.0], stop_gradient=False), oar.zeros([2])
    oar.multiply(x, x, out=out)
    out.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_out_of_a_creation_has_its_dtype():
    with pytest.raises(TypeError, match=r"\[zeros\] out is float64, but the result is float32"):
        oar.zeros([2], out=oar.ones([2], dtype="float64"))


def test_two_names_of_one_argument():
    x = oar.ones([2, 2])
    for function in (oar.sum, oar.median):
        with pytest.raises(TypeError, match="'dim' is another name of 'axis'"):
            function(x, axis=0, dim=1)


@pytest.mark.parametrize("name", ["max", "min", "sort"])
def test_functions_that_mean_something_else_in_pytorch(name):
    with pytest.raises(TypeError, match=rf"oar\.compat\.{name}"):
        getattr(oar, name)(oar.ones([2]), dim=0)


@pytest.mark.parametrize("function", [oar.exp, oar.median, oar.clip, nn.functional.conv2d, oar.Tensor.median])
def test_signatures_show_paddles_names(function):
    names = list(inspect.signature(function).parameters)
    assert names[0] == "x"
    assert "input" not in names


def test_spelled_functions_are_functions():
    assert oar.median.__name__ == "median"
    assert oar.median.__doc__.startswith("The median") or "middle" in oar.median.__doc__
    assert pickle.loads(pickle.dumps(oar.median)) is oar.median
    assert oar.Tensor.median is oar.median
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        oar.median(oar.ones([2]), foo=1)


def test_a_tensors_size_is_a_number_that_can_be_called():
    x = oar.zeros([2, 3])
    assert x.size == 6
    assert x.size + 1 == 7
    assert type(pickle.loads(pickle.dumps(x.size))) is int
    with pytest.raises(IndexError):
        x.size(2)


def test_captured_functions_take_the_same_forms():
    @oar.jit.to_static
    def step(x):
        rows = x.size(0)
        return oar.median(x.reshape(rows, -1), dim=1)[0].sum(dim=0) + oar.cat([x, x], dim=0).mean(dim=0).clamp(min=0.0)

    x = oar.to_tensor([[1.0, -2.0], [3.0, 4.0]])
    assert step(x).tolist() == [1.0 + 2.0, 1.0 + 1.0]


def test_spellings_of_methods_of_users_layers():
    class Twice(nn.Layer):
        def forward(self, x):
            return x * 2

    assert Twice()(input=oar.ones([1])).tolist() == [2.0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        Twice()(foo=oar.ones([1]))
