"""Metrics of how well a network does."""

from oar.metric.metrics import Accuracy, Metric, accuracy

__all__ = ["Accuracy", "Metric", "accuracy"]
