"""Calls that Paddle 3.3 refuses, by the classes of error that it raises, and odd arguments that it accepts."""

import ast

import numpy as np
import pytest

import oar
from oar import nn, static
from oar.nn import functional as F
from oar.utils import gast


@pytest.fixture
def program():
    oar.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    oar.disable_static()


X = np.arange(12, dtype="float32").reshape([3, 4])

VALUES = [
    (RuntimeError, lambda: oar.searchsorted(oar.ones([2, 2, 3]), oar.ones([2, 5]))),
    (AssertionError, lambda: oar.moveaxis(oar.to_tensor(X), [0, 1], [1])),
    (AssertionError, lambda: oar.moveaxis(oar.to_tensor(X), [0.5], [1])),
    (AssertionError, lambda: oar.moveaxis(oar.to_tensor(X), [-10], [1])),
    (ValueError, lambda: F.dropout(oar.to_tensor(X), axis=[0, -1])),
    (ValueError, lambda: F.dropout(oar.to_tensor(X), axis=[0, 2])),
    (ValueError, lambda: nn.SpectralNorm([3, 4], dim=-1)),
    (ValueError, lambda: nn.SpectralNorm([3, 4, 5], dim=2)),
    (ValueError, lambda: nn.CosineEmbeddingLoss(margin=1.5)),
    (ValueError, lambda: nn.PoissonNLLLoss(epsilon=0.0)),
    (ValueError, lambda: nn.Conv2D(2, 2, 3, padding=-1)),
    (ValueError, lambda: nn.Conv3D(2, 2, 3, padding="same size")),
    (ValueError, lambda: nn.Conv2D(2, 2, 1.5)),
    (TypeError, lambda: nn.Conv2D(2, 2.0, 3)),
    (AssertionError, lambda: nn.Conv2DTranspose(2, 2, 3, groups=-1)),
    (TypeError, lambda: oar.normal(shape=3)),
    (TypeError, lambda: oar.log_normal([1.0, 2.0])),
    (TypeError, lambda: oar.tensor.fill_constant([2], "float64", 1.0, out=oar.zeros([2]))),
]


@pytest.mark.parametrize("error, call", VALUES)
def test_refused_calls(error, call):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("layer", [nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle])
def test_shuffling_layers_check_their_arguments(layer):
    with pytest.raises(TypeError, match="integer"):
        layer(1.5)
    with pytest.raises(ValueError, match="positive"):
        layer(0)
    with pytest.raises(ValueError, match="data_format"):
        layer(2, "HWCN")
    assert layer(2, "NHWC")(oar.ones([1, 4, 4, 4])).size == 64


@pytest.mark.parametrize("call", [
    lambda x: oar.cumsum(x, axis=2), lambda x: oar.index_select(x, oar.to_tensor([0]), axis=-3),
    lambda x: oar.concat([x, x], axis=2), lambda x: F.softmax(x, axis=5), lambda x: x.unbind(9),
])
def test_an_axis_that_is_not_there_is_an_index_and_a_value_error(call):
    with pytest.raises(oar.ArgumentIndexError, match="rank 2") as raised:
        call(oar.to_tensor(X))
    assert isinstance(raised.value, IndexError) and isinstance(raised.value, ValueError)


def test_none_is_false():
    x = oar.to_tensor(X)
    assert oar.mean(x, axis=0, keepdim=None).shape == [4]
    assert oar.matmul(x, x, None, True).shape == [3, 3]
    with pytest.raises(TypeError, match="bool"):
        oar.mean(x, keepdim="yes")


def test_programs_check_dtypes_of_composites(program):
    with pytest.raises(TypeError, match="sgn takes float complex"):
        oar.sgn(static.data("x", [3], "int32"))


def test_programs_check_what_parts_of_a_call_check(program):
    x = static.data("x", [3, 4])
    with pytest.raises(TypeError, match="integer type"):
        oar.put_along_axis(x, static.data("places", [1, 4]), oar.ones([1, 4]), 0)
    with pytest.raises(ValueError, match="they must be equal"):
        oar.put_along_axis(x, oar.zeros([2, 4], "int64"), oar.ones([1, 4]), 0, "assign", True, False)


