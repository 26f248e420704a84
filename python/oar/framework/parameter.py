"""``Parameter``, the tensor a layer trains, and ``create_parameter``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar.framework import unique_name
from oar.framework.param_attr import ParamAttr

__all__ = ["Parameter", "EagerParamBase", "create_parameter"]

_FLOATING = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def dtype_name(dtype: Any) -> str:
    """``'float32'`` for anything that names that dtype: a string, an oar dtype or a NumPy dtype."""
    if isinstance(dtype, str):
        return dtype.rsplit(".", 1)[-1]
    name = getattr(dtype, "name", None)
    if not isinstance(name, str):
        name = dtype.__name__ if isinstance(dtype, type) else str(dtype)
    return name.rsplit(".", 1)[-1].lower()


class Parameter(Tensor):
    """A trainable tensor.

    Differs from a plain ``Tensor`` in that a ``Layer`` registers it when it is assigned as an attribute,
    and in what it tells the optimizer: ``optimize_attr['learning_rate']`` is a factor on the learning
    rate, ``regularizer`` replaces the optimizer's weight decay, ``need_clip`` lets gradient clipping
    pass it by, ``trainable`` is the opposite of ``stop_gradient``.

    Args:
        shape: the shape of the parameter; or a tensor, whose memory it shares.
        dtype: the dtype of the parameter; after a tensor, whether gradients are computed, as ``requires_grad``.
        kwargs: ``data``, a tensor; ``requires_grad`` or ``trainable``; ``name``, ``optimize_attr``, ``regularizer``,
            ``need_clip``, ``do_model_average``, ``is_distributed``.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> parameter = oar.create_parameter([2], 'float32', default_initializer=nn.initializer.Constant(1.0))
        >>> isinstance(parameter, oar.Parameter), parameter.stop_gradient
        (True, False)
        >>> nn.Parameter(oar.ones([2]), requires_grad=False).stop_gradient
        True
    """

    def __new__(cls, shape: Any = None, dtype: Any = None, **kwargs: Any) -> Parameter:
        data = shape.detach() if isinstance(shape, Tensor) else kwargs.get("data")
        if data is None:
            data = _blank(shape, dtype)
        return _as_subclass(cls, data)

    def __init__(self, shape: Any = None, dtype: Any = None, **kwargs: Any) -> None:
        self.name = kwargs.get("name") or unique_name.generate("_eager_param_base")
        self.persistable = True
        trainable = dtype if isinstance(dtype, bool) else kwargs.get("requires_grad", True)
        self.stop_gradient = not kwargs.get("trainable", trainable)
        self.optimize_attr = kwargs.get("optimize_attr") or {"learning_rate": 1.0}
        self.regularizer = kwargs.get("regularizer")
        self.do_model_average = kwargs.get("do_model_average")
        self.need_clip = kwargs.get("need_clip", True)
        self.is_distributed = kwargs.get("is_distributed", False)
        self._init_func = None

    @classmethod
    def from_tensor(cls, tensor: Tensor, **kwargs: Any) -> Parameter:
        """A parameter with the values of ``tensor``; shares its memory."""
        return cls(data=tensor.detach(), **kwargs)

    @property
    def trainable(self) -> bool:
        """Whether gradients are computed for this parameter."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, trainable: bool) -> None:
        if not isinstance(trainable, bool):
            raise ValueError(f"trainable must be a bool, but received {type(trainable).__name__}.")
        self.stop_gradient = not trainable

    def set_init_func(self, obj: Any) -> None:
        """Remember how to initialise this parameter later (see ``LazyGuard``)."""
        self._init_func = obj

    def initialize(self) -> None:
        """Run the initialisation that ``LazyGuard`` put off."""
        if self._init_func is None:
            raise RuntimeError(f"Parameter {self.name} has no postponed initialisation to run.")
        self._init_func(self, None)
        self._init_func = None

    def _settings(self) -> dict[str, Any]:
        keys = ("optimize_attr", "regularizer", "do_model_average", "need_clip", "is_distributed")
        return {key: getattr(self, key) for key in keys} | {"trainable": self.trainable}

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        settings = copy.deepcopy(self._settings(), memo)
        with oar.no_grad():
            data = self.detach().clone()
        twin = type(self)(data=data, name=self.name + unique_name.generate("_deepcopy"), **settings)
        memo[id(self)] = twin
        twin._init_func = self._init_func
        own = twin.__dict__
        for key, value in self.__dict__.items():
            if key not in own:
                own[key] = copy.deepcopy(value, memo)
        return twin

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.numpy(), dtype_name(self.dtype), self.name, self._settings())

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"

    __str__ = __repr__


