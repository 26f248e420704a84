"""Methods of Tensor that are written in Python, and how a tensor is shown."""

from __future__ import annotations

import builtins

from oar import _C, _printing, _sparse
from oar._C import Tensor, ops
from oar._hooks import register_backward_hook, register_hook
from oar._places import device_name, place_of
from oar._questions import sizes_tensor


def clone(self, name: str | None = None) -> Tensor:
    """A copy that gradients pass through.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([2.0], stop_gradient=False)
        >>> x.clone().backward()
        >>> x.grad.tolist()
        [1.0]
    """
    return ops.assign(self)


def astype(self, dtype) -> Tensor:
    """The values in another dtype.

    Args:
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.7, -1.7]).astype('int64')
        Tensor(shape=[2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [ 1, -1])
    """
    return ops.cast(self, dtype)


def cpu(self) -> Tensor:
    """Itself on the CPU, or a copy there.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0]).cpu().place
        Place(cpu)
    """
    return self if self._device == "cpu" else ops.copy_to_device(self, "cpu")


def to(self, *args, **kwargs) -> Tensor:
    """To a device, a dtype, or both: ``x.to('float64')``, ``x.to('cpu')``, ``x.to(other)``.

    Args:
        args: a dtype, a device, or a tensor that has both.
        kwargs: ``device``, ``dtype``, ``other``, ``copy`` (True copies in any case), ``blocking`` and ``non_blocking``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0]).to('float64').dtype
        oar.float64
    """
    for name in ("blocking", "non_blocking"):
        kwargs.pop(name, None)
    device, dtype = kwargs.pop("device", None), kwargs.pop("dtype", None)
    other, copied = kwargs.pop("other", None), kwargs.pop("copy", None)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument {next(iter(kwargs))!r}.")
    for arg in args:
        if isinstance(arg, Tensor):
            other = arg
        elif isinstance(arg, _C.dtype) or (isinstance(arg, str) and _is_dtype(arg)):
            dtype = arg
        elif not isinstance(arg, builtins.bool) and arg is not None:
            device = arg
    if other is not None:
        device, dtype = other._device, other.dtype
    out = self
    if dtype is not None and _C.dtype(dtype) != self.dtype:
        out = ops.cast(out, dtype)
    if device is not None:
        name = device_name(device)
        if name != out._device:
            out = ops.copy_to_device(out, name)
    return out.clone() if copied and out is self else out


def _data(self) -> Tensor:
    return self if self.stop_gradient or _C.static_active() else self.detach()


def _to(self, device=None, dtype=None, blocking=None, copy_tensor=None) -> Tensor:
    """``to`` by the name that Paddle's layers use.

    Args:
        device: the device; None keeps it.
        dtype: the dtype; None keeps it.
        blocking: accepted for compatibility.
        copy_tensor: True copies in any case.

    Returns:
        a tensor.
    """
    return to(self, device=device, dtype=dtype, copy=copy_tensor)


def _is_dtype(name: str) -> builtins.bool:
    try:
        _C.dtype(name)
    except TypeError:
        return False
    return True


def set_value(self, value) -> None:
    """Writes other values of the same shape into the tensor, ignoring gradients.

    Args:
        value: a tensor, an array or a list of the same shape.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> x.set_value([5.0, 6.0])
        >>> x.tolist()
        [5.0, 6.0]
    """
    source = value if isinstance(value, Tensor) else _C.make_tensor(value, self.dtype)
    if list(source.shape) != list(self.shape):
        raise ValueError(f"[set_value] a tensor of shape {self.shape} cannot take values of shape {source.shape}.")
    _write(self, source)


def _write(self, source: Tensor) -> None:
    """Writes values outside of gradients: what was recorded of the tensor stays."""
    before = _C.set_grad_enabled(False)
    try:
        ops.copy_into(self, source.detach())
    finally:
        _C.set_grad_enabled(before)


