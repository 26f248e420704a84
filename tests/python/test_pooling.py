"""Pooling: masks, ties, NaN, windows in the padding, unpooling, layers, texts of errors."""

import numpy as np
import pytest

import oar
from oar import nn

F = nn.functional


def test_the_first_of_equals_wins_and_nan_beats_everything():
    x = np.ones((1, 1, 4, 40), "float32")
    _, mask = F.max_pool2d(oar.to_tensor(x), [2, 40], return_mask=True)
    assert mask.numpy().ravel().tolist() == [0, 80]
    x[0, 0, 1, 17] = x[0, 0, 1, 3] = x[0, 0, 0, 30] = np.nan
    out, mask = F.max_pool2d(oar.to_tensor(x), [2, 40], return_mask=True)
    assert np.isnan(out.numpy()).ravel().tolist() == [True, False]
    assert mask.numpy().ravel().tolist() == [30, 80]
    long, place = F.max_pool1d(oar.to_tensor(x[:, :, 1]), 40, return_mask=True)
    assert np.isnan(long.item()) and place.item() == 3


@pytest.mark.parametrize("shape", [(2, 3, 33), (2, 3, 9, 33), (2, 3, 5, 6, 17)])
@pytest.mark.parametrize("size, stride, padding", [(2, 2, 0), (3, 2, 1), (3, 1, 1), (5, 3, 2)])
def test_both_layouts_agree(shape, size, stride, padding):
    dims = len(shape) - 2
    data_format = {1: "NLC", 2: "NHWC", 3: "NDHWC"}[dims]
    x = oar.to_tensor(np.random.RandomState(1).randint(-9, 9, shape).astype("float32"), stop_gradient=False)
    channels_last = oar.moveaxis(x, 1, -1)
    ops = oar._C.ops
    arguments = ([size] * dims, [stride] * dims, [padding] * 2 * dims)
    for one, other in (
        (ops.max_pool(x, *arguments), ops.max_pool(channels_last, *arguments, channels_last=True)),
        ([ops.avg_pool(x, *arguments)], [ops.avg_pool(channels_last, *arguments, channels_last=True)]),
    ):
        for a, b in zip(one, other):
            np.testing.assert_allclose(a.numpy(), np.moveaxis(b.numpy(), -1, 1), rtol=1e-6, atol=1e-6)
        back = [oar.grad((t[0] * t[0]).sum(), [x], retain_graph=True)[0].numpy() for t in (one, other)]
        np.testing.assert_allclose(*back, rtol=1e-5, atol=1e-5)
    named = {1: F.lp_pool1d, 2: F.lp_pool2d}.get(dims)
    if named:  # The largest by its other name.
        wanted = oar.moveaxis(ops.max_pool(x, *arguments)[0], 1, -1)
        got = named(channels_last, float("inf"), size, stride, padding, data_format=data_format)
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())


def test_a_window_in_the_padding_has_no_place():
    out, mask = F.max_pool1d(oar.ones([1, 1, 4]), 2, 2, [0, 2], return_mask=True)
    assert mask.numpy().ravel().tolist() == [0, 2, -1]
    assert out.numpy().ravel()[2] == np.finfo("float32").min


def test_a_window_that_lacks_less_than_a_step_is_cut():
    x = oar.to_tensor(np.arange(30, dtype="float32").reshape(1, 1, 5, 6), stop_gradient=False)
    assert F.max_pool2d(x, 7).tolist() == [[[[29.0]]]]
    assert F.max_pool2d(x, [6, 2], [2, 2], return_mask=True)[1].tolist() == [[[[25, 27, 29]]]]
    for exclusive in (True, False):  # the cut part is no padding: it never counts
        assert F.avg_pool2d(x, 7, exclusive=exclusive).item() == pytest.approx(14.5)
    assert F.avg_pool2d(x, 8, padding=[0, 1, 0, 1], exclusive=False).item() == pytest.approx(435 / 42)
    (slope,) = oar.grad(F.avg_pool2d(x, 7), [x])
    np.testing.assert_allclose(slope.numpy(), np.full((1, 1, 5, 6), 1 / 30), rtol=1e-6)
    with pytest.raises(ValueError, match="does not fit into 5"):
        F.max_pool2d(x, 7, 2)


