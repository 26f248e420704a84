"""Losses whose arguments are more than a schema can say: functions, flags that change what is returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar._C import Tensor, ops

__all__ = [
    "adaptive_log_softmax_with_loss",
    "ctc_loss",
    "margin_cross_entropy",
    "multi_label_margin_loss",
    "rnnt_loss",
    "softmax_with_cross_entropy",
    "triplet_margin_with_distance_loss",
]


def _reduced(function: str, loss: Tensor, reduction: str | None) -> Tensor:
    if reduction == "mean":
        return loss.mean()
    if reduction == "sum":
        return loss.sum()
    if reduction in ("none", None):
        return loss
    raise ValueError(f"[{function}] reduction is {reduction!r}; it can be 'mean', 'sum' or 'none'.")


def ctc_loss(
    log_probs: Tensor,
    labels: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    reduction: str = "mean",
    norm_by_times: bool = False,
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification: how unlikely label sequences are, over all alignments.

    Args:
        log_probs: scores of ``[steps, batch, classes]``; the softmax is taken here.
        labels: class numbers of ``[batch, longest label]``.
        input_lengths: the steps that count, for each sequence.
        label_lengths: the labels that count, for each sequence.
        blank: the class that means no label.
        reduction: ``'mean'`` (of losses divided by label lengths), ``'sum'`` or ``'none'``.
        norm_by_times: divide each sequence's gradient by its number of steps.
        zero_infinity: losses that are infinite, of labels whose probability is 0, count as 0 and give no gradient.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> scores = oar.zeros([4, 1, 3])  # [steps, batch, classes]
        >>> F.ctc_loss(scores, oar.to_tensor([[1, 2]], dtype='int32'), oar.to_tensor([4]), oar.to_tensor([2]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.84319949)
    """
    loss = ops.ctc(ops.log_softmax(log_probs, -1), labels, input_lengths, label_lengths, blank)
    if norm_by_times:
        share = loss / input_lengths.astype(loss.dtype)
        loss = share + (loss - share).detach()
    if zero_infinity:
        loss = ops.masked_fill(loss, ops.isinf(loss), 0.0)
    if reduction == "mean":
        return (loss / label_lengths.astype(loss.dtype)).mean()
    return _reduced("ctc_loss", loss, reduction)


