"""Deformable convolution: values against loops, derivatives at the edges, programs, the layer, texts of errors."""

import itertools
import math

import numpy as np
import pytest

import oar
from oar import nn, static
from oar.vision.ops import DeformConv2D, deform_conv2d


def pixel(image, y, x):
    inside = 0 <= y < image.shape[0] and 0 <= x < image.shape[1]
    return image[y, x] if inside else 0.0


def between(image, y, x):
    top, left = math.floor(y), math.floor(x)
    down, right = y - top, x - left
    upper = pixel(image, top, left) * (1 - right) + pixel(image, top, left + 1) * right
    lower = pixel(image, top + 1, left) * (1 - right) + pixel(image, top + 1, left + 1) * right
    return upper * (1 - down) + lower * down


def pair(value):
    return value if isinstance(value, (list, tuple)) else (value, value)


def by_loops(x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1, mask=None):
    (sy, sx), (py, px), (dy, dx) = pair(stride), pair(padding), pair(dilation)
    filters, depth, kh, kw = weight.shape
    out = np.zeros((x.shape[0], filters, *offset.shape[2:]))
    for n, f, row, column in itertools.product(*map(range, out.shape)):
        first = f // (filters // groups) * depth
        total = 0.0 if bias is None else bias[f]
        for c, i, j in itertools.product(range(depth), range(kh), range(kw)):
            part = (first + c) // (x.shape[1] // deformable_groups)
            tap = (part * kh + i) * kw + j
            down, right = offset[n, 2 * tap, row, column], offset[n, 2 * tap + 1, row, column]
            y, z = row * sy - py + i * dy + down, column * sx - px + j * dx + right
            scale = 1.0 if mask is None else mask[n, tap, row, column]
            total += weight[f, c, i, j] * scale * between(x[n, first + c], y, z)
        out[n, f, row, column] = total
    return out


CASES = {
    "plain": ((2, 2, 5, 4), (3, 2, 3, 2), {}),
    "padding": ((1, 2, 4, 4), (2, 2, 3, 3), {"padding": [2, 1]}),
    "stride": ((1, 2, 6, 5), (2, 2, 2, 2), {"stride": (2, 3), "padding": 1}),
    "dilation": ((1, 2, 6, 6), (2, 2, 3, 2), {"dilation": [2, 3], "padding": 1}),
    "groups": ((1, 4, 4, 4), (6, 2, 2, 2), {"groups": 2}),
    "deformable groups": ((1, 4, 4, 4), (3, 4, 2, 2), {"deformable_groups": 4}),
    "both groups": ((2, 6, 4, 4), (6, 2, 2, 2), {"groups": 3, "deformable_groups": 2, "padding": 1}),
    "depthwise": ((1, 3, 4, 4), (3, 1, 3, 3), {"groups": 3, "deformable_groups": 3, "padding": 1, "stride": 2}),
    "one pixel": ((1, 2, 1, 1), (2, 2, 3, 3), {"padding": 1}),
    "no images": ((0, 2, 4, 4), (2, 2, 3, 3), {}),
}


def operands(case, with_mask=True, spread=1.5, seed=0):
    """x, offset, weight, bias and mask of a case, and its other arguments."""
    image, filters, rest = CASES[case]
    numbers = np.random.RandomState(seed)
    settings = zip(image[2:], filters[2:], *(pair(rest.get(k, d)) for k, d in
                                             (("stride", 1), ("padding", 0), ("dilation", 1))))
    sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in settings]
    taps = rest.get("deformable_groups", 1) * filters[2] * filters[3]
    offset = numbers.uniform(-spread, spread, (image[0], 2 * taps, *sizes))
    mask = numbers.uniform(0, 1, (image[0], taps, *sizes)) if with_mask else None
    arrays = {"x": numbers.randn(*image), "offset": offset, "weight": numbers.randn(*filters),
              "bias": numbers.randn(filters[0])}
    return arrays | ({"mask": mask} if with_mask else {}), rest


def tensors(arrays, trained=False):
    return {name: oar.to_tensor(a, stop_gradient=not trained) for name, a in arrays.items()}


@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_values(case, with_mask):
    arrays, rest = operands(case, with_mask)
    got = deform_conv2d(**tensors(arrays), **rest).numpy()
    np.testing.assert_allclose(got, by_loops(**arrays, **rest), rtol=1e-10, atol=1e-10)


def test_without_offsets_it_is_a_convolution():
    arrays, rest = operands("groups", with_mask=False, spread=0)
    given = tensors(arrays)
    offset = given.pop("offset")
    np.testing.assert_allclose(deform_conv2d(offset=offset, **given, **rest).numpy(),
                               nn.functional.conv2d(**given, **rest).numpy(), rtol=1e-12)


