"""Records of VisualDL: files called ``vdlrecords.*.log``."""

from __future__ import annotations

from typing import Any

from oar import _protobuf as pb
from oar.board._items import Blob, Curve, Histogram, Hparams, Item

__all__ = ["VisualDLDecoder"]

# The field of Record.Value that holds the value.
_VALUE, _IMAGE, _AUDIO, _EMBEDDINGS, _HISTOGRAM, _PR, _META, _ROC, _TEXT, _HPARAM, _TAG_VALUE = range(4, 15)


def _lists(data: memoryview, integers: int, count: int) -> list[list[float]]:
    """The repeated fields 1 to count of a message; the first ones are integers, the others doubles."""
    found: list[list[float]] = [[] for _ in range(count)]
    for number, value in pb.fields(data):
        if 1 <= number <= integers:
            found[number - 1] += pb.integers(value)
        elif integers < number <= count:
            found[number - 1] += pb.doubles(value)
    return found


def _histogram(data: memoryview) -> Histogram:
    counts, edges = _lists(data, 0, 2)
    if not counts or len(edges) != len(counts) + 1:
        raise ValueError(f"a histogram has {len(counts)} counts and {len(edges)} edges")
    return Histogram(tuple(edges), tuple(counts))


def _curve(form: str, data: memoryview) -> Curve:
    *counts, y, x = _lists(data, 4, 6)
    if form == "roc":  # VisualDL divides the true positives by the negatives, so the rate is computed again
        y = [tp / (tp + fn) if tp + fn else 0.0 for tp, fn in zip(counts[0], counts[3])]
    if len({len(part) for part in (*counts, y, x)}) != 1:
        raise ValueError("the parts of a curve have different lengths")
    return Curve(form, tuple(map(tuple, counts)), tuple(y), tuple(x))


def _embeddings(data: memoryview) -> tuple[list[list[float]], list[list[str]], list[str]]:
    """Vectors, the labels of each, the names of the labels."""
    vectors, labels, header = [], [], []
    for number, value in pb.fields(data):
        if number == 2:
            header.append(pb.text(value))
        elif number == 1:
            vector: list[float] = []
            label = []
            for inner, part in pb.fields(value):
                if inner == 1:
                    label.append(pb.text(part))
                elif inner == 2:
                    vector += pb.floats(part)
            vectors.append(vector)
            labels.append(label)
    if len({len(vector) for vector in vectors}) != 1:
        raise ValueError("the vectors of an embedding have different lengths")
    return vectors, labels, header


def _hparams(data: memoryview) -> Hparams:
    values: dict[str, float | str | bool] = {}
    metrics = []
    for number, value in pb.fields(data):
        if number not in (1, 2):
            continue
        name, found = "", 0.0  # type: str, Any
        for inner, part in pb.fields(value):
            if inner == 4:
                name = pb.text(part)
            elif inner == 1:
                found = pb.signed(part)
            elif inner == 2:
                found = pb.doubles(part)[0]
            elif inner == 3:
                found = pb.text(part)
        if number == 1:
            values[name] = found
        else:
            metrics.append(name)
    return Hparams(values, tuple(metrics))


def _first(data: memoryview, number: int, default: Any) -> Any:
    return next((value for found, value in pb.fields(data) if found == number), default)


class VisualDLDecoder:
    """The items of a record."""

    def items(self, record: bytes) -> list[Item]:
        """What a record holds."""
        found = []
        for number, value in pb.fields(memoryview(record)):
            if number == 1:
                item = self._item(value)
                if item is not None:
                    found.append(item)
        return found

    def _item(self, data: memoryview) -> Item | None:
        step, tag, wall = 0, "", 0.0
        kind, content = 0, None  # type: int, Any
        for number, value in pb.fields(data):
            if number == 1:
                step = pb.signed(value)
            elif number == 2:
                tag = pb.text(value)
            elif number == 3:
                wall = pb.signed(value) / 1000
            elif _VALUE <= number <= _TAG_VALUE:
                kind, content = number, value
        if kind == _VALUE:
            return Item("scalars", tag, step, wall, pb.floats(content)[0])
        if kind == _TAG_VALUE:
            name = pb.text(_first(content, 1, b""))
            value = pb.floats(_first(content, 2, memoryview(bytes(4))))[0]
            return Item("scalars", tag, step, wall, value, f"{tag}_{name}".replace("/", "_"))
        if kind == _IMAGE:
            return Item("images", tag, step, wall, Blob(bytes(_first(content, 4, b""))))
        if kind == _AUDIO:
            rate = pb.floats(_first(content, 1, memoryview(bytes(4))))[0]
            return Item("audio", tag, step, wall, Blob(bytes(_first(content, 4, b"")), rate=rate))
        if kind == _HISTOGRAM:
            return Item("histograms", tag, step, wall, _histogram(content))
        if kind in (_PR, _ROC):
            return Item("curves", tag, step, wall, _curve("pr" if kind == _PR else "roc", content))
        if kind == _TEXT:
            return Item("text", tag, step, wall, pb.text(_first(content, 1, b"")))
        if kind == _HPARAM:
            return Item("hparams", tag, step, wall, _hparams(content))
        if kind == _EMBEDDINGS:
            return Item("embeddings", tag, step, wall, _embeddings(content))
        if kind == _META:
            return Item("meta", tag, step, wall, pb.text(_first(content, 1, b"")))
        return None