def rnnt_loss(
    input: Tensor,
    label: Tensor,
    input_lengths: Tensor,
    label_lengths: Tensor,
    blank: int = 0,
    fastemit_lambda: float = 0.001,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """The transducer's loss: how unlikely label sequences are, over all ways to emit them.

    Args:
        input: log-probabilities of ``[batch, steps, longest label + 1, classes]``; pass scores through
            ``log_softmax`` first.
        label: class numbers of ``[batch, longest label]``.
        input_lengths: the steps that count, for each sequence.
        label_lengths: the labels that count, for each sequence.
        blank: the class that means no label.
        fastemit_lambda: increases the gradient of emissions by this factor (FastEmit).
        reduction: ``'mean'``, ``'sum'`` or ``'none'``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> scores = oar.zeros([1, 3, 3, 4])  # [batch, steps, labels + 1, classes]
        >>> labels, steps, length = (oar.to_tensor(v, dtype='int32') for v in ([[1, 2]], [3], [2]))
        >>> F.rnnt_loss(scores, labels, steps, length)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               -1.79175949)
    """
    loss = ops.rnnt(input, label, input_lengths, label_lengths, blank, fastemit_lambda)
    return _reduced("rnnt_loss", loss, reduction)


def margin_cross_entropy(
    logits: Tensor,
    label: Tensor,
    margin1: float = 1.0,
    margin2: float = 0.5,
    margin3: float = 0.0,
    scale: float = 64.0,
    group: Any = None,
    return_softmax: bool = False,
    reduction: str | None = "mean",
) -> Tensor | tuple[Tensor, Tensor]:
    """Cross entropy of cosines with margins (ArcFace and similar).

    The labelled class's cosine becomes ``cos(margin1 * angle + margin2) - margin3``; all are multiplied by
    ``scale``. Classes are on this device only, so ``group`` is None or False.

    Args:
        logits: the scores, or the cosines.
        label: the expected classes.
        margin1: the factor of the angle.
        margin2: what is added to the angle.
        margin3: what is subtracted from the cosine.
        scale: the factor of the cosines.
        group: accepted for compatibility.
        return_softmax: whether to return the softmax as well.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.margin_cross_entropy(oar.to_tensor([[0.9, 0.1], [0.2, 0.7]]), oar.to_tensor([0, 1]), scale=4.0)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.34798729)
    """
    if group not in (None, False):
        raise NotImplementedError("[margin_cross_entropy] classes that are spread over a group are not supported.")
    if label.ndim not in (logits.ndim, logits.ndim - 1):
        raise ValueError(
            f"[margin_cross_entropy] label has {label.ndim} axes and logits {logits.ndim}; label must have as many "
            "or one less."
        )
    column = label if label.ndim == logits.ndim else ops.unsqueeze(label, -1)
    loss, softmax = ops.margin_softmax(logits, column, margin1, margin2, margin3, scale)
    loss = _reduced("margin_cross_entropy", loss, reduction)
    return (loss, softmax) if return_softmax else loss


def multi_label_margin_loss(
    input: Tensor, label: Tensor, reduction: str = "mean", name: str | None = None
) -> Tensor:
    """For each pair of a class of a sample and one that is not: how much their scores are less than 1 apart.

    The sum of ``max(0, 1 - (score of the class - other score))``, divided by the number of classes.

    Args:
        input: the scores, ``[N, C]`` or ``[C]``.
        label: the classes of each sample, in the same shape; those from the first -1 on do not count.
        reduction: 'mean', 'sum' or 'none'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> scores, classes = oar.to_tensor([[0.1, 0.2, 0.4, 0.8]]), oar.to_tensor([[3, 0, -1, 1]])
        >>> F.multi_label_margin_loss(scores, classes)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.84999996)
    """
    if list(input.shape) != list(label.shape) or input.ndim not in (1, 2):
        raise ValueError(f"[multi_label_margin_loss] input and label must both be [N, C] or [C], but their shapes are "
                         f"{list(input.shape)} and {list(label.shape)}.")
    if input.ndim == 1:
        rows = multi_label_margin_loss(ops.unsqueeze(input, [0]), ops.unsqueeze(label, [0]), "none")
        return _reduced("multi_label_margin_loss", ops.squeeze(rows, [0]), reduction)
    counts = ops.cumprod(ops.cast(ops.greater_equal(label, 0), "int32"), 1)
    places = ops.cast(ops.where(ops.equal(counts, 1), label, ops.zeros_like(label)), "int64")
    counts = ops.cast(counts, input.dtype)
    is_class = ops.put_along_axis(ops.zeros_like(input), places, counts, 1, "amax")
    wanted = ops.take_along_axis(input, places, 1)
    apart = ops.unsqueeze(wanted, [2]) - ops.unsqueeze(input, [1])
    pairs = ops.unsqueeze(counts, [2]) * ops.unsqueeze(1.0 - is_class, [1])
    rows = ops.sum(ops.relu(1.0 - apart) * pairs, [1, 2]) / input.shape[1]
    return _reduced("multi_label_margin_loss", rows, reduction)


def softmax_with_cross_entropy(
    logits: Tensor,
    label: Tensor,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Tensor | tuple[Tensor, Tensor]:
    """The cross entropy of each sample, with the axis of the classes kept at size 1.

    ``numeric_stable_mode`` is accepted for compatibility: it is always stable.

    Args:
        logits: the scores, or the cosines.
        label: the expected classes.
        soft_label: whether labels are distributions over the classes.
        ignore_index: a label that does not count.
        numeric_stable_mode: accepted for compatibility.
        return_softmax: whether to return the softmax as well.
        axis: the axis to work along; a negative one counts from the end.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.softmax_with_cross_entropy(oar.to_tensor([[2.0, 0.5]]), oar.to_tensor([[0]]))
        Tensor(shape=[1, 1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[0.20141339]])
    """
    if label.ndim not in (logits.ndim, logits.ndim - 1):
        raise ValueError(
            f"[softmax_with_cross_entropy] label has {label.ndim} axes and logits {logits.ndim}; label must have "
            "as many or one less."
        )
    label = label if label.ndim == logits.ndim else ops.unsqueeze(label, axis)
    loss = ops.cross_entropy(logits, label, None, ignore_index, "none", soft_label, axis)
    return (loss, ops.softmax(logits, axis)) if return_softmax else loss


def triplet_margin_with_distance_loss(
    input: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Tensor:
    """``max(0, distance(input, positive) - distance(input, negative) + margin)`` for any distance.

    With ``swap``, the negative's smaller distance to the input or the positive counts.

    Args:
        input: the input.
        positive: the samples of the same class.
        negative: the samples of another class.
        distance_function: a function of two tensors; the Euclidean distance if None.
        margin: the margin; see the description above.
        swap: whether the distance of positive and negative counts if that is smaller.
        reduction: 'mean', 'sum' or 'none'.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> F.triplet_margin_with_distance_loss(oar.to_tensor([[0.0]]), oar.to_tensor([[1.0]]), oar.to_tensor([[1.5]]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.49999994)
    """
    if margin < 0:
        raise ValueError(f"[triplet_margin_with_distance_loss] margin is {margin}; it must not be negative.")
    if not list(input.shape) == list(positive.shape) == list(negative.shape):
        raise ValueError(
            f"[triplet_margin_with_distance_loss] input has shape {input.shape}, positive {positive.shape} and "
            f"negative {negative.shape}; they must be equal."
        )
    distance = distance_function or ops.pairwise_distance
    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = oar.minimum(far, distance(positive, negative))
    return _reduced("triplet_margin_with_distance_loss", ops.relu(near - far + margin), reduction)


def adaptive_log_softmax_with_loss(
    input: Tensor,
    label: Tensor,
    head_weight: Tensor,
    tail_weights: Sequence[Sequence[Tensor]],
    cutoffs: Sequence[int],
    head_bias: Tensor | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """The log-probability of each label, and the mean loss, where rare classes are in separate clusters.

    Args:
        input: ``[batch, size]``, or ``[size]`` with a 0-d label.
        label: class numbers.
        head_weight: scores the frequent classes and one entry per cluster.
        tail_weights: for each cluster a projection and the scores of its classes.
        cutoffs: where clusters begin; the last is the number of classes.
        head_bias: added to the head's scores.

    Returns:
        two tensors, as described above.

    Examples:
        >>> import oar
        >>> import oar.nn.functional as F
        >>> x, labels = oar.ones([2, 4]), oar.to_tensor([0, 5])
        >>> head, tail = oar.zeros([4, 3]), [[oar.zeros([4, 2]), oar.zeros([2, 4])]]
        >>> output, loss = F.adaptive_log_softmax_with_loss(x, labels, head, tail, cutoffs=[2, 6])
        >>> loss
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               1.79175949)
    """
    if label.ndim > 1 or input.ndim != label.ndim + 1 or (label.ndim == 1 and input.shape[0] != label.shape[0]):
        raise ValueError(
            f"[adaptive_log_softmax_with_loss] input has shape {input.shape} and label {label.shape}; they must be "
            "[batch, size] and [batch], or [size] and []."
        )
    single = label.ndim == 0
    if single:
        input, label = ops.unsqueeze(input, 0), ops.unsqueeze(label, 0)
    if label.shape[0] and not 0 <= int(label.min()) <= int(label.max()) < cutoffs[-1]:
        raise ValueError(
            f"[adaptive_log_softmax_with_loss] labels go from {int(label.min())} to {int(label.max())}; they must "
            f"be in [0, {cutoffs[-1] - 1}]."
        )
    head = ops.log_softmax(ops.linear(input, head_weight, head_bias), 1)
    place, output = label, ops.zeros([label.shape[0]], input.dtype)
    for i, (low, high) in enumerate(zip(cutoffs[:-1], cutoffs[1:])):
        inside = oar.logical_and(label >= low, label < high)
        place = oar.where(inside, ops.full_like(label, cutoffs[0] + i), place)
        rows = ops.reshape(oar.nonzero(inside), [-1])
        if rows.shape[0] == 0:
            continue
        projection, scores = tail_weights[i]
        cluster = ops.log_softmax(ops.linear(ops.linear(ops.index_select(input, rows), projection), scores), 1)
        picked = ops.take_along_axis(cluster, ops.unsqueeze(ops.index_select(label, rows) - low, 1), 1)
        output = ops.index_add(output, rows, 0, ops.squeeze(picked, 1))
    output = output + ops.squeeze(ops.take_along_axis(head, ops.unsqueeze(place, 1), 1), 1)
    loss = -output.mean()
    return (ops.squeeze(output, 0) if single else output), loss
