"""Queues of kernels and places in them.

On the CPU a kernel is done when its call returns, so nothing ever waits. A plug-in's device has one queue that Python's
calls join; to wait for it, a number is read from the device.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Literal

from oar._C import ops
from oar._places import CPUPlace, DevicePlace, place_of, unavailable
from oar.device._plugged import available

__all__ = [
    "Event", "Stream", "StreamContext", "current_stream", "get_stream_from_external", "is_current_stream_capturing",
    "set_stream", "stream_guard", "synchronize",
]  # fmt: skip


def _place(what: str, device: Any) -> CPUPlace | DevicePlace:
    return place_of(available(what, device))


class Stream:
    """A queue of kernels. That of the CPU is empty whenever a call has returned; a plug-in's device has one queue.

    Args:
        device: the device, for example ``'cpu'``; None is the current one.
        priority: how urgent its kernels are: 1 or 2.
        stream_base: a stream of a GPU's library; there is none.

    Examples:
        >>> import oar
        >>> stream = oar.device.Stream('cpu')
        >>> with oar.device.stream_guard(stream):
        ...     y = oar.ones([2]) + 1
        ...
        >>> stream.synchronize()
        >>> stream.query()
        True
    """

    def __init__(self, device: Any = None, priority: int = 2, stream_base: Any = None) -> None:
        if stream_base is not None:
            raise unavailable("Stream", "stream of a GPU")
        self.device = _place("Stream", device)
        self.priority = priority

    def wait_event(self, event: Event) -> None:
        """Lets kernels that come later wait for an event."""
        event.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        """Lets kernels that come later wait for those of another stream."""
        stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """An event after the kernels so far: the one that is given, or a new one."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all kernels are done. A plug-in's device is waited for, since it cannot be asked."""
        self.synchronize()
        return True

    def synchronize(self) -> None:
        """Waits for all kernels."""
        synchronize(self.device)

    def __repr__(self) -> str:
        return f"<oar.device.Stream device={self.device}>"


class Event:
    """A place in a stream, with the time at which the kernels before it were done.

    ``Event(enable_timing, blocking, interprocess)``, without a device, is another form of the call.

    Args:
        device: the device, for example ``'cpu'``; None is the current one.
        enable_timing: whether it notes the time.
        blocking: accepted for compatibility.
        interprocess: accepted for compatibility.

    Examples:
        >>> import oar
        >>> start, end = (oar.device.Event('cpu', enable_timing=True) for _ in range(2))
        >>> start.record()
        >>> y = oar.ones([100, 100]) @ oar.ones([100, 100])
        >>> end.record()
        >>> start.elapsed_time(end) > 0.0
        True
    """

    def __init__(
        self, device: Any = None, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        if isinstance(device, bool):
            device, enable_timing = None, device
        self.device = _place("Event", device)
        self.enable_timing = enable_timing
        self._time: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Puts the event at the end of a stream, the current one if None. To note the time it waits for the stream."""
        if self.enable_timing:
            synchronize(self.device if stream is None else stream.device)
            self._time = time.perf_counter()

    def query(self) -> bool:
        """Whether the kernels before it are done. A plug-in's device is waited for, since it cannot be asked."""
        self.synchronize()
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """The milliseconds from this event to a later one."""
        if self._time is None or end_event._time is None:
            raise RuntimeError("[elapsed_time] both events must have been recorded, and made with enable_timing=True.")
        return (end_event._time - self._time) * 1000.0

    def synchronize(self) -> None:
        """Waits for the kernels before it."""
        synchronize(self.device)

    def __repr__(self) -> str:
        return f"<oar.device.Event device={self.device}>"


_current: dict[CPUPlace | DevicePlace, Stream] = {}


def current_stream(device: Any = None) -> Stream:
    """The stream that new kernels join.

    Args:
        device: the device, for example ``'cpu'``; None is the current one.

    Returns:
        a Stream.

    Examples:
        >>> import oar
        >>> oar.device.current_stream().query()
        True
    """
    place = _place("current_stream", device)
    if place not in _current:
        _current[place] = Stream(place)
    return _current[place]


def set_stream(stream: Stream) -> Stream:
    """Makes a stream the one that new kernels join.

    Args:
        stream: the stream.

    Returns:
        the Stream before.

    Examples:
        >>> import oar
        >>> stream = oar.device.Stream('cpu')
        >>> before = oar.device.set_stream(stream)
        >>> oar.device.current_stream() is stream
        True
        >>> _ = oar.device.set_stream(before)
    """
    if not isinstance(stream, Stream):
        raise TypeError(f"[set_stream] stream must be an oar.device.Stream, not {type(stream).__name__}.")
    before = current_stream(stream.device)
    _current[stream.device] = stream
    return before


class stream_guard:  # noqa: N801
    """Kernels of the block join another stream.

    Args:
        stream: the stream; None changes nothing.

    Examples:
        >>> import oar
        >>> stream = oar.device.Stream('cpu')
        >>> with oar.device.stream_guard(stream):
        ...     print(oar.device.current_stream() is stream)
        ...
        True
    """

    def __init__(self, stream: Stream | None = None) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        self._before = None if self._stream is None else set_stream(self._stream)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> Literal[False]:
        if self._before is not None:
            set_stream(self._before)
        return False


StreamContext = stream_guard


def synchronize(device: Any = None) -> None:
    """Waits for the kernels of a device. Those of the CPU are done when their calls return.

    A failure of a kernel of a plug-in's device is raised here.

    Args:
        device: the device, for example ``'cpu'``; None is the current one.

    Examples:
        >>> import oar
        >>> oar.device.synchronize()
    """
    name = available("synchronize", device)
    if name != "cpu":
        ops.copy_to_device(ops.zeros([1], "float32"), name).cpu().tolist()


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream of a GPU's library. There is no GPU here, so it raises.

    Args:
        data_ptr: the address of the stream.
        device: the device.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.device.get_stream_from_external(0)
        ... except ValueError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("get_stream_from_external", "GPU")


def is_current_stream_capturing() -> bool:
    """False: only the streams of GPUs are captured.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.device.is_current_stream_capturing()
        False
    """
    return False
