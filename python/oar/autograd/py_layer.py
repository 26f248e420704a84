"""Functions with a derivative written in Python."""

from __future__ import annotations

import copy
import weakref

from oar import _C
from oar._C import Tensor


class PyLayerContext:
    """What forward hands to backward.

    Examples:
        >>> import oar
        >>> class Double(oar.autograd.PyLayer):
        ...     @staticmethod
        ...     def forward(ctx, x, factor):
        ...         ctx.factor = factor  # any attribute may be kept
        ...         return x * factor
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         return grad * ctx.factor
        ...
        >>> x = oar.to_tensor([1.0], stop_gradient=False)
        >>> Double.apply(x, 2.0).backward()
        >>> x.grad
        Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
               [2.])
    """

    def __init__(self):
        self._saved: tuple = ()
        self._packed: list[_Packed] = []
        self._not_inplace: tuple = ()
        self._non_differentiable: set[int] = set()
        self.materialize_grads = True

    def save_for_backward(self, *tensors) -> None:
        """Keeps tensors for backward."""
        self._packed = []
        self._saved, _ = _changed(tensors, self._pack)

    def saved_tensor(self) -> tuple:
        """What ``save_for_backward`` kept."""
        if not self._packed:
            return self._saved
        return _changed(self._saved, lambda value: value.content() if isinstance(value, _Packed) else None)[0]

    def _pack(self, value: object) -> _Packed | None:
        if not isinstance(value, Tensor):
            return None
        unpack = _C.pack_saved(value)
        if unpack is None:
            return None
        self._packed.append(_Packed(value, unpack))
        return self._packed[-1]

    def mark_not_inplace(self, *tensors) -> None:
        """Accepted for compatibility; it has no effect."""
        self._not_inplace = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """These results have no gradient."""
        self._non_differentiable.update(id(t) for t in tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward sees zeros (or None) for results that had no gradient."""
        self.materialize_grads = value


class _Packed:
    """A saved tensor that a hook took over (``saved_tensors_hooks``), and which input or result it was."""

    def __init__(self, tensor: Tensor, unpack):
        self._tensor = weakref.ref(tensor)
        self._unpack = unpack
        self._on_tape = None  # puts the content on the tape again
        self._index = 0

    def find(self, inputs: list[Tensor], results: list[Tensor]) -> None:
        tensor = self._tensor()
        for tensors, on_tape in ((inputs, _C.as_input), (results, _C.as_result)):
            for index, other in enumerate(tensors):
                if other is tensor and self._on_tape is None:
                    self._on_tape, self._index = on_tape, index

    def content(self) -> Tensor:
        content = self._unpack()
        return content if self._on_tape is None else self._on_tape(content, self._index)


class _Result:
    """Stands for a result of forward in its context, where the result would keep its own history alive."""

    def __init__(self, content: Tensor, index: int):
        self.content = content
        self.index = index


class _OwnResults:
    """The results that a context keeps: without their history, except while backward runs.

    The history of a result leads to the step that holds the context, so neither would be freed.
    """

    def __init__(self, ctx: PyLayerContext):
        self._ctx = ctx
        self._marks: dict[int, _Result] = {}  # by the identity of the tensor
        self._tensors: list[Tensor] = []  # those of the marks while backward runs
        self._running = 0

    def let_go(self, results: list[Tensor], inputs: set[int]) -> None:
        for index, tensor in enumerate(results):
            if id(tensor) not in inputs and not tensor.is_leaf:
                self._marks[id(tensor)] = _Result(tensor.detach(), index)
        if not self._leave():
            self._marks = {}

    def __enter__(self) -> None:
        self._running += 1
        if self._running > 1 or not self._marks:
            return
        tensors = {mark.index: _C.as_result(mark.content, mark.index) for mark in self._marks.values()}
        self._tensors = list(tensors.values())
        self._marks = {id(tensors[mark.index]): mark for mark in self._marks.values()}
        self._replace(lambda value: tensors[value.index] if isinstance(value, _Result) else None)

    def __exit__(self, *exc: object) -> None:
        self._running -= 1
        if self._running == 0:
            self._leave()

    def _leave(self) -> bool:
        found = bool(self._marks) and self._replace(lambda value: self._marks.get(id(value)))
        self._tensors = []
        return found

    def _replace(self, change) -> bool:
        kept = vars(self._ctx)
        changed = {name: _changed(value, change) for name, value in kept.items()}
        kept.update({name: value for name, (value, _) in changed.items()})
        return any(other for _, other in changed.values())


class PyLayer:
    """Subclass it with static ``forward(ctx, …)`` and ``backward(ctx, *grads)``; call ``apply``.

    Examples:
        >>> import oar
        >>> class Exp(oar.autograd.PyLayer):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         y = oar.exp(x)
        ...         ctx.save_for_backward(y)
        ...         return y
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (y,) = ctx.saved_tensor()
        ...         return grad * y
        ...
        >>> x = oar.to_tensor([0.0, 1.0], stop_gradient=False)
        >>> Exp.apply(x).sum().backward()
        >>> x.grad
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.        , 2.71828175])
    """

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """The results for the arguments of ``apply``. What ``backward`` needs is kept in ``ctx``."""
        raise NotImplementedError("a PyLayer needs a static method forward(ctx, ...).")

    @staticmethod
    def backward(ctx, *grads):
        """The gradients of the tensor inputs, from those of the results."""
        raise NotImplementedError("a PyLayer needs a static method backward(ctx, *grads).")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward, recorded as one step whose derivative is backward."""
        ctx = PyLayerContext()
        own_results = _OwnResults(ctx)
        inputs = _tensors_in([*args, *kwargs.values()])
        count = len(inputs)
        structure: list = []
        entered: list[Tensor] = []

        def forward(given):
            # Under jvp these are the values of the inputs.
            own = iter(given)
            positional = _replaced(args, own)
            named = dict(zip(kwargs, _replaced(tuple(kwargs.values()), own)))
            result = cls.forward(ctx, *positional, **named)
            structure.append(result)
            entered.extend(given)
            return _tensors_in(result if isinstance(result, (list, tuple)) else [result])

        def backward(grads):
            with own_results:
                given = cls.backward(ctx, *grads)
            listed = list(given) if isinstance(given, (list, tuple)) else [given]
            if len(listed) != count:
                raise ValueError(f"{cls.__name__}.backward returned {len(listed)} gradients for {count} tensor inputs.")
            return listed

        outputs = _C.custom_function(inputs, forward, backward, cls.__name__)
        results = _tensors_in(structure)
        own_results.let_go(results, {id(tensor) for tensor in entered})
        for saved in ctx._packed:
            saved.find(entered, results)
        return _rebuilt(structure[0], iter(outputs), ctx._non_differentiable)


