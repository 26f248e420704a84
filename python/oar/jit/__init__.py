"""Programs: functions written down as ops, with open sizes."""

from oar.jit.capture import Program, capture

__all__ = ["Program", "capture"]
