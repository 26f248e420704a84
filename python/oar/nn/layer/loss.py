"""Losses as layers."""

from __future__ import annotations

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = ["CrossEntropyLoss", "L1Loss", "MSELoss", "NLLLoss"]

_REDUCTIONS = ("sum", "mean", "none")


def _check_reduction(layer: str, reduction: str) -> str:
    if reduction not in _REDUCTIONS:
        raise ValueError(f"{layer}: reduction should be 'sum', 'mean' or 'none', but received {reduction!r}.")
    return reduction


class CrossEntropyLoss(Layer):
    """Softmax and cross entropy in one.

    Args:
        weight: a weight per class.
        ignore_index: labels with this value do not count.
        reduction: ``'mean'``, ``'sum'`` or ``'none'``.
        soft_label: labels are distributions over the classes, not class numbers.
        axis: the axis of the classes.
        use_softmax: False when the input holds probabilities already.
        label_smoothing: the share of probability that is spread over all classes.
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        soft_label: bool = False,
        axis: int = -1,
        use_softmax: bool = True,
        label_smoothing: float = 0.0,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.ignore_index = ignore_index
        self.reduction = _check_reduction("CrossEntropyLoss", reduction)
        self.soft_label = soft_label
        self.axis = axis
        self.use_softmax = use_softmax
        self.label_smoothing = label_smoothing
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.cross_entropy(
            input, label, self.weight, self.ignore_index, self.reduction, self.soft_label, self.axis,
            self.use_softmax, self.label_smoothing,
        )  # fmt: skip


class MSELoss(Layer):
    """The square of the difference."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _check_reduction("MSELoss", reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.mse_loss(input, label, self.reduction)


class L1Loss(Layer):
    """The absolute difference."""

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = _check_reduction("L1Loss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.l1_loss(input, label, self.reduction)


class NLLLoss(Layer):
    """The negative log-likelihood of the labelled class; the input holds log-probabilities."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self._weight = weight
        self._ignore_index = ignore_index
        self._reduction = _check_reduction("NLLLoss", reduction)
        self._name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.nll_loss(input, label, self._weight, self._ignore_index, self._reduction)
