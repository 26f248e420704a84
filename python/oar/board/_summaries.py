"""The messages that ``LogWriter`` writes: events of TensorBoard with one summary each."""

from __future__ import annotations

from typing import Any

from oar import _protobuf as pb
from oar.board._events import META_PLUGIN, PROGRAM_PLUGIN, ROC_PLUGIN
from oar.board._items import Blob, Curve, Histogram
from oar.board._tensors import float_tensor, string_tensor

__all__ = ["audio", "curve", "event", "first_event", "graph", "histogram", "hparams", "image", "meta", "program", "scalar", "text"]

_FILE_VERSION = "brain.Event:2"


def event(wall: float, step: int, content: bytes) -> bytes:
    """An event. The content is a field of its message."""
    return pb.double_field(1, wall) + (pb.field(2, step) if step else b"") + content


def first_event(wall: float) -> bytes:
    """The event that every file begins with."""
    return pb.double_field(1, wall) + pb.field(3, _FILE_VERSION)


def graph(definition: bytes) -> bytes:
    """A GraphDef."""
    return pb.field(4, definition)


def _value(tag: str, content: bytes, plugin: str = "", details: bytes = b"") -> bytes:
    metadata = pb.field(9, pb.field(1, pb.field(1, plugin) + pb.field(2, details))) if plugin else b""
    return pb.field(5, pb.field(1, pb.field(1, tag) + metadata + content))


def scalar(tag: str, value: float) -> bytes:
    """A number."""
    return _value(tag, pb.float_field(2, value))


def histogram(tag: str, found: Histogram) -> bytes:
    """A histogram. Sums are those of the middles of its buckets."""
    middles = [(left + right) / 2 for left, right in zip(found.edges, found.edges[1:])]
    total = sum(count * middle for count, middle in zip(found.counts, middles))
    squares = sum(count * middle * middle for count, middle in zip(found.counts, middles))
    numbers = (found.edges[0], found.edges[-1], sum(found.counts), total, squares)
    return _value(tag, pb.field(5, b"".join(pb.double_field(i, number) for i, number in enumerate(numbers, 1))
                                + pb.packed_doubles(6, found.edges[1:]) + pb.packed_doubles(7, found.counts)))


def image(tag: str, picture: Blob, channels: int) -> bytes:
    """A PNG file."""
    return _value(tag, pb.field(4, pb.message(picture.height, picture.width, channels, picture.data)))


def audio(tag: str, sound: Blob, frames: int) -> bytes:
    """A WAV file with one channel."""
    return _value(tag, pb.field(6, pb.float_field(1, sound.rate) + pb.field(2, 1) + pb.field(3, frames)
                                + pb.field(4, sound.data) + pb.field(5, "audio/wav")))


def text(tag: str, content: str) -> bytes:
    """A text."""
    return _value(tag, pb.field(8, string_tensor(content)), "text")


def meta(tag: str, name: str) -> bytes:
    """The name under which the run is shown."""
    return _value(tag, pb.field(8, string_tensor(name)), META_PLUGIN)


def program(tag: str, content: str) -> bytes:
    """A program as text."""
    return _value(tag, pb.field(8, string_tensor(content)), PROGRAM_PLUGIN)


def curve(tag: str, found: Curve) -> bytes:
    """A precision-recall or ROC curve."""
    thresholds = pb.field(1, 0) + pb.field(2, len(found.x))
    plugin = "pr_curves" if found.form == "pr" else ROC_PLUGIN
    return _value(tag, pb.field(8, float_tensor([*found.counts, found.y, found.x])), plugin, thresholds)


def _hparam(value: Any) -> bytes:
    """A google.protobuf.Value."""
    if isinstance(value, bool):
        return pb.field(4, int(value))
    if isinstance(value, (int, float)):
        return pb.double_field(2, float(value))
    return pb.field(3, str(value))


def _hparam_type(value: Any) -> int:
    """The enumeration DataType of the plug-in."""
    return 2 if isinstance(value, bool) else 3 if isinstance(value, (int, float)) else 1


def hparams(values: dict[str, Any], metrics: list[str], wall: float) -> list[bytes]:
    """Hyper-parameters with their metrics: two summaries."""
    infos = b"".join(pb.field(4, pb.field(1, name) + pb.field(4, _hparam_type(value))) for name, value in values.items())
    judged = b"".join(pb.field(5, pb.field(1, pb.field(2, tag))) for tag in metrics)
    experiment = pb.field(2, pb.double_field(3, wall) + infos + judged)
    pairs = b"".join(pb.field(1, pb.message(name, _hparam(value))) for name, value in values.items())
    start = pb.field(3, pairs + pb.double_field(5, wall))
    nothing = pb.field(8, float_tensor([]))
    return [_value("_hparams_/experiment", nothing, "hparams", experiment),
            _value("_hparams_/session_start_info", nothing, "hparams", start)]
