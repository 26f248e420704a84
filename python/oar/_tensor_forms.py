"""Methods of Tensor for other dtypes, devices, shapes and memory, and for tensors like it."""

from __future__ import annotations

import builtins

from oar._C import Tensor, ops
from oar._places import unavailable
from oar._spelling import finished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# ---- dtypes ------------------------------------------------------------------------------------------

_DTYPES = {
    "bfloat16": "bfloat16", "bool": "bool", "byte": "uint8", "cdouble": "complex128", "cfloat": "complex64",
    "char": "int8", "complex128": "complex128", "complex64": "complex64", "double": "float64", "float": "float32",
    "float16": "float16", "float32": "float32", "float64": "float64", "half": "float16", "int": "int32",
    "int16": "int16", "int32": "int32", "int64": "int64", "int8": "int8", "long": "int64", "short": "int16",
    "uint8": "uint8",
}  # fmt: skip


def _converter(name: str, dtype: str) -> Callable[[Tensor], Tensor]:
    def convert(self: Tensor) -> Tensor:
        return ops.cast(self, dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"""The values as {dtype}.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1, 0]).{name}().dtype
        oar.{dtype}
    """
    return convert


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The values in the dtype of another tensor.

    Args:
        other: the other tensor.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.5]).type_as(oar.to_tensor([1])).tolist()
        [1]
    """
    return ops.cast(self, other.dtype)


def to_integer(self: Tensor) -> int:
    """``int(x)``."""
    return int(self)


# ---- gradients ---------------------------------------------------------------------------------------


def _ask_for_gradients(self: Tensor, value: builtins.bool) -> None:
    self.stop_gradient = not value


def _set_gradient(self: Tensor, value: Tensor | None) -> None:
    self.grad = value


def requires_grad_(self: Tensor, requires_grad: builtins.bool = True) -> Tensor:
    """Says whether gradients are computed for the tensor.

    Args:
        requires_grad: whether they are.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([2]).requires_grad_().stop_gradient
        False
    """
    self.stop_gradient = not requires_grad
    return self


def detach_(self: Tensor) -> Tensor:
    """Cuts the tensor off from its history: it becomes a leaf without gradients.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([2.0], stop_gradient=False)
        >>> y = (x * x).detach_()
        >>> y.stop_gradient, y.is_leaf
        (True, True)
    """
    self._become(self.detach())
    self.stop_gradient = True
    return self


# ---- devices -----------------------------------------------------------------------------------------


class Device(str):
    """The name of a device: a string that has ``type`` and ``index`` too.

    Examples:
        >>> import oar
        >>> oar.zeros([1]).device, oar.zeros([1]).device.type
        ('cpu', 'cpu')
    """

    @property
    def type(self) -> str:
        """The kind of device."""
        return str(self).partition(":")[0]

    @property
    def index(self) -> int | None:  # type: ignore[override]
        """The number of the device; None where the kind has one device only."""
        number = str(self).partition(":")[2]
        return int(number) if number else None


def get_device(self: Tensor) -> int:
    """The number of the tensor's device; -1 for the CPU.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.zeros([1]).get_device()
        -1
    """
    index = Device(self._device).index
    return -1 if self._device == "cpu" else 0 if index is None else index


def cuda(self: Tensor, device_id: Any = None, blocking: builtins.bool = True) -> Tensor:
    """A copy on a GPU. There is no GPU here, so it raises.

    Args:
        device_id: the number of the GPU.
        blocking: whether to wait for the copy.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.zeros([1]).cuda()
        ... except ValueError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("cuda", "GPU")


def pin_memory(self: Tensor, blocking: builtins.bool = True) -> Tensor:
    """A copy in memory that GPUs read quickly. There is no GPU here, so it raises.

    Args:
        blocking: whether to wait for the copy.

    Examples:
        >>> import oar
        >>> try:
        ...     oar.zeros([1]).pin_memory()
        ... except RuntimeError as error:
        ...     print("there is no GPU here" in str(error))
        ...
        True
    """
    raise unavailable("pin_memory", "GPU")


