"""``Metric``, the base class, and accuracy."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np

__all__ = ["Accuracy", "Metric", "accuracy"]


class Metric:
    """Collects results over batches.

    ``compute`` works on tensors of one batch, ``update`` takes what it returns, ``accumulate`` gives the
    metric of all batches since ``reset``.

    Examples:
        >>> import oar
        >>> class Count(oar.metric.Metric):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.reset()
        ...     def reset(self):
        ...         self.total = 0
        ...     def update(self, labels):
        ...         self.total += len(labels)
        ...     def accumulate(self):
        ...         return self.total
        ...     def name(self):
        ...         return 'count'
        ...
        >>> count = Count()
        >>> count.update([1, 2, 3])
        >>> count.accumulate()
        3
    """

    def __init__(self) -> None:
        pass

    def reset(self) -> None:
        """Forget all batches."""
        raise NotImplementedError(f"{type(self).__name__} does not define reset().")

    def update(self, *args: Any) -> Any:
        """Take in the results of a batch."""
        raise NotImplementedError(f"{type(self).__name__} does not define update().")

    def accumulate(self) -> Any:
        """The metric of all batches."""
        raise NotImplementedError(f"{type(self).__name__} does not define accumulate().")

    def name(self) -> Any:
        """The metric's name, or names."""
        raise NotImplementedError(f"{type(self).__name__} does not define name().")

    def compute(self, *args: Any) -> Any:
        """What ``update`` needs of a batch; everything by default."""
        return args


def _class_numbers(label: np.ndarray, rank: int) -> np.ndarray:
    """Labels as class numbers ``[..., 1]``; they may come as that, without the last axis, or one-hot."""
    if label.ndim == rank - 1:
        return label[..., None]
    return label if label.shape[-1] == 1 else label.argmax(axis=-1)[..., None]


class Accuracy(Metric):
    """The share of samples whose label is among the ``k`` most likely classes, for each ``k`` of ``topk``.

    Args:
        topk: the values of ``k``.
        name: the metric's name; ``acc`` when None.

    Examples:
        >>> import oar
        >>> metric = oar.metric.Accuracy()
        >>> scores, labels = oar.to_tensor([[0.1, 0.9], [0.8, 0.2]]), oar.to_tensor([[1], [1]])
        >>> _ = metric.update(metric.compute(scores, labels))
        >>> float(metric.accumulate())
        0.5
    """

    def __init__(self, topk: Any = (1,), name: str | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.topk = (topk,) if isinstance(topk, int) else tuple(topk)
        self.maxk = max(self.topk)
        stem = name or "acc"
        self._name = [stem] if self.maxk == 1 else [f"{stem}_top{k}" for k in self.topk]
        self.reset()

    def compute(self, pred: Tensor, label: Tensor, *args: Any) -> Tensor:
        """Which of the likeliest classes, in order, is right: ``[..., maxk]`` of zeros and ones."""
        scores = pred.numpy() if isinstance(pred, Tensor) else np.asarray(pred)
        wanted = _class_numbers(label.numpy() if isinstance(label, Tensor) else np.asarray(label), scores.ndim)
        likeliest = np.argsort(-scores, axis=-1, kind="stable")[..., : self.maxk]
        return oar.to_tensor((likeliest == wanted).astype("float32"))

    def update(self, correct: Any, *args: Any) -> Any:
        """Take in what ``compute`` returned; returns the accuracy of that batch."""
        right = correct.numpy() if isinstance(correct, Tensor) else np.asarray(correct)
        samples = int(np.prod(right.shape[:-1]))
        shares = []
        for place, k in enumerate(self.topk):
            hits = float(right[..., :k].sum())
            self.total[place] += hits
            self.count[place] += samples
            shares.append(hits / samples if samples else 0.0)
        return shares[0] if len(self.topk) == 1 else shares

    def reset(self) -> None:
        """Forget all batches."""
        self.total = [0.0] * len(self.topk)
        self.count = [0] * len(self.topk)

    def accumulate(self) -> Any:
        """The accuracy over all batches, or a list of them for several ``k``."""
        shares = [hits / samples if samples else 0.0 for hits, samples in zip(self.total, self.count)]
        return shares[0] if len(shares) == 1 else shares

    def name(self) -> list[str]:
        """The names, one for each ``k``."""
        return self._name


def accuracy(
    input: Tensor, label: Tensor, k: int = 1, correct: Any = None, total: Any = None, name: str | None = None
) -> Tensor:
    """The share of rows of ``input`` whose label is among the ``k`` largest entries, as a tensor.

    Args:
        input: the input.
        label: the expected classes.
        k: how many of the most likely classes count.
        correct: accepted for compatibility.
        total: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.metric.accuracy(oar.to_tensor([[0.1, 0.9], [0.8, 0.2]]), oar.to_tensor([[1], [1]])).item()
        0.5
    """
    if not oar.in_dynamic_mode():
        return oar.static.accuracy(input, label, k, correct, total)
    meter = Accuracy(topk=(k,))
    share = meter.update(meter.compute(input, label))
    return oar.to_tensor(np.array(share, dtype="float32"))
