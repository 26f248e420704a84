"""Padding, resizing and sampling images: the argument forms, and what their records cannot express."""

import numpy as np
import pytest

import oar
from oar import nn
from oar.nn import functional as F


def image(*shape, dtype="float64", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


NP_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", NP_MODES)
@pytest.mark.parametrize("rank, last", [(3, False), (3, True), (4, False), (4, True), (5, False), (5, True)])
def test_pad_goes_from_the_last_image_axis_forward(mode, rank, last):
    a = image(*range(3, 3 + rank))
    numbers = [1, 2, 0, 1, 2, 2][:2 * (rank - 2)]
    data_format = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}[rank][last]
    pairs = [tuple(numbers[i:i + 2]) for i in range(0, len(numbers), 2)][::-1]
    around = [(0, 0), *pairs, (0, 0)] if last else [(0, 0), (0, 0), *pairs]
    for pad in (numbers, tuple(numbers), oar.to_tensor(numbers)):
        found = F.pad(oar.to_tensor(a), pad, mode, data_format=data_format)
        np.testing.assert_array_equal(found.numpy(), np.pad(a, around, NP_MODES[mode]))


def test_pad_of_all_axes_and_of_some():
    a = image(2, 3)
    x = oar.to_tensor(a)
    full = F.pad(x, [1, 0, 0, 2], value=7.0)
    np.testing.assert_array_equal(full.numpy(), np.pad(a, [(1, 0), (0, 2)], constant_values=7))
    back = F.pad(x, [1, 0, 0, 2], pad_from_left_axis=False)
    np.testing.assert_array_equal(back.numpy(), np.pad(a, [(0, 2), (1, 0)]))
    np.testing.assert_array_equal(F.pad(x, [1, 2]).numpy(), np.pad(a, [(0, 0), (1, 2)]))
    np.testing.assert_array_equal(F.pad(oar.to_tensor(image(4)), [2, -1]).numpy(), np.pad(image(4)[:-1], (2, 0)))


def test_pad_errors():
    x = oar.zeros([1, 1, 3, 3])
    with pytest.raises(ValueError, match="cannot add 3 elements to axis 3 of size 3"):
        F.pad(x, [3, 0, 0, 0], "reflect")
    with pytest.raises(ValueError, match="mode is 'mirror'"):
        F.pad(x, [1, 1, 1, 1], "mirror")
    with pytest.raises(ValueError, match="needs 4 of them"):
        F.pad(x, [1, 1], "circular")
    with pytest.raises(ValueError, match="data_format is 'NCL'"):
        F.pad(x, [1, 1, 1, 1], "reflect", data_format="NCL")


@pytest.mark.parametrize("layer, shape, padding", [
    (nn.Pad1D, (2, 3, 4), [1, 2]), (nn.Pad2D, (2, 3, 4, 5), [1, 2, 0, 1]), (nn.Pad3D, (1, 2, 3, 4, 5), [1, 2, 0, 1, 2, 0]),
    (nn.ZeroPad1D, (2, 3, 4), 2), (nn.ZeroPad2D, (2, 3, 4, 5), 1), (nn.ZeroPad3D, (1, 2, 3, 4, 5), 1)])
def test_pad_layers(layer, shape, padding):
    a = image(*shape)
    numbers = [padding] * (2 * (len(shape) - 2)) if isinstance(padding, int) else padding
    pairs = [(0, 0), (0, 0), *[tuple(numbers[i:i + 2]) for i in range(0, len(numbers), 2)][::-1]]
    made = layer(padding)
    np.testing.assert_array_equal(made(oar.to_tensor(a)).numpy(), np.pad(a, pairs))
    assert f"padding={numbers}" in repr(made)


@pytest.mark.parametrize("mode", ["bilinear"])
@pytest.mark.parametrize("align_corners", [False, True])
def test_interpolate_is_exact_on_a_ramp(mode, align_corners):
    # Away from the edges a ramp is resampled to a ramp: the coordinate itself.
    rows, columns = np.meshgrid(np.arange(12.0), np.arange(10.0), indexing="ij")
    x = oar.to_tensor(np.stack([rows, columns])[None])
    size = [23, 17]
    out = F.interpolate(x, size, mode=mode, align_corners=align_corners).numpy()[0]
    at = [np.arange(m) * (n - 1) / (m - 1) if align_corners else (np.arange(m) + 0.5) * n / m - 0.5
          for n, m in zip((12, 10), size)]
    inner = (slice(4, -4), slice(4, -4))
    np.testing.assert_allclose(out[0][inner], np.broadcast_to(at[0][:, None], size)[inner], atol=1e-12)
    np.testing.assert_allclose(out[1][inner], np.broadcast_to(at[1], size)[inner], atol=1e-12)