def test_means_of_many_numbers_stay_exact():
    x = oar.full([1, 1, 1, 1 << 22], 0.1)
    for shape in ([1, 1, 1 << 22], [1, 1, 1 << 11, 1 << 11], [1, 1, 1 << 21, 2]):
        pool = F.adaptive_avg_pool1d if len(shape) == 3 else F.adaptive_avg_pool2d
        assert pool(x.reshape(shape), 1).item() == pytest.approx(0.1, rel=1e-6)


def test_divisor_override_scales_the_mean():
    x = oar.randn([1, 2, 6, 6], dtype="float64")
    mean = F.avg_pool2d(x, 2)
    np.testing.assert_allclose(F.avg_pool2d(x, 2, divisor_override=3).numpy(), mean.numpy() * 4 / 3, rtol=1e-12)


@pytest.mark.parametrize("dims, pool, unpool", [
    (1, F.max_pool1d, F.max_unpool1d), (2, F.max_pool2d, F.max_unpool2d), (3, F.max_pool3d, F.max_unpool3d),
])  # fmt: skip
def test_unpooling_puts_maxima_back(dims, pool, unpool):
    x = oar.randn([2, 3, *[6] * dims])
    out, mask = pool(x, 2, return_mask=True)
    back = unpool(out, mask, 2)
    kept = back.numpy() != 0
    np.testing.assert_array_equal(back.numpy()[kept], x.numpy()[kept])
    assert kept.sum() == out.numpy().size
    assert unpool(out, mask, 2, output_size=[7] * dims).shape == [2, 3, *[7] * dims]
    with pytest.raises(ValueError, match="padding must not be negative"):
        unpool(out, mask, 2, padding=-1)


@pytest.mark.parametrize("kernel_size", [None, 3])
def test_fractional_pooling_takes_places_from_u(kernel_size):
    x = oar.randn([2, 3, 17, 15])
    out, mask = F.fractional_max_pool2d(x, [5, 4], kernel_size, random_u=0.3, return_mask=True)
    flat = x.numpy().reshape(2, 3, -1)
    np.testing.assert_array_equal(np.take_along_axis(flat, mask.numpy().reshape(2, 3, -1), 2).reshape(out.shape), out)
    np.testing.assert_array_equal(F.fractional_max_pool2d(x, [5, 4], kernel_size, random_u=0.3).numpy(), out.numpy())
    oar.seed(5)
    drawn = [F.fractional_max_pool2d(x, 5, kernel_size).numpy() for _ in range(8)]
    assert any((a != drawn[0]).any() for a in drawn)
    oar.seed(5)
    np.testing.assert_array_equal(F.fractional_max_pool2d(x, 5, kernel_size).numpy(), drawn[0])
    assert F.fractional_max_pool3d(oar.ones([1, 1, 6, 7, 8]), [2, None, 4]).shape == [1, 1, 2, 7, 4]


def test_windows_in_the_padding_alone_of_a_negative_norm():
    x = np.array([[[[1.0, 2.0], [4.0, 8.0]]]], "float32")
    found = F.lp_pool2d(oar.to_tensor(x), -2, 1, padding=1).numpy()
    np.testing.assert_allclose(found, np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=np.inf), rtol=1e-6)


def test_a_window_of_zeros_has_a_gradient():
    x = oar.zeros([1, 1, 4, 4])
    x.stop_gradient = False
    (grad,) = oar.grad(F.lp_pool2d(x, 2, 2).sum(), [x])
    assert not grad.numpy().any()


