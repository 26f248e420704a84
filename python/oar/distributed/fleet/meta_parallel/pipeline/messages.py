"""Activations and gradients on their way between stages."""

from __future__ import annotations

from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.distributed.communication._calls import Task
from oar.distributed.communication.group import Group
from oar.distributed.communication.stream import message

__all__ = ["Form", "Messages", "tensors_in"]

_DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128")
_LENGTH = 128  # numbers of a description
_FIRST_TAG = 16
_MOST = 8  # tensors of a message


def tensors_in(function: str, value: Any) -> list[Tensor]:
    """The tensors of what a stage returns: one, or a tuple or list of some."""
    found = list(value) if isinstance(value, (tuple, list)) else [value]
    for tensor in found:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"[{function}] a stage returned a {type(tensor).__name__}, but tensors alone go to the next one. hint: return a tensor "
                            "or a tuple of tensors.")
    if len(found) > _MOST:
        raise ValueError(f"[{function}] a stage returned {len(found)} tensors, but a message has {_MOST} at most. hint: oar.concat joins them.")
    return found


class Form:
    """What a message consists of: the shape and dtype of each tensor, and whether a gradient comes back."""

    def __init__(self, is_single: bool, parts: list[tuple[str, list[int], bool]]) -> None:
        self.is_single, self.parts = is_single, parts

    @classmethod
    def of(cls, value: Any) -> Form:
        tensors = tensors_in("PipelineParallel", value)
        for tensor in tensors:
            if tensor.dtype.name not in _DTYPES:
                raise TypeError(f"[PipelineParallel] a stage returned a tensor of {tensor.dtype.name}, which is not sent. hint: cast it.")
        return cls(isinstance(value, Tensor), [(t.dtype.name, list(t.shape), not t.stop_gradient) for t in tensors])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and (self.is_single, self.parts) == (other.is_single, other.parts)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return ", ".join(f"{dtype}{shape}" for dtype, shape, _ in self.parts)

    def packed(self) -> Tensor:
        numbers = [int(self.is_single), len(self.parts)]
        for dtype, shape, needs in self.parts:
            numbers += [_DTYPES.index(dtype), int(needs), len(shape), *shape]
        if len(numbers) > _LENGTH:
            raise ValueError(f"[PipelineParallel] the tensors between two stages have too many axes: {self}.")
        return oar.to_tensor(np.array(numbers + [0] * (_LENGTH - len(numbers)), "int64"))

    @classmethod
    def unpacked(cls, packed: Tensor) -> Form:
        numbers = iter(packed.tolist())
        is_single, count = bool(next(numbers)), next(numbers)
        parts = []
        for _ in range(count):
            dtype, needs, rank = next(numbers), bool(next(numbers)), next(numbers)
            parts.append((_DTYPES[dtype], [next(numbers) for _ in range(rank)], needs))
        return cls(is_single, parts)


class Messages:
    """The messages of a stage. Sending never waits; each message has a number of its own, so their order does not matter.

    Args:
        group: the processes of the pipeline.
        keeps_forms: whether the form of the messages between two stages is told once; else with each message.
    """

    def __init__(self, group: Group, keeps_forms: bool) -> None:
        self._group, self._keeps_forms = group, keeps_forms
        self._sent: list[tuple[Task, Tensor]] = []
        self._forms: dict[tuple[str, Any], Form] = {}

    def _tag(self, place: int, micro: int, is_gradient: bool, slot: int) -> int:
        return _FIRST_TAG + (((micro * 256 + place) * 2 + is_gradient) * (_MOST + 1) + slot)

    def _send(self, tensor: Tensor, stage: int, tag: int) -> None:
        tensor = tensor.detach().contiguous()
        task = message("isend", tensor, self._group.ranks[stage], self._group, False, tag=tag)
        assert task is not None
        self._sent.append((task, tensor))

    def _receive(self, shape: list[int], dtype: str, stage: int, tag: int) -> tuple[Task, Tensor]:
        tensor = oar.empty(shape, dtype)
        task = message("irecv", tensor, self._group.ranks[stage], self._group, False, tag=tag)
        assert task is not None
        return task, tensor

    def send_forward(self, value: Any, stage: int, place: int, micro: int, mode: str) -> None:
        """Sends what the part of the network at ``place`` returned."""
        form = Form.of(value)
        key = (mode, place)
        if key not in self._forms or not self._keeps_forms:
            self._forms[key] = form
            self._send(form.packed(), stage, self._tag(place, micro, False, _MOST))
        elif self._forms[key] != form:
            raise ValueError(f"[PipelineParallel] a stage sends {form}, and has told the next one that it sends {self._forms[key]}. hint: give "
                             "all micro-batches one shape, or set pipeline_configs['p2p_cache_shape'] to False.")
        for slot, tensor in enumerate(tensors_in("PipelineParallel", value)):
            self._send(tensor, stage, self._tag(place, micro, False, slot))

    def receive_forward(self, stage: int, place: int, micro: int, mode: str) -> tuple[Form, list[tuple[Task, Tensor]]]:
        """Starts to receive what the part of the network at ``place`` returned."""
        key = (mode, place)
        if key not in self._forms or not self._keeps_forms:
            task, packed = self._receive([_LENGTH], "int64", stage, self._tag(place, micro, False, _MOST))
            task.wait()
            self._forms[key] = Form.unpacked(packed)
        form = self._forms[key]
        return form, [self._receive(shape, dtype, stage, self._tag(place, micro, False, slot))
                      for slot, (dtype, shape, _) in enumerate(form.parts)]

    def send_backward(self, gradients: list[Tensor], stage: int, place: int, micro: int) -> None:
        """Sends gradients of what the part at ``place`` returned."""
        for slot, gradient in enumerate(gradients):
            self._send(gradient, stage, self._tag(place, micro, True, slot))

    def receive_backward(self, outputs: list[Tensor], stage: int, place: int, micro: int) -> list[tuple[Task, Tensor]]:
        """Starts to receive gradients of ``outputs``, which the part at ``place`` returned."""
        return [self._receive(list(t.shape), t.dtype.name, stage, self._tag(place, micro, True, slot)) for slot, t in enumerate(outputs)]

    def finish(self) -> None:
        """Waits until all that was sent has arrived."""
        sent, self._sent = self._sent, []
        for task, _ in sent:
            task.wait()
