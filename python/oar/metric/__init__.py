"""Metrics of how well a network does."""

from oar.metric.binary import Auc, Precision, Recall
from oar.metric.metrics import Accuracy, Metric, accuracy

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]
