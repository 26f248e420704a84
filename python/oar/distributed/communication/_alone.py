"""What messages come down to in a group of one process."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar.distributed.communication.group import Group, check_alone, is_member

__all__ = ["Task", "check_peer", "collect", "overwrite", "receive"]


class Task:
    """A message that has arrived."""

    def wait(self, timeout: Any = None) -> bool:
        """Returns at once: nothing is under way."""
        return True

    def is_completed(self) -> bool:
        """Whether the message has arrived: always."""
        return True

    def synchronize(self) -> None:
        """Returns at once: nothing is under way."""


def receive(function: str, argument: str, rank: int, group: Group | None) -> Task | None:
    """A message from or to the only process; an error if ``rank`` is another."""
    check_alone(function, group)
    if rank != 0:
        raise ValueError(f"[{function}] {argument} is {rank}, but there is one process, with the number 0. "
                         f"hint: pass {argument}=0.")
    return Task() if is_member(group) else None


def check_peer(function: str, argument: str, rank: int | None, group: Group | None) -> None:
    """Raises the error of a message to another process where there is none."""
    check_alone(function, group)
    raise ValueError(f"[{function}] {argument} is {rank}, but there is one process. hint: check get_world_size() first.")


def overwrite(function: str, to: Tensor, value: Tensor) -> None:
    """Copies a value into a tensor of the same shape and dtype, outside of gradients."""
    if list(to.shape) != list(value.shape) or to.dtype != value.dtype:
        raise ValueError(f"[{function}] a tensor {value.dtype}{list(value.shape)} cannot be written to one that is "
                         f"{to.dtype}{list(to.shape)}. hint: make it like the input.")
    with oar.no_grad():
        to.copy_(value)


def collect(function: str, parts: list[Tensor], tensor: Tensor) -> None:
    """Puts the tensor of the only process into a list: empty, or with a tensor to overwrite."""
    if not parts:
        parts.append(tensor.detach().clone())
        return
    if len(parts) != 1:
        raise ValueError(f"[{function}] the list has {len(parts)} tensors, but there is one process. "
                         "hint: pass an empty list, or one tensor.")
    overwrite(function, parts[0], tensor)