def test_interpolate_takes_every_form_of_size_and_scale():
    x = oar.to_tensor(image(2, 3, 4, 6))
    wanted = F.interpolate(x, [8, 9], mode="bilinear").numpy()
    forms = [oar.to_tensor([8, 9]), (8, 9), [oar.to_tensor(8), 9]]
    for size in forms:
        np.testing.assert_array_equal(F.interpolate(x, size, mode="bilinear").numpy(), wanted)
    for scale in (2, 2.0, [2, 2], oar.to_tensor(2.0), oar.to_tensor([2.0, 2.0])):
        assert F.interpolate(x, scale_factor=scale, mode="bicubic").shape == [2, 3, 8, 12]
    last = F.interpolate(oar.transpose(x, [0, 2, 3, 1]), [8, 9], mode="bilinear", data_format="NHWC")
    np.testing.assert_allclose(last.numpy().transpose(0, 3, 1, 2), wanted, atol=1e-12)
    np.testing.assert_array_equal(F.upsample(x, [8, 9], mode="bilinear").numpy(), wanted)


def test_nearest_keeps_integers():
    a = np.arange(6, dtype="int64").reshape(1, 1, 2, 3) + 2**60
    out = F.interpolate(oar.to_tensor(a), scale_factor=2)
    np.testing.assert_array_equal(out.numpy(), a.repeat(2, 2).repeat(2, 3))
    assert out.dtype == oar.int64


def test_a_neighbour_without_weight_does_not_matter():
    a = np.array([[[1.0, np.inf, 3.0]]])
    out = F.interpolate(oar.to_tensor(a), [3], mode="linear", align_corners=True)
    np.testing.assert_array_equal(out.numpy(), a)


def test_interpolate_errors():
    x = oar.zeros([1, 1, 3, 3])
    with pytest.raises(ValueError, match="one of size and scale_factor"):
        F.interpolate(x)
    with pytest.raises(ValueError, match="mode 'trilinear' takes tensors of rank 5"):
        F.interpolate(x, [2, 2], mode="trilinear")
    with pytest.raises(ValueError, match="size \\[2\\] must be 2 numbers"):
        F.interpolate(x, [2])
    with pytest.raises(ValueError, match="must be positive"):
        F.interpolate(x, [0, 2])
    with pytest.raises(ValueError, match="align_mode must be 0 or 1"):
        F.interpolate(x, [2, 2], mode="bilinear", align_mode=2)


@pytest.mark.parametrize("layer, mode, align", [
    (nn.UpsamplingNearest2D, "nearest", False), (nn.UpsamplingBilinear2D, "bilinear", True)])
def test_upsampling_layers(layer, mode, align):
    x = oar.to_tensor(image(1, 2, 3, 4))
    np.testing.assert_array_equal(layer(scale_factor=2)(x).numpy(),
                                  F.interpolate(x, scale_factor=2, mode=mode, align_corners=align).numpy())
    np.testing.assert_array_equal(nn.Upsample([6, 8], mode=mode, align_corners=align)(x).numpy(),
                                  F.interpolate(x, [6, 8], mode=mode, align_corners=align).numpy())


def test_grid_sample_of_the_identity_is_the_image():
    x = oar.to_tensor(image(2, 3, 4, 5))
    for align in (True, False):
        theta = oar.to_tensor(np.tile(np.eye(2, 3), (2, 1, 1)))
        grid = F.affine_grid(theta, [2, 3, 4, 5], align_corners=align)
        np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=align).numpy(), x.numpy(), atol=1e-12)


def test_grid_sample_beyond_the_image():
    x = oar.to_tensor(np.full((1, 1, 2, 2), np.inf))
    far = oar.to_tensor(np.array([[[[1e30, 0.0], [-9.0, 9.0]]]]))
    np.testing.assert_array_equal(F.grid_sample(x, far).numpy(), np.zeros((1, 1, 1, 2)))
    assert np.isinf(F.grid_sample(x, far[:, :, 1:], padding_mode="border").numpy()).all()


