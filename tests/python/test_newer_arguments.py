"""Arguments that PaddlePaddle 3.3.1 has beside those of its manual, and forms of calls that older programs use."""

import os

import numpy as np
import oar
import oar.nn.functional as F
import pytest
from oar import nn
from PIL import Image

numbers = np.random.default_rng(5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 4), (5, 9), (13, 2), (7, 8)])
def test_antialias_resizes_as_pillow_does(mode, size):
    picture = numbers.normal(size=(7, 8)).astype("float32")
    kernel = Image.Resampling.BILINEAR if mode == "bilinear" else Image.Resampling.BICUBIC
    wanted = np.asarray(Image.fromarray(picture).resize(size[::-1], kernel))
    made = F.interpolate(oar.to_tensor(picture)[None, None], size=size, mode=mode, antialias=True)
    np.testing.assert_allclose(made.numpy()[0, 0], wanted, rtol=1e-5, atol=1e-5)
    last = F.interpolate(oar.to_tensor(picture)[None, :, :, None], size=size, mode=mode, antialias=True, data_format="NHWC")
    np.testing.assert_allclose(last.numpy()[0, :, :, 0], wanted, rtol=1e-5, atol=1e-5)


def test_antialias_has_a_gradient():
    x = oar.to_tensor(numbers.normal(size=(1, 1, 6, 5)), stop_gradient=False)
    weights = oar.to_tensor(numbers.normal(size=(1, 1, 2, 3)))
    loss = (F.interpolate(x, size=(2, 3), mode="bicubic", antialias=True) * weights).sum()
    loss.backward()
    step = numbers.normal(size=(1, 1, 6, 5))
    moved = (F.interpolate(x.detach() + step, size=(2, 3), mode="bicubic", antialias=True) * weights).sum()
    np.testing.assert_allclose(float(moved) - float(loss), (x.grad.numpy() * step).sum(), rtol=1e-12)


def test_antialias_of_bytes_stays_within_them():
    x = oar.to_tensor((np.indices((1, 1, 9, 9)).sum(0) % 2 * 255).astype("uint8"))
    made = F.interpolate(x, size=(4, 4), mode="bicubic", antialias=True)
    assert made.dtype == oar.uint8 and made.shape == [1, 1, 4, 4]


@pytest.mark.parametrize("arguments, message", [
    ({"size": (2, 2), "mode": "nearest", "antialias": True}, "antialias has a meaning for bilinear and bicubic"),
    ({"size": (2, 2), "mode": "bilinear", "recompute_scale_factor": True}, "recompute_scale_factor needs scale_factor"),
])
def test_interpolate_says_what_does_not_fit(arguments, message):
    with pytest.raises(ValueError, match=message):
        F.interpolate(oar.ones([1, 1, 4, 4]), **arguments)


def test_labels_that_are_impossible():
    given = numbers.normal(size=(2, 2, 4))
    given[:, 0, 1] = -np.inf
    scores = oar.to_tensor(given, stop_gradient=False)
    labels = oar.to_tensor([[1], [1]], dtype="int32")
    steps, lengths = oar.to_tensor([2, 2]), oar.to_tensor([1, 1])
    plain = F.ctc_loss(scores.detach(), labels, steps, lengths, reduction="none")
    assert np.isinf(plain.numpy()[0])
    losses = F.ctc_loss(scores, labels, steps, lengths, reduction="none", zero_infinity=True)
    assert losses.tolist() == [0.0, float(plain[1])]
    losses.sum().backward()
    assert np.isfinite(scores.grad.numpy()).all() and not scores.grad.numpy()[:, 0].any() and scores.grad.numpy()[:, 1].any()
    assert float(nn.CTCLoss(zero_infinity=True)(scores, labels, steps, lengths)) == pytest.approx(float(plain[1]) / 2)


def test_searchsorted_takes_a_side_and_an_order():
    sequence, values = np.array([3.0, 1.0, 2.0, 2.0]), np.array([0.5, 2.0, 3.0, 9.0])
    order = np.argsort(sequence, kind="stable")
    for side in ("left", "right"):
        made = oar.searchsorted(oar.to_tensor(sequence), oar.to_tensor(values), side=side, sorter=oar.to_tensor(order))
        assert made.tolist() == np.searchsorted(sequence, values, side, order).tolist()
    with pytest.raises(ValueError, match="side is 'middle'"):
        oar.searchsorted(oar.to_tensor(sequence), oar.to_tensor(values), side="middle")
    with pytest.raises(ValueError, match="right is True"):
        oar.searchsorted(oar.to_tensor(sequence), oar.to_tensor(values), side="left", right=True)


def test_bernoulli_takes_one_probability_for_all():
    assert oar.bernoulli(oar.zeros([2, 3]), 1.0).tolist() == [[1.0] * 3] * 2
    assert oar.bernoulli(oar.ones([2]), p=0.0).tolist() == [0.0, 0.0]


