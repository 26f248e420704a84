"""Layers with many experts, of which each row uses a few. The experts are divided among processes."""

from oar.incubate.distributed.models.moe.gate import BaseGate, GShardGate, NaiveGate, SwitchGate
from oar.incubate.distributed.models.moe.grad_clip import ClipGradForMOEByGlobalNorm
from oar.incubate.distributed.models.moe.moe_layer import MoELayer

__all__ = ["BaseGate", "ClipGradForMOEByGlobalNorm", "GShardGate", "MoELayer", "NaiveGate", "SwitchGate"]
