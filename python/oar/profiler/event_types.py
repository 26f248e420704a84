"""What events of a profile are. The numbers are Paddle's, and files have them."""

from __future__ import annotations

from enum import Enum

__all__ = ["TracerEventType", "TracerMemEventType"]


class TracerEventType(Enum):
    """The type of an event.

    Examples:
        >>> from oar.profiler import TracerEventType
        >>> TracerEventType.Forward.value
        9
    """

    Operator = 0
    Dataloader = 1
    ProfileStep = 2
    CudaRuntime = 3
    Kernel = 4
    Memcpy = 5
    Memset = 6
    UserDefined = 7
    OperatorInner = 8
    Forward = 9
    Backward = 10
    Optimization = 11
    Communication = 12
    PythonOp = 13
    PythonUserDefined = 14


class TracerMemEventType(Enum):
    """What happened to memory: tensors took or freed it, or the allocator took it from the system or returned it."""

    Allocate = 0
    Free = 1
    ReservedAllocate = 2
    ReservedFree = 3