def copy_(self, other, blocking: builtins.bool = True) -> Tensor:
    """Writes the values of another tensor into this one. As in Paddle, gradients do not see it: ``oar.assign`` has one.

    Args:
        other: the other tensor.
        blocking: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2])
        >>> _ = x.copy_(oar.to_tensor([5.0, 6.0]))
        >>> x.tolist()
        [5.0, 6.0]
    """
    _write(self, other)
    return self


def dim(self) -> int:
    """The number of axes.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.zeros([2, 3]).dim()
        2
    """
    return self.ndim


def element_size(self) -> int:
    """Bytes of one element.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.zeros([2], dtype='float16').element_size()
        2
    """
    return self.dtype.itemsize


def rank(self) -> Tensor:
    """The number of axes, as a 0-d tensor.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([2, 3]).rank().item()
        2
    """
    return _C.make_tensor(self.ndim, "int32")


def numel(self, name: str | None = None) -> Tensor:
    """The number of elements, as a 0-d tensor.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.zeros([2, 3]).numel().item()
        6
    """
    return sizes_tensor(self.size, "int64")


def gradient(self):
    """The gradient as a NumPy array, or None. Of one that holds some rows only: these, and which they are.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([2.0], stop_gradient=False)
        >>> (x * 3).backward()
        >>> x.gradient().tolist()
        [3.0]
    """
    if self.grad is None or self.grad._kind != "selected_rows":
        return None if self.grad is None else self.grad.numpy()
    return ops.selected_rows_values(self.grad).numpy(), ops.selected_rows_rows(self.grad).numpy()


def clear_grad(self) -> None:
    """Sets the gradient to zero.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([2.0], stop_gradient=False)
        >>> (x * 3).backward()
        >>> x.clear_grad()
        >>> x.grad.tolist()
        [0.0]
    """
    self.clear_gradient()


def zero_(self) -> Tensor:
    """Writes zeros.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0, 2.0]).zero_().tolist()
        [0.0, 0.0]
    """
    return ops.copy_into(self, ops.zeros([], self.dtype))


def fill_(self, value) -> Tensor:
    """Writes one value everywhere.

    Args:
        value: the value.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0, 2.0]).fill_(7.0).tolist()
        [7.0, 7.0]
    """
    return ops.copy_into(self, value if isinstance(value, Tensor) else ops.full([], value, self.dtype))


def is_selected_rows(self) -> builtins.bool:
    """Whether it is a gradient that holds some rows only.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0]).is_selected_rows()
        False
    """
    return self._kind == "selected_rows"


def is_dense(self) -> builtins.bool:
    """Whether it is an ordinary tensor with memory for every element.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0]).is_dense()
        True
    """
    return self._kind == "dense"


def rows(self) -> list[int]:
    """Of a gradient that holds some rows only: which they are.

    Returns:
        a list.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> table = nn.Embedding(4, 1, sparse=True)
        >>> table(oar.to_tensor([1, 3])).sum().backward()
        >>> table.weight.grad.rows()
        [1, 3]
    """
    if self._kind != "selected_rows":
        raise RuntimeError("[rows] this tensor holds all of its rows; rows() is for gradients that hold some only.")
    return ops.selected_rows_rows(self).tolist()


def value(self) -> Tensor:
    """The tensor itself.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([1.0])
        >>> x.value() is x
        True
    """
    return self


def is_tensor(self) -> builtins.bool:
    """True.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.to_tensor([1.0]).is_tensor()
        True
    """
    return True


def transposed(self) -> Tensor:
    """The axes in reverse order."""
    return ops.transpose(self, list(range(self.ndim))[::-1])


def matrix_transposed(self) -> Tensor:
    """The last two axes exchanged."""
    if self.ndim < 2:
        raise ValueError(f"[mT] a tensor of rank {self.ndim} has no matrix axes; at least 2 are needed.")
    axes = list(range(self.ndim))
    axes[-1], axes[-2] = axes[-2], axes[-1]
    return ops.transpose(self, axes)


