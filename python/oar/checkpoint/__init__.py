"""Checkpoints of a training run: written whole or not at all, checked when they are read, resumed to the bit."""

from oar.checkpoint._folder import CheckpointError
from oar.checkpoint.manager import Checkpoint, CheckpointManager

__all__ = ["Checkpoint", "CheckpointError", "CheckpointManager"]
