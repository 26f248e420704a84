"""Measures as part of a program."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor, ops
from oar.framework import unique_name
from oar.framework.persistent import persistent

__all__ = ["accuracy", "auc", "ctr_metric_bundle"]


def accuracy(input: Tensor, label: Tensor, k: int = 1, correct: Tensor | None = None,
             total: Tensor | None = None) -> Tensor:
    """The share of rows of ``input`` whose label is among the ``k`` largest entries.

    ``correct`` and ``total``, where they are given, are written: how many rows were right, and how many there were.

    Args:
        input: the input.
        label: the expected classes.
        k: how many of the most likely classes count.
        correct: accepted for compatibility.
        total: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     label = oar.static.data('label', [None, 1], 'int64')
        ...     y = oar.static.accuracy(x, label)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> feed = {'x': np.eye(3, dtype='float32'), 'label': [[0], [1], [0]]}
        >>> executor.run(main, feed=feed, fetch_list=[y])[0].item()
        0.6666666865348816
        >>> oar.disable_static()
    """
    _, indices = oar.topk(input, k)
    hits = ops.any(ops.equal(indices, ops.cast(ops.reshape(label, [-1, 1]), "int64")), [-1])
    right = ops.sum(ops.cast(hits, "int32"))
    rows = ops.sum(ops.ones_like(ops.cast(hits, "int32")))
    for target, value in ((correct, right), (total, rows)):
        if target is not None:
            ops.copy_into(target, ops.broadcast_to(ops.cast(value, target.dtype), target.shape))
    return ops.cast(right, "float32") / ops.cast(rows, "float32")


def _histogram(scores: Tensor, wanted: Tensor, bins: int) -> Tensor:
    """How many of the wanted rows have a score in each of ``bins + 1`` bins."""
    place = ops.cast(ops.clip(scores * float(bins), 0.0, float(bins)), "int64")
    empty = ops.zeros([bins + 1], "int64")
    return oar.scatter(empty, place, ops.cast(wanted, "int64"), overwrite=False)


def _area(positive: Tensor, negative: Tensor) -> Tensor:
    """Under the curve of the share of positives against that of negatives, threshold by threshold from above."""
    found = [ops.cast(oar.cumsum(oar.flip(h, [0]), 0), "float64") for h in (positive, negative)]
    before = [ops.concat([ops.zeros([1], "float64"), f[:-1]], 0) for f in found]
    area = ops.sum((found[1] - before[1]) * (found[0] + before[0])) / 2.0
    whole = found[0][-1] * found[1][-1]
    return ops.where(whole > 0, area / ops.maximum(whole, ops.ones_like(whole)), ops.zeros_like(whole))


def auc(input: Tensor, label: Tensor, curve: str = "ROC", num_thresholds: int = 2**12 - 1, topk: int = 1,
        slide_steps: int = 1, ins_tag_weight: Any = None) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The area under the ROC curve of scores ``input[:, -1]``.

    Returns:
        The area over all runs, that over the last ``slide_steps`` of them, and the counts of both: of positives and
        negatives by score.

    Args:
        input: the input.
        label: the expected classes.
        curve: 'ROC'.
        num_thresholds: the number of thresholds of the curve.
        topk: accepted for compatibility.
        slide_steps: accepted for compatibility.
        ins_tag_weight: a weight per sample, or None.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 2])
        ...     label = oar.static.data('label', [None, 1], 'int64')
        ...     y = oar.static.auc(x, label)[0]
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> feed = {'x': np.array([[0.1, 0.9], [0.8, 0.2]], 'float32'), 'label': [[1], [0]]}
        >>> float(executor.run(main, feed=feed, fetch_list=[y])[0])
        1.0
        >>> oar.disable_static()
    """
    if curve != "ROC":
        raise ValueError(f"[auc] curve is {curve!r}; 'ROC' is the one there is.")
    scores, truth = input[:, -1], ops.reshape(label, [-1]) > 0
    weights = None if ins_tag_weight is None else ops.reshape(ins_tag_weight, [-1]) > 0
    rows = (truth, ops.logical_not(truth))
    if weights is not None:
        rows = tuple(ops.logical_and(r, weights) for r in rows)
    counts = [_histogram(scores, r, num_thresholds) for r in rows]
    name = unique_name.generate("auc")
    with oar.no_grad():
        kept = [_accumulated(f"{name}.stat_{kind}", c) for kind, c in zip(("pos", "neg"), counts)]
        recent = counts if slide_steps <= 1 else [
            _windowed(f"{name}.batch_stat_{kind}", c, slide_steps) for kind, c in zip(("pos", "neg"), counts)
        ]
    if slide_steps == 0:
        recent = kept
    return _area(*kept), _area(*recent), [*recent, *kept]


def _accumulated(name: str, counts: Tensor) -> Tensor:
    state = persistent(lambda: ops.zeros(list(counts.shape), "int64"), name)
    state.set_value(state + counts)
    return state


def _windowed(name: str, counts: Tensor, steps: int) -> Tensor:
    state = persistent(lambda: ops.zeros([steps, counts.shape[0]], "int64"), name)
    state.set_value(ops.concat([state[1:], ops.reshape(counts, [1, -1])], 0))
    return ops.sum(state, 0)


def ctr_metric_bundle(input: Tensor, label: Tensor, ins_tag_weight: Any = None) -> tuple[Tensor, ...]:
    """Sums over all runs of: squared error, absolute error, probability, q, positives, rows.

    Args:
        input: the input.
        label: the expected classes.
        ins_tag_weight: a weight per sample, or None.

    Returns:
        a tuple of tensors.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 1])
        ...     label = oar.static.data('label', [None, 1], 'int64')
        ...     sums = oar.static.ctr_metric_bundle(x, label)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> feed = {'x': np.array([[0.9], [0.2]], 'float32'), 'label': [[1], [0]]}
        >>> [v.item() for v in executor.run(main, feed=feed, fetch_list=list(sums))]
        [0.05000000819563866, 0.30000001192092896, 1.100000023841858, 9.249998092651367, 1.0, 2.0]
        >>> oar.disable_static()
    """
    truth = ops.cast(ops.reshape(label, [-1, 1]), "float32")
    score = ops.reshape(input, [-1, 1]) if input.shape[-1] == 1 else input[:, -1:]
    ones = ops.ones_like(score) if ins_tag_weight is None else ops.cast(ops.reshape(ins_tag_weight, [-1, 1]), "float32")
    parts = {
        "sqrerr": (score - truth) * (score - truth) * ones,
        "abserr": ops.abs(score - truth) * ones,
        "prob": score * ones,
        "q": score / ops.maximum(1.0 - score, ops.full_like(score, 1e-6)) * ones,
        "pos_num": truth * ones,
        "ins_num": ones,
    }
    made = []
    with oar.no_grad():
        for kind, part in parts.items():
            state = persistent(lambda: ops.zeros([1], "float32"), unique_name.generate(f"local_{kind}"))
            state.set_value(state + ops.reshape(ops.sum(part), [1]))
            made.append(state)
    return tuple(made)