def iterate(self):
    for i in range(len(self) if self.ndim else 0):  # as in Paddle, a 0-d tensor yields nothing
        yield self[i]


def iterate_backwards(self):
    if self.ndim == 0:
        raise TypeError("a 0-d tensor cannot be iterated over.")
    for i in range(len(self) - 1, -1, -1):
        yield self[i]


def contains(self, value) -> builtins.bool:
    return builtins.bool(ops.any(ops.equal(self, value)))


def as_complex_number(self) -> complex:
    return complex(self.item())


def array(self, dtype=None, copy=None):
    import numpy
    if _C.static_active() and _C.is_symbolic(self):
        # NumPy's functions of an object call its methods of the same name: np.log(x) is x.log(), as in Paddle.
        held = numpy.empty([], object)
        held[()] = self
        return held
    if copy is False:
        return self._numpy_view() if dtype is None else numpy.asarray(self._numpy_view(), dtype)
    a = self.numpy()
    return a if dtype is None else a.astype(dtype)


# NumPy's name of an operator, and the method of the right operand.
_REFLECTED = {
    "add": "__radd__", "subtract": "__rsub__", "multiply": "__rmul__", "divide": "__rtruediv__", "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__", "power": "__rpow__", "matmul": "__rmatmul__", "bitwise_and": "__rand__", "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__", "left_shift": "__rlshift__", "right_shift": "__rrshift__", "less": "__gt__", "less_equal": "__ge__",
    "equal": "__eq__", "not_equal": "__ne__", "greater": "__lt__", "greater_equal": "__le__",
}


def array_ufunc(self, ufunc, method: str, *inputs, **kwargs):
    """Called by NumPy's functions of elements: ``array + tensor`` is a tensor, ``np.sin(tensor)`` an array."""
    import numpy
    if method == "__call__" and not kwargs and ufunc.__name__ in _REFLECTED and not isinstance(inputs[0], Tensor):
        return getattr(inputs[1], _REFLECTED[ufunc.__name__])(inputs[0])
    arrays = [numpy.asarray(x) if isinstance(x, Tensor) else x for x in inputs]
    return getattr(ufunc, method)(*arrays, **kwargs)


def format_value(self, spec: str) -> str:
    """The number of a 0-d tensor; for others the same as ``repr``."""
    if self.ndim == 0 or (spec and self.size == 1):
        return format(self.item(), spec)
    if spec:
        raise TypeError(f"the format {spec!r} is for one number; this tensor has shape {list(self.shape)}. "
                        "Format x.item() of one element, or x.numpy().")
    return repr(self)


def copy_shallow(self) -> Tensor:
    twin = self.detach()
    twin.stop_gradient = self.stop_gradient
    return twin


def copy_deep(self, memo) -> Tensor:
    twin = ops.assign(self.detach())  # a leaf, whatever computed this tensor
    if type(self) is not Tensor:
        twin = Tensor.__new__(type(self), twin)  # type: ignore[call-arg]
    memo[id(self)] = twin
    twin.stop_gradient = self.stop_gradient
    twin.persistable = self.persistable
    import copy
    twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return twin


def rebuild(cls, data, dtype_name, stop_gradient, state):
    """For pickles: a tensor from its bits."""
    t = from_bits(data, dtype_name)
    if cls is not Tensor:
        t = Tensor.__new__(cls, t)
    t.stop_gradient = stop_gradient
    t.__dict__.update(state)
    return t


# Several elements share a byte.
PACKED_DTYPES = ("int4", "uint4", "float4_e2m1fn")


def bits_of(t: Tensor):
    """An array from which ``from_bits`` restores the tensor; for packed dtypes one element per byte."""
    t = t.detach().contiguous()
    if t.dtype.name in PACKED_DTYPES:
        t = ops.cast(ops.bitcast(t, "uint4"), "uint8")
    return t.numpy()


