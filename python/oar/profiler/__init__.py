"""When each op ran, and on what."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Literal

from oar import _C

__all__ = ["Profiler"]


class Profiler:
    """Records the calls of this thread between ``start`` and ``stop``, or inside a ``with``.

    Args:
        record_shapes: whether to note the shapes of operands.

    Examples:
        >>> import oar
        >>> with oar.profiler.Profiler() as profiler:
        ...     _ = oar.ones([2, 2]) @ oar.ones([2, 2])
        ...
        >>> any(event[0] == 'matmul' for event in profiler.events)
        True
    """

    def __init__(self, *, record_shapes: bool = True):
        self.record_shapes = record_shapes
        self.events: list[tuple] = []

    def start(self) -> None:
        """Starts recording."""
        _C.profile_start(self.record_shapes)

    def stop(self) -> None:
        """Stops recording; ``events`` then holds the calls."""
        self.events = _C.profile_stop()

    def __enter__(self) -> Profiler:
        self.start()
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        self.stop()
        return False

    def summary(self) -> str:
        """A table of ops: calls, total and mean time, largest first."""
        totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for name, begin, end, _, depth, _ in self.events:
            if depth == 0:
                totals[name][0] += 1
                totals[name][1] += end - begin
        lines = [f"{'op':<28}{'calls':>8}{'total ms':>12}{'mean us':>12}"]
        for name, (calls, spent) in sorted(totals.items(), key=lambda item: -item[1][1]):
            lines.append(f"{name:<28}{calls:>8}{spent / 1e6:>12.3f}{spent / 1e3 / calls:>12.2f}")
        return "\n".join(lines)

    def export(self, path: str, format: str = "json") -> None:
        """Writes a trace that chrome://tracing and Perfetto show."""
        if format != "json":
            raise ValueError(f"[Profiler.export] format must be 'json', not {format!r}.")
        rows = [{"name": name, "ph": "X", "ts": begin / 1e3, "dur": (end - begin) / 1e3, "pid": 0, "tid": thread,
                 "args": {"operands": operands}} for name, begin, end, thread, _, operands in self.events]
        with open(path, "w") as f:
            json.dump({"traceEvents": rows}, f)