@pytest.mark.parametrize("case", ["padding", "stride", "dilation", "both groups"])
def test_gradients(case):
    arrays, rest = operands(case)
    given = tensors(arrays, trained=True)
    out = deform_conv2d(**given, **rest)
    direction = np.random.RandomState(1).randn(*out.shape)
    (out * oar.to_tensor(direction)).sum().backward()
    step = 1e-6
    for name, array in arrays.items():
        places = np.random.RandomState(2).choice(array.size, min(array.size, 12), replace=False)
        for place in places:
            ends = []
            for h in (step, -step):
                moved = array.copy()
                moved.flat[place] += h
                ends.append((by_loops(**arrays | {name: moved}, **rest) * direction).sum())
            wanted = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(given[name].grad.numpy().flat[place], wanted, rtol=1e-5, atol=1e-7, err_msg=name)


def test_the_second_derivative_by_a_coordinate_and_the_other():
    # Between four pixels the value is a bilinear form, whose mixed derivative is that of the corners.
    image = np.array([[1.0, 2.0], [4.0, 8.0]])
    offset = oar.to_tensor(np.full((1, 2, 1, 1), 0.3), stop_gradient=False)
    out = deform_conv2d(oar.to_tensor(image[None, None]), offset, oar.ones([1, 1, 1, 1], "float64"), stride=2)
    (slope,) = oar.grad(out, [offset], create_graph=True)
    (curve,) = oar.grad(slope[0, 0, 0, 0], [offset])
    np.testing.assert_allclose(curve.numpy().ravel(), [0, 1 - 2 - 4 + 8], atol=1e-12)


@pytest.mark.parametrize("row, slope", [(-2, 0), (-1, 0), (0, 1), (1, 2), (2, -4), (3, 0)])
def test_on_a_pixel_the_slope_is_that_of_the_side_ahead(row, slope):
    """And it is zero at a distance of one pixel and more from the image, where zero offsets with padding 1 are."""
    x = oar.to_tensor(np.array([1.0, 2.0, 4.0]).reshape(1, 1, 3, 1))
    offset = oar.to_tensor(np.array([row, 0.0]).reshape(1, 2, 1, 1), stop_gradient=False)
    out = deform_conv2d(x, offset, oar.ones([1, 1, 1, 1], "float64"), stride=3)
    assert out.item() == (x[0, 0, row, 0].item() if 0 <= row < 3 else 0)
    out.backward()
    assert offset.grad[0, 0].item() == slope


@pytest.mark.parametrize("far", [np.nan, np.inf, -np.inf, 1e30, -1e30])
def test_places_that_are_nowhere_read_zeros(far):
    x = oar.full([1, 1, 2, 2], np.inf, "float32")
    offset = oar.full([1, 2, 2, 2], far, "float32")
    offset.stop_gradient = False
    weight = oar.ones([1, 1, 1, 1])
    weight.stop_gradient = False
    out = deform_conv2d(x, offset, weight)
    assert out.tolist() == [[[[0, 0], [0, 0]]]]
    out.sum().backward()
    assert offset.grad.abs().sum().item() == 0 and weight.grad.item() == 0


@pytest.mark.parametrize("case", ["both groups", "stride", "no images"])
def test_captured(case):
    function = oar.jit.to_static(lambda **given: deform_conv2d(**given, **CASES[case][2]))
    for seed in range(2):
        arrays, rest = operands(case, seed=seed)
        eager, captured = tensors(arrays, trained=True), tensors(arrays, trained=True)
        wanted, got = deform_conv2d(**eager, **rest), function(**captured)
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12)
        (wanted * wanted).sum().backward()
        (got * got).sum().backward()
        for name in arrays:
            np.testing.assert_allclose(captured[name].grad.numpy(), eager[name].grad.numpy(), rtol=1e-10, atol=1e-10)


def test_a_captured_function_opens_its_sizes():
    spec = [static.InputSpec([None, *shape], "float64") for shape in ((2, None, None), (8, None, None))]
    weight = oar.randn([3, 2, 2, 2], "float64")
    function = oar.jit.to_static(lambda x, offset: deform_conv2d(x, offset, weight, padding=1), input_spec=spec)
    for n, h, w in [(1, 3, 4), (2, 5, 3)]:
        x, offset = oar.randn([n, 2, h, w], "float64"), oar.randn([n, 8, h + 1, w + 1], "float64")
        wanted = by_loops(x.numpy(), offset.numpy(), weight.numpy(), padding=1)
        np.testing.assert_allclose(function(x, offset).numpy(), wanted, rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="offset"):
        function(x, offset[:, :, 1:])


