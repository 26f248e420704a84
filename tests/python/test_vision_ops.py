"""Detection: what the records' own samples do not cover, against loops and by cases worked out by hand."""

import numpy as np
import pytest

import oar
from oar.static import InputSpec
from oar.vision import ops


def leaf(array, dtype="float64"):
    return oar.to_tensor(np.asarray(array, dtype), stop_gradient=False)


def counts(*numbers):
    return oar.to_tensor(numbers, dtype="int32")


def boxes_of(rng, n, size=20.0):
    corners = rng.uniform(0, size, (n, 2, 2))
    return np.concatenate([corners.min(1), corners.max(1)], 1)


def bilinear(image, y, x):
    height, width = image.shape
    if y < -1 or y > height or x < -1 or x > width:
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, across = y - top, x - left
    return ((1 - down) * (1 - across) * image[top, left] + (1 - down) * across * image[top, right]
            + down * (1 - across) * image[bottom, left] + down * across * image[bottom, right])


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [-1, 3])
def test_roi_align_samples_each_bin(aligned, ratio):
    rng = np.random.default_rng(0)
    x, boxes = rng.normal(size=(3, 2, 7, 9)), boxes_of(rng, 5)
    found = ops.roi_align(oar.to_tensor(x), oar.to_tensor(boxes), counts(1, 0, 4), (2, 3), 0.5, ratio, aligned)
    wanted = np.zeros((5, 2, 2, 3))
    for k, (box, image) in enumerate(zip(boxes * 0.5 - 0.5 * aligned, [0, 2, 2, 2, 2])):
        sizes = box[3] - box[1], box[2] - box[0]
        height, width = sizes if aligned else (max(s, 1) for s in sizes)
        rows, columns = (ratio, ratio) if ratio > 0 else (int(np.ceil(height / 2)), int(np.ceil(width / 3)))
        for c, p, q in np.ndindex(2, 2, 3):
            wanted[k, c, p, q] = np.mean([bilinear(x[image, c], box[1] + height / 2 * (p + (i + 0.5) / rows),
                                                   box[0] + width / 3 * (q + (j + 0.5) / columns))
                                          for i in range(rows) for j in range(columns)])
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)


def test_roi_align_of_boxes_far_outside_and_without_an_area():
    x = oar.ones([1, 1, 4, 4])
    boxes = oar.to_tensor([[1e9, 1e9, 2e9, 2e9], [2.0, 2.0, 2.0, 2.0], [0.0, 0.0, 1e8, 1e8], [float("nan")] * 4])
    found = ops.roi_align(x, boxes, counts(4), 2).numpy()
    assert (found[0] == 0).all() and (found[1] == 0).all() and np.isfinite(found[2]).all()


def test_a_bin_that_ends_where_the_first_pixel_begins_is_empty():
    """The box ends at 0; its three bins are 2 / 3 wide, and 3 * float32(2 / 3) - 2 is 0 only if the product is rounded."""
    x = oar.ones([1, 3, 4, 4])
    box = oar.to_tensor([[-2.0, 0.0, -1.0, 0.0]])
    found = ops.psroi_pool(x, box, counts(1), [1, 3])
    np.testing.assert_array_equal(found.numpy().ravel(), [0, 0, 0])


@pytest.mark.parametrize("pool", [ops.roi_align, ops.roi_pool, ops.psroi_pool])
def test_gradients_of_regions_are_their_transpose(pool):
    rng = np.random.default_rng(1)
    x, boxes = leaf(rng.normal(size=(2, 8, 6, 6))), oar.to_tensor(boxes_of(rng, 4, 6.0))
    out = pool(x, boxes, counts(3, 1), 2)
    weight = oar.to_tensor(rng.normal(size=out.shape))
    (grad,) = oar.grad((out * weight).sum(), [x], create_graph=True)
    # Linear, or the maximum of parts: x * grad sums to the weighted result.
    np.testing.assert_allclose((x * grad).sum().item(), (out * weight).sum().item(), rtol=1e-10)


