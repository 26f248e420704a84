"""Event files of TensorBoard: what TensorFlow, PyTorch's ``SummaryWriter`` and our ``LogWriter`` write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oar import _protobuf as pb
from oar.board._items import Blob, Curve, Histogram, Hparams, Item, Purge
from oar.board._tensors import read_tensor

__all__ = ["META_PLUGIN", "PROGRAM_PLUGIN", "ROC_PLUGIN", "EventDecoder"]

# What TensorBoard has no plug-in for.
ROC_PLUGIN, PROGRAM_PLUGIN, META_PLUGIN = "oar_roc_curves", "oar_programs", "oar_meta"
_SESSION_START = 1


def _histogram(data: memoryview) -> Histogram:
    """A HistogramProto. The outermost edges may be infinite, or the largest number; the smallest and the largest value stand for them."""
    least = most = 0.0
    limits: list[float] = []
    counts: list[float] = []
    for number, value in pb.fields(data):
        if number == 1:
            least = pb.doubles(value)[0]
        elif number == 2:
            most = pb.doubles(value)[0]
        elif number == 6:
            limits += pb.doubles(value)
        elif number == 7:
            counts += pb.doubles(value)
    if len(limits) != len(counts):
        raise ValueError(f"a histogram has {len(limits)} edges and {len(counts)} counts")
    edges = [least, *limits]
    while counts and not counts[0]:
        counts, edges = counts[1:], edges[1:]
    while counts and not counts[-1]:
        counts, edges = counts[:-1], edges[:-1]
    if not counts:
        return Histogram((0.0, 0.0), (0.0,))
    inner = [min(max(edge, least), most) for edge in edges]
    return Histogram((*inner[:-1], max(inner[-1], inner[-2])), tuple(counts))


def _histogram_tensor(array: Any) -> Histogram:
    """Rows of left edge, right edge and count."""
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"a histogram is a tensor of shape {list(array.shape)}")
    if len(array) == 0:
        return Histogram((0.0, 0.0), (0.0,))
    return Histogram((float(array[0, 0]), *array[:, 1].tolist()), tuple(array[:, 2].tolist()))


def _curve(form: str, array: Any) -> Curve:
    if array.ndim != 2 or array.shape[0] != 6 or array.shape[1] == 0:
        raise ValueError(f"a curve is a tensor of shape {list(array.shape)}")
    *counts, y, x = (tuple(row) for row in array.tolist())
    return Curve(form, tuple(counts), y, x)


def _hparam_value(data: memoryview) -> float | str | bool:
    for number, value in pb.fields(data):
        if number == 2:
            return pb.doubles(value)[0]
        if number == 3:
            return pb.text(value)
        if number == 4:
            return bool(value)
    return ""


def _hparams(content: memoryview) -> tuple[dict[str, float | str | bool], tuple[str, ...]]:
    """Values and metrics of an HParamsPluginData; one of them is empty, since each has a summary of its own."""
    values: dict[str, float | str | bool] = {}
    metrics = []
    for number, part in pb.fields(content):
        for inner, entry in pb.fields(part) if number in (2, 3) else ():
            if number == 2 and inner == 5:  # Experiment.metric_infos
                name = dict(pb.fields(entry)).get(1)
                if name is not None:
                    names = dict(pb.fields(name))
                    group = pb.text(names.get(1, b""))
                    metrics.append((f"{group}/" if group else "") + pb.text(names.get(2, b"")))
            elif number == 3 and inner == 1:  # SessionStartInfo.hparams
                pair = dict(pb.fields(entry))
                values[pb.text(pair.get(1, b""))] = _hparam_value(pair.get(2, memoryview(b"")))
    return values, tuple(metrics)


class EventDecoder:
    """The items of events. A tag says once, in its first event, which plug-in its values are for."""

    def __init__(self) -> None:
        self._plugins: dict[str, tuple[str, bytes]] = {}

    def items(self, record: bytes) -> list[Item | Purge]:
        """What an event holds."""
        wall, step = 0.0, 0
        parts = []
        for number, value in pb.fields(memoryview(record)):
            if number == 1:
                wall = pb.doubles(value)[0]
            elif number == 2:
                step = pb.signed(value)
            elif number in (4, 5, 7):
                parts.append((number, value))
        found: list[Item | Purge] = []
        for number, value in parts:
            if number == 4:
                found.append(Item("graphs", "graph", step, wall, bytes(value)))
            elif number == 7:
                if next((part for inner, part in pb.fields(value) if inner == 1), 0) == _SESSION_START:
                    found.append(Purge(step))
            else:
                for inner, part in pb.fields(value):
                    if inner == 1:
                        found += self._values(part, step, wall)
        return found

    def _values(self, data: memoryview, step: int, wall: float) -> Iterator[Item]:
        tag, kind, content = "", 0, None  # type: str, int, Any
        metadata = None
        for number, value in pb.fields(data):
            if number == 1:
                tag = pb.text(value)
            elif number == 9:
                metadata = value
            elif number in (2, 4, 5, 6, 8):
                kind, content = number, value
        if metadata is not None:
            self._remember(tag, metadata)
        if kind == 2:
            yield Item("scalars", tag, step, wall, pb.floats(content)[0])
        elif kind == 4:
            parts = dict(pb.fields(content))
            yield Item("images", tag, step, wall, Blob(bytes(parts.get(4, b"")), parts.get(2, 0), parts.get(1, 0)))
        elif kind == 5:
            yield Item("histograms", tag, step, wall, _histogram(content))
        elif kind == 6:
            parts = dict(pb.fields(content))
            rate = pb.floats(parts[1])[0] if 1 in parts else 0.0
            yield Item("audio", tag, step, wall, Blob(bytes(parts.get(4, b"")), rate=rate))
        else:
            yield from self._tensor(tag, content, step, wall)

    def _remember(self, tag: str, metadata: memoryview) -> None:
        for number, value in pb.fields(metadata):
            if number == 1:
                parts = dict(pb.fields(value))
                self._plugins[tag] = pb.text(parts.get(1, b"")), bytes(parts.get(2, b""))

    def _tensor(self, tag: str, content: memoryview | None, step: int, wall: float) -> Iterator[Item]:
        plugin, details = self._plugins.get(tag, ("", b""))
        if plugin == "hparams":
            values, metrics = _hparams(memoryview(details))
            yield Item("hparams", "hparams", step, wall, Hparams(values, metrics))
            return
        if content is None or not plugin:
            return
        value = read_tensor(content)
        if plugin == "scalars":
            if value.size != 1:
                raise ValueError(f"the scalar {tag} has {value.size} elements")
            yield Item("scalars", tag, step, wall, float(value.reshape(-1)[0]))
        elif plugin == "histograms":
            yield Item("histograms", tag, step, wall, _histogram_tensor(value))
        elif plugin == "images":
            sizes = [int(part) if part.isdigit() else 0 for part in value[:2]]
            for i, image in enumerate(value[2:]):
                yield Item("images", tag if len(value) == 3 else f"{tag}/{i}", step, wall, Blob(image, *sizes))
        elif plugin == "audio":
            sounds = value[::2] if len(value) > 1 else value  # each is followed by its label
            for i, sound in enumerate(sounds):
                yield Item("audio", tag if len(sounds) == 1 else f"{tag}/{i}", step, wall, Blob(sound))
        elif plugin == "text":
            yield Item("text", tag, step, wall, "\n\n".join(part.decode(errors="replace") for part in value))
        elif plugin in ("pr_curves", ROC_PLUGIN):
            yield Item("curves", tag, step, wall, _curve("pr" if plugin == "pr_curves" else "roc", value))
        elif plugin == PROGRAM_PLUGIN:
            yield Item("graphs", tag, step, wall, value[0].decode())
        elif plugin == META_PLUGIN:
            yield Item("meta", tag, step, wall, value[0].decode())
