"""The calls of a program, as programs that inspect them see them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

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

    def _dtype_of(self, name: str) -> Any:
        builder = self.block.program._builder
        for (_, _, results, _), dtype in zip(builder.calls(), builder.result_dtypes()):
            if results[:1] == [name]:
                return dtype
        found = self.block.program._find(name)
        return None if found is None else found.dtype
