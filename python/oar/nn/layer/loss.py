"""Losses as layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HSigmoidLoss",
    "HingeEmbeddingLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PoissonNLLLoss",
    "RNNTLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

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

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.CrossEntropyLoss()(oar.to_tensor([[2.0, 0.5, -1.0]]), oar.to_tensor([0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.24131131)
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
    """The square of the difference.

    Args:
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.MSELoss()(oar.to_tensor([1.0, 2.0]), oar.to_tensor([1.0, 5.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               4.50000000)
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = _check_reduction("MSELoss", reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.mse_loss(input, label, self.reduction)


class L1Loss(Layer):
    """The absolute difference.

    Args:
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.L1Loss()(oar.to_tensor([1.0, 2.0]), oar.to_tensor([1.0, 5.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               1.50000000)
    """

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = _check_reduction("L1Loss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.l1_loss(input, label, self.reduction)


class NLLLoss(Layer):
    """The negative log-likelihood of the labelled class; the input holds log-probabilities.

    Args:
        weight: a factor per class or element, or None.
        ignore_index: a label that does not count.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.NLLLoss()(oar.to_tensor([[-0.1, -2.4]]), oar.to_tensor([0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.10000000)
    """

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


class BCELoss(Layer):
    """The cross entropy of probabilities and labels in [0, 1].

    Args:
        weight: a factor per class or element, or None.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.BCELoss()(oar.to_tensor([0.9, 0.2]), oar.to_tensor([1.0, 0.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.16425204)
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.weight = weight
        self.reduction = _check_reduction("BCELoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, label, self.weight, self.reduction)


class BCEWithLogitsLoss(Layer):
    """The cross entropy of ``sigmoid(logit)`` and labels in [0, 1].

    Args:
        weight: a factor per class or element, or None.
        reduction: 'mean', 'sum' or 'none'.
        pos_weight: a factor for the positive labels.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.BCEWithLogitsLoss()(oar.to_tensor([2.0, -1.0]), oar.to_tensor([1.0, 0.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.22009489)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.weight = weight
        self.reduction = _check_reduction("BCEWithLogitsLoss", reduction)
        self.pos_weight = pos_weight
        self.name = name

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logit, label, self.weight, self.reduction, self.pos_weight)


class CTCLoss(Layer):
    """Connectionist temporal classification; see ``oar.nn.functional.ctc_loss``.

    Args:
        blank: the class that stands for no label.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> labels = oar.to_tensor([[1, 2]], dtype='int32')
        >>> nn.CTCLoss()(oar.zeros([4, 1, 3]), labels, oar.to_tensor([4]), oar.to_tensor([2]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.84319949)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean") -> None:
        super().__init__()
        self.blank = blank
        self.reduction = _check_reduction("CTCLoss", reduction)

    def forward(
        self, log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, norm_by_times: bool = False
    ) -> Tensor:
        return F.ctc_loss(log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction, norm_by_times)


class RNNTLoss(Layer):
    """The transducer's loss; see ``oar.nn.functional.rnnt_loss``.

    Args:
        blank: the class that stands for no label.
        fastemit_lambda: how strongly early labels are favoured.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> scores = oar.zeros([1, 3, 3, 4])  # [batch, steps, labels + 1, classes]
        >>> labels, steps, length = (oar.to_tensor(v, dtype='int32') for v in ([[1, 2]], [3], [2]))
        >>> nn.RNNTLoss()(scores, labels, steps, length)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               -1.79175949)
    """

    def __init__(
        self, blank: int = 0, fastemit_lambda: float = 0.001, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__()
        self.blank = blank
        self.fastemit_lambda = fastemit_lambda
        self.reduction = _check_reduction("RNNTLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor, input_lengths: Tensor, label_lengths: Tensor) -> Tensor:
        return F.rnnt_loss(
            input, label, input_lengths, label_lengths, self.blank, self.fastemit_lambda, self.reduction
        )


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
        self.margin = margin
        self.reduction = _check_reduction("CosineEmbeddingLoss", reduction)
        self.name = name

    def forward(self, input1: Tensor, input2: Tensor, label: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, label, self.margin, self.reduction)


class GaussianNLLLoss(Layer):
    """The negative log-likelihood of labels under normal distributions.

    Args:
        full: whether to add the constant terms.
        epsilon: a small number that avoids division by zero.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.GaussianNLLLoss()(oar.to_tensor([1.0]), oar.to_tensor([1.5]), oar.to_tensor([0.5]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               -0.09657359)
    """

    def __init__(
        self,
        full: bool = False,
        epsilon: float = 1e-6,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.full = full
        self.epsilon = epsilon
        self.reduction = _check_reduction("GaussianNLLLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor, variance: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, label, variance, self.full, self.epsilon, self.reduction)


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
        self.reduction = _check_reduction("HingeEmbeddingLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, label, self.margin, self.reduction)


class KLDivLoss(Layer):
    """The Kullback-Leibler divergence; the input holds log-probabilities.

    Args:
        reduction: 'mean', 'sum' or 'none'.
        log_target: whether the labels are logarithms.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.KLDivLoss(reduction='sum')(oar.log(oar.to_tensor([0.25, 0.75])), oar.to_tensor([0.5, 0.5]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.14384103)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__()
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.kl_div(input, label, self.reduction, self.log_target)


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
        self.reduction = _check_reduction("MarginRankingLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, other: Tensor, label: Tensor) -> Tensor:
        return F.margin_ranking_loss(input, other, label, self.margin, self.reduction)


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
        self.reduction = _check_reduction("MultiLabelSoftMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_label_soft_margin_loss(input, label, self.weight, self.reduction)


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
        self.reduction = _check_reduction("MultiMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.multi_margin_loss(input, label, self.p, self.margin, self.weight, self.reduction)


class PoissonNLLLoss(Layer):
    """The negative log-likelihood of counts under Poisson distributions.

    Args:
        log_input: whether the input is the logarithm of the mean.
        full: whether to add the constant terms.
        epsilon: a small number that avoids division by zero.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.PoissonNLLLoss()(oar.to_tensor([0.5, 1.0]), oar.to_tensor([2.0, 3.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.18350148)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        epsilon: float = 1e-8,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.log_input = log_input
        self.full = full
        self.epsilon = epsilon
        self.reduction = _check_reduction("PoissonNLLLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.poisson_nll_loss(input, label, self.log_input, self.full, self.epsilon, self.reduction)


class SmoothL1Loss(Layer):
    """The square of small differences, halved; of large ones the size.

    Args:
        reduction: 'mean', 'sum' or 'none'.
        delta: where the square ends and the straight line begins.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.SmoothL1Loss()(oar.to_tensor([1.0, 2.0]), oar.to_tensor([1.5, 5.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               1.31250000)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0, name: str | None = None) -> None:
        super().__init__()
        self.reduction = _check_reduction("SmoothL1Loss", reduction)
        self.delta = delta
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, label, self.reduction, self.delta)


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
        self.reduction = _check_reduction("SoftMarginLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.soft_margin_loss(input, label, self.reduction)


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
        self.reduction = _check_reduction("TripletMarginLoss", reduction)
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
        self.reduction = _check_reduction("TripletMarginWithDistanceLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            input, positive, negative, self.distance_function, self.margin, self.swap, self.reduction
        )


class HSigmoidLoss(Layer):
    """The negative log-probability of a class that is reached by decisions down a binary tree.

    Args:
        feature_size: size of the input's last axis.
        num_classes: the number of classes; with ``is_custom``, of inner nodes.
        weight_attr: attributes of the weight.
        bias_attr: attributes of the bias; False for none.
        is_custom: paths are given with each call.
        is_sparse: the weight's gradient holds only the rows that were used.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.HSigmoidLoss(4, 6)(oar.ones([2, 4]), oar.to_tensor([0, 5])).shape
        [2, 1]
    """

    def __init__(
        self,
        feature_size: int,
        num_classes: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        is_custom: bool = False,
        is_sparse: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        if num_classes < 2 and not is_custom:
            raise ValueError(f"num_classes must not be less than 2 with default tree, but is {num_classes}.")
        self._feature_size = feature_size
        self._num_classes = num_classes
        self._is_custom = is_custom
        self._is_sparse = is_sparse
        self._name = name
        self._dtype = oar.get_default_dtype()
        nodes = num_classes if is_custom else num_classes - 1
        self.weight = self.create_parameter([nodes, feature_size], weight_attr, self._dtype)
        self.bias = self.create_parameter([nodes, 1], bias_attr, self._dtype, is_bias=True)

    def forward(
        self, input: Tensor, label: Tensor, path_table: Tensor | None = None, path_code: Tensor | None = None
    ) -> Tensor:
        if self._is_custom and (path_table is None or path_code is None):
            raise ValueError("A custom tree needs path_table and path_code with each call.")
        return F.hsigmoid_loss(
            input, label, self._num_classes, self.weight, self.bias, path_table, path_code, self._is_sparse
        )


class AdaptiveLogSoftmaxWithLoss(Layer):
    """A softmax over many classes in which rare ones sit in clusters of their own, with smaller projections.

    Args:
        in_features: size of the input's last axis.
        n_classes: the number of classes, the most frequent first.
        cutoffs: where clusters begin, ascending.
        div_value: each cluster's projection is smaller than the one before by this factor.
        head_bias: the head has a bias.
        weight_attr: a ``ParamAttr`` or an initialiser for the weights.
        bias_attr: a ``ParamAttr`` or an initialiser for the biases.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> layer = nn.AdaptiveLogSoftmaxWithLoss(4, 10, cutoffs=[2, 5])
        >>> output, loss = layer(oar.ones([3, 4]), oar.to_tensor([0, 3, 9]))
        >>> output.shape, loss.shape
        ([3], [])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        weight_attr: Any = None,
        bias_attr: Any = None,
        div_value: float = 4.0,
        head_bias: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        ascending = all(low < high for low, high in zip(cutoffs, cutoffs[1:]))
        if not cutoffs or not ascending or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                f"cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                f"value is between 1 and n_classes - 1, but received {cutoffs} for {n_classes} classes."
            )
        if any(int(cut) != cut for cut in cutoffs):
            raise ValueError(f"cutoffs should be integers, but received {cutoffs}.")
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self._dtype = oar.get_default_dtype()
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head_weight = self.create_parameter([in_features, self.head_size], weight_attr, self._dtype)
        self.head_bias = None
        if head_bias:
            self.head_bias = self.create_parameter([self.head_size], bias_attr, self._dtype, is_bias=True)
        self.tail_weights = []
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            pair = [
                self.create_parameter([in_features, hidden], weight_attr, self._dtype),
                self.create_parameter([hidden, size], weight_attr, self._dtype),
            ]
            self.add_parameter(f"tail_{i}_proj", pair[0])
            self.add_parameter(f"tail_{i}_out", pair[1])
            self.tail_weights.append(pair)

    def forward(self, input: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        return F.adaptive_log_softmax_with_loss(
            input, label, self.head_weight, self.tail_weights, self.cutoffs, self.head_bias
        )

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes."""
        head = F.log_softmax(F.linear(input, self.head_weight, self.head_bias), axis=1)
        parts = [head[:, : self.shortlist_size]]
        for i, (projection, scores) in enumerate(self.tail_weights):
            cluster = F.log_softmax(F.linear(F.linear(input, projection), scores), axis=1)
            parts.append(cluster + head[:, self.shortlist_size + i : self.shortlist_size + i + 1])
        return oar.concat(parts, axis=1)

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each row."""
        return oar.argmax(self.log_prob(input), axis=1)
