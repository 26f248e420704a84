"""Metrics of two-class problems against counting."""

import numpy as np
import pytest

import oar


def _batches(seed=3):
    rng = np.random.default_rng(seed)
    for size in (20, 7, 1):
        preds, labels = rng.random((size, 1)).astype("float32"), rng.integers(0, 2, (size, 1))
        yield preds, labels


@pytest.mark.parametrize("as_tensors", [False, True])
@pytest.mark.parametrize("kind", ["Precision", "Recall"])
def test_precision_and_recall(kind, as_tensors):
    meter = getattr(oar.metric, kind)()
    said, true = (np.concatenate(parts).ravel() for parts in zip(*_batches()))
    for preds, labels in _batches():
        meter.update(*((oar.to_tensor(preds), oar.to_tensor(labels)) if as_tensors else (preds, labels)))
    said = said > 0.5
    both, of = np.sum(said & (true == 1)), np.sum(said if kind == "Precision" else true == 1)
    assert meter.accumulate() == pytest.approx(both / of)
    assert meter.name() == kind.lower()
    meter.reset()
    assert meter.accumulate() == 0.0


def test_auc_is_the_share_of_pairs_in_order():
    meter = oar.metric.Auc()
    scores, labels = [], []
    for preds, batch in _batches():
        preds = np.round(preds * 50) / 50  # ties count half
        meter.update(np.concatenate([1 - preds, preds], 1), batch)
        scores.append(preds.ravel())
        labels.append(batch.ravel())
    scores, labels = np.concatenate(scores), np.concatenate(labels)
    pairs = scores[labels == 1][:, None] - scores[labels == 0][None, :]
    assert meter.accumulate() == pytest.approx(np.mean((pairs > 0) + 0.5 * (pairs == 0)))


def test_auc_of_one_class_is_zero():
    meter = oar.metric.Auc(num_thresholds=10)
    meter.update(np.array([[0.5, 0.5], [0.0, 1.0]]), np.array([[1], [1]]))
    assert meter.accumulate() == 0.0


def test_errors():
    for kind in (oar.metric.Precision, oar.metric.Recall, oar.metric.Auc):
        with pytest.raises(ValueError, match="must be a numpy ndarray or Tensor, not list"):
            kind().update(np.ones((1, 2)), [1])
    with pytest.raises(ValueError, match="from 0 to 1"):
        oar.metric.Auc().update(np.array([[0.0, 1.5]]), np.array([[1]]))
