"""Programs and their states, under another of Paddle's inner paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.framework import ParamAttr, unique_name
from oar.framework.core import DataType
from oar.framework.parameter import Parameter
from oar.framework.parameter import create_parameter as _create_parameter
from oar.static.program import Program, default_main_program, default_startup_program, program_guard
from oar.static.states import make_state

__all__ = [
    "Program",
    "create_parameter",
    "create_persistable_value",
    "datatype_to_vartype",
    "default_main_program",
    "default_startup_program",
    "program_guard",
    "vartype_to_datatype",
]

# Both of Paddle's lists of dtypes name Oar's.
vartype_to_datatype = {value: value for name, value in vars(DataType).items() if name.isupper()}
datatype_to_vartype = dict(vartype_to_datatype)


def create_parameter(dtype: Any, shape: Sequence[int], name: str | None = None, **kwargs: Any) -> Parameter:
    """A parameter of the default main program; ``initializer`` gives its first content."""
    attr = ParamAttr(name or unique_name.generate("parameter"), trainable=kwargs.get("trainable", True),
                     regularizer=kwargs.get("regularizer"), need_clip=kwargs.get("need_clip", True))
    return _create_parameter(shape, dtype, attr=attr, default_initializer=kwargs.get("initializer"))


def create_persistable_value(dtype: Any, shape: Sequence[int], name: str | None = None, **kwargs: Any) -> Tensor:
    """A variable of the default main program that lives on between runs; ``initializer`` gives its first content."""
    def first() -> Tensor:
        tensor = oar.zeros(list(shape), dtype)
        initializer = kwargs.get("initializer")
        if initializer is not None:
            initializer(tensor, None)
        return tensor

    made = make_state(first, name or unique_name.generate("persistable_value"))
    made.persistable = True
    return made