def test_second_derivatives_of_regions():
    rng = np.random.default_rng(2)
    x, boxes = leaf(rng.normal(size=(1, 1, 5, 5))), oar.to_tensor(boxes_of(rng, 2, 5.0))
    (first,) = oar.grad(ops.roi_align(x, boxes, counts(2), 2).square().sum(), [x], create_graph=True)
    (second,) = oar.grad(first.square().sum(), [x])
    matrix = np.stack([ops.roi_align(oar.to_tensor(e.reshape(1, 1, 5, 5)), boxes, counts(2), 2).numpy().ravel()
                       for e in np.eye(25)], 1)
    hessian = 2 * matrix.T @ matrix
    np.testing.assert_allclose(second.numpy().ravel(), 2 * hessian @ first.numpy().ravel(), rtol=1e-9, atol=1e-9)


def test_region_layers():
    x, boxes = oar.randn([1, 12, 8, 8]), oar.to_tensor([[0.0, 0.0, 4.0, 4.0]])
    for layer, function in [(ops.RoIAlign(2), ops.roi_align), (ops.RoIPool(2), ops.roi_pool),
                            (ops.PSRoIPool(2), ops.psroi_pool)]:
        assert layer(x, boxes, counts(1)).tolist() == function(x, boxes, counts(1), 2).tolist()
    assert ops.RoIAlign(2)(x, boxes, counts(1), aligned=False).tolist() \
        == ops.roi_align(x, boxes, counts(1), 2, aligned=False).tolist()


def test_errors_of_regions():
    x, boxes = oar.ones([2, 3, 4, 4]), oar.ones([3, 4])
    with pytest.raises(ValueError, match="boxes_num counts 2 boxes, but there are 3"):
        ops.roi_align(x, boxes, counts(1, 1), 2)
    with pytest.raises(ValueError, match="boxes_num of image 1 is 3, but 2 of the 3 boxes are left"):
        ops.roi_pool(x, boxes, counts(1, 3), 2)
    with pytest.raises(ValueError, match="boxes_num has shape \\[1\\] for 2 images"):
        ops.roi_align(x, boxes, counts(3), 2)
    with pytest.raises(ValueError, match="3 channels of x are not divisible by the 4 bins"):
        ops.psroi_pool(x, boxes, counts(1, 2), 2)
    with pytest.raises(ValueError, match="both sizes must be positive"):
        ops.roi_align(x, boxes, counts(1, 2), 0)


def greedy(boxes, order, limit):
    kept = []
    for i in order:
        if all(overlap(boxes[i], boxes[k]) <= limit for k in kept):
            kept.append(int(i))
    return kept


def overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(width, 0) * max(height, 0)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def test_nms_of_many_boxes():
    rng = np.random.default_rng(3)
    boxes, scores = boxes_of(rng, 300, 10.0), rng.permutation(300) / 300.0
    kinds = rng.integers(0, 4, 300)
    order = np.argsort(-scores)
    t = [oar.to_tensor(v) for v in (boxes, scores, kinds)]
    assert ops.nms(t[0], 0.3).tolist() == greedy(boxes, range(300), 0.3)
    assert ops.nms(t[0], 0.3, t[1]).tolist() == greedy(boxes, order, 0.3)
    each = [greedy(boxes, [i for i in order if kinds[i] == k], 0.3) for k in (0, 2)]
    wanted = sorted(sum(each, []), key=lambda i: -scores[i])
    assert ops.nms(t[0], 0.3, t[1], t[2], [0, 2]).tolist() == wanted
    assert ops.nms(t[0], 0.3, t[1], t[2], [0, 2], 5).tolist() == wanted[:5]


def test_nms_errors():
    boxes = oar.ones([3, 4])
    with pytest.raises(ValueError, match="category_idxs is given without categories"):
        ops.nms(boxes, 0.3, oar.ones([3]), oar.to_tensor([0, 0, 1]))
    with pytest.raises(ValueError, match="top_k is 4, but there are only 3 boxes"):
        ops.nms(boxes, 0.3, oar.ones([3]), oar.to_tensor([0, 0, 1]), [0, 1], 4)
    with pytest.raises(ValueError, match="scores has shape \\[2\\] for 3 boxes"):
        ops.nms(boxes, 0.3, oar.ones([2]))