@pytest.fixture
def programs():
    oar.enable_static()
    main, startup = static.Program(), static.Program()
    with static.scope_guard(static.Scope()), oar.framework.unique_name.guard(), static.program_guard(main, startup):
        yield main, startup
    oar.disable_static()


@pytest.mark.parametrize("with_mask", [False, True])
def test_static(programs, with_mask):
    main, startup = programs
    arrays, rest = operands("both groups", with_mask)
    arrays.pop("bias")
    weight = arrays.pop("weight")
    given = {name: static.data(name, [-1, a.shape[1], -1, -1], "float64") for name, a in arrays.items()}
    given["offset"].stop_gradient = False
    out = static.nn.deform_conv2d(**{"mask": None} | given, num_filters=6, filter_size=2, im2col_step=2, **rest,
                                  weight_attr=nn.initializer.Assign(weight))
    assert [p.name for p in main.all_parameters()] == ["deformable_conv_0.w_0", "deformable_conv_0.b_0"]
    (slope,) = static.gradients([(out * out).sum()], [given["offset"]])
    executor = static.Executor()
    executor.run(startup)
    got, got_slope = executor.run(main, feed=arrays, fetch_list=[out, slope])
    np.testing.assert_allclose(got, by_loops(**arrays, weight=weight, **rest), rtol=1e-10, atol=1e-10)
    with oar.base.dygraph.guard():
        eager = tensors(arrays, trained=True)
        made = deform_conv2d(**eager, weight=oar.to_tensor(weight), **rest)
        (made * made).sum().backward()
        np.testing.assert_allclose(got_slope, eager["offset"].grad.numpy(), rtol=1e-10, atol=1e-10)


def test_open_sizes_are_checked_at_every_run(programs):
    x, offset = static.data("x", [-1, 1, -1, -1]), static.data("offset", [-1, 8, -1, -1])
    out = deform_conv2d(x, offset, oar.ones([1, 1, 2, 2]))
    feed = {"x": np.ones((1, 1, 4, 3), "float32"), "offset": np.zeros((1, 8, 3, 2), "float32")}
    (got,) = static.Executor().run(feed=feed, fetch_list=[out])
    assert got.tolist() == np.full((1, 1, 3, 2), 4).tolist()
    with pytest.raises(ValueError, match="offset_2"):
        static.Executor().run(feed=feed | {"offset": np.zeros((1, 8, 4, 2), "float32")}, fetch_list=[out])


def test_static_mistakes(programs):
    x, offset = static.data("x", [None, 3, 5, 5]), static.data("offset", [None, 18, 3, 3])
    with pytest.raises(ValueError, match="3 channels and 4 filters do not fall into 2 groups"):
        static.nn.deform_conv2d(x, offset, None, 4, 3, groups=2)
    oar.disable_static()
    with pytest.raises(RuntimeError, match="static.nn.deform_conv2d creates parameters"):
        static.nn.deform_conv2d(x, offset, None, 4, 3)


def test_inner_names(programs):
    arrays, rest = operands("stride")
    bias = arrays.pop("bias")
    wanted = by_loops(**arrays, **rest)
    with oar.base.dygraph.guard():
        x, offset, weight, mask = tensors(arrays).values()
        got = oar._C_ops.deformable_conv(x, offset, weight, mask, [2, 3], [1, 1], [1, 1], 1, 1, 1)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-10, atol=1e-10)
        with_bias = deform_conv2d(x, offset, weight, oar.to_tensor(bias), (2, 3), 1, mask=mask)
        np.testing.assert_allclose(with_bias.numpy(), wanted + bias[:, None, None], rtol=1e-10, atol=1e-10)
    del arrays["mask"]
    x, offset, weight = (static.data(name, a.shape, "float64") for name, a in arrays.items())
    block = programs[0].global_block()
    out = block.create_var(name="out", dtype="float64", shape=wanted.shape)
    block.append_op(type="deformable_conv_v1", inputs={"Input": x, "Offset": offset, "Filter": weight},
                    outputs={"Output": out}, attrs={"strides": [2, 3], "paddings": [1, 1], "im2col_step": 1})
    (got,) = static.Executor().run(programs[0], feed=arrays, fetch_list=[out])
    np.testing.assert_allclose(got, by_loops(**arrays, **rest), rtol=1e-10, atol=1e-10)


