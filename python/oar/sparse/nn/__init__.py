"""Layers of sparse tensors."""

from oar.sparse.nn import functional
from oar.sparse.nn.layer.activation import LeakyReLU, ReLU, ReLU6, Softmax
from oar.sparse.nn.layer.conv import Conv2D, Conv3D, SubmConv2D, SubmConv3D
from oar.sparse.nn.layer.norm import BatchNorm, SyncBatchNorm
from oar.sparse.nn.layer.pooling import MaxPool3D

__all__ = [
    "BatchNorm", "Conv2D", "Conv3D", "LeakyReLU", "MaxPool3D", "ReLU", "ReLU6", "Softmax", "SubmConv2D", "SubmConv3D",
    "SyncBatchNorm", "functional",
]  # fmt: skip