EagerParamBase = Parameter


def _blank(shape: Any, dtype: Any) -> Tensor:
    """Zeros for a parameter that is initialised afterwards."""
    if shape is None or dtype is None:
        missing = "shape" if shape is None else "dtype"
        raise ValueError(f"The {missing} of a Parameter should not be None.")
    shape = [int(extent) for extent in shape]
    if any(extent < 0 for extent in shape):
        raise ValueError(f"Each dimension of a Parameter's shape must be at least 0, but received {shape}.")
    return oar.zeros(shape, dtype=dtype)


def _as_subclass(cls: type, data: Tensor) -> Any:
    """A new Python object of type ``cls`` over the memory of ``data``."""
    return Tensor.__new__(cls, data)  # type: ignore[call-arg]


def _rebuild(cls: type, array: Any, dtype: str, name: str, settings: dict[str, Any]) -> Parameter:
    from oar.framework.io import array_to_tensor

    return cls(data=array_to_tensor(array, dtype), name=name, **settings)


def _check_sizes(shape: Sequence[int]) -> None:
    """An error in terms of the parameter, not of the op that fills it."""
    for size in shape:
        if isinstance(size, (str, float)):
            raise TypeError(f"The shape {list(shape)} of a parameter should hold ints, not {size!r}.")
        if isinstance(size, int) and size < 0:
            raise ValueError(f"The shape {list(shape)} of a parameter has a negative size; the layer's sizes, such as "
                             "in_features or out_channels, should be positive.")


def make_parameter(
    shape: Sequence[int],
    dtype: Any,
    attr: ParamAttr,
    default_initializer: Any = None,
    is_bias: bool = False,
) -> Parameter:
    """Create and initialise a parameter as specified by ``attr``. ``attr.name`` must be set."""
    from oar.nn import initializer as init
    from oar.nn.initializer.initializer import _global_initializer

    _check_sizes(shape)
    fallback = _global_initializer(is_bias) or default_initializer
    chosen = attr.initializer or fallback
    if chosen is None:
        if dtype_name(dtype) not in _FLOATING:
            raise TypeError(
                f"A parameter of dtype {dtype_name(dtype)} has no default initializer; pass default_initializer."
            )
        chosen = init.Constant(0.0) if is_bias else init.XavierUniform()
    settings = {
        "name": attr.name,
        "trainable": attr.trainable,
        "optimize_attr": {"learning_rate": attr.learning_rate},
        "regularizer": attr.regularizer,
        "do_model_average": attr.do_model_average,
        "need_clip": attr.need_clip,
    }
    shape = [int(extent) for extent in shape]
    if not oar.in_dynamic_mode():
        from oar.static.states import static_parameter

        return static_parameter(shape, dtype, chosen, settings)
    if init.lazy_init_active():
        parameter = Parameter(shape, dtype, **settings)
        parameter.set_init_func(chosen)
        return parameter
    with oar.no_grad():
        if isinstance(chosen, init.Initializer) and chosen.has_sampler():
            return Parameter(data=chosen.sample(shape, dtype), **settings)
        parameter = Parameter(shape, dtype, **settings)
        chosen(parameter, None)
    return parameter


def create_parameter(
    shape: Sequence[int],
    dtype: Any,
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Parameter:
    """Create a parameter that belongs to no layer.

    Args:
        shape: its shape.
        dtype: its dtype.
        name: its name, when ``attr`` does not give one.
        attr: a ``ParamAttr``, or something that is converted to one.
        is_bias: initialise with zeros rather than Xavier's uniform distribution.
        default_initializer: used when ``attr`` names no initializer.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> w = oar.create_parameter([2, 2], 'float32', default_initializer=nn.initializer.Constant(1.0))
        >>> w.tolist(), w.trainable
        ([[1.0, 1.0], [1.0, 1.0]], True)
    """
    attr = copy.copy(ParamAttr._to_attr(attr))
    if attr is False:
        raise ValueError("create_parameter cannot create a parameter from attr=False.")
    attr.name = attr.name or name or unique_name.generate("create_parameter." + ("b" if is_bias else "w"))
    return make_parameter(shape, dtype, attr, default_initializer, is_bias)
