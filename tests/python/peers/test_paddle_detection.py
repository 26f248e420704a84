"""Detection and graphs by Oar and by Paddle, on random boxes, images and edges."""

from __future__ import annotations

import os

import numpy as np
import pytest

import oar
from peers.evaluate import evaluate
from peers.process import Call

if not os.access(os.environ.get("OAR_PADDLE", ""), os.X_OK):
    pytest.skip("needs OAR_PADDLE, a Python that has PaddlePaddle: `make bench-peers`, then `make test-paddle`",
                allow_module_level=True)

SEEDS = range(12)


def tensor(array, dtype="float32"):
    return oar.to_tensor(np.asarray(array), dtype=dtype)


def boxes_of(rng, n, size=20.0, least=0.0):
    corners = rng.uniform(0, size, (n, 2, 2))
    return np.concatenate([corners.min(1), corners.max(1) + least], 1)


def with_gradient(call: str, *of: str) -> str:
    """The result, and the gradients of its weighted sum by x or the given arguments."""
    leaves = ", ".join(of or ["x"])
    return f"""
        for leaf in [{leaves}]:
            leaf.stop_gradient = False
        out = {call}
        weight = paddle.cos(paddle.arange(out.size, dtype=out.dtype)).reshape(out.shape)
        result = [out, *paddle.grad((out * weight).sum(), [{leaves}])]
        """


def check(paddle, call: str, rtol=2e-5, atol=2e-6, **arguments) -> None:
    (answer,) = paddle.ask([Call(call, arguments)])
    assert answer.error is None and answer.missing is None, f"Paddle: {answer.error or answer.missing}"
    found = evaluate(call, {"paddle": oar, **arguments})
    assert len(found) == len(answer.values)
    for mine, theirs in zip(found, answer.values):
        assert list(mine.shape) == list(theirs.shape)
        np.testing.assert_allclose(mine.numpy().astype("float64"), np.asarray(theirs, "float64"), rtol, atol)