def test_grid_sample_errors():
    with pytest.raises(ValueError, match="mode is 'cubic'"):
        F.grid_sample(oar.zeros([1, 1, 2, 2]), oar.zeros([1, 2, 2, 2]), mode="cubic")
    with pytest.raises(ValueError, match="grid \\[1, 2, 2, 3\\]"):
        F.grid_sample(oar.zeros([1, 1, 2, 2]), oar.zeros([1, 2, 2, 3]))


def test_fold_counts_how_often_unfold_read():
    ones = oar.ones([1, 2, 5, 6])
    columns = F.unfold(ones, [3, 2], strides=[2, 1], paddings=[1, 0, 0, 1], dilations=1)
    back = F.fold(columns, [5, 6], [3, 2], strides=[2, 1], paddings=[1, 0, 0, 1])
    np.testing.assert_array_equal(back.numpy()[0, 0, 0], [1, 2, 2, 2, 2, 2])
    layer, reverse = nn.Unfold(2, strides=2), nn.Fold([4, 6], 2, strides=2)
    x = oar.to_tensor(image(2, 3, 4, 6))
    np.testing.assert_array_equal(reverse(layer(x)).numpy(), x.numpy())
    with pytest.raises(ValueError, match="has 4 windows"):
        F.fold(oar.zeros([1, 4, 5]), 4, 2, 2)


def test_shuffles_undo_each_other():
    x = oar.to_tensor(image(2, 8, 4, 6))
    for data_format in ("NCHW", "NHWC"):
        y = x if data_format == "NCHW" else oar.transpose(x, [0, 2, 3, 1])
        larger = nn.PixelShuffle(2, data_format)(y)
        np.testing.assert_array_equal(nn.PixelUnshuffle(2, data_format)(larger).numpy(), y.numpy())
        mixed = nn.ChannelShuffle(2, data_format)(y)
        np.testing.assert_array_equal(nn.ChannelShuffle(4, data_format)(mixed).numpy(), y.numpy())
    with pytest.raises(ValueError, match="the number of channels is 8"):
        F.pixel_shuffle(x, 3)


def test_local_response_norm_layer():
    a = image(2, 5, 3, 3)
    out = nn.LocalResponseNorm(3, 0.5, 0.75, 2.0)(oar.to_tensor(a)).numpy()
    squares = np.pad(a**2, [(0, 0), (1, 1), (0, 0), (0, 0)])
    mean = sum(squares[:, i:i + 5] for i in range(3)) / 3
    np.testing.assert_allclose(out, a / (2 + 0.5 * mean)**0.75, rtol=1e-12)


def test_upsampling_layers_show_what_they_were_given():
    rest = "mode=nearest, align_corners=False, align_mode=0, data_format=None"
    assert repr(nn.Upsample(size=[4, 6])) == f"Upsample(size=[4, 6], {rest})"
    assert repr(nn.Upsample(scale_factor=2, name="up")) == f"Upsample(scale_factor=2, {rest}, name=up)"
    assert repr(nn.UpsamplingBilinear2D(size=[4, 6])) == "UpsamplingBilinear2D(size=[4, 6], data_format=NCHW)"


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_places_that_are_no_numbers(padding):
    """Between pixels a NaN position reads NaN; it has no nearest pixel, which reads 0."""
    x = oar.to_tensor(np.arange(9, dtype="float32").reshape(1, 1, 3, 3) + 1, stop_gradient=False)
    places = np.array([[[[np.nan, 0], [0, np.nan], [0, 0]]]], "float32")
    grid = oar.to_tensor(places, stop_gradient=False)
    out = F.grid_sample(x, grid, padding_mode=padding)
    np.testing.assert_array_equal(out.numpy().ravel(), [np.nan, np.nan, 5])
    out[0, 0, 0, 2].backward()
    np.testing.assert_array_equal(x.grad.numpy().ravel(), np.arange(9) == 4)
    nearest = F.grid_sample(x, grid, mode="nearest", padding_mode=padding)
    np.testing.assert_array_equal(nearest.numpy().ravel(), [0, 0, 5])


@pytest.mark.parametrize("size", [3, 5, 9])
def test_the_nearest_pixel_of_a_place_between_two_is_the_even_one(size):
    x = np.arange(size, dtype="float32").reshape(1, 1, 1, size)
    at = np.arange(size - 1) + 0.5
    grid = np.stack([2 * at / (size - 1) - 1, np.zeros(size - 1)], -1).astype("float32")[None, None]
    out = F.grid_sample(oar.to_tensor(x), oar.to_tensor(grid), mode="nearest")
    np.testing.assert_array_equal(out.numpy().ravel(), np.round(at))
