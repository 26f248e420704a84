"""Attributes of tensors that are variables of a program; ``oar.static`` is imported on first use."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from oar.static.program import Block


def _of_variable(name: str, get: Callable[[Tensor], Any], doc: str) -> property:
    def read(self: Tensor) -> Any:
        if _C.capture_of(self) is None:
            raise AttributeError(f"a tensor of eager mode has no {name}; variables of programs do.")
        return get(self)

    return property(read, doc=doc)


def _block(self: Tensor) -> Block:
    from oar.static.program import default_main_program, program_of

    if _C.capture_of(self) is None:  # what programs of eager mode pass on to initialisers
        return default_main_program().global_block()
    program = program_of(self)
    if program is None:
        raise RuntimeError("the program that this variable belongs to no longer exists.")
    return program.global_block()


def _lod_level(self: Tensor) -> int:
    from oar.static.sequences import levels_of

    return len(levels_of(self))


def _get_value(self: Tensor, scope: Any = None) -> Tensor:
    """The content of a variable that lives on, in a scope.

    Args:
        scope: the scope.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     w = oar.static.create_parameter([2], 'float32', default_initializer=nn.initializer.Constant(1.0))
        ...
        >>> _ = oar.static.Executor().run(startup)
        >>> w.get_value().tolist()
        [1.0, 1.0]
        >>> oar.disable_static()
    """
    from oar.static.scope import global_scope

    found = (scope or global_scope())._tensor(self.name)
    if found is None:
        raise ValueError(f"the scope has no {self.name!r}. Run the startup program first.")
    return found


def _is_same(self: Tensor, other: Tensor) -> bool:
    """Whether both are one variable.

    Args:
        other: the other tensor.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0])
        >>> x.is_same(x), x.is_same(oar.to_tensor([1.0]))
        (True, False)
    """
    return self is other


class _Description:
    """A variable as Paddle's older programs describe it."""

    def __init__(self, variable: Tensor) -> None:
        self._variable, self._checked = variable, True

    def name(self) -> str:
        return self._variable.name

    def shape(self) -> list[int]:
        return [size if isinstance(size, int) else -1 for size in self._variable.shape]

    def dtype(self) -> Any:
        return self._variable.dtype

    def set_need_check_feed(self, checked: bool) -> None:
        """Accepted: a feed of another shape is a warning in any case."""
        self._checked = checked

    def need_check_feed(self) -> bool:
        return self._checked


Tensor.is_same = _is_same
Tensor.desc = _of_variable("desc", _Description, "The name, the shape and the dtype of the variable.")
Tensor.block = property(_block, doc="The block of the program that the variable belongs to; in eager mode that of the "
                                    "default program.")
Tensor.grad_name = property(lambda self: f"{self.name}@GRAD", doc="The name of the gradient in a program.")
Tensor.lod_level = _of_variable("lod_level", _lod_level,
                                "How many levels of lengths divide the rows; 0 if none.")
Tensor.is_data = _of_variable("is_data", lambda self: self.name in _block(self).program._builder.input_names,
                              "Whether the variable is an input of its program.")
Tensor.is_parameter = _of_variable("is_parameter", lambda self: self.name in _block(self).program._parameters,
                                   "Whether the variable is a parameter of its program.")
Tensor.get_value = _get_value
