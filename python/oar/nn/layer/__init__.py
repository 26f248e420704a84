"""The layers, one file per kind."""

from oar.nn.layer.activation import GELU, LogSoftmax, ReLU, Sigmoid, Silu, Softmax, Tanh
from oar.nn.layer.common import Dropout, Embedding, Flatten, Identity, Linear, Unflatten
from oar.nn.layer.container import LayerDict, LayerList, ParameterList, Sequential
from oar.nn.layer.conv import Conv2D
from oar.nn.layer.layers import Layer
from oar.nn.layer.loss import CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from oar.nn.layer.norm import BatchNorm, BatchNorm1D, BatchNorm2D, LayerNorm, RMSNorm
from oar.nn.layer.pooling import AvgPool2D, MaxPool2D
from oar.nn.layer.rnn import BiRNN, GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCellBase, SimpleRNN, SimpleRNNCell
from oar.nn.layer.transformer import (
    MultiHeadAttention,
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

__all__ = [
    "AvgPool2D",
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "BiRNN",
    "Conv2D",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "GRU",
    "GRUCell",
    "Identity",
    "L1Loss",
    "LSTM",
    "LSTMCell",
    "Layer",
    "LayerDict",
    "LayerList",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MaxPool2D",
    "MultiHeadAttention",
    "NLLLoss",
    "ParameterList",
    "RMSNorm",
    "RNN",
    "RNNCellBase",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "Silu",
    "SimpleRNN",
    "SimpleRNNCell",
    "Softmax",
    "Tanh",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "Unflatten",
]
