"""The calls of a program, as programs that inspect them see them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from oar import _C

if TYPE_CHECKING:
    from oar.static.program import Block

__all__ = ["OlderOperator", "Operator"]


class Operator:
    """One call of a program: its operands, its results, its attributes."""

    def __init__(self, block: Block, index: int, row: tuple[str, list[str], list[str], dict[str, Any]]) -> None:
        self.block = block
        self.idx = index
        self._op, self.input_arg_names, self.output_arg_names, self._given = row

    @property
    def type(self) -> str:
        """The name of the op."""
        return self._op

    @property
    def _attributes(self) -> dict[str, Any]:
        return self._given

    def name(self) -> str:
        """The name of the op as Paddle's programs write it, ``pd_op.add`` for example."""
        return f"pd_op.{self._op}"

    @property
    def attr_names(self) -> list[str]:
        """The names of its attributes."""
        return list(self._attributes)

    def attr(self, name: str) -> Any:
        """One of its attributes."""
        if name not in self._attributes:
            raise ValueError(f"[{self.type}] has no attribute {name!r}. It has {', '.join(self._attributes) or 'none'}.")
        return self._attributes[name]

    def has_attr(self, name: str) -> bool:
        """Whether it has an attribute of this name."""
        return name in self._attributes

    def attrs(self) -> dict[str, Any]:
        """All attributes by name."""
        return dict(self._attributes)

    all_attrs = attrs

    def get_input_names(self) -> list[str]:
        """The names of its arguments, tensors and numbers."""
        return list(self._arguments)

    def num_operands(self) -> int:
        """How many arguments it has."""
        return len(self._arguments)

    def operand(self, index: int) -> Operand:
        """One of its arguments."""
        return Operand(list(self._arguments.values())[index])

    def operand_source(self, index: int) -> Source:
        """Where one of its arguments comes from."""
        return self.operand(index).source()

    def operands_source(self) -> list[Source]:
        """Where its arguments come from."""
        return list(self._arguments.values())

    @functools.cached_property
    def _arguments(self) -> dict[str, Source]:
        names = [p["name"] for p in getattr(_C.ops, self._op).parameters if not p["name"].startswith("_")]
        tensors = [name for name in names if name not in self._given]
        if len(tensors) != len(self.input_arg_names):
            raise NotImplementedError(f"[{self.type}] arguments by number are for calls whose tensors are all given, and "
                                      "none in a list. hint: input_arg_names has the names of the variables.")
        variables = dict(zip(tensors, self.input_arg_names))
        return {name: Variable(self, variables[name]) if name in variables else Number(self._given[name]) for name in names}

    def _dtype_of(self, name: str) -> Any:
        builder = self.block.program._builder
        for (_, _, results, _), dtype in zip(builder.calls(), builder.result_dtypes()):
            if results[:1] == [name]:
                return dtype
        found = self.block.program._find(name)
        return None if found is None else found.dtype

    def __repr__(self) -> str:
        attributes = [f"{key}={value!r}" for key, value in self._attributes.items()]
        return f"{', '.join(self.output_arg_names)} = {self.type}({', '.join(self.input_arg_names + attributes)})"


class OlderOperator(Operator):
    """A call under the name, and with the names of attributes, that ``Block.append_op`` takes."""

    @property
    def type(self) -> str:
        """The older name of the op."""
        from oar.amp._names import older_name

        return self._form.older if self._form else older_name(self._op)

    @property
    def _form(self) -> Any:
        from oar.base import operators

        return operators.form_of(self._op)

    @functools.cached_property
    def _attributes(self) -> dict[str, Any]:
        given = {key: value for key, value in self._given.items() if not key.startswith("_")}
        made = self._form.older_attributes(given) if self._form else given
        if "out_dtype" in made:  # Paddle's ops that have one repeat what they are given
            made["in_dtype"] = self._dtype_of(self.input_arg_names[0])
        return made


class Source:
    """Where an argument of a call comes from."""

    def get_defining_op(self) -> Any:
        """The call that computes it; None for inputs and parameters."""
        raise NotImplementedError


class Variable(Source):
    """A variable as an argument of a call."""

    def __init__(self, op: Operator, name: str) -> None:
        self._op, self.name = op, name

    @property
    def dtype(self) -> Any:
        """Its dtype."""
        return self._op._dtype_of(self.name)

    def get_defining_op(self) -> Operator | None:
        """The last call before this one that computes it."""
        before = self._op.block.ops[: self._op.idx]
        return next((op for op in reversed(before) if self.name in op.output_arg_names), None)


class Number(Source):
    """A number, or sizes, as an argument. The call that Paddle's programs compute it with stands for it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def get_defining_op(self) -> Number:
        """A call with the value as its attribute."""
        return self

    def name(self) -> str:
        """The name of that call."""
        return "pd_op.full_int_array" if isinstance(self._value, (list, tuple)) else "pd_op.full"

    def attrs(self) -> dict[str, Any]:
        """The value by the name that it has there."""
        return {"value": self._value}


class Operand:
    """One argument of a call."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def source(self) -> Source:
        """Where it comes from."""
        return self._source
