"""``LayerHelper``: helpers for a function that adds a layer to a program."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import oar
from oar._C import Tensor
from oar.base import operators
from oar.framework import ParamAttr, unique_name
from oar.framework.parameter import Parameter
from oar.static.nn.maker import LayerMaker
from oar.static.program import Operator, Program, default_main_program, default_startup_program
from oar.static.states import empty_variable, make_state

__all__ = ["LayerHelper"]


class LayerHelper(LayerMaker):
    """Makes parameters, variables and calls of one layer, named after it.

    Args:
        layer_type: the kind of layer, such as ``'fc'``.
        kwargs: the arguments of the function that adds the layer: ``name``, ``input``, ``param_attr``, ``bias_attr``,
            ``act``.
    """

    def __init__(self, layer_type: str, **kwargs: Any) -> None:
        self.kwargs = kwargs
        self.layer_type = layer_type
        self.name = kwargs["name"] = kwargs.get("name") or unique_name.generate(layer_type)
        self.dtype = oar.get_default_dtype()

    @property
    def main_program(self) -> Program:
        """The program that calls go to."""
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        """The program that initialises parameters."""
        return default_startup_program()

    @classmethod
    def set_default_dtype(cls, dtype: Any) -> None:
        """Sets the dtype of parameters that are made without one."""
        oar.set_default_dtype(dtype)

    @classmethod
    def get_default_dtype(cls) -> str:
        """The dtype of parameters that are made without one."""
        return oar.get_default_dtype()

    # what the function was called with ---------------------------------------------------------

    def multiple_input(self, input_param_name: str = "input") -> list[Tensor]:
        """The inputs, as a list."""
        given = self.kwargs.get(input_param_name, [])
        return [self.to_variable(one) for one in (given if isinstance(given, (list, tuple)) else [given])]

    def input(self, input_param_name: str = "input") -> Tensor:
        """The only input."""
        inputs = self.multiple_input(input_param_name)
        if len(inputs) != 1:
            raise ValueError(f"{self.layer_type} takes one input, but received {len(inputs)}.")
        return inputs[0]

    def input_dtype(self, input_param_name: str = "input") -> Any:
        """The dtype of all inputs."""
        kinds = {one.dtype for one in self.multiple_input(input_param_name)}
        if len(kinds) > 1:
            names = ", ".join(sorted(kind.name for kind in kinds))
            raise ValueError(f"the inputs of {self.layer_type} have several dtypes: {names}.")
        return kinds.pop() if kinds else None

    @property
    def param_attr(self) -> Any:
        """The attributes of the weights."""
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))

    @property
    def bias_attr(self) -> Any:
        """The attributes of the bias; False for none."""
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))

    def multiple_param_attr(self, length: int) -> list[Any]:
        """The attributes of as many weights."""
        attr = self.param_attr
        attrs = attr if isinstance(attr, list) else [attr]
        if len(attrs) not in (1, length):
            raise ValueError(f"{self.layer_type} has {length} inputs and attributes for {len(attrs)} parameters.")
        return attrs if len(attrs) == length else [copy.deepcopy(attrs[0]) for _ in range(length)]

    def iter_inputs_and_params(self, input_param_name: str = "input") -> Iterator[tuple[Tensor, Any]]:
        """Each input with the attributes of its weight."""
        inputs = self.multiple_input(input_param_name)
        yield from zip(inputs, self.multiple_param_attr(len(inputs)))

    def is_instance(self, param_name: str, cls: Any) -> None:
        """Raises where an argument is of another type."""
        if not isinstance(self.kwargs.get(param_name), cls):
            raise TypeError(f"{param_name} of {self.layer_type} must be {cls.__name__}.")

    def to_variable(self, value: Any, name: str | None = None) -> Tensor:
        """A tensor as it is; an array as a tensor."""
        return value if isinstance(value, Tensor) else oar.to_tensor(value)

    # what the layer has --------------------------------------------------------------------------

    def create_parameter(self, attr: Any, shape: Any, dtype: Any = None, is_bias: bool = False,
                         default_initializer: Any = None, stop_gradient: bool = False, type: Any = None) -> Parameter | None:
        """A parameter as specified by ``attr``; None if that is False."""
        made = self.parameter([int(s) for s in shape], attr, is_bias, default_initializer, dtype or self.dtype)
        if made is not None and stop_gradient:
            made.stop_gradient = True
        return made

    def get_parameter(self, name: str) -> Parameter:
        """The parameter of this name."""
        found = self.main_program.global_block().var(name)
        if not isinstance(found, Parameter):
            raise ValueError(f"the program has no parameter {name!r}.")
        return found

    def create_variable_for_type_inference(self, dtype: Any, stop_gradient: bool = False, shape: Any = None) -> Tensor:
        """A variable for a result; the call that writes it decides on shape and dtype."""
        return self.create_variable(unique_name.generate(f"{self.name}.tmp"), shape or [1], dtype, stop_gradient)

    def create_variable(self, name: str | None = None, shape: Any = (1,), dtype: Any = None, stop_gradient: bool = False,
                        persistable: bool = False, **kwargs: Any) -> Tensor:
        """A variable of the program; in dynamic mode a tensor."""
        name = name or unique_name.generate(f"{self.name}.tmp")
        made = (oar.zeros([max(int(s), 1) for s in shape], dtype or self.dtype) if oar.in_dynamic_mode()
                else empty_variable(self.main_program, name, list(shape), dtype or self.dtype, persistable))
        made.name = name
        return made

    def create_global_variable(self, persistable: bool = False, shape: Any = (1,), dtype: Any = None,
                               name: str | None = None, **kwargs: Any) -> Tensor:
        """A variable, which persists between runs if it is persistable."""
        return self.create_variable(name, shape, dtype, persistable=persistable)

    def create_or_get_global_variable(self, name: str, *args: Any, **kwargs: Any) -> tuple[Tensor, bool]:
        """The variable of this name, and whether it was created now."""
        block = self.main_program.global_block()
        if block.has_var(name):
            return block.var(name), False
        return self.create_global_variable(*args, **{**kwargs, "name": name}), True

    def set_variable_initializer(self, var: Tensor, initializer: Any) -> Tensor:
        """Lets the startup program give a variable that lives on its first content."""
        def first() -> Tensor:
            tensor = oar.zeros(list(var.shape), var.dtype)
            initializer(tensor, None)
            return tensor

        if oar.in_dynamic_mode():
            return operators.put(var, first())
        return make_state(first, var.name)

    # calls ---------------------------------------------------------------------------------------

    def append_op(self, type: str, inputs: Any = None, outputs: Any = None, attrs: Any = None,
                  **kwargs: Any) -> Operator | None:
        """Makes a call under Paddle's older names; see ``Block.append_op``. In dynamic mode it runs at once."""
        if oar.in_dynamic_mode():
            operators.append(type, inputs or {}, outputs or {}, attrs or {})
            return None
        return self.main_program.current_block().append_op(type, inputs, outputs, attrs)

    def append_bias_op(self, input_var: Tensor, dim_start: int = 1, dim_end: int | None = None) -> Tensor:
        """The variable plus a bias of its sizes ``dim_start`` to ``dim_end``."""
        if not self.bias_attr:
            return input_var
        bias = self.create_parameter(self.bias_attr, input_var.shape[dim_start:dim_end], input_var.dtype, is_bias=True)
        return oar.tensor.math._add_with_axis(input_var, bias, dim_start)

    def append_activation(self, input_var: Tensor) -> Tensor:
        """The variable through the activation ``act``."""
        activation = self.kwargs.get("act")
        if activation is not None and not isinstance(activation, str):
            raise TypeError(f"act should be the name of an activation, but received {activation!r}.")
        return self.activated(input_var, activation)
