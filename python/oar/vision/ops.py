"""Functions and layers that detect objects in images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oar._C import ops
from oar.vision._boxes import (
    box_coder,
    distribute_fpn_proposals,
    generate_proposals,
    matrix_nms,
    prior_box,
    yolo_box,
    yolo_loss,
)
from oar.vision._files import decode_jpeg, read_file
from oar.vision._layers import ConvNormActivation, DeformConv2D, PSRoIPool, RoIAlign, RoIPool

if TYPE_CHECKING:
    from oar._ops import deform_conv2d, nms, psroi_pool, roi_align, roi_pool
else:
    deform_conv2d, nms = ops.deform_conv2d, ops.nms
    psroi_pool, roi_align, roi_pool = ops.psroi_pool, ops.roi_align, ops.roi_pool

__all__ = [
    "ConvNormActivation",
    "DeformConv2D",
    "PSRoIPool",
    "RoIAlign",
    "RoIPool",
    "box_coder",
    "decode_jpeg",
    "deform_conv2d",
    "distribute_fpn_proposals",
    "generate_proposals",
    "matrix_nms",
    "nms",
    "prior_box",
    "psroi_pool",
    "read_file",
    "roi_align",
    "roi_pool",
    "yolo_box",
    "yolo_loss",
]
