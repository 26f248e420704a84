"""How calls are carried out, and parameters, under Paddle's inner names."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from oar import _C
from oar._framework import get_flags, in_dynamic_mode, set_flags
from oar._places import device_name, place_of
from oar.base import operators
from oar.base.proto.framework_pb2 import OpProto
from oar.framework import core, unique_name
from oar.framework.mode import in_dynamic_or_pir_mode, in_pir_mode, use_pir_api
from oar.framework.parameter import EagerParamBase, Parameter
from oar.static.operator import Operator
from oar.static.program import (
    Block,
    Program,
    default_main_program,
    default_startup_program,
    program_guard,
)
from oar.static.guards import device_guard, name_scope
from oar.static.variable import Variable

__all__ = [
    "Block",
    "Operator",
    "Program",
    "Variable",
    "default_main_program",
    "default_startup_program",
    "device_guard",
    "dygraph_only",
    "name_scope",
    "program_guard",
    "EagerParamBase",
    "Parameter",
    "OpProtoHolder",
    "convert_np_dtype_to_dtype_",
    "convert_np_dtype_to_proto_type",
    "core",
    "get_flags",
    "in_dygraph_mode",
    "in_dynamic_mode",
    "in_dynamic_or_pir_mode",
    "in_pir_mode",
    "use_pir_api",
    "set_flags",
    "unique_name",
]

in_dygraph_mode = in_dynamic_mode


def convert_np_dtype_to_dtype_(np_dtype) -> _C.dtype:
    """The dtype of a name, of NumPy's or of Oar's."""
    return _C.dtype(np_dtype)


convert_np_dtype_to_proto_type = convert_np_dtype_to_dtype_


def dygraph_only(function: Callable) -> Callable:
    """Marks a function whose calls must run at once: in static mode they are an error."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not in_dynamic_mode():
            raise RuntimeError(f"{function.__name__} runs its calls at once, which static mode does not. "
                               "hint: call oar.disable_static() first.")
        return function(*args, **kwargs)

    return call


class OpProtoHolder:
    """The ops that ``Block.append_op`` takes, with the names of their slots."""

    @classmethod
    def instance(cls) -> OpProtoHolder:
        """The only one."""
        return _protos

    def has_op_proto(self, type: str) -> bool:
        """Whether there is an op of this older name."""
        return operators.find_older(type) is not None

    def get_op_proto(self, type: str) -> OpProto:
        """The names of an op's slots."""
        form = operators.find_older(type)
        if form is None:
            raise ValueError(f"Operator {type!r} has not been registered.")
        return OpProto.of(form)


_protos = OpProtoHolder()


class Tracer:
    """What is switched on while calls run at once."""

    @property
    def _has_grad(self) -> bool:
        return _C.is_grad_enabled()

    @property
    def _amp_dtype(self) -> str:
        return _C.get_autocast()[1]

    @property
    def _amp_enabled(self) -> bool:
        return _C.get_autocast()[0]

    def _generate_unique_name(self, key: str = "dygraph_tmp") -> str:
        return unique_name.generate(key)


_tracer = Tracer()


def _dygraph_tracer() -> Tracer | None:
    """The modes of calls that run at once; None in static mode."""
    return _tracer if in_dynamic_mode() else None


def _current_expected_place():
    return place_of(_C.get_device())


_current_expected_place_ = _current_expected_place


def _set_expected_place(place: Any) -> None:
    """Calls create tensors there from now on."""
    _C.set_device(device_name(place))


@contextlib.contextmanager
def _stride_in_no_check_dy2st_diff() -> Iterator[None]:
    """Calls inside may differ between dynamic mode and captured functions. Views are the same in both here, so nothing changes."""
    yield


_no_check_dy2st_diff = _stride_in_no_check_dy2st_diff


def in_pir_executor_mode() -> bool:
    """False: there is one executor, which runs programs of one form."""
    return False


def in_cinn_mode() -> bool:
    """False: the compiler is Oar's own."""
    return False
