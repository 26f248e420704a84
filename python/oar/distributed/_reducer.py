"""Averages gradients over processes while the backward pass still runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import oar
from oar import _C
from oar._C import Tensor, ops
from oar.distributed.communication import ReduceOp, stream
from oar.distributed.communication._calls import Task
from oar.distributed.communication.group import Group

__all__ = ["Reducer", "buckets_of"]


def buckets_of(parameters: Sequence[Tensor], first_bytes: float, bytes_each: float) -> list[list[int]]:
    """The numbers of the parameters that are sent together: in the order in which the backward pass reaches them, the last one
    first, in buckets of one dtype. The first bucket is smaller, so that sending starts early."""
    buckets: list[list[int]] = []
    open_buckets: dict[str, tuple[list[int], float]] = {}
    for number in reversed(range(len(parameters))):
        parameter = parameters[number]
        kind = str(parameter.dtype)
        bucket, size = open_buckets.get(kind, ([], 0.0))
        if not bucket:
            buckets.append(bucket)
        bucket.append(number)
        size += parameter.numel().item() * parameter.element_size()
        full = size >= (first_bytes if bucket is buckets[0] else bytes_each)
        open_buckets[kind] = ([], 0.0) if full else (bucket, size)
    return buckets


class _Bucket:
    """Gradients that lie one behind another in one tensor."""

    def __init__(self, parameters: Sequence[Tensor], numbers: list[int]) -> None:
        self.numbers = numbers
        sizes = [parameters[n].numel().item() for n in numbers]
        with oar.no_grad():
            self.flat = oar.zeros([sum(sizes)], parameters[numbers[0]].dtype)
            ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
            self.views = {n: oar.reshape(self.flat[end - size : end], parameters[n].shape)
                          for n, end, size in zip(numbers, ends, sizes)}
        self.missing = set(numbers)
        self.task: Task | None = None

    def reset(self) -> None:
        self.missing = set(self.numbers)
        self.task = None


class Reducer:
    """Sends each bucket when the gradients in it are complete. All processes send their buckets in the same order.

    Args:
        parameters: the parameters that are trained.
        group: the processes.
        first_bytes: the size of the first bucket.
        bytes_each: the size of the others.
        allow_unused: whether a backward pass may leave out parameters.
    """

    def __init__(
        self, parameters: Sequence[Tensor], group: Group, first_bytes: float, bytes_each: float, allow_unused: bool
    ) -> None:
        self.parameters, self.group, self.allow_unused = list(parameters), group, allow_unused
        self.is_on = True
        self._numbers = buckets_of(self.parameters, first_bytes, bytes_each)
        self._buckets: list[_Bucket] = []
        self._bucket_of: dict[int, _Bucket] = {}
        self._sent = 0
        self._is_running = False
        self._handles = [p.register_hook(self._hook(n)) for n, p in enumerate(self.parameters)]

    def remove(self) -> None:
        """Takes the hooks off."""
        for handle in self._handles:
            handle.remove()

    def _hook(self, number: int) -> Callable[[Tensor], Tensor | None]:
        def arrived(gradient: Tensor) -> Tensor | None:
            if not self.is_on:
                return None
            if _C.is_capturing() or _C.is_symbolic(gradient):
                return ops.all_reduce(gradient, "avg", self.group.id, self.group.nranks)
            with oar.no_grad():
                self._add(number, gradient)
            return None

        return arrived

    def _begin(self) -> None:
        if not self._buckets:
            self._buckets = [_Bucket(self.parameters, numbers) for numbers in self._numbers]
            self._bucket_of = {n: bucket for bucket in self._buckets for n in bucket.numbers}
        self._is_running, self._sent = True, 0
        for bucket in self._buckets:
            bucket.reset()
        _C.add_backward_final_hook(self._end)

    def _add(self, number: int, gradient: Tensor) -> None:
        if not self._is_running:
            self._begin()
        bucket, parameter = self._bucket_of[number], self.parameters[number]
        if number not in bucket.missing:
            raise RuntimeError(f"[DataParallel] the parameter {parameter.name} got its gradient twice in one backward pass. "
                               "hint: wrap the steps but the last one in no_sync().")
        # Earlier steps, in no_sync, have left theirs.
        earlier = parameter.grad
        view = bucket.views[number]
        dense = gradient if gradient.is_dense() else gradient.to_dense()
        if earlier is None:
            view.copy_(dense)
        else:
            view.copy_(earlier + dense)
            parameter.clear_gradient(False)
        bucket.missing.discard(number)
        self._send_complete()

    def _send_complete(self) -> None:
        while self._sent < len(self._buckets) and not self._buckets[self._sent].missing:
            bucket = self._buckets[self._sent]
            bucket.task = stream.all_reduce(bucket.flat, ReduceOp.AVG, self.group, sync_op=False)
            self._sent += 1

    def _end(self) -> None:
        """After the backward pass."""
        self._is_running = False
        unused = [n for bucket in self._buckets for n in bucket.missing]
        if unused and not self.allow_unused:
            names = ", ".join(self.parameters[n].name for n in sorted(unused)[:5])
            raise RuntimeError(f"[DataParallel] {len(unused)} parameters got no gradient in this backward pass: {names}. "
                               "hint: pass find_unused_parameters=True to DataParallel, or use all of them in the loss.")
        with oar.no_grad():
            for bucket in self._buckets:
                for number in bucket.missing:
                    self._keep_earlier(bucket, number)
                bucket.missing.clear()
            self._send_complete()
            idle = self._unused_everywhere(unused) if self.allow_unused else set()
            for bucket in self._buckets:
                assert bucket.task is not None
                bucket.task.wait()
                for number in bucket.numbers:
                    if number not in idle:
                        self.parameters[number].grad = bucket.views[number]

    def _keep_earlier(self, bucket: _Bucket, number: int) -> None:
        earlier = self.parameters[number].grad
        if earlier is None:
            bucket.views[number].zero_()
        else:
            bucket.views[number].copy_(earlier)

    def _unused_everywhere(self, unused: list[int]) -> set[int]:
        """The parameters that no process has used: they keep no gradient."""
        used = [0 if n in unused and self.parameters[n].grad is None else 1 for n in range(len(self.parameters))]
        counts = oar.to_tensor(used, "int32")
        stream.all_reduce(counts, ReduceOp.MAX, self.group)
        return {n for n, count in enumerate(counts.tolist()) if not count}
