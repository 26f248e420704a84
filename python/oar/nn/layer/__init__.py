"""The layers, one file per kind."""

from oar.nn.layer.activation import GELU, LogSoftmax, ReLU, Sigmoid, Silu, Softmax, Tanh
from oar.nn.layer.common import Dropout, Embedding, Flatten, Identity, Linear, Unflatten
from oar.nn.layer.container import LayerDict, LayerList, ParameterList, Sequential
from oar.nn.layer.conv import Conv2D
from oar.nn.layer.layers import Layer
from oar.nn.layer.loss import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from oar.nn.layer.norm import BatchNorm, BatchNorm1D, BatchNorm2D, LayerNorm
from oar.nn.layer.pooling import AvgPool2D, MaxPool2D
from oar.nn.layer.vision import *  # noqa: F403
from oar.nn.layer.vision import __all__ as _vision

__all__ = [
    "AvgPool2D",
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "Conv2D",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "Identity",
    "L1Loss",
    "Layer",
    "LayerDict",
    "LayerList",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2D",
    "NLLLoss",
    "ParameterList",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Silu",
    "Softmax",
    "Tanh",
    "Unflatten",
    *_vision,
]
