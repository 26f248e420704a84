"""The layers, one file per kind."""

from oar.nn.layer import activation as _activation
from oar.nn.layer import distance as _distance
from oar.nn.layer import dropout as _dropout
from oar.nn.layer import loss as _loss
from oar.nn.layer.activation import *  # noqa: F403
from oar.nn.layer.common import Dropout, Embedding, Flatten, Identity, Linear, Unflatten
from oar.nn.layer.container import LayerDict, LayerList, ParameterList, Sequential
from oar.nn.layer.conv import Conv2D
from oar.nn.layer.distance import *  # noqa: F403
from oar.nn.layer.dropout import *  # noqa: F403
from oar.nn.layer.layers import Layer
from oar.nn.layer.loss import *  # noqa: F403
from oar.nn.layer.norm import BatchNorm, BatchNorm1D, BatchNorm2D, LayerNorm
from oar.nn.layer.pooling import AvgPool2D, MaxPool2D

__all__ = [
    "AvgPool2D",
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "Conv2D",
    "Dropout",
    "Embedding",
    "Flatten",
    "Identity",
    "Layer",
    "LayerDict",
    "LayerList",
    "LayerNorm",
    "Linear",
    "MaxPool2D",
    "ParameterList",
    "Sequential",
    "Unflatten",
]

__all__ += [*_activation.__all__, *_distance.__all__, *_dropout.__all__, *_loss.__all__]
