"""Ops that detect objects, whose form in Paddle's inner interfaces differs in more than names from Oar's functions."""

from __future__ import annotations

import oar
from oar._C import ops


def box_coder(prior_box, target_box, prior_box_var=None, code_type="encode_center_size", box_normalized=True, axis=0,
              variance=()):
    return oar.vision.ops.box_coder(
        prior_box, list(variance) if len(variance) else prior_box_var, target_box, code_type, box_normalized, axis
    )


def distribute_fpn_proposals(fpn_rois, rois_num, min_level, max_level, refer_level, refer_scale, pixel_offset=True):
    rois, restore, counts = oar.vision.ops.distribute_fpn_proposals(
        fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset, rois_num
    )
    return rois, counts, restore


def generate_proposals(scores, bbox_deltas, im_shape, anchors, variances, pre_nms_top_n=6000, post_nms_top_n=1000,
                       nms_thresh=0.5, min_size=0.1, eta=1.0, pixel_offset=True):
    return oar.vision.ops.generate_proposals(
        scores, bbox_deltas, im_shape, anchors, variances, pre_nms_top_n, post_nms_top_n, nms_thresh, min_size, eta,
        pixel_offset,
    )  # fmt: skip


def prior_box(input, image, min_sizes, max_sizes=None, aspect_ratios=None, variance=None, flip=True, clip=True,
              step_w=0.0, step_h=0.0, offset=0.5, min_max_aspect_ratios_order=False):
    return oar.vision.ops.prior_box(
        input, image, min_sizes, max_sizes, aspect_ratios or [1.0], variance or [0.1, 0.1, 0.2, 0.2], flip, clip,
        [step_w, step_h], offset, min_max_aspect_ratios_order,
    )  # fmt: skip


def roi_align(x, boxes, boxes_num, pooled_height=1, pooled_width=1, spatial_scale=1.0, sampling_ratio=-1,
              aligned=False):
    size = [pooled_height, pooled_width]
    return ops.roi_align(x, boxes, boxes_num, size, spatial_scale, sampling_ratio, aligned)


def roi_pool(x, boxes, boxes_num, pooled_height=1, pooled_width=1, spatial_scale=1.0):
    return ops.roi_pool(x, boxes, boxes_num, [pooled_height, pooled_width], spatial_scale)


def psroi_pool(x, boxes, boxes_num, pooled_height=1, pooled_width=1, output_channels=1, spatial_scale=1.0):
    return ops.psroi_pool(x, boxes, boxes_num, [pooled_height, pooled_width], spatial_scale)
