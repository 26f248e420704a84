"""What is wrong with a state dict, all of it in one message."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Misfits", "shape_of"]


class Misfits(NamedTuple):
    """The keys of a state dict that do not fit what it is loaded into."""

    missing: list[str]
    unexpected: list[str]
    mismatched: dict[str, str]  # what is wrong with a value that is there

    def __bool__(self) -> bool:
        return bool(self.missing or self.unexpected or self.mismatched)

    def __str__(self) -> str:
        parts = [f"{what} {keys}" for what, keys in (("missing", self.missing), ("unexpected", self.unexpected)) if keys]
        if self.mismatched:
            parts.append("mismatched {" + ", ".join(f"{key!r}: {problem}" for key, problem in self.mismatched.items()) + "}")
        return "; ".join(parts)


def shape_of(value: Any) -> list[int]:
    """The shape of a tensor or an array; that of a number is empty."""
    shape = getattr(value, "shape", ())
    return list(shape() if callable(shape) else shape)
