"""Parameters that lie one behind another in one vector, of which each process owns an equal part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import oar
from oar._C import Tensor
from oar.distributed.checkpoint.sharded_weight import ShardedWeight
from oar.distributed.communication import ReduceOp, stream
from oar.distributed.communication._calls import Task
from oar.distributed.communication.group import Group
from oar.framework.parameter import Parameter

__all__ = ["Piece", "Unit"]


class Piece:
    """The elements of a parameter that this process owns.

    Args:
        whole: the parameter.
        begin: the number of the first element, in the order of memory.
        end: the number after that of the last.
        own: the elements, a view of those of the unit.
    """

    def __init__(self, whole: Parameter, begin: int, end: int, own: Tensor) -> None:
        self.whole, self.begin, self.end = whole, begin, end
        self.parameter = Parameter(data=own, name=whole.name, **whole._settings())

    def described(self, key: str, tensor: Tensor) -> ShardedWeight:
        """A tensor with these elements of one in the shape of the parameter."""
        shape = tuple(self.whole.shape)
        return ShardedWeight(key, tensor, shape, shape, (0,) * len(shape), True, slice(self.begin, self.end))


class Unit:
    """Parameters in one vector. Each process of the group owns an equal part of it: the end is padded.

    Args:
        parameters: the parameters, of one dtype.
        group: the processes.
        keeps_whole: whether the vector stays whole between uses: if not, only the own part has memory.
        keeps_gradients: the same for gradients.
        copies: processes with copies of the own part, whose gradients are averaged too.
    """

    def __init__(
        self, parameters: Sequence[Parameter], group: Group, keeps_whole: bool, keeps_gradients: bool, copies: Group | None = None,
        make: Callable[[Tensor], Tensor] | None = None,
    ) -> None:  # fmt: skip
        self.parameters, self.group, self.copies = list(parameters), group, copies
        self.keeps_whole, self.keeps_gradients = keeps_whole, keeps_gradients
        sizes = [p.numel().item() for p in parameters]
        self.ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        self.begins = [end - size for end, size in zip(self.ends, sizes)]
        self.part = max(-(-self.ends[-1] // group.nranks), 1)
        self.length = self.part * group.nranks
        self.shapes = [list(p.shape) for p in parameters]
        self.dtype = parameters[0].dtype
        self.whole: Tensor | None = oar.zeros([self.length], self.dtype)
        for view, parameter in zip(self.views(self.whole), parameters):
            view.copy_(parameter)
        own = self.own_part(self.whole)
        self.own = own if keeps_whole else (own.clone() if make is None else make(own))
        self.show()
        if not keeps_whole:
            self.release()
        self.pieces = self._pieces()
        self._reset_gradients()

    def views(self, vector: Tensor) -> list[Tensor]:
        """The parameters' parts of a whole vector, in their shapes."""
        return [oar.reshape(vector[begin:end], shape) for begin, end, shape in zip(self.begins, self.ends, self.shapes)]

    def own_part(self, vector: Tensor) -> Tensor:
        """This process's part of a whole vector."""
        return vector[self.group.rank * self.part : (self.group.rank + 1) * self.part]

    def _pieces(self) -> list[Piece]:
        first = self.group.rank * self.part
        pieces = []
        for parameter, begin, end in zip(self.parameters, self.begins, self.ends):
            low, high = max(begin, first), min(end, first + self.part)
            if low < high:
                pieces.append(Piece(parameter, low - begin, high - begin, self.own[low - first : high - first]))
        return pieces

    def cut(self, vector: Tensor) -> dict[str, Tensor]:
        """The pieces' parts of a vector like the own one, by the names of the parameters."""
        names, result, first = {id(p.whole): p for p in self.pieces}, {}, self.group.rank * self.part
        for parameter, begin in zip(self.parameters, self.begins):
            if (piece := names.get(id(parameter))) is not None:
                result[parameter.name] = vector[begin + piece.begin - first : begin + piece.end - first]
        return result

    # parameters --------------------------------------------------------------------------------

    def show(self) -> None:
        """The parameters show the whole vector."""
        assert self.whole is not None
        for view, parameter in zip(self.views(self.whole), self.parameters):
            parameter._become(view)

    def gather(self) -> Tensor:
        """The whole vector."""
        with oar.no_grad():
            if self.whole is None:
                self.whole = oar.empty([self.length], self.dtype)
                stream.all_gather(self.whole, self.own, self.group)
                self.show()
        assert self.whole is not None
        return self.whole

    def release(self) -> None:
        """Frees the vector: the parameters keep their shapes, and show NaN."""
        self.whole = None
        with oar.no_grad():
            blank = oar.full([1], float("nan"), self.dtype)
            for shape, parameter in zip(self.shapes, self.parameters):
                parameter._become(oar.expand(blank, shape) if shape else oar.reshape(blank, []))

    def publish(self) -> Task | None:
        """After an update of the own parts: all get them."""
        self._check_memory()
        if not self.keeps_whole or self.whole is None:
            return None
        with oar.no_grad():
            return stream.all_gather(self.whole, self.own.clone(), self.group, sync_op=False)

    def _check_memory(self) -> None:
        """Parameters that were cast or replaced do not see updates any more."""
        for parameter, begin in zip(self.parameters, self.begins):
            there = self.whole is None or parameter.data_ptr() == self.whole.data_ptr() + begin * self.whole.element_size()
            if parameter.dtype != self.dtype or not (there or parameter.size == 0):
                raise RuntimeError(f"[group_sharded_parallel] the parameter {parameter.name} was cast or replaced after its states were divided. "
                                   "hint: call amp.decorate() and to() before group_sharded_parallel, and set_value() to change weights.")

    # gradients ---------------------------------------------------------------------------------

    def _reset_gradients(self) -> None:
        self.gradients: Tensor | None = None  # whole
        self.own_gradients: Tensor | None = None
        self.missing = set(range(len(self.parameters)))
        self._task: Task | None = None
        self._arrived: Tensor | None = None

    def clear_gradients(self) -> None:
        """Forgets what has been reduced."""
        self._reset_gradients()
        for piece in self.pieces:
            piece.parameter.clear_gradient(False)
        for parameter in self.parameters:
            parameter.clear_gradient(False)

    def begin_pass(self) -> None:
        """Before the gradients of a backward pass. Earlier ones that stay whole are with the parameters."""
        self.missing = set(range(len(self.parameters)))
        self.gradients = None

    def add(self, number: int, gradient: Tensor) -> None:
        """The gradient of a parameter."""
        if self.gradients is None:
            self.gradients = oar.zeros([self.length], gradient.dtype)
        view = oar.reshape(self.gradients[self.begins[number] : self.ends[number]], self.shapes[number])
        view.copy_(gradient)
        self.missing.discard(number)

    def send(self) -> None:
        """Starts to average the gradients over the processes."""
        if self.gradients is None:
            self.gradients = oar.zeros([self.length], self.dtype)
        if self.keeps_gradients:
            self._task = stream.all_reduce(self.gradients, ReduceOp.AVG, self.group, sync_op=False)
            return
        self._arrived = oar.empty([self.part], self.gradients.dtype)
        self._task = stream.reduce_scatter(self._arrived, self.gradients, ReduceOp.AVG, self.group, sync_op=False)

    def receive(self) -> None:
        """Waits for the averages. Without ``keeps_gradients`` only those of the own part stay."""
        if self._task is None:
            return
        self._task.wait()
        self._task = None
        assert self.gradients is not None
        if self.keeps_gradients:
            self.own_gradients = self.own_part(self._among_copies(self.gradients))
            for view, parameter in zip(self.views(self.gradients), self.parameters):
                parameter.grad = view
        else:
            assert self._arrived is not None
            arrived = self._among_copies(self._arrived)
            self.gradients = self._arrived = None
            if self.own_gradients is None:
                self.own_gradients = arrived
            else:
                self.own_gradients.add_(arrived)
        self.give()

    def _among_copies(self, gradients: Tensor) -> Tensor:
        if self.copies is not None and self.copies.nranks > 1:
            stream.all_reduce(gradients, ReduceOp.AVG, self.copies)
        return gradients

    def give(self) -> None:
        """The pieces get their gradients."""
        assert self.own_gradients is not None
        parts = self.cut(self.own_gradients)
        for piece in self.pieces:
            piece.parameter.grad = parts[piece.whole.name]
