"""Layers as functions that create their parameters, for programs."""

from oar.static.nn.common import (
    bilinear_tensor_product,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    deform_conv2d,
    embedding,
    fc,
    prelu,
    row_conv,
    sparse_embedding,
)
from oar.static.nn.control_flow import case, cond, switch_case, while_loop
from oar.static.nn.host import py_func, static_pylayer
from oar.static.nn.loss import nce
from oar.static.nn.norms import batch_norm, data_norm, group_norm, instance_norm, layer_norm, spectral_norm
from oar.static.nn.sequences import (
    sequence_conv,
    sequence_expand,
    sequence_first_step,
    sequence_last_step,
    sequence_pool,
    sequence_softmax,
)
from oar.static.nn import sequence_lod  # noqa: F401, I001  (paddle.static.nn.sequence_lod needs no import of its own)

__all__ = [
    "batch_norm",
    "bilinear_tensor_product",
    "case",
    "cond",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "data_norm",
    "deform_conv2d",
    "embedding",
    "fc",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "nce",
    "prelu",
    "py_func",
    "row_conv",
    "sequence_conv",
    "sequence_expand",
    "sequence_first_step",
    "sequence_last_step",
    "sequence_pool",
    "sequence_softmax",
    "sparse_embedding",
    "spectral_norm",
    "static_pylayer",
    "switch_case",
    "while_loop",
]