def _replaced(values, tensors):
    """The values with other tensors in the places of theirs."""
    if isinstance(values, Tensor):
        return next(tensors)
    if isinstance(values, (list, tuple)):
        made = [_replaced(value, tensors) for value in values]
        return type(values)(*made) if hasattr(values, "_fields") else type(values)(made)
    return values


def _tensors_in(values) -> list[Tensor]:
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors_in(value)
    return found


def _changed(value, change, inside: frozenset[int] = frozenset()) -> tuple:
    """The value with what ``change`` gives for the items of its lists, tuples and dicts, and whether it gave anything."""
    if not isinstance(value, (dict, list, tuple)):
        made = change(value)
        return (value, False) if made is None else (made, True)
    if id(value) in inside:  # it holds itself
        return value, False
    inside |= {id(value)}
    parts = value.values() if isinstance(value, dict) else value
    items = [_changed(item, change, inside) for item in parts]
    if not any(other for _, other in items):
        return value, False
    made = [item for item, _ in items]
    if isinstance(value, dict):
        copied = copy.copy(value)
        copied.update(zip(value, made))
        return copied, True
    return (type(value)(*made) if hasattr(value, "_fields") else type(value)(made)), True


def _rebuilt(structure, outputs, constant: set[int]):
    """The result of forward with its tensors replaced by recorded ones."""
    if isinstance(structure, Tensor):
        recorded = next(outputs)
        return recorded.detach() if id(structure) in constant else recorded
    if isinstance(structure, (list, tuple)):
        return type(structure)(_rebuilt(item, outputs, constant) for item in structure)
    return structure


