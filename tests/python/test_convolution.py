"""Convolutions: what one record's reference cannot say. Layouts, adjoints, layers, texts of errors."""

import numpy as np
import pytest

import oar
from oar import nn

F = nn.functional
FORMATS = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
PLAIN = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv1d_transpose, 2: F.conv2d_transpose, 3: F.conv3d_transpose}


def randn(*shape):
    return oar.randn(list(shape), dtype="float64")


def last(x):
    return oar.moveaxis(x, 1, -1)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_the_transposed_convolution_is_the_adjoint(dims, groups):
    x, weight = randn(2, 4, *[7] * dims), randn(8, 4 // groups, *[3] * dims)
    settings = {"stride": 2, "padding": 1, "dilation": 1, "groups": groups}
    y = PLAIN[dims](x, weight, **settings)
    z = randn(*y.shape)
    back = TRANSPOSED[dims](z, weight, output_size=[7] * dims, **settings)
    assert back.shape == x.shape
    assert (y * z).sum().item() == pytest.approx((x * back).sum().item(), rel=1e-12)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("convolve", [PLAIN, TRANSPOSED])
def test_both_layouts_agree(dims, convolve):
    x, weight, bias = randn(2, 4, *[6] * dims), randn(4, 2, *[3] * dims), randn(4 if convolve is PLAIN else 4)
    settings = {"stride": 2, "padding": 1, "groups": 2}
    first = convolve[dims](x, weight, bias, **settings)
    second = convolve[dims](last(x), weight, bias, data_format=FORMATS[dims][1], **settings)
    np.testing.assert_allclose(last(first).numpy(), second.numpy(), rtol=1e-12, atol=1e-12)


def test_padding_has_many_forms():
    x, weight = randn(1, 2, 5, 6), randn(3, 2, 3, 2)
    wanted = F.conv2d(x, weight, padding=[1, 2, 0, 1]).numpy()
    for form in ([[1, 2], [0, 1]], [[0, 0], [0, 0], [1, 2], [0, 1]], ((1, 2), (0, 1))):
        np.testing.assert_array_equal(F.conv2d(x, weight, padding=form).numpy(), wanted)
    listed = F.conv2d(last(x), weight, padding=[[0, 0], [1, 2], [0, 1], [0, 0]], data_format="NHWC")
    np.testing.assert_allclose(listed.numpy(), np.moveaxis(wanted, 1, -1), rtol=1e-12)
    assert F.conv2d(x, weight, padding="same", stride=2).shape == [1, 3, 3, 3]
    assert F.conv2d(x, weight, padding="valid").shape == [1, 3, 3, 5]


def test_output_padding_may_exceed_the_stride_with_dilation():
    x, weight = randn(1, 2, 4), randn(2, 3, 3)
    plain = F.conv1d_transpose(x, weight, dilation=3, padding=1)
    more = F.conv1d_transpose(x, weight, dilation=3, padding=1, output_padding=2)
    assert more.shape == [1, 3, plain.shape[2] + 2]
    whole = F.conv1d_transpose(x, weight, dilation=3)
    np.testing.assert_allclose(more.numpy()[..., :-1], whole.numpy()[..., 1:], rtol=1e-12)
    assert not more.numpy()[..., -1].any()


def test_results_do_not_depend_on_threads():
    x, weight = oar.randn([3, 4, 9, 8, 7]), oar.randn([8, 2, 3, 3, 3])
    weight.stop_gradient = x.stop_gradient = False

    def run(threads):
        before = oar.get_num_threads()
        oar.set_num_threads(threads)
        y = F.conv3d(x, weight, padding=1, groups=2)
        results = [y, *oar.grad((y * y).sum(), [x, weight])]
        oar.set_num_threads(before)
        return [t.numpy() for t in results]

    for one, two in zip(run(1), run(2)):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("mode, numpy_mode", [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
@pytest.mark.parametrize("dims, layer", [(1, nn.Conv1D), (2, nn.Conv2D), (3, nn.Conv3D)])
@pytest.mark.parametrize("channels_last", [False, True])
def test_layers_pad_by_mode(dims, layer, mode, numpy_mode, channels_last):
    conv = layer(2, 3, 3, padding=2, padding_mode=mode, data_format=FORMATS[dims][channels_last])
    x = np.random.RandomState(0).randn(1, 2, *[5] * dims).astype("float32")
    padded = np.pad(x, ((0, 0), (0, 0), *[(2, 2)] * dims), mode=numpy_mode)
    wanted = PLAIN[dims](oar.to_tensor(padded), conv.weight, conv.bias).numpy()
    got = conv(oar.to_tensor(np.moveaxis(x, 1, -1) if channels_last else x)).numpy()
    np.testing.assert_allclose(np.moveaxis(got, -1, 1) if channels_last else got, wanted, rtol=1e-4, atol=1e-5)


def test_layers_have_paddles_weights():
    oar.seed(1)
    conv = nn.Conv3D(8, 16, (3, 2, 1), stride=2, groups=4, bias_attr=False)
    assert conv.weight.shape == [16, 2, 3, 2, 1] and conv.bias is None
    assert nn.Conv1D(64, 64, 9).weight.numpy().std() == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.05)
    back = nn.Conv2DTranspose(8, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
    assert back.weight.shape == [8, 3, 3, 3] and back.bias.shape == [6]
    assert back(oar.ones([1, 8, 4, 4])).shape == [1, 6, 8, 8]
    assert back(oar.ones([1, 8, 4, 4]), output_size=[7, 8]).shape == [1, 6, 7, 8]
    text = "8, 6, kernel_size=[3, 3], stride=[2, 2], padding=1, output_padding=1, groups=2, data_format=NCHW"
    assert back.extra_repr() == text


x4, w4 = oar.ones([1, 4, 5, 5]), oar.ones([4, 4, 3, 3])
MISTAKES = {
    "rank": (lambda: F.conv2d(oar.ones([4, 5, 5]), w4), r"\[conv2d\] x and weight must have 4 axes.*\[4, 5, 5\]"),
    "channels": (lambda: F.conv2d(oar.ones([1, 3, 5, 5]), w4), r"takes 4 input channels.*has 3"),
    "groups": (lambda: F.conv2d(x4, oar.ones([3, 2, 3, 3]), groups=2), r"3 output channels.*groups 2"),
    "no groups": (lambda: F.conv2d(x4, w4, groups=0), r"groups must be at least 1, not 0"),
    "kernel": (lambda: F.conv2d(x4, oar.ones([4, 4, 7, 3]), padding=0), r"window of height 7.*does not fit into 5"),
    "padding": (lambda: F.conv2d(x4, w4, padding=-1), r"padding must not be negative, but is \[-1"),
    "padding's length": (lambda: F.conv2d(x4, w4, padding=[1, 2, 3]), r"padding \[1, 2, 3\] has 3 numbers"),
    "padding's name": (lambda: F.conv2d(x4, w4, padding="FULL"), r"'FULL'"),
    "stride": (lambda: F.conv2d(x4, w4, stride=[1, 0]), r"stride must be at least 1, but is \[1, 0\]"),
    "format": (lambda: F.conv3d(oar.ones([1, 2, 3, 3, 3]), oar.ones([1, 2, 1, 1, 1]), data_format="NHWC"), "'NCDHW'"),
    "bias": (lambda: F.conv2d(x4, w4, oar.ones([3])), r"bias of shape \[3\].*4 output channels"),
    "transposed channels": (lambda: F.conv2d_transpose(x4, oar.ones([3, 4, 3, 3])), r"takes 3 input channels.*has 4"),
    "output_size": (lambda: F.conv2d_transpose(x4, w4, stride=2, output_size=[11, 13]), r"sizes from 11 to 12"),
    "output_padding": (lambda: F.conv2d_transpose(x4, w4, output_padding=1), r"output_padding \[1\]"),
    "both": (lambda: F.conv2d_transpose(x4, w4, output_padding=1, output_size=[8, 8]), "exclude each other"),
    "layer's groups": (lambda: nn.Conv2D(3, 4, 3, groups=2), r"in_channels \(3\)"),
    "layer's format": (lambda: nn.Conv1D(3, 4, 3, data_format="NCHW"), "'NCL'"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_named(what):
    call, text = MISTAKES[what]
    with pytest.raises(ValueError, match=f"(?s){text}"):
        call()