@pytest.mark.parametrize("seed", SEEDS)
def test_regions(seed, paddle):
    rng = np.random.default_rng(seed)
    dtype = ["float32", "float64"][seed % 2]
    numbers = rng.multinomial(6, [0.5, 0.2, 0.3])
    # At least a pixel wide: below that, Paddle's gradient of roi_align is that of another box.
    given = {"x": tensor(rng.normal(size=(3, 12, 9, 11)), dtype), "boxes": tensor(boxes_of(rng, 6, least=4.0), dtype),
             "count": tensor(numbers, "int32")}
    scale, ratio, aligned = [1.0, 0.5, 0.25][seed % 3], [-1, 2][seed // 2 % 2], bool(seed // 4 % 2)
    size = [(2, 3), 2, (3, 2)][seed % 3]
    call = f"paddle.vision.ops.{{}}(x, boxes, count, {size}, {scale}{{}})"
    check(paddle, with_gradient(call.format("roi_align", f", {ratio}, {aligned}")), **given)
    check(paddle, with_gradient(call.format("roi_pool", "")), **given)
    if size != 2:
        check(paddle, with_gradient(call.format("psroi_pool", "")), **given)


@pytest.mark.parametrize("seed", SEEDS)
def test_nms(seed, paddle):
    rng = np.random.default_rng(seed)
    n = 40
    given = {"boxes": tensor(boxes_of(rng, n)), "scores": tensor(rng.permutation(n) / n),
             "kinds": tensor(rng.integers(0, 4, n), "int64")}
    limit = rng.uniform(0.05, 0.6)
    check(paddle, f"paddle.vision.ops.nms(boxes, {limit})", boxes=given["boxes"])
    check(paddle, f"paddle.vision.ops.nms(boxes, {limit}, scores)", boxes=given["boxes"], scores=given["scores"])
    check(paddle, f"paddle.vision.ops.nms(boxes, {limit}, scores, kinds, [0, 1, 3])", **given)
    check(paddle, f"paddle.vision.ops.nms(boxes, {limit}, scores, kinds, [0, 1, 2, 3], 7)", **given)


@pytest.mark.parametrize("seed", SEEDS)
def test_nms_of_classes(seed, paddle):
    rng = np.random.default_rng(seed)
    given = {"boxes": tensor(np.stack([boxes_of(rng, 20) for _ in range(2)])),
             "scores": tensor(rng.permutation(120).reshape(2, 3, 20) / 120)}
    keep, background, normalized = [-1, 6, 100][seed % 3], [-1, 0][seed % 2], bool(seed // 2 % 2)
    check(paddle, f"paddle.vision.ops.matrix_nms(boxes, scores, 0.2, 0.1, {[-1, 8][seed % 2]}, {keep}, {seed % 4 == 0}, "
                  f"1.5, {background}, {normalized}, True)", **given)
    eta = [1.0, 0.9][seed // 3 % 2]
    limit = [0.3, 0.7][seed // 2 % 2]
    check(paddle, f"paddle._C_ops.multiclass_nms3(boxes, scores, None, 0.2, {[-1, 8][seed % 2]}, {keep}, {limit}, "
                  f"{normalized}, {eta}, {background})", **given)
    rows = {"boxes": tensor(boxes_of(rng, 30).reshape(10, 3, 4)), "scores": tensor(rng.permutation(30).reshape(10, 3) / 30),
            "count": tensor([4, 6], "int32")}
    check(paddle, f"paddle._C_ops.multiclass_nms3(boxes, scores, count, 0.2, -1, {keep}, {limit}, {normalized}, {eta}, "
                  f"{background})", **rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes(seed, paddle):
    rng = np.random.default_rng(seed)
    normalized, axis = bool(seed % 2), seed // 2 % 2
    given = {"prior": tensor(boxes_of(rng, 5)), "variance": tensor(rng.uniform(0.1, 1, (5, 4)))}
    boxes = tensor(boxes_of(rng, 4))
    for variance in ("variance", "[0.1, 0.2, 0.3, 0.4]"):
        check(paddle, f"paddle.vision.ops.box_coder(prior, {variance}, boxes, box_normalized={normalized})", boxes=boxes,
              **given)
        code = tensor(rng.normal(size=(4, 5, 4) if axis == 0 else (5, 4, 4)))
        check(paddle, f"paddle.vision.ops.box_coder(prior, {variance}, code, 'decode_center_size', {normalized}, {axis})",
              code=code, **given)
    check(paddle, f"paddle.vision.ops.prior_box(x, image, [3.0, 5.0], {[None, [6.0, 9.0]][seed % 2]}, [1.0, 2.0, 0.5, 3.0], "
                  f"flip={seed % 3 == 0}, clip={seed % 4 == 0}, steps={[[0.0, 0.0], [2.0, 3.0]][seed // 3 % 2]}, "
                  f"min_max_aspect_ratios_order={seed % 5 == 0})", x=tensor(np.zeros((1, 2, 4, 5))),
          image=tensor(np.zeros((1, 3, 17, 23))))


@pytest.mark.parametrize("seed", SEEDS)
def test_yolo(seed, paddle):
    rng = np.random.default_rng(seed)
    aware = seed % 2 == 0
    given = {"x": tensor(rng.normal(size=(2, 3 * (8 if aware else 7), 4, 5))),
             "sizes": tensor(rng.integers(50, 300, (2, 2)), "int32")}
    check(paddle, f"paddle.vision.ops.yolo_box(x, sizes, [10, 13, 16, 30, 33, 23], 2, 0.4, 16, {seed % 3 == 0}, "
                  f"scale_x_y={[1.0, 1.2][seed // 2 % 2]}, iou_aware={aware}, iou_aware_factor=0.4)", **given)
    box = rng.uniform(0.1, 0.9, (2, 6, 4))
    # Each in a cell of its own: of several objects in one, Paddle's gradient only has the last.
    cells = np.stack([rng.permutation(25)[:6] for _ in range(2)])
    box[..., :2] = (np.stack([cells % 5, cells // 5], -1) + rng.uniform(0.1, 0.9, (2, 6, 2))) / 5
    box[:, 4, 2:] = 0
    given = {"x": tensor(rng.normal(size=(2, 14, 5, 5)), "float64"), "box": tensor(box, "float64"),
             "label": tensor(rng.integers(0, 2, (2, 6)), "int32"), "score": tensor(rng.uniform(0.1, 1, (2, 6)), "float64")}
    score = "score" if seed % 3 else "None"
    check(paddle, with_gradient(f"paddle.vision.ops.yolo_loss(x, box, label, [10, 13, 16, 30, 33, 23], [0, 2], 2, "
                                f"{[0.3, 0.7][seed % 2]}, 16, {score}, {seed % 2 == 0}, scale_x_y=1.1)"), **given)


@pytest.mark.parametrize("seed", SEEDS)
def test_proposals(seed, paddle):
    rng = np.random.default_rng(seed)
    given = {"scores": tensor(rng.permutation(96).reshape(2, 3, 4, 4) / 96),
             "deltas": tensor(rng.normal(size=(2, 12, 4, 4)) * 0.5), "sizes": tensor([[24, 30], [20, 20]]),
             "anchors": tensor(boxes_of(rng, 48, 30.0).reshape(4, 4, 3, 4)),
             "variances": tensor(rng.uniform(0.5, 1, (4, 4, 3, 4)))}
    check(paddle, f"paddle.vision.ops.generate_proposals(scores, deltas, sizes, anchors, variances, {[30, 6000][seed % 2]}, "
                  f"{[5, 1000][seed // 2 % 2]}, {[0.3, 0.7][seed % 2]}, 2.0, {[1.0, 0.9][seed // 3 % 2]}, "
                  f"{seed % 4 < 2}, return_rois_num=True)", **given)
    boxes = {"boxes": tensor(boxes_of(rng, 30, 900.0)), "count": tensor([12, 0, 18], "int32")}
    check(paddle, f"""
        rois, index, count = paddle.vision.ops.distribute_fpn_proposals(boxes, 2, 5, 4, 224, {seed % 2 == 0}, count)
        result = [*rois, index, *count]
        """, **boxes)


@pytest.mark.parametrize("seed", SEEDS)
def test_graphs(seed, paddle):
    rng = np.random.default_rng(seed)
    how, message = ["sum", "mean", "max", "min"][seed % 4], ["add", "sub", "mul", "div"][seed // 3 % 4]
    given = {"x": tensor(rng.normal(size=(6, 3))), "src": tensor(rng.integers(0, 6, 15), "int64"),
             "dst": tensor(rng.integers(0, 6, 15), "int64")}
    edges = tensor(rng.uniform(1, 2, (15, 3)))
    check(paddle, with_gradient(f"paddle.geometric.segment_{how}(x, ids)"), x=given["x"],
          ids=tensor(np.sort(rng.integers(0, 5, 6)), "int64"))
    check(paddle, with_gradient(f"paddle.geometric.send_u_recv(x, src, dst, '{how}')"), **given)
    check(paddle, with_gradient(f"paddle.geometric.send_ue_recv(x, e, src, dst, '{message}', '{how}', 8)", "x", "e"),
          e=edges, **given)
    check(paddle, with_gradient(f"paddle.geometric.send_uv(x, y, src, dst, '{message}')", "x", "y"),
          y=tensor(rng.uniform(1, 2, (6, 3))), **given)
    nodes = {"x": tensor(rng.permutation(9)[:4], "int64"), "near": tensor(rng.integers(0, 20, 10), "int64"),
             "count": tensor(rng.multinomial(10, [0.25] * 4), "int32")}
    check(paddle, "paddle.geometric.reindex_graph(x, near, count)", **nodes)
    colptr = np.concatenate([[0], np.cumsum(rng.integers(0, 5, 9))])
    graph = {"row": tensor(rng.integers(0, 9, colptr[-1]), "int64"), "colptr": tensor(colptr, "int64"),
             "x": tensor(rng.permutation(9)[:4], "int64")}
    check(paddle, "paddle.geometric.sample_neighbors(row, colptr, x, 9)", **graph)


@pytest.mark.parametrize("seed", SEEDS)
def test_viterbi(seed, paddle):
    rng = np.random.default_rng(seed)
    check(paddle, f"paddle.text.viterbi_decode(scores, moves, lengths, {seed % 2 == 0})",
          scores=tensor(rng.normal(size=(3, 7, 5))), moves=tensor(rng.normal(size=(5, 5))),
          lengths=tensor(rng.integers(1, 8, 3), "int64"))