def test_smooth_l1_in_both_forms():
    x, y = oar.to_tensor([0.0, 0.0]), oar.to_tensor([0.5, 9.0])
    huber = F.smooth_l1_loss(x, y, "none", 2.0, is_huber=True).numpy()
    np.testing.assert_allclose(huber, [0.125, 16.0])
    np.testing.assert_allclose(F.smooth_l1_loss(x, y, "none", 2.0, is_huber=False).numpy(), huber / 2)
    np.testing.assert_allclose(nn.SmoothL1Loss("none", 2.0, is_huber=False)(x, y).numpy(), huber / 2)


def test_a_table_that_is_given():
    table = oar.to_tensor(numbers.normal(size=(4, 2)))
    layer = nn.Embedding(4, 2, _weight=table, _freeze=True, dtype="float64", device="cpu")
    assert layer.weight.stop_gradient and layer.weight.dtype == oar.float64
    np.testing.assert_array_equal(layer(oar.to_tensor([3, 0])).numpy(), table.numpy()[[3, 0]])
    with pytest.raises(ValueError, match=r"_weight has the shape \[2, 2\]"):
        nn.Embedding(4, 2, _weight=oar.ones([2, 2]))
    with pytest.raises(NotImplementedError, match="scale_grad_by_freq"):
        nn.Embedding(4, 2, scale_grad_by_freq=True)


def test_one_hot_finds_the_number_of_classes():
    assert F.one_hot(oar.to_tensor([2, 0])).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert F.one_hot(oar.to_tensor([1]), -1).shape == [1, 2]
    with pytest.raises(ValueError, match="no elements to take num_classes from"):
        F.one_hot(oar.zeros([0], dtype="int64"))


def test_data_is_the_memory_without_the_history():
    weight = nn.Parameter(oar.ones([2]))
    weight.data[0] = 5.0
    weight.data.scale_(2.0)
    assert weight.tolist() == [10.0, 2.0] and not weight.stop_gradient and weight.is_leaf
    assert (weight * 3).data.stop_gradient
    weight.data = oar.zeros([2])
    assert weight.tolist() == [0.0, 0.0] and not weight.stop_gradient


def test_to_copies_on_request():
    x = oar.ones([2])
    assert x.to("cpu", non_blocking=True) is x
    other = x.to("float32", copy=True)
    other[0] = 7.0
    assert x.tolist() == [1.0, 1.0]


def test_views_in_place_have_signatures_and_pytorchs_forms():
    import inspect

    assert str(inspect.signature(oar.reshape_)).startswith("(x: 'Tensor', shape")
    x = oar.arange(6)
    assert x.reshape_(2, -1).shape == [2, 3]
    assert x.transpose_(0, 1).shape == [3, 2]
    assert x.transpose_(dim0=0, dim1=1).shape == [2, 3]
    assert x.unsqueeze_(dim=0).squeeze_(dim=0).flatten_(start_dim=0).tolist() == list(range(6))


def test_block_diag_takes_tensors_one_by_one():
    assert oar.block_diag(oar.ones([1, 1]), oar.full([1, 2], 2.0)).tolist() == [[1.0, 0.0, 0.0], [0.0, 2.0, 2.0]]


def test_a_norm_in_another_dtype():
    assert oar.linalg.vector_norm(oar.to_tensor([3.0, 4.0]), dtype="float64").dtype == oar.float64


def test_a_quotient_rounded_in_place():
    x = oar.to_tensor([7.0, -7.0])
    assert x.divide_(oar.to_tensor([2.0, 2.0]), rounding_mode="floor") is x and x.tolist() == [3.0, -4.0]


def test_models_by_folder_and_names(tmp_path):
    oar.enable_static()
    try:
        main, startup = oar.static.Program(), oar.static.Program()
        with oar.static.program_guard(main, startup):
            x = oar.static.data("x", [None, 3])
            y = x * 2
        executor = oar.static.Executor()
        oar.static.save_inference_model(os.fspath(tmp_path / "model"), [x], [y], executor, program=main)
        for names in (("model", "model"), ("model.pdmodel", "model.pdiparams")):
            program, feeds, results = oar.static.load_inference_model(
                os.fspath(tmp_path), executor, model_filename=names[0], params_filename=names[1])
            assert executor.run(program, feed={feeds[0]: np.ones([1, 3], "float32")}, fetch_list=results)[0].tolist() == [[2.0] * 3]
        with pytest.raises(ValueError, match="there is no file .*absent"):
            oar.static.load_inference_model(os.fspath(tmp_path), executor, model_filename="absent")
    finally:
        oar.disable_static()


def test_hooks_that_count_for_programs_of_their_own():
    from oar.hapi.dynamic_flops import count_io_info, count_parameters, register_hooks

    layer = nn.Linear(3, 4)
    layer.register_buffer("total_ops", oar.zeros([1], dtype="int64"))
    layer.register_buffer("total_params", oar.zeros([1], dtype="int64"))
    for hook in (register_hooks[nn.Linear], count_parameters, count_io_info):
        layer.register_forward_post_hook(hook)
    layer(oar.ones([2, 3]))
    assert int(layer.total_params) == 16 and int(layer.total_ops) == 24 and layer.output_shape.tolist() == [2, 4]