def test_a_captured_function_keeps_as_many_boxes_as_each_run_finds():
    def best(boxes, scores):
        return oar.gather(boxes, ops.nms(boxes, 0.5, scores))

    step = oar.jit.capture(best, [InputSpec([4, 4], "float32"), InputSpec([4], "float32")])
    apart = np.array([[0, 0, 1, 1], [2, 2, 3, 3], [4, 4, 5, 5], [6, 6, 7, 7]], "float32")
    same = np.tile(apart[:1], (4, 1))
    scores = oar.to_tensor([0.1, 0.4, 0.3, 0.2])
    assert step(oar.to_tensor(apart), scores).shape == [4, 4]
    assert step(oar.to_tensor(same), scores).shape == [1, 4]


def test_box_coder_decodes_what_it_encoded():
    rng = np.random.default_rng(4)
    priors, targets = boxes_of(rng, 6), boxes_of(rng, 5)
    for variance in (oar.to_tensor(rng.uniform(0.5, 1, (6, 4))), [0.1, 0.1, 0.2, 0.2], None):
        for normalized in (True, False):
            code = ops.box_coder(oar.to_tensor(priors), variance, oar.to_tensor(targets), box_normalized=normalized)
            back = ops.box_coder(oar.to_tensor(priors), variance, code, "decode_center_size", normalized)
            # Paddle encodes the middle of the corners, and decodes from the middle of the pixels.
            wanted = np.broadcast_to(targets[:, None] - (0 if normalized else 0.5), (5, 6, 4))
            np.testing.assert_allclose(back.numpy(), wanted, rtol=1e-9, atol=1e-9)
    with pytest.raises(TypeError, match="a tensor or a list of four numbers"):
        ops.box_coder(oar.to_tensor(priors), [1.0], oar.to_tensor(targets))


def test_levels_of_proposals_are_restored_by_the_index():
    rng = np.random.default_rng(5)
    boxes = boxes_of(rng, 40, 900.0).astype("float32")
    rois, index, numbers = ops.distribute_fpn_proposals(oar.to_tensor(boxes), 2, 5, 4, 224, rois_num=counts(15, 25))
    joined = oar.concat(rois, 0).numpy()
    np.testing.assert_array_equal(joined[index.numpy().ravel()], boxes)
    assert np.sum([n.numpy() for n in numbers], 0).tolist() == [15, 25]
    assert [n.numpy().sum() for n in numbers] == [len(r) for r in rois]
    with pytest.raises(ValueError, match="rois_num counts 3 boxes, but there are 40"):
        ops.distribute_fpn_proposals(oar.to_tensor(boxes), 2, 5, 4, 224, rois_num=counts(3))


def test_proposals_of_an_image_without_any():
    scores, deltas = oar.ones([2, 1, 1, 1]), oar.zeros([2, 4, 1, 1])
    anchors, sizes = oar.to_tensor([[[[0.0, 0.0, 8.0, 8.0]]]]), oar.to_tensor([[10.0, 10.0], [0.5, 0.5]])
    boxes, probs, numbers = ops.generate_proposals(scores, deltas, sizes, anchors, oar.ones([1, 1, 1, 4]))
    assert boxes.tolist() == [[0, 0, 8, 8], [0, 0, 0, 0]] and probs.tolist() == [[1], [0]]
    assert numbers.tolist() == [1, 1]