# ---- shapes and memory -------------------------------------------------------------------------------


def get_strides(self: Tensor) -> list[int]:
    """How many elements apart neighbours along each axis are in memory.

    Returns:
        a list.

    Examples:
        >>> import oar
        >>> oar.zeros([2, 3]).get_strides()
        [3, 1]
    """
    return list(self.strides)


def stride(self: Tensor, dim: int | None = None) -> list[int] | int:
    """``get_strides()``, or its entry for an axis.

    Args:
        dim: the axis, or None.

    Returns:
        a list, or an integer.

    Examples:
        >>> import oar
        >>> oar.zeros([2, 3]).stride(), oar.zeros([2, 3]).stride(0)
        ([3, 1], 3)
    """
    return list(self.strides) if dim is None else self.strides[dim]


def is_same_shape(self: Tensor, y: Tensor) -> builtins.bool:
    """Whether another tensor has the same shape.

    Args:
        y: the other tensor.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.zeros([2, 3]).is_same_shape(oar.zeros([3, 2]))
        False
    """
    return list(self.shape) == list(y.shape)


def repeat(self: Tensor, *counts: Any, repeats: Any = None) -> Tensor:
    """Copies of the tensor side by side along its axes: ``tile``.

    Args:
        counts: how many copies along each axis: numbers, or one list.
        repeats: the same, by name.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[1, 2]]).repeat(2, 2).tolist()
        [[1, 2, 1, 2], [1, 2, 1, 2]]
    """
    if repeats is not None:
        counts = (repeats,)
    if len(counts) == 1 and isinstance(counts[0], (list, tuple)):
        counts = tuple(counts[0])
    if len(counts) < self.ndim:
        raise ValueError(f"[repeat] {len(counts)} numbers are too few for a tensor of shape {list(self.shape)}.")
    return ops.tile(self, list(counts))


def resize_(self: Tensor, shape: Any, fill_zero: builtins.bool = False, name: str | None = None) -> Tensor:
    """Gives the tensor another shape: elements in their order, the first ones if there are too many. New ones are zero.

    Args:
        shape: the new shape.
        fill_zero: accepted for compatibility.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1, 2, 3]).resize_([2, 2]).tolist()
        [[1, 2], [3, 0]]
    """
    sizes = [int(size) for size in shape]
    count = 1
    for size in sizes:
        count *= size
    elements = ops.reshape(self, [-1])
    if count <= self.size:
        elements = elements[:count]
    else:
        elements = ops.concat([elements, ops.zeros([count - self.size], self.dtype)])
    self._become(ops.reshape(elements, sizes))
    return self


