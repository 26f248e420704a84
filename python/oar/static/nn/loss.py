"""Losses that create their parameters."""

from __future__ import annotations

import math
from typing import Any

import oar
from oar._C import Tensor, ops
from oar.static.nn.maker import LayerMaker

__all__ = ["nce"]


def _uniform(classes: int, shape: list[Any], _: Any) -> tuple[Tensor, Any]:
    return ops.randint(0, classes, shape, "int64"), lambda labels: ops.full_like(ops.cast(labels, "float32"), 1.0 / classes)


def _log_uniform(classes: int, shape: list[Any], _: Any) -> tuple[Tensor, Any]:
    """Class k with probability log((k + 2) / (k + 1)) / log(classes + 1): frequent classes come first."""
    spread = math.log(classes + 1.0)
    drawn = ops.cast(ops.exp(oar.uniform(shape, "float32", 0.0, 1.0) * spread), "int64") - 1
    numbers = ops.clip(drawn, 0, classes - 1)

    def probability(labels: Tensor) -> Tensor:
        k = ops.cast(labels, "float32")
        return ops.log((k + 2.0) / (k + 1.0)) / spread

    return numbers, probability


def _by_distribution(classes: int, shape: list[Any], distribution: Any) -> tuple[Tensor, Any]:
    if distribution is None or len(distribution) != classes:
        raise ValueError(f"[nce] custom_dist should have {classes} probabilities.")
    chances = oar.to_tensor([float(p) for p in distribution], "float32")
    edges = oar.cumsum(chances, 0)
    drawn = oar.searchsorted(edges, oar.uniform(shape, "float32", 0.0, 1.0), right=True)
    return ops.clip(drawn, 0, classes - 1), lambda labels: _picked(chances, labels)


def _picked(rows: Tensor, labels: Tensor) -> Tensor:
    flat = oar.gather(rows, ops.reshape(labels, [-1]))
    return ops.reshape(flat, [*labels.shape, *rows.shape[1:]])


_SAMPLERS = {"uniform": _uniform, "log_uniform": _log_uniform, "custom_dist": _by_distribution}


def nce(input: Tensor, label: Tensor, num_total_classes: int, sample_weight: Tensor | None = None,
        param_attr: Any = None, bias_attr: Any = None, num_neg_samples: int | None = None, name: str | None = None,
        sampler: str = "uniform", custom_dist: Any = None, seed: int = 0, is_sparse: bool = False) -> Tensor:
    """Noise-contrastive estimation: separates true classes from sampled ones instead of normalising over all.

    Args:
        input: ``[rows, width]``.
        label: ``[rows, true classes]``.
        num_total_classes: the number of classes.
        sample_weight: ``[rows, 1]``, a factor for each row.
        num_neg_samples: how many classes are drawn for each row; 10 when None.
        sampler: 'uniform', 'log_uniform' or 'custom_dist'.
        custom_dist: the probability of each class.
        seed: kept; random numbers come from the stream of all.
        param_attr: a ``ParamAttr`` or an initialiser for the weight.
        bias_attr: a ``ParamAttr`` or an initialiser for the bias; False leaves it out.
        is_sparse: accepted for compatibility.

    Returns:
        The loss of each row, ``[rows, 1]``.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     label = oar.static.data('label', [None, 1], 'int64')
        ...     y = oar.static.nn.nce(x, label, num_total_classes=10, num_neg_samples=2)
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32'), 'label': [[1], [2]]}, fetch_list=[y])[0].shape
        (2, 1)
        >>> oar.disable_static()
    """
    maker = LayerMaker("nce", name, input.dtype)
    if sampler not in _SAMPLERS:
        raise ValueError(f"[nce] sampler is {sampler!r}; it can be 'uniform', 'log_uniform' or 'custom_dist'.")
    count = 10 if num_neg_samples is None else int(num_neg_samples)
    weight = maker.parameter([num_total_classes, input.shape[1]], param_attr)
    bias = maker.parameter([num_total_classes, 1], bias_attr, is_bias=True)
    drawn, probability = _SAMPLERS[sampler](num_total_classes, [input.shape[0], count], custom_dist)

    def likely(labels: Tensor) -> tuple[Tensor, Tensor]:
        """How likely each class is for its row, and how often it would be drawn."""
        score = ops.sum(_picked(weight, labels) * ops.unsqueeze(input, [1]), 2)
        if bias is not None:
            score = score + _picked(ops.reshape(bias, [-1]), labels)
        return oar.nn.functional.sigmoid(score), probability(labels) * float(count)

    true, expected = likely(ops.reshape(label, [-1, label.shape[1] if label.ndim > 1 else 1]))
    noise, drawn_often = likely(drawn)
    loss = ops.sum(-ops.log(true / (true + expected)), 1) + ops.sum(-ops.log(drawn_often / (noise + drawn_often)), 1)
    loss = ops.reshape(loss, [-1, 1])
    return loss if sample_weight is None else loss * ops.reshape(sample_weight, [-1, 1])
