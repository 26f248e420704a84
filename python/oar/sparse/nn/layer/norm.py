"""Normalisation of sparse images."""

from __future__ import annotations

from typing import Any

from oar import _C, _sparse, nn
from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["BatchNorm", "SyncBatchNorm"]


def _normalised(layer: Any, x: Tensor) -> Tensor:
    """Over the elements that x holds; its last axis, the channels, is dense."""
    _sparse.require(x, type(layer).__name__, ("sparse_coo",))
    if x.dense_dim() != 1:
        raise ValueError(f"[{type(layer).__name__}] x of shape {list(x.shape)} has {x.dense_dim()} dense axes; the "
                         "channels, which are last, must be the only one.")
    values = F.batch_norm(
        x.values(), layer._mean, layer._variance, layer.weight, layer.bias, layer.training, layer._momentum,
        layer._epsilon, "NC", layer._use_global_stats,
    )  # fmt: skip
    return _C.sparse_with_values(x, values)


class BatchNorm(nn.BatchNorm1D):  # type: ignore[misc,valid-type]
    """Batch normalisation of sparse images over the elements that they hold.

    Args:
        num_features: the number of channels.
        momentum: how much of the old running statistics is kept at each step.
        epsilon: added to the variance.
        weight_attr: attributes of the scale; False for none.
        bias_attr: attributes of the shift; False for none.
        data_format: ``'NDHWC'`` or ``'NHWC'``.
        use_global_stats: True: use the running statistics while training too; None or False: not.

    Examples:
        >>> import oar
        >>> x = oar.rand([2, 3, 3, 3, 4]).to_sparse_coo(4)
        >>> oar.sparse.nn.BatchNorm(4)(x).shape
        [2, 3, 3, 3, 4]
    """

    def __init__(
        self,
        num_features: int,
        momentum: float = 0.9,
        epsilon: float = 1e-05,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NDHWC",
        use_global_stats: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name
        )

    def _check_data_format(self, input: str) -> str:
        if input not in ("NDHWC", "NHWC"):
            raise ValueError(f"data_format is {input!r}; sparse images have their channels last: 'NDHWC' or 'NHWC'.")
        return input

    def forward(self, input: Tensor) -> Tensor:
        return _normalised(self, input)


class SyncBatchNorm(nn.SyncBatchNorm):
    """Batch normalisation of sparse images over the batches of all processes; with one process, that of its batch.

    Args:
        num_features: the number of channels.
        momentum: how much of the running statistics is kept in each step.
        epsilon: a small number that avoids division by zero.
        weight_attr: attributes of the scale; False for none.
        bias_attr: attributes of the shift; False for none.
        data_format: accepted for compatibility; the channels are last.

    Examples:
        >>> import oar
        >>> x = oar.rand([2, 3, 3, 4]).to_sparse_coo(3)
        >>> oar.sparse.nn.SyncBatchNorm(4)(x).shape
        [2, 3, 3, 4]
    """

    def forward(self, x: Tensor) -> Tensor:
        return _normalised(self, x)

    @classmethod
    def convert_sync_batchnorm(cls, layer: Layer) -> Layer:
        """``layer`` with each sparse BatchNorm in it replaced by a synchronous one that has its parameters."""
        result = layer
        if isinstance(layer, BatchNorm):
            weight, bias = (False if parameter is None else None for parameter in (layer.weight, layer.bias))
            result = cls(
                layer._num_features, layer._momentum, layer._epsilon, weight, bias, layer._data_format, layer._name
            )
            result._use_global_stats = layer._use_global_stats
            result.training = layer.training
            for key in ("weight", "bias", "_mean", "_variance"):
                setattr(result, key, getattr(layer, key))
        for key, child in layer.named_children():
            result.add_sublayer(key, cls.convert_sync_batchnorm(child))
        return result
