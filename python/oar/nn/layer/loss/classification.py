"""Losses of classification: cross entropy in its forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer
from oar.nn.layer.loss._reduction import check_reduction

__all__ = [
    "AdaptiveLogSoftmaxWithLoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "HSigmoidLoss",
    "NLLLoss",
]

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
        self.reduction = check_reduction("CrossEntropyLoss", reduction)
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
        self._reduction = check_reduction("NLLLoss", reduction)
        self._name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.nll_loss(input, label, self._weight, self._ignore_index, self._reduction, name=self._name)


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
        self.reduction = check_reduction("BCELoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, label, self.weight, self.reduction, name=self.name)


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
        self.reduction = check_reduction("BCEWithLogitsLoss", reduction)
        self.pos_weight = pos_weight
        self.name = name

    def forward(self, logit: Tensor, label: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            logit, label, self.weight, self.reduction, self.pos_weight, name=self.name
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
    """A softmax over many classes in which rare ones are in separate clusters, with smaller projections.

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