def from_bits(data, dtype_name: str) -> Tensor:
    if dtype_name in PACKED_DTYPES:
        return ops.bitcast(ops.cast(_C.make_tensor(data, "uint8"), "uint4"), dtype_name)
    if dtype_name == "bfloat16" or dtype_name.startswith("float8"):
        import ml_dtypes
        data = data.view(getattr(ml_dtypes, dtype_name))
    return _C.make_tensor(data, dtype_name)


def reduce(self, protocol):
    if self._kind.startswith("sparse"):
        return _sparse.reduce(self)
    return rebuild, (type(self), bits_of(self), self.dtype.name, self.stop_gradient, dict(self.__dict__))


def summarised(t: Tensor):
    """The values as NumPy shows them; 16- and 8-bit floats by their numbers, not their bits."""
    name = t.dtype.name
    if name == "bfloat16" or name.startswith(("float8", "float4")):
        t = ops.cast(t, "float32")
    elif name in PACKED_DTYPES:
        t = ops.cast(t, "int8")
    return t.numpy()


def show(self) -> str:
    head = f"Tensor(shape={list(self.shape)}, dtype={self.dtype.name}, place={self.place}, " \
           f"stop_gradient={self.stop_gradient}"
    if type(self) is not Tensor:
        head = head.replace("Tensor(", "Parameter containing:\nTensor(", 1) if type(self).__name__.endswith(
            ("Parameter", "ParamBase")) else head.replace("Tensor(", f"{type(self).__name__}(", 1)
    if self._kind.startswith("sparse"):
        return f"{head},\n{_sparse.lines(self, summarised)})"
    if self._kind == "distributed":
        head += f", process_mesh={{{self.process_mesh}}}, placements={self.placements}"  # type: ignore[attr-defined]
    elif self._kind != "dense":
        return f"{head}, kind={self._kind})"
    body = _printing.body(summarised(self.detach()), 7)
    return f"{head},\n       {body})"


def share_data_with(self, other: Tensor) -> Tensor:
    """Takes over content, shape and dtype of another tensor; identity and attributes stay."""
    self._become(other)
    return self


def inplace_assign(self, other: Tensor) -> Tensor:
    """Takes over a copy of another tensor, of whatever shape."""
    self._become(ops.assign(other))
    return self


_METHODS: dict[str, object] = {
    "_inplace_assign": inplace_assign, "_register_backward_hook": register_backward_hook,
    "_use_gpudnn": lambda self, use: self,  # a wish about a library of GPUs
    "register_hook": register_hook, "clone": clone, "astype": astype, "cpu": cpu, "to": to, "_to": _to, "set_value": set_value,
    "copy_": copy_, "dim": dim, "rank": rank, "ndimension": dim, "element_size": element_size, "numel": numel,
    "gradient": gradient, "clear_grad": clear_grad, "zero_": zero_, "fill_": fill_,
    "is_selected_rows": is_selected_rows, "is_dense": is_dense, "rows": rows, "value": value,
    "is_tensor": is_tensor, "__iter__": iterate, "__reversed__": iterate_backwards,
    "__pos__": lambda self: self, "__complex__": as_complex_number, "__contains__": contains, "__array__": array,
    "__array_ufunc__": array_ufunc,
    "__format__": format_value, "__copy__": copy_shallow,
    "__deepcopy__": copy_deep, "__reduce_ex__": reduce, "__repr__": show, "__str__": show,
    "_share_data_with": share_data_with,
    **_sparse.METHODS,
}
_METHODS.update({
    "T": property(transposed), "mT": property(matrix_transposed), "itemsize": property(element_size),
    "place": property(lambda self: place_of(self._device), doc="The device that holds the elements."),
    "data": property(_data, lambda self, value: self._become(value),
                     doc="The elements without their history, on the same memory; assigning replaces them."),
    "grad_fn": property(lambda self: self._grad_node, doc="The name of the op that computed it, or None for a leaf."),
    "_is_initialized": lambda self: True,
    "__array_priority__": 1000.0,  # as in Paddle; NumPy asks __array_ufunc__
})
for _name, _method in _METHODS.items():
    setattr(Tensor, _name, _method)
