"""What the processes of a cut layer exchange. A group of one gives everything back as it is."""

from __future__ import annotations

from typing import Any

from oar._C import Tensor
from oar.distributed.communication.group import Group, check_alone

__all__: list[str] = []


def _c_identity(tensor: Tensor, group: Group | None = None, **_: Any) -> Tensor:
    """The tensor; its gradient is added up over the processes."""
    check_alone("_c_identity", group)
    return tensor


def _c_concat(tensor: Tensor, group: Group | None = None) -> Tensor:
    """The pieces of all processes joined along the last axis."""
    check_alone("_c_concat", group)
    return tensor


def _c_split(tensor: Tensor, group: Group | None = None) -> Tensor:
    """The piece of this process along the last axis."""
    check_alone("_c_split", group)
    return tensor


def _mp_allreduce(tensor: Tensor, op: Any = None, group: Group | None = None, **_: Any) -> Tensor:
    """The sum over the processes."""
    check_alone("_mp_allreduce", group)
    return tensor