def test_layer():
    oar.seed(1)
    layer = DeformConv2D(4, 6, [3, 2], stride=2, padding=1, deformable_groups=2, groups=2)
    assert layer.weight.shape == [6, 2, 3, 2] and layer.bias.shape == [6]
    assert list(layer.state_dict()) == ["weight", "bias"]
    text = "4, 6, kernel_size=[3, 2], stride=[2, 2], padding=[1, 1], groups=2, data_format=NCHW, deformable_groups=2"
    assert layer.extra_repr() == text
    layer.bias.set_value(oar.randn([6]))
    x, offset, mask = oar.randn([2, 4, 5, 4]), oar.randn([2, 24, 3, 3]), oar.rand([2, 12, 3, 3])
    for chosen in (None, mask):
        wanted = by_loops(x.numpy(), offset.numpy(), layer.weight.numpy(), layer.bias.numpy(), 2, 1, 1, 2, 2,
                          None if chosen is None else chosen.numpy())
        np.testing.assert_allclose(layer(x, offset, chosen).numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert DeformConv2D(4, 6, 3, bias_attr=False).bias is None
    assert DeformConv2D(64, 64, 3).weight.numpy().std() == pytest.approx((2 / (9 * 64)) ** 0.5, rel=0.05)


x4, o4, w4 = oar.ones([1, 4, 5, 5]), oar.ones([1, 18, 3, 3]), oar.ones([4, 4, 3, 3])
MISTAKES = {
    "rank": (lambda: deform_conv2d(x4[0], o4, w4), r"\[deform_conv2d\] x and weight must have 4 axes.*x is NCHW"),
    "weight's rank": (lambda: deform_conv2d(x4, o4, w4[0]), r"must have 4 axes.*\[4, 3, 3\]"),
    "channels": (lambda: deform_conv2d(x4[:, :3], o4, w4), r"takes 4 input channels.*has 3.*Give weight 3 // groups"),
    "groups": (lambda: deform_conv2d(x4, o4, oar.ones([3, 2, 3, 3]), groups=2), r"3 output channels.*groups 2"),
    "no groups": (lambda: deform_conv2d(x4, o4, w4, groups=0), "groups must be at least 1, not 0"),
    "deformable groups": (lambda: deform_conv2d(x4, o4, w4, deformable_groups=3), "4 channels.*3 deformable groups"),
    "none": (lambda: deform_conv2d(x4, o4, w4, deformable_groups=0), "0 deformable groups"),
    "offset's channels": (lambda: deform_conv2d(x4, o4[:, :9], w4), r"must be \[1, 18, 3, 3\]. offset is \[batch, 2"),
    "offset's sizes": (lambda: deform_conv2d(x4, o4, w4, padding=1), r"offset has shape.*must be \[1, 18, 5, 5\]"),
    "offset's rank": (lambda: deform_conv2d(x4, o4[0], w4), r"offset has shape \[18, 3, 3\]"),
    "offset's batch": (lambda: deform_conv2d(x4.tile([2, 1, 1, 1]), o4, w4), r"must be \[2, 18, 3, 3\]"),
    "mask": (lambda: deform_conv2d(x4, o4, w4, mask=o4), r"mask has shape.*must be \[1, 9, 3, 3\]. mask is"),
    "bias": (lambda: deform_conv2d(x4, o4, w4, oar.ones([3])), r"bias of shape \[3\].*4 output channels"),
    "kernel": (lambda: deform_conv2d(x4, o4, oar.ones([4, 4, 7, 3])), "window of height 7.*does not fit into 5"),
    "padding": (lambda: deform_conv2d(x4, o4, w4, padding=-1), "padding must not be negative"),
    "padding's length": (lambda: deform_conv2d(x4, o4, w4, padding=[1, 1, 1]), "padding"),
    "stride": (lambda: deform_conv2d(x4, o4, w4, stride=0), "stride must be at least 1"),
    "dtype": (lambda: deform_conv2d(x4.astype("int32"), o4.astype("int32"), w4.astype("int32")), "float"),
    "layer's groups": (lambda: DeformConv2D(3, 4, 3, groups=2), r"in_channels \(3\)"),
    "layer's deformable groups": (lambda: DeformConv2D(4, 4, 3, deformable_groups=3), r"deformable_groups \(3\)"),
    "layer's padding": (lambda: DeformConv2D(4, 4, 3, padding="SAME"), "padding should be an integer or a list of 2"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_mistakes_are_named(what):
    call, text = MISTAKES[what]
    with pytest.raises(ValueError, match=f"(?s){text}"):
        call()
