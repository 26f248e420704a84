"""Losses with a margin: between classes, between pairs, between triplets."""

from __future__ import annotations

from collections.abc import Callable

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer
from oar.nn.layer.loss._reduction import check_reduction

__all__ = [
    "CosineEmbeddingLoss",
    "HingeEmbeddingLoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class CosineEmbeddingLoss(Layer):
    """``1 - cosine`` for pairs that belong together, ``max(0, cosine - margin)`` for others.

    Args:
        margin: the margin; see the description above.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.CosineEmbeddingLoss()(oar.to_tensor([[1.0, 0.0]]), oar.to_tensor([[1.0, 1.0]]), oar.to_tensor([1]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.29289323)
    """

    def __init__(self, margin: float = 0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        if not -1 <= margin <= 1:
            raise ValueError(f"[CosineEmbeddingLoss] margin is {margin}; a cosine lies between -1 and 1.")
        self.margin = margin
        self.reduction = check_reduction("CosineEmbeddingLoss", reduction)
        self.name = name

    def forward(self, input1: Tensor, input2: Tensor, label: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, label, self.margin, self.reduction, name=self.name)


class HingeEmbeddingLoss(Layer):
    """The input where the label is 1, ``max(0, margin - input)`` where it is -1.

    Args:
        margin: the margin; see the description above.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.HingeEmbeddingLoss()(oar.to_tensor([0.3, 0.6]), oar.to_tensor([1.0, -1.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.34999999)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.margin = margin
        self.reduction = check_reduction("HingeEmbeddingLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, label, self.margin, self.reduction, name=self.name)


class MarginRankingLoss(Layer):
    """``max(0, margin - label * (input - other))``.

    Args:
        margin: the margin; see the description above.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.MarginRankingLoss()(oar.to_tensor([1.0, 2.0]), oar.to_tensor([3.0, 1.0]), oar.to_tensor([1.0, 1.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               1.)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.margin = margin
        self.reduction = check_reduction("MarginRankingLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, other: Tensor, label: Tensor) -> Tensor:
        return F.margin_ranking_loss(input, other, label, self.margin, self.reduction, name=self.name)


class MultiLabelMarginLoss(Layer):
    """For each pair of a class of a sample and one that is not: how much their scores are less than 1 apart.

    Args:
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.MultiLabelMarginLoss()(oar.to_tensor([[0.1, 0.2, 0.4, 0.8]]), oar.to_tensor([[3, 0, -1, 1]]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.84999996)
    """

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = check_reduction("MultiLabelMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_label_margin_loss(input, label, self.reduction, name=self.name)


class MultiLabelSoftMarginLoss(Layer):
    """The mean over classes of the cross entropy of each one's sigmoid.

    Args:
        weight: a factor per class or element, or None.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.MultiLabelSoftMarginLoss()(oar.to_tensor([[2.0, -1.0]]), oar.to_tensor([[1.0, 0.0]]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.22009489)
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.weight = weight
        self.reduction = check_reduction("MultiLabelSoftMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_label_soft_margin_loss(input, label, self.weight, self.reduction, name=self.name)


class MultiMarginLoss(Layer):
    """How far other classes come within a margin of the labelled one.

    Args:
        p: the exponent, 1 or 2.
        margin: the margin; see the description above.
        weight: a factor per class or element, or None.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.MultiMarginLoss()(oar.to_tensor([[0.1, 0.9, 0.4]]), oar.to_tensor([1]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.23333335)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.p = p
        self.margin = margin
        self.weight = weight
        self.reduction = check_reduction("MultiMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_margin_loss(input, label, self.p, self.margin, self.weight, self.reduction, name=self.name)


class SoftMarginLoss(Layer):
    """``log(1 + exp(-label * input))`` for labels of 1 and -1.

    Args:
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.SoftMarginLoss()(oar.to_tensor([2.0, -1.0]), oar.to_tensor([1.0, -1.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.22009486)
    """

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = check_reduction("SoftMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.soft_margin_loss(input, label, self.reduction, name=self.name)


class TripletMarginLoss(Layer):
    """How far the positive is from being closer than the negative by a margin.

    Args:
        margin: the margin; see the description above.
        p: the p of the norm.
        epsilon: a small number that avoids division by zero.
        swap: whether the distance of positive and negative counts if that is smaller.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.TripletMarginLoss()(oar.to_tensor([[0.0]]), oar.to_tensor([[1.0]]), oar.to_tensor([[1.5]]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.49999994)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        epsilon: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.margin = margin
        self.p = p
        self.epsilon = epsilon
        self.swap = swap
        self.reduction = check_reduction("TripletMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            input, positive, negative, self.margin, self.p, self.epsilon, self.swap, self.reduction
        )


class TripletMarginWithDistanceLoss(Layer):
    """``TripletMarginLoss`` with any distance.

    Args:
        distance_function: a function of two tensors; the Euclidean distance if None.
        margin: the margin; see the description above.
        swap: whether the distance of positive and negative counts if that is smaller.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> loss = nn.TripletMarginWithDistanceLoss(lambda a, b: (a - b).abs().sum(axis=-1))
        >>> loss(oar.to_tensor([[0.0]]), oar.to_tensor([[1.0]]), oar.to_tensor([[1.5]]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.50000000)
    """

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.distance_function = distance_function
        self.margin = margin
        self.swap = swap
        self.reduction = check_reduction("TripletMarginWithDistanceLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            input, positive, negative, self.distance_function, self.margin, self.swap, self.reduction
        )
