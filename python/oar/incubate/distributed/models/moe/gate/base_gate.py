"""What all gates have."""

from __future__ import annotations

from typing import Any

from oar.nn.layer.layers import Layer

__all__ = ["BaseGate"]


class BaseGate(Layer):
    """A layer that chooses experts for each row.

    Args:
        num_expert: how many experts a process has.
        world_size: how many processes there are.

    Examples:
        >>> from oar.incubate.distributed.models.moe import BaseGate
        >>> BaseGate(2, 4).tot_expert
        8
    """

    def __init__(self, num_expert: int, world_size: int) -> None:
        super().__init__()
        self.world_size, self.num_expert, self.tot_expert = world_size, num_expert, world_size * num_expert
        self.loss: Any = None

    def forward(self, x: Any) -> Any:
        raise NotImplementedError("[BaseGate] a gate chooses experts in its own forward. hint: use NaiveGate, GShardGate or SwitchGate.")

    def set_loss(self, loss: Any) -> None:
        """Keeps the loss of this call, which is least when all experts get as many rows."""
        self.loss = loss

    def get_loss(self, clear: bool = True) -> Any:
        """The loss of the last call; None if there is none.

        Args:
            clear: whether to forget it.
        """
        loss = self.loss
        if clear:
            self.loss = None
        return loss

    @property
    def has_loss(self) -> bool:
        """Whether there is a loss."""
        return self.loss is not None