def test_yolo_loss_has_the_gradient_of_differences():
    rng = np.random.default_rng(6)
    x, box = rng.normal(size=(2, 14, 3, 3)), rng.uniform(0.2, 0.8, (2, 4, 4))
    box[0, 2, 2] = 0  # no object
    label, score = rng.integers(0, 2, (2, 4)), rng.uniform(0.2, 1, (2, 4))

    def loss(values):
        return ops.yolo_loss(values, oar.to_tensor(box), oar.to_tensor(label, "int32"), [10, 13, 16, 30, 33, 23], [0, 2],
                             2, 0.5, 16, gt_score=oar.to_tensor(score), scale_x_y=1.1)

    t = leaf(x)
    loss(t).sum().backward()
    for i in np.random.default_rng(7).integers(0, x.size, 30):
        step = np.zeros(x.size)
        step[i] = 1e-6
        step = step.reshape(x.shape)
        slope = (loss(oar.to_tensor(x + step)) - loss(oar.to_tensor(x - step))).sum().item() / 2e-6
        assert abs(slope - t.grad.numpy().ravel()[i]) < 1e-6
    with pytest.raises(ValueError, match="centre at 3"):
        ops.yolo_loss(t, oar.full([2, 4, 4], 3.0, "float64"), oar.to_tensor(label), [10, 13], [0, 0], 2, 0.5, 16)


def test_forms_of_inner_interfaces():
    rng = np.random.default_rng(8)
    boxes, scores = oar.to_tensor(boxes_of(rng, 5)[None]), oar.to_tensor(rng.uniform(size=(1, 3, 5)))
    out, index, number = oar._C_ops.multiclass_nms3(boxes, scores, None, 0.1, -1, -1, 0.4, True, 1.0, 0)
    assert out.shape == [number.item(), 6] and index.shape == [number.item(), 1]
    for row, place in zip(out.numpy(), index.numpy().ravel()):
        np.testing.assert_array_equal(row[2:], boxes.numpy()[0, place])
        assert row[1] == scores.numpy()[0, int(row[0]), place]
    x = oar.ones([1, 2, 5, 5])
    assert oar._C_ops.roi_align(x, boxes[0].astype("float32"), counts(5), 2, 2, 1.0, -1, True).shape == [5, 2, 2, 2]
    rois, number, _ = oar._C_ops.distribute_fpn_proposals(boxes[0], counts(5), 2, 5, 4, 224, False)
    assert sum(len(r) for r in rois) == 5 and len(number) == 4
    # The older form names its attributes, gets the lengths of its lists, and has another order of results.
    older = oar._legacy_C_ops.distribute_fpn_proposals(
        boxes[0], counts(5), 4, 4, "min_level", 2, "max_level", 5, "refer_level", 4, "refer_scale", 224, "pixel_offset", False
    )
    assert [len(r) for r in older[0]] == [len(r) for r in rois]
    assert older[1].shape == [5, 1] and [n.tolist() for n in older[2]] == [n.tolist() for n in number]


def test_files(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(9)))
    assert ops.read_file(str(path)).tolist() == list(range(9))
    with pytest.raises(ValueError, match="mode is 'cmyk'"):
        ops.decode_jpeg(ops.read_file(str(path)), "cmyk")
    image = pytest.importorskip("PIL.Image")
    grey = np.tile(np.arange(0, 256, 16, dtype="uint8"), (16, 1))
    image.fromarray(grey).save(tmp_path / "grey.jpg", quality=100)
    read = ops.decode_jpeg(ops.read_file(str(tmp_path / "grey.jpg")))
    assert read.shape == [1, 16, 16] and np.abs(read.numpy()[0].astype(int) - grey).max() <= 3
    assert ops.decode_jpeg(ops.read_file(str(tmp_path / "grey.jpg")), "rgb").shape == [3, 16, 16]


def test_the_largest_of_a_region_may_be_nan_or_infinite():
    image = np.array([[[[-np.inf, -np.inf, 1.0, np.nan], [-np.inf, -np.inf, 2.0, 3.0]]]], "float32")
    x = oar.to_tensor(image, stop_gradient=False)
    found = ops.roi_pool(x, oar.to_tensor([[0.0, 0.0, 3.0, 1.0]]), counts(1), [1, 2])
    np.testing.assert_array_equal(found.numpy(), [[[[-np.inf, np.nan]]]])
    found.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[[[1, 0, 0, 1], [0, 0, 0, 0]]]])
