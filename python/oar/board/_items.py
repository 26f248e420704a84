"""What logs hold, whichever program wrote them."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["KINDS", "Blob", "Curve", "Histogram", "Hparams", "Item", "Purge"]

# The kinds of items. A tag has items of one kind at many steps.
KINDS = ("scalars", "histograms", "images", "audio", "text", "curves", "graphs", "embeddings", "hparams")


class Item(NamedTuple):
    """One thing that a run logged."""

    kind: str
    tag: str
    step: int
    wall: float  # seconds since 1970
    value: Any
    run: str = ""  # below the run of the file: one of several lines of a chart


class Purge(NamedTuple):
    """A run begins again at a step: what it logged from there on does not count."""

    step: int


class Histogram(NamedTuple):
    """Counts between edges."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]


class Blob(NamedTuple):
    """The bytes of an image or of sound."""

    data: bytes
    width: int = 0
    height: int = 0
    rate: float = 0.0


class Curve(NamedTuple):
    """A precision-recall (``pr``) or receiver operating characteristic (``roc``) curve over thresholds from 0 to 1."""

    form: str
    counts: tuple[tuple[float, ...], ...]  # true positives, false positives, true negatives, false negatives
    y: tuple[float, ...]  # precision, or the rate of true positives
    x: tuple[float, ...]  # recall, or the rate of false positives


class Hparams(NamedTuple):
    """Hyper-parameters of a run, and the tags of the scalars that judge them."""

    values: dict[str, float | str | bool]
    metrics: tuple[str, ...]
