"""Functions on boxes whose arguments or results need more than their op."""

from __future__ import annotations

from collections.abc import Sequence

from oar._C import Tensor, ops
from oar._creation import to_tensor

__all__ = [
    "box_coder",
    "distribute_fpn_proposals",
    "generate_proposals",
    "matrix_nms",
    "prior_box",
    "yolo_box",
    "yolo_loss",
]


def _numbers(value: float | Sequence[float]) -> list[float]:
    return [float(v) for v in (value if isinstance(value, Sequence) else [value])]


def prior_box(
    input: Tensor,
    image: Tensor,
    min_sizes: float | Sequence[float],
    max_sizes: float | Sequence[float] | None = None,
    aspect_ratios: float | Sequence[float] = [1.0],
    variance: Sequence[float] = [0.1, 0.1, 0.2, 0.2],
    flip: bool = False,
    clip: bool = False,
    steps: Sequence[float] = [0.0, 0.0],
    offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The boxes of several sizes and aspect ratios around each pixel of a feature map, in parts of the image.

    Args:
        input: the feature map [batch, channels, height, width].
        image: the images [batch, channels, height, width].
        min_sizes: sizes in pixels of the image.
        max_sizes: for each of them a larger one; a square between both is added.
        aspect_ratios: of width to height.
        variance: the four variances of each box.
        flip: whether the inverse of each aspect ratio is used too.
        clip: whether boxes end at the border of the image.
        steps: the distance of the centres along the width and along the height; 0 spreads them over the image.
        offset: where in its cell a centre is.
        min_max_aspect_ratios_order: the box of max_sizes is second rather than last.

    Returns:
        boxes and variances, [height, width, boxes, 4] each.

    Examples:
        >>> import oar
        >>> boxes, _ = oar.vision.ops.prior_box(oar.zeros([1, 1, 1, 2]), oar.zeros([1, 3, 4, 8]), min_sizes=[2.0])
        >>> boxes.flatten()
        Tensor(shape=[8], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.12500000, 0.25000000, 0.37500000, 0.75000000, 0.62500000, 0.25000000,
                0.87500000, 0.75000000])
    """
    larger = None if max_sizes is None else _numbers(max_sizes)
    return ops.prior_box(
        input, image, _numbers(min_sizes), larger or None, _numbers(aspect_ratios), _numbers(variance), flip, clip,
        _numbers(steps), offset, min_max_aspect_ratios_order,
    )  # fmt: skip


def box_coder(
    prior_box: Tensor,
    prior_box_var: Tensor | Sequence[float] | None,
    target_box: Tensor,
    code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0,
    name: str | None = None,
) -> Tensor:
    """Boxes as differences of centre and size from prior boxes, or the boxes that such differences stand for.

    Args:
        prior_box: [count, 4]: left, top, right and bottom of each.
        prior_box_var: what differences are divided by: a tensor like prior_box, or four numbers for all; None for 1.
        target_box: boxes [n, 4] to encode, or differences [n, m, 4] to decode.
        code_type: 'encode_center_size' or 'decode_center_size'.
        box_normalized: False if boxes are given by their outermost pixels, so that the width is right - left + 1.
        axis: if decoded, prior boxes belong to axis 1 of target_box (0) or to axis 0 (1).

    Returns:
        a tensor [n, m, 4].

    Examples:
        >>> import oar
        >>> prior = oar.to_tensor([[0.0, 0.0, 2.0, 2.0]])
        >>> code = oar.vision.ops.box_coder(prior, [0.5, 0.5, 1.0, 1.0], oar.to_tensor([[1.0, 1.0, 3.0, 3.0]]))
        >>> code.flatten()
        Tensor(shape=[4], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 1., 0., 0.])
    """
    if prior_box_var is not None and not isinstance(prior_box_var, Tensor):
        if not isinstance(prior_box_var, (list, tuple)) or len(prior_box_var) != 4:
            raise TypeError(
                f"[box_coder] prior_box_var is {prior_box_var!r}; it must be a tensor or a list of four numbers."
            )
        prior_box_var = to_tensor(_numbers(prior_box_var), prior_box.dtype)
    return ops.box_coder(prior_box, prior_box_var, target_box, code_type, box_normalized, axis)


def distribute_fpn_proposals(
    fpn_rois: Tensor,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: bool = False,
    rois_num: Tensor | None = None,
    name: str | None = None,
) -> tuple[list[Tensor], Tensor, list[Tensor]]:
    """The boxes of each level of a feature pyramid: level refer_level has boxes of about refer_scale, the next one
    boxes of twice the size.

    Args:
        fpn_rois: [count, 4]: left, top, right and bottom of each.
        min_level: the lowest level.
        max_level: the highest level.
        refer_level: the level of boxes of refer_scale.
        refer_scale: the square root of the area of such a box.
        pixel_offset: whether boxes are given by their outermost pixels, so that the width is right - left + 1.
        rois_num: how many boxes each image has.

    Returns:
        the boxes of each level; where each box is among those of all levels, [count, 1]; for each level how many
        boxes of each image it has.

    Examples:
        >>> import oar
        >>> boxes = oar.to_tensor([[0.0, 0.0, 200.0, 200.0], [0.0, 0.0, 20.0, 20.0]])
        >>> rois, index, counts = oar.vision.ops.distribute_fpn_proposals(
        ...     boxes, 2, 5, 4, 224, rois_num=oar.to_tensor([2], dtype='int32'))
        >>> [len(r) for r in rois], index.flatten().tolist()
        ([1, 1, 0, 0], [1, 0])
    """
    if rois_num is None:
        raise ValueError("[distribute_fpn_proposals] rois_num is None; pass the number of boxes of each image.")
    parts = ops.fpn_levels(fpn_rois, rois_num, min_level, max_level, refer_level, refer_scale, pixel_offset)
    levels = len(parts) // 2
    return list(parts[:levels]), parts[-1], list(parts[levels:-1])


def generate_proposals(
    scores: Tensor,
    bbox_deltas: Tensor,
    img_size: Tensor,
    anchors: Tensor,
    variances: Tensor,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    pixel_offset: bool = False,
    return_rois_num: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """For each image the best boxes that may hold an object: decoded from anchors, clipped to the image, not too
    small, and without those that overlap better ones.

    Args:
        scores: [batch, anchors, height, width].
        bbox_deltas: [batch, 4 * anchors, height, width].
        img_size: height and width of each image.
        anchors: [height, width, anchors, 4].
        variances: what differences are multiplied by, like anchors.
        pre_nms_top_n: how many of the best boxes are taken first.
        post_nms_top_n: how many boxes of an image remain at most.
        nms_thresh: the largest overlap with a better box.
        min_size: the smallest width and height, at least 1.
        eta: nms_thresh is multiplied by it after each box, as long as it is above 0.5.
        pixel_offset: whether boxes are given by their outermost pixels, so that the width is right - left + 1.
        return_rois_num: the last result is returned in any case, as in Paddle's eager mode.

    Returns:
        boxes [count, 4], scores [count, 1], and how many boxes each image has.

    Examples:
        >>> import oar
        >>> anchors = oar.to_tensor([[[[0.0, 0.0, 8.0, 8.0]]]])
        >>> boxes, scores, counts = oar.vision.ops.generate_proposals(
        ...     oar.ones([1, 1, 1, 1]), oar.zeros([1, 4, 1, 1]), oar.to_tensor([[6.0, 9.0]]), anchors,
        ...     oar.ones([1, 1, 1, 4]))
        >>> boxes.tolist(), counts.tolist()
        ([[0.0, 0.0, 8.0, 6.0]], [1])
    """
    return ops.generate_proposals(
        scores, bbox_deltas, img_size, anchors, variances, int(pre_nms_top_n), int(post_nms_top_n), nms_thresh,
        min_size, eta, pixel_offset,
    )  # fmt: skip


def matrix_nms(
    bboxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    return_rois_num: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """For each image the boxes whose score, lowered by their overlaps with better boxes of the same class, is above
    post_threshold.

    Args:
        bboxes: [batch, count, 4]: left, top, right and bottom of each.
        scores: [batch, classes, count].
        score_threshold: boxes with at most this score are dropped first.
        post_threshold: boxes with at most this lowered score are dropped.
        nms_top_k: how many boxes of a class are looked at; -1 for all.
        keep_top_k: how many boxes of an image remain; -1 for all.
        use_gaussian: whether scores are lowered by a bell curve of the overlap rather than linearly.
        gaussian_sigma: how steep that is.
        background_label: the class to leave out; -1 for none.
        normalized: False if boxes are given by their outermost pixels, so that the width is right - left + 1.
        return_index: whether the numbers of the boxes are returned.
        return_rois_num: whether the counts are returned.

    Returns:
        class, score and box, [count, 6]; how many boxes each image has, or None; the number of each among all boxes,
        or None.

    Examples:
        >>> import oar
        >>> boxes = oar.to_tensor([[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 0.5]]])
        >>> scores = oar.to_tensor([[[0.9, 0.8]]])
        >>> out, counts, _ = oar.vision.ops.matrix_nms(boxes, scores, 0.1, 0.0, -1, -1, background_label=-1)
        >>> out[:, 1]
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.89999998, 0.40000001])
    """
    out, index, counts = ops.matrix_nms(
        bboxes, scores, score_threshold, nms_top_k, keep_top_k, post_threshold, use_gaussian, gaussian_sigma,
        background_label, normalized,
    )  # fmt: skip
    return out, counts if return_rois_num else None, index if return_index else None


def yolo_box(
    x: Tensor,
    img_size: Tensor,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
    iou_aware: bool = False,
    iou_aware_factor: float = 0.5,
) -> tuple[Tensor, Tensor]:
    """Boxes in pixels of the image, and the scores of their classes, from the output of a YOLO network; zeros where
    the confidence is below conf_thresh.

    Args:
        x: [batch, anchors * (5 + class_num), height, width]; with iou_aware the overlaps of all anchors come first.
        img_size: height and width of each image.
        anchors: width and height of each anchor, one after the other.
        class_num: the number of classes.
        conf_thresh: the lowest confidence.
        downsample_ratio: pixels of the network's input per pixel of x.
        clip_bbox: whether boxes end at the border of the image.
        scale_x_y: how far a centre can leave its cell.
        iou_aware: whether x has predictions of the overlap.
        iou_aware_factor: how much these count in the confidence.

    Returns:
        boxes [batch, count, 4] and scores [batch, count, class_num].

    Examples:
        >>> import oar
        >>> x = oar.zeros([1, 7, 1, 1])
        >>> boxes, scores = oar.vision.ops.yolo_box(x, oar.to_tensor([[32, 32]]), [16, 8], 2, 0.1, 32)
        >>> boxes.tolist(), scores.tolist()
        ([[[8.0, 12.0, 24.0, 20.0]]], [[[0.25, 0.25]]])
    """
    return ops.yolo_box(
        x, img_size, list(anchors), class_num, conf_thresh, downsample_ratio, clip_bbox, scale_x_y, iou_aware,
        iou_aware_factor,
    )  # fmt: skip


def yolo_loss(
    x: Tensor,
    gt_box: Tensor,
    gt_label: Tensor,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Tensor | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Tensor:
    """The loss of a YOLO network for each image: of the boxes and classes that stand for objects, and of the confidence
    of all predictions but those that overlap an object by more than ignore_thresh. Only x gets a gradient.

    Args:
        x: [batch, len(anchor_mask) * (5 + class_num), height, width].
        gt_box: [batch, objects, 4]: centre x, centre y, width and height, in parts of the image; 0 wide for no object.
        gt_label: the class of each object.
        anchors: width and height of each anchor, one after the other.
        anchor_mask: the numbers of the anchors that x predicts.
        class_num: the number of classes.
        ignore_thresh: the overlap above which the confidence does not count.
        downsample_ratio: pixels of the network's input per pixel of x.
        gt_score: how much each object counts; 1 if None.
        use_label_smooth: whether classes are smoothed, by 1 / class_num but at most 1 / 40.
        scale_x_y: how far a centre can leave its cell.

    Returns:
        a tensor [batch].

    Examples:
        >>> import oar
        >>> x, box = oar.zeros([1, 7, 1, 1]), oar.to_tensor([[[0.5, 0.5, 0.5, 0.25]]])
        >>> oar.vision.ops.yolo_loss(x, box, oar.to_tensor([[1]]), [16, 8], [0], 2, 0.7, 32)
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [4.67872334])
    """
    return ops.yolo_loss(
        x, gt_box, gt_label, list(anchors), list(anchor_mask), class_num, ignore_thresh, downsample_ratio, gt_score,
        use_label_smooth, scale_x_y,
    )  # fmt: skip
