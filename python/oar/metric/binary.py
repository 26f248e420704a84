"""Metrics of two-class problems: precision, recall and the area under a curve."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar._lazy import np
from oar.metric.metrics import Metric

__all__ = ["Auc", "Precision", "Recall"]


def _array(values: Any, what: str) -> np.ndarray:
    if isinstance(values, Tensor):
        return values.numpy()
    if not isinstance(values, np.ndarray):
        raise ValueError(f"The '{what}' must be a numpy ndarray or Tensor, not {type(values).__name__}.")
    return values


def _decided(preds: Any, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    """Which samples are said to be positive, and which are."""
    said, true = _array(preds, "preds"), _array(labels, "labels")
    return np.rint(said).reshape(-1)[: true.shape[0]] == 1, true.reshape(-1) == 1


def _share(part: int, rest: int) -> float:
    return part / (part + rest) if part + rest else 0.0


class Precision(Metric):
    """The share of true ones among the samples that are said to be positive: those with a probability above 1/2.

    Args:
        name: the metric's name.

    Examples:
        >>> import oar
        >>> metric = oar.metric.Precision()
        >>> metric.update(oar.to_tensor([0.9, 0.8, 0.1]), oar.to_tensor([1, 0, 1]))
        >>> float(metric.accumulate())
        0.5
    """

    def __init__(self, name: str = "precision", *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Take in probabilities ``[batch, 1]`` and labels of 0 and 1."""
        said, true = _decided(preds, labels)
        self.tp += int(np.sum(said & true))
        self.fp += int(np.sum(said & ~true))

    def reset(self) -> None:
        """Forget all batches."""
        self.tp = 0  # true positives
        self.fp = 0  # false positives

    def accumulate(self) -> float:
        """The precision over all batches; 0 where nothing is said to be positive."""
        return _share(self.tp, self.fp)

    def name(self) -> str:
        """The metric's name."""
        return self._name


class Recall(Metric):
    """The share of the positive samples that are said to be: those with a probability above 1/2.

    Args:
        name: the metric's name.

    Examples:
        >>> import oar
        >>> metric = oar.metric.Recall()
        >>> metric.update(oar.to_tensor([0.9, 0.8, 0.1]), oar.to_tensor([1, 0, 1]))
        >>> float(metric.accumulate())
        0.5
    """

    def __init__(self, name: str = "recall", *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Take in probabilities ``[batch, 1]`` and labels of 0 and 1."""
        said, true = _decided(preds, labels)
        self.tp += int(np.sum(said & true))
        self.fn += int(np.sum(~said & true))

    def reset(self) -> None:
        """Forget all batches."""
        self.tp = 0  # true positives
        self.fn = 0  # false negatives

    def accumulate(self) -> float:
        """The recall over all batches; 0 where nothing is positive."""
        return _share(self.tp, self.fn)

    def name(self) -> str:
        """The metric's name."""
        return self._name


class Auc(Metric):
    """The area under the receiver operating characteristic: how well probabilities order the samples.

    Args:
        curve: the name of the curve. The area is always that of ROC.
        num_thresholds: the number of thresholds for the probabilities.
        name: the metric's name.

    Examples:
        >>> import oar
        >>> metric = oar.metric.Auc()
        >>> metric.update(oar.to_tensor([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]), oar.to_tensor([[1], [0], [1]]))
        >>> float(metric.accumulate())
        1.0
    """

    def __init__(
        self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc", *args: Any, **kwargs: Any
    ) -> None:
        super().__init__()
        self._curve = curve
        self._num_thresholds = num_thresholds
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Take in probabilities ``[batch, 2]`` of the classes 0 and 1, and labels ``[batch, 1]``."""
        true = _array(labels, "labels").reshape(-1) != 0
        positive = _array(preds, "preds")[: true.shape[0], 1]
        bins = (positive * self._num_thresholds).astype("int64")
        if bins.size and not 0 <= bins.min() <= bins.max() <= self._num_thresholds:
            raise ValueError("[Auc] the 'preds' must be probabilities, from 0 to 1.")
        np.add.at(self._stat_pos, bins[true], 1.0)
        np.add.at(self._stat_neg, bins[~true], 1.0)

    def reset(self) -> None:
        """Forget all batches."""
        self._stat_pos = np.zeros(self._num_thresholds + 1)
        self._stat_neg = np.zeros(self._num_thresholds + 1)

    @staticmethod
    def trapezoid_area(x1: float, x2: float, y1: float, y2: float) -> float:
        """The area between the axis and the line from (x1, y1) to (x2, y2)."""
        return abs(x1 - x2) * (y1 + y2) / 2.0

    def accumulate(self) -> float:
        """The area over all batches; 0 unless there are samples of both classes."""
        hits, alarms = (np.concatenate([[0.0], np.cumsum(s[::-1])]) for s in (self._stat_pos, self._stat_neg))
        if not hits[-1] or not alarms[-1]:
            return 0.0
        area = np.sum((alarms[1:] - alarms[:-1]) * (hits[1:] + hits[:-1]) / 2)
        return float(area / hits[-1] / alarms[-1])

    def name(self) -> str:
        """The metric's name."""
        return self._name