def set_(self: Tensor, source: Tensor | None = None, shape: Any = None, stride: Any = None, offset: int = 0,
         name: str | None = None) -> Tensor:
    """Lets the tensor share the memory of another, as the shape and strides say.

    Args:
        source: the other tensor; None leaves the tensor without elements.
        shape: the shape; None takes that of the other.
        stride: how many elements apart neighbours along each axis are; None lets them lie side by side.
        offset: the place of the first element in memory, in bytes.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([1])
        >>> x.set_(oar.to_tensor([1.0, 2.0, 3.0, 4.0]), [2, 2], [2, 1]).tolist()
        [[1.0, 2.0], [3.0, 4.0]]
    """
    if source is None:
        self._become(ops.zeros([0], self.dtype))
        return self
    if shape is None and stride is None and offset == 0:
        self._become(source)
        return self
    sizes = list(source.shape if shape is None else shape)
    if stride is None:
        stride = [1] * len(sizes)
        for axis in reversed(range(len(sizes) - 1)):
            stride[axis] = stride[axis + 1] * sizes[axis + 1]
    self._become(ops.as_strided(source, sizes, list(stride), offset // source.dtype.itemsize))
    return self


def split_with_sizes(self: Tensor, split_sizes: Any, dim: int = 0) -> list[Tensor]:
    """Parts of given sizes along an axis.

    Args:
        split_sizes: the sizes.
        dim: the axis.

    Returns:
        a list of tensors.

    Examples:
        >>> import oar
        >>> [part.tolist() for part in oar.to_tensor([1, 2, 3]).split_with_sizes([1, 2])]
        [[1], [2, 3]]
    """
    return self.split(list(split_sizes), dim)


def apply(self: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """What a function returns for the tensor. The tensor must not require a gradient.

    Args:
        func: the function.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0, 2.0]).apply(lambda x: 3 * x).tolist()
        [3.0, 6.0]
    """
    if not self.stop_gradient:
        raise RuntimeError("[apply] the tensor requires a gradient, which would not pass the function. hint: call the "
                           "function itself, or use x.detach().")
    return func(self)


def apply_(self: Tensor, func: Callable[[Tensor], Tensor]) -> Tensor:
    """``apply`` that writes the tensor.

    Args:
        func: the function.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0, 2.0]).apply_(lambda x: 3 * x).tolist()
        [3.0, 6.0]
    """
    self._become(apply(self, func))
    return self


# ---- tensors like it ---------------------------------------------------------------------------------


def _sizes(size: tuple[Any, ...]) -> Any:
    return size[0] if len(size) == 1 and not isinstance(size[0], int) else list(size)


def _like(name: str, value: float, brief: str) -> Callable[..., Tensor]:
    def make(self: Tensor, *sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False,
             pin_memory: builtins.bool = False) -> Tensor:
        made = ops.full(_sizes(sizes if size is None else (size,)), value, self.dtype if dtype is None else dtype)
        return finished(made, name, None, device, requires_grad, pin_memory)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""{brief} in the dtype of this tensor.

    Args:
        sizes: the sizes: numbers, or one list.
        size: the same, by name.
        dtype: the dtype; None is that of the tensor.
        device: the device; None is the current one.
        requires_grad: whether gradients are computed for the result.
        pin_memory: for GPUs, which are not there; True is an error.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1]).{name}(2, 3).shape, oar.to_tensor([1]).{name}([2]).dtype
        ([2, 3], oar.int64)
    """
    return make


def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None,
             requires_grad: builtins.bool = False, pin_memory: builtins.bool = False) -> Tensor:
    """One value everywhere, in the dtype of this tensor.

    Args:
        size: the shape.
        fill_value: the value.
        dtype: the dtype; None is that of the tensor.
        device: the device; None is the current one.
        requires_grad: whether gradients are computed for the result.
        pin_memory: for GPUs, which are not there; True is an error.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0]).new_full([2], 7).tolist()
        [7.0, 7.0]
    """
    made = ops.full(size, fill_value, self.dtype if dtype is None else dtype)
    return finished(made, "new_full", None, device, requires_grad, pin_memory)


_LARGEST = {"float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53, "int8": 2**7 - 1, "uint8": 2**8 - 1,
            "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1}  # fmt: skip


def random_(self: Tensor, from_: int = 0, to: int | None = None) -> Tensor:
    """Fills the tensor with integers, each as likely as the others.

    Args:
        from_: the smallest; if it is given alone, the end of a range that starts at 0.
        to: the end of the range, which is not included. None without ``from_`` takes all integers from 0 on up to the largest
            that the dtype has, of floats the largest below which none is missing.

    Returns:
        the tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([100]).random_(3, 5)
        >>> sorted(set(x.tolist()))
        [3.0, 4.0]
    """
    if to is None:
        from_, to = (0, from_) if from_ else (0, _LARGEST[self.dtype.name])
    if to <= from_:
        raise ValueError(f"[random_] there is no integer from {from_} up to but without {to}.")
    return ops.copy_into(self, ops.cast(ops.randint(from_, to, list(self.shape), "int64"), self.dtype))


# ---- layout over processes ---------------------------------------------------------------------------


def dist_attr(self: Tensor) -> Any:
    """How the tensor is laid out over a grid of processes: see ``oar.distributed.shard_tensor``.

    Returns:
        a ``DistAttr``; None for a plain tensor.

    Examples:
        >>> import oar
        >>> oar.ones([2]).dist_attr() is None
        True
    """
    if self._kind != "distributed":
        return self.__dict__.get("_dist_attr")
    from oar.distributed.auto_parallel.api import layout

    return layout(self)


def is_dist(self: Tensor) -> bool:
    """Whether the tensor is laid out over a grid of processes.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.ones([2]).is_dist()
        False
    """
    return dist_attr(self) is not None


def _local_value(self: Tensor) -> Tensor:
    from oar.distributed.auto_parallel.api import local_value

    return local_value(self)


def _of_layout(name: str, doc: str) -> property:
    def get(self: Tensor) -> Any:
        return getattr(dist_attr(self), name, None)

    return property(get, doc=f"{doc}; None if the tensor is not laid out over processes.")


def get_selected_rows(self: Tensor) -> Tensor | None:
    """The gradient that holds some rows only, if the tensor is one.

    Returns:
        the tensor, or None.

    Examples:
        >>> import oar
        >>> weight = oar.ones([3, 2])
        >>> weight.stop_gradient = False
        >>> oar.nn.functional.embedding(oar.to_tensor([1]), weight, sparse=True).sum().backward()
        >>> weight.grad.get_selected_rows() is None, weight.get_selected_rows() is None
        (False, True)
    """
    return self if self.is_selected_rows() else None


def _cuda_array(self: Tensor) -> Any:
    raise AttributeError("the tensor is not on a GPU, so it has no __cuda_array_interface__; it has __array__.")


_METHODS: dict[str, Any] = {
    **{name: _converter(name, dtype) for name, dtype in _DTYPES.items()},
    "__long__": to_integer, "apply": apply, "apply_": apply_, "cuda": cuda, "detach_": detach_, "get_device": get_device,
    "get_strides": get_strides, "is_same_shape": is_same_shape,
    "new_empty": _like("new_empty", 0, "Values that are up to you, which start as zeros,"), "new_full": new_full,
    "new_ones": _like("new_ones", 1, "Ones"), "new_zeros": _like("new_zeros", 0, "Zeros"), "pin_memory": pin_memory,
    "random_": random_, "repeat": repeat, "requires_grad_": requires_grad_, "resize_": resize_, "set_": set_,
    "split_with_sizes": split_with_sizes, "stride": stride, "type_as": type_as,
    "device": property(lambda self: Device(self._device), doc="The name of the device that holds the elements."),
    "is_dist": is_dist, "get_selected_rows": get_selected_rows,
    "layout": property(lambda self: "NCHW", doc="The order of the axes, which is always the plain one."),
    "_local_value": _local_value, "dist_attr": dist_attr,
    "_local_shape": property(lambda self: list(_local_value(self).shape), doc="The shape of this process's piece."),
    "num_shard": _of_layout("num_shard", "Into how many pieces the tensor is cut"),
    "placements": _of_layout("placements", "For each axis of the grid, how the tensor is laid out along it"),
    "process_mesh": _of_layout("process_mesh", "The grid of processes"),
    "__cuda_array_interface__": property(_cuda_array, doc="For tensors on a GPU. There is none, so it raises."),
    "is_cuda": property(lambda self: False, doc="Whether the elements are on a GPU: no."),
    "requires_grad": property(lambda self: not self.stop_gradient, _ask_for_gradients,
                              doc="Whether gradients are computed for the tensor: the opposite of ``stop_gradient``."),
    "grad_": property(lambda self: self.grad, _set_gradient, doc="The gradient; ``grad`` under another name."),
}  # fmt: skip
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
