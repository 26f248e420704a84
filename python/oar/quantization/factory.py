"""Factories: a configuration holds the class and the arguments of a quanter, and creates one for each layer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

from oar.nn.layer import Layer

__all__ = ["ClassWithArguments", "ObserverFactory", "QuanterFactory", "quanter"]

_Quanter = TypeVar("_Quanter", bound=type)


class ClassWithArguments:
    """A class and the arguments to create it with.

    Args:
        args: positional arguments.
        kwargs: arguments by name.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._args = args
        self._kwargs = kwargs

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return self._args

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments by name."""
        return self._kwargs

    def _get_class(self) -> Any:
        raise NotImplementedError(f"[{type(self).__name__}] define _get_class, which returns the class of the quanter.")

    def __str__(self) -> str:
        texts = [str(value) for value in self._args] + [f"{name}={value}" for name, value in self._kwargs.items()]
        return f"{type(self).__name__}({','.join(texts)})"

    __repr__ = __str__


class QuanterFactory(ClassWithArguments):
    """Creates quanters of one kind."""

    def _instance(self, layer: Layer) -> Any:
        return self._get_class()(layer, *self._args, **self._kwargs)


ObserverFactory = QuanterFactory


def quanter(class_name: str) -> Callable[[_Quanter], _Quanter]:
    """Decorates a quanter of your own, and puts its factory into the module that defines it.

    Args:
        class_name: the name of the factory.

    Returns:
        the decorator.

    Examples:
        >>> import oar
        >>> from oar.quantization import BaseQuanter, QuantConfig, quanter
        >>> @quanter("Halves")
        ... class HalvesLayer(BaseQuanter):
        ...     def __init__(self, layer, factor=2.0):
        ...         super().__init__()
        ...         self.factor = factor
        ...     def forward(self, input):
        ...         return oar.round(input * self.factor) / self.factor
        ...     def scales(self):
        ...         return None
        ...     def zero_points(self):
        ...         return None
        ...     def quant_axis(self):
        ...         return -1
        ...     def bit_length(self):
        ...         return 8
        >>> print(Halves(factor=4.0))
        Halves(factor=4.0)
    """

    def wrapper(target: _Quanter) -> _Quanter:
        names = sys._getframe(1).f_globals
        members = {"_get_class": lambda self: target, "__module__": target.__module__, "__doc__": target.__doc__}
        names[class_name] = type(class_name, (QuanterFactory,), members)
        if "__all__" in names:
            names["__all__"].append(class_name)
        return target

    return wrapper