def test_sizes_of_a_program_are_integers(program):
    for call in (oar.rand, oar.zeros, lambda shape: oar.normal(shape=shape), lambda shape: oar.uniform(shape)):
        with pytest.raises(TypeError, match="integers are expected"):
            call(static.data("shape", [2], "float32"))


def test_places_beyond_int32(program):
    rows = static.data("rows", [2, 2**32], "float32")
    with pytest.raises(RuntimeError, match="int32 cannot hold"):
        oar.searchsorted(rows, static.data("values", [2, 3]), out_int32=True)
    assert oar.searchsorted(rows, static.data("values", [2, 3])).shape == [2, 3]


def test_a_negative_mean_draws_zero_and_has_no_slope():
    x = oar.to_tensor([-2.0, 0.0, 50.0], stop_gradient=False)
    drawn = oar.poisson(x)
    assert drawn.tolist()[:2] == [0.0, 0.0] and drawn.tolist()[2] > 0
    drawn.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="NaN"):
        oar.poisson(oar.to_tensor([float("nan")]))


def test_values_beyond_the_indices_are_not_written():
    x, places = oar.zeros([3, 4]), oar.to_tensor([[2, 0]])
    written = oar.put_along_axis(x, places, oar.to_tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), 0, "assign", True, False)
    assert written.tolist() == [[0, 2, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]


def test_an_array_of_tensors_is_copied(program):
    array = oar.tensor.array_write(oar.ones([2]), oar.zeros([1], "int64"))
    copied = oar.assign(array)
    assert copied is not array and type(copied) is type(array) and copied[0] is not array[0]


def test_results_are_named_after_their_layer(program):
    loss = nn.NLLLoss(name="negative")(static.data("x", [4, 3]), static.data("label", [4], "int64"))
    assert loss.name.startswith("negative")


def test_older_initialisers():
    first = nn.initializer.UniformInitializer(-0.5, 0.5, seed=7, diag_num=4, diag_step=4, diag_val=9.0)
    weights = [nn.Linear(4, 4, weight_attr=first).weight for _ in range(2)]
    assert weights[0].tolist() == weights[1].tolist()
    assert weights[0].diagonal().tolist() == [9.0] * 4 and float(weights[0].tril(-1).abs().max()) <= 0.5
    drawn = [nn.Linear(400, 100, weight_attr=kind).weight.numpy() for kind in (
        nn.initializer.XavierInitializer(seed=3), nn.initializer.XavierInitializer(uniform=False, seed=3),
        nn.initializer.MSRAInitializer(seed=3), nn.initializer.NormalInitializer(0.0, 0.07, seed=3))]
    deviations = [0.0632, 0.0632, 0.0707, 0.07]
    assert np.allclose([array.std() for array in drawn], deviations, rtol=0.02)
    assert isinstance(nn.initializer.ConstantInitializer(2.0), nn.initializer.Constant)


def test_names_of_a_package_are_in_its_modules():
    from oar.nn.functional.loss import binary_cross_entropy
    from oar.nn.layer.norm import SpectralNorm

    assert binary_cross_entropy is F.binary_cross_entropy and SpectralNorm is nn.SpectralNorm
    with pytest.raises(AttributeError, match="no_such_loss"):
        _ = F.loss.no_such_loss


SOURCE = """
@wrapped
async def f(a: int, /, b, *c, d=1, **e) -> int:
    try:
        pass
    except KeyError as error:
        x = error
    with guard() as g:
        y[1:2, ...] = lambda q: q
"""


def test_trees_with_names():
    tree = gast.parse(SOURCE)
    names = {node.id for node in gast.walk(tree) if isinstance(node, gast.Name) and isinstance(node.ctx, gast.Param)}
    assert names == {"a", "b", "c", "d", "e", "q"}
    assert gast.unparse(tree) == ast.unparse(ast.parse(SOURCE))
    assert ast.dump(gast.gast_to_ast(tree)) == ast.dump(ast.parse(SOURCE))
    compile(gast.gast_to_ast(gast.parse("x = 1")), "<tree>", "exec")
    assert gast.literal_eval(gast.parse("[1, (2, 3)]", mode="eval").body) == [1, (2, 3)]
