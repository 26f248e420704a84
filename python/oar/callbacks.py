"""What ``Model.fit``, ``evaluate`` and ``predict`` call as they go."""

from oar.hapi.callbacks import (
    Callback, EarlyStopping, LRScheduler, ModelCheckpoint, ProgBarLogger, ReduceLROnPlateau, VisualDL, WandbCallback)

__all__ = ["Callback", "EarlyStopping", "LRScheduler", "ModelCheckpoint", "ProgBarLogger", "ReduceLROnPlateau",
           "VisualDL", "WandbCallback"]  # fmt: skip