def test_results_do_not_depend_on_threads():
    x = oar.randn([3, 70, 9, 13])
    x.stop_gradient = False

    def run(threads):
        before = oar.get_num_threads()
        oar.set_num_threads(threads)
        results = []
        for data_format in ("NCHW", "NHWC"):
            for y in (F.max_pool2d(x, 3, 2, 1, data_format=data_format), F.avg_pool2d(x, 3, 2, 1, data_format=data_format)):
                results += [y, *oar.grad((y * y).sum(), [x])]
        oar.set_num_threads(before)
        return [t.numpy() for t in results]

    for one, two in zip(run(1), run(2)):
        np.testing.assert_array_equal(one, two)


LAYERS = {
    "MaxPool1D": ((2,), [2, 4, 8], [2, 4, 4], "kernel_size=2, stride=None, padding=0"),
    "MaxPool3D": ((2,), [2, 4, 4, 4, 4], [2, 4, 2, 2, 2], "kernel_size=2, stride=None, padding=0"),
    "AvgPool1D": ((3, 2, 1), [2, 4, 8], [2, 4, 4], "kernel_size=3, stride=2, padding=1"),
    "AvgPool2D": ((2,), [2, 4, 6, 6], [2, 4, 3, 3], "kernel_size=2, stride=None, padding=0"),
    "AvgPool3D": ((2,), [2, 4, 4, 4, 4], [2, 4, 2, 2, 2], "kernel_size=2, stride=None, padding=0"),
    "LPPool1D": ((2, 2), [2, 4, 8], [2, 4, 4], "norm_type=2.0, kernel_size=2, stride=None, padding=0"),
    "LPPool2D": ((3, 2), [2, 4, 6, 6], [2, 4, 3, 3], "norm_type=3.0, kernel_size=2, stride=None, padding=0"),
    "AdaptiveAvgPool1D": ((3,), [2, 4, 8], [2, 4, 3], "output_size=3"),
    "AdaptiveAvgPool2D": (([3, None],), [2, 4, 8, 7], [2, 4, 3, 7], "output_size=[3, None]"),
    "AdaptiveAvgPool3D": ((2,), [2, 4, 8, 7, 5], [2, 4, 2, 2, 2], "output_size=2"),
    "AdaptiveMaxPool1D": ((3,), [2, 4, 8], [2, 4, 3], "output_size=3, return_mask=False"),
    "AdaptiveMaxPool2D": (([None, 3],), [2, 4, 8, 7], [2, 4, 8, 3], "output_size=[None, 3], return_mask=False"),
    "AdaptiveMaxPool3D": ((2,), [2, 4, 8, 7, 5], [2, 4, 2, 2, 2], "output_size=2, return_mask=False"),
    "FractionalMaxPool2D": ((3,), [2, 4, 8, 7], [2, 4, 3, 3], "output_size=3, return_mask=False"),
    "FractionalMaxPool3D": ((3,), [2, 4, 8, 7, 5], [2, 4, 3, 3, 3], "output_size=3, return_mask=False"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    arguments, shape, wanted, text = LAYERS[name]
    layer = getattr(nn, name)(*arguments)
    assert layer(oar.rand(shape)).shape == wanted
    assert layer.extra_repr() == text


@pytest.mark.parametrize("dims, shape", [(1, [1, 2, 8]), (2, [1, 2, 8, 6]), (3, [1, 2, 4, 4, 6])])
def test_layers_with_masks(dims, shape):
    x = oar.randn(shape)
    out, mask = getattr(nn, f"MaxPool{dims}D")(2, return_mask=True)(x)
    assert getattr(nn, f"MaxUnPool{dims}D")(2)(out, mask).shape == shape
    out, mask = getattr(nn, f"AdaptiveMaxPool{dims}D")(2, return_mask=True)(x)
    assert mask.dtype == oar.int32 and mask.shape == out.shape


x4 = oar.ones([1, 4, 5, 5])
MISTAKES = {
    "rank": (lambda: F.max_pool2d(oar.ones([4, 5, 5]), 2), r"\[max_pool2d\] x must have 4 axes.*\[4, 5, 5\]"),
    "rank with a mask": (lambda: F.max_pool1d(x4, 2, return_mask=True), r"x must have 3 axes.*\[1, 4, 5, 5\]"),
    "window": (lambda: F.avg_pool2d(x4, 6, 1), r"window of height 6.*does not fit into 5"),
    "no window": (lambda: F.avg_pool2d(x4, 0), r"kernel_size must be at least 1, but is \[0, 0\]"),
    "stride": (lambda: F.max_pool2d(x4, 2, 0), r"stride must be at least 1, but is \[0, 0\]"),
    "padding": (lambda: F.max_pool2d(x4, 2, 2, -1), r"padding must not be negative"),
    "numbers": (lambda: F.max_pool2d(x4, [2, 2, 2]), r"kernel_size"),
    "valid": (lambda: F.max_pool2d(x4, 2, padding="VALID", ceil_mode=True), "ceil_mode"),
    "format": (lambda: F.avg_pool3d(oar.ones([1, 1, 3, 3, 3]), 2, data_format="NHWC"), "'NCDHW' or 'NDHWC', not 'NHWC'"),
    "divisor": (lambda: F.avg_pool2d(x4, 2, divisor_override=0), "divisor_override must not be 0"),
    "output": (lambda: F.adaptive_avg_pool2d(x4, [2, -3]), r"output_size \[2, -3\] must not be negative"),
    "norm": (lambda: F.lp_pool2d(x4, 0, 2), "norm_type must not be 0"),
    "u": (lambda: F.fractional_max_pool2d(x4, 2, random_u=1.5), "random_u must be between 0 and 1, not 1.5"),
    "too many windows": (lambda: F.fractional_max_pool2d(x4, 6), r"output_size \[6, 6\] is too large"),
    "mask": (lambda: F.max_unpool2d(x4, oar.ones([1, 4, 5, 4], "int32"), 2), r"indices \(int32\[1, 4, 5, 4\]\)"),
    "unpooled": (lambda: F.max_unpool2d(x4, oar.ones([1, 4, 5, 5], "int32"), 2, output_size=[15, 10]), "between 9 and 11"),
}  # fmt: skip


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_named(what):
    call, text = MISTAKES[what]
    with pytest.raises(ValueError, match=f"(?s){text}"):
        call()


def test_a_mask_that_names_no_pixel_is_an_error():
    with pytest.raises(IndexError, match="40"):
        F.max_unpool2d(oar.ones([1, 1, 2, 2]), oar.full([1, 1, 2, 2], 40, "int32"), 2)


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_the_mean_of_a_window_without_a_pixel_is_zero(data_format):
    x = oar.to_tensor(np.ones((1, 2, 5, 5), "float32"), stop_gradient=False)
    image = x if data_format == "NCHW" else oar.transpose(x, [0, 2, 3, 1])
    out = F.avg_pool2d(image, 3, 2, 4, exclusive=True, data_format=data_format)
    row = np.array([0, 1, 1, 1, 1, 0])  # the first window is left of the image, the last one right of it
    wanted = np.broadcast_to(np.outer(row, row), (1, 2, 6, 6))
    np.testing.assert_array_equal(out.numpy() if data_format == "NCHW" else np.moveaxis(out.numpy(), -1, 1), wanted)
    out.sum().backward()
    assert np.isfinite(x.grad.numpy()).all() and x.grad.numpy().sum() == pytest.approx(wanted.sum())


def test_images_without_channels_need_no_pixels():
    assert F.adaptive_avg_pool3d(oar.zeros([1, 0, 4, 0, 4]), 1).shape == [1, 0, 1, 1, 1]
    assert F.adaptive_max_pool2d(oar.zeros([0, 3, 0, 4]), 2).shape == [0, 3, 2, 2]
    with pytest.raises(ValueError, match="has no pixels to fill"):
        F.adaptive_avg_pool2d(oar.zeros([1, 1, 0, 4]), 1)
