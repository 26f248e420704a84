"""Layers that choose the experts of each row."""

from oar.incubate.distributed.models.moe.gate.base_gate import BaseGate
from oar.incubate.distributed.models.moe.gate.gshard_gate import GShardGate
from oar.incubate.distributed.models.moe.gate.naive_gate import NaiveGate
from oar.incubate.distributed.models.moe.gate.switch_gate import SwitchGate

__all__ = ["BaseGate", "GShardGate", "NaiveGate", "SwitchGate"]
