"""Making tensors: what a schema cannot say, such as Paddle's optional leading arguments."""

from __future__ import annotations

import builtins
import numbers

from oar import _C
from oar._C import Tensor, ops
from oar._framework import in_dynamic_mode
from oar._places import unavailable
from oar._spelling import creator, finished


def to_tensor(data, dtype=None, place=None, stop_gradient: builtins.bool = True) -> Tensor:
    """A tensor from numbers, nested lists, a NumPy array or a tensor. The data is copied; no gradient follows it.

    Args:
        data: numbers, nested lists, an array or a tensor.
        dtype: the dtype of the result; None takes the default, or that of the input.
        place: the device, for example ``'cpu'``; the current one if None.
        stop_gradient: whether no gradient is computed for the tensor.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[1, 2], [3, 4]])
        Tensor(shape=[2, 2], dtype=int64, place=Place(cpu), stop_gradient=True,
               [[1, 2],
                [3, 4]])
        >>> oar.to_tensor(1.5, dtype='float64', stop_gradient=False)
        Tensor(shape=[], dtype=float64, place=Place(cpu), stop_gradient=False,
               1.50000000)
    """
    variable = _first_variable(data) if isinstance(data, (list, tuple)) and _C.static_active() else None
    t = _C.make_tensor(data, dtype) if variable is None else _of_variables(data, dtype or variable.dtype)
    if not t.stop_gradient:
        t = t.detach()
    if place is None:
        place = _C.get_device()
    if place != "cpu" and not _is_cpu(place):
        t = t.to(place)
    if not in_dynamic_mode():
        t = ops.assign(t)
    if not stop_gradient:
        t.stop_gradient = False
    return t


def _first_variable(data) -> Tensor | None:
    """The first tensor in nested lists."""
    if isinstance(data, Tensor):
        return data
    found = (_first_variable(item) for item in data) if isinstance(data, (list, tuple)) else iter(())
    return next((item for item in found if item is not None), None)


def _of_variables(data, dtype) -> Tensor:
    """Nested lists that hold variables of a program, whose values are not known yet."""
    if isinstance(data, (list, tuple)):
        return ops.stack([_of_variables(item, dtype) for item in data], 0)
    return ops.cast(data if isinstance(data, Tensor) else _C.make_tensor(data, dtype), dtype)


def _is_cpu(place) -> builtins.bool:
    return place == "cpu" or getattr(place, "is_cpu_place", lambda: False)()


@creator
def arange(start=0, end=None, step=1, dtype=None, name=None) -> Tensor:
    """start, start + step, … below end; ``arange(n)`` counts from 0.

    Args:
        start: the first number.
        end: the end, which is not included.
        step: the distance of neighbours.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.arange(3)
        Tensor(shape=[3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [0, 1, 2])
        >>> oar.arange(1, 2, 0.25)
        Tensor(shape=[4], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.        , 1.25000000, 1.50000000, 1.75000000])
    """
    if end is None:
        start, end = 0, start
    values = [v.item() if isinstance(v, Tensor) else v for v in (start, end, step)]
    if dtype is None:
        kinds = [v.dtype for v in (start, end, step) if isinstance(v, Tensor)]
        floating = builtins.any(isinstance(v, float) for v in values)
        dtype = kinds[0] if kinds else (_C.get_default_dtype() if floating else "int64")
    return ops.range(*values, dtype)


def range(start=0, end=None, step=1, dtype=None, *, out: Tensor | None = None, device=None,
          requires_grad: builtins.bool = False, name: str | None = None) -> Tensor:
    """start, start + step, … up to end, which is included: ``arange`` as PyTorch once had it. Floats, unless a dtype is given.

    Args:
        start: the first number; the last one, if no end is given.
        end: the end, which is included.
        step: the distance of neighbours.
        dtype: the dtype of the result; None takes the default one of floats.
        out: a tensor to write to, or None.
        device: the device; None is the current one.
        requires_grad: whether gradients are computed for the result.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.range(0, 1, 0.25).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
        >>> oar.range(3, dtype='int64').tolist()
        [0, 1, 2, 3]
    """
    if end is None:
        start, end = 0, start
    start, end, step = (v.item() if isinstance(v, Tensor) else v for v in (start, end, step))
    if step == 0:
        raise ValueError("[range] step must not be 0.")
    if (end - start) * step < 0:
        raise ValueError(f"[range] a step of {step} does not lead from {start} to {end}.")
    count = int((end - start) / step) + 1
    numbers = ops.range(0, count, 1, "float64") * step + start
    return finished(ops.cast(numbers, dtype or _C.get_default_dtype()), "range", out, device, requires_grad)


def as_tensor(data, dtype=None, device=None, requires_grad: builtins.bool = False,
              pin_memory: builtins.bool = False) -> Tensor:
    """A tensor from numbers, nested lists, an array or a tensor. The data is copied.

    Args:
        data: numbers, nested lists, an array or a tensor.
        dtype: the dtype of the result; None takes the default, or that of the input.
        device: the device; None is the current one.
        requires_grad: whether gradients are computed for the result.
        pin_memory: for GPUs, which are not there; True is an error.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.as_tensor([1, 2], dtype='float32', requires_grad=True).stop_gradient
        False
    """
    if pin_memory:
        raise unavailable("as_tensor", "GPU to pin memory for")
    return to_tensor(data, dtype, device, stop_gradient=not requires_grad)


def asarray(obj, *, dtype=None, device=None, copy: builtins.bool | None = None,
            requires_grad: builtins.bool = False) -> Tensor:
    """A tensor from numbers, nested lists, an array or a tensor.

    Args:
        obj: numbers, nested lists, an array or a tensor.
        dtype: the dtype of the result; None takes the default, or that of the input.
        device: the device; None is the current one.
        copy: True copies the data. False shares the memory of an array or tensor, and is an error where it cannot. None
            copies, too.
        requires_grad: whether gradients are computed for the result.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> array = np.zeros(2, 'float32')
        >>> x = oar.asarray(array, copy=False)
        >>> array[0] = 1.0
        >>> x.tolist()
        [1.0, 0.0]
    """
    if copy is not False:
        return to_tensor(obj, dtype, device, stop_gradient=not requires_grad)
    if not isinstance(obj, Tensor) and not hasattr(obj, "__dlpack__"):
        raise ValueError(f"[asarray] copy=False: a {type(obj).__name__} has no memory to share. hint: leave copy out.")
    made = obj.detach() if isinstance(obj, Tensor) else from_dlpack(obj)
    if dtype is not None and _C.dtype(dtype) != made.dtype:
        raise ValueError(f"[asarray] copy=False: the data is {made.dtype.name}, not {_C.dtype(dtype).name}.")
    return finished(made, "asarray", None, device, requires_grad)


def from_numpy(ndarray) -> Tensor:
    """A tensor with the values of an array, as a copy.

    Args:
        ndarray: the array.

    Returns:
        a tensor.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.from_numpy(np.arange(3)).tolist()
        [0, 1, 2]
    """
    return to_tensor(ndarray)


def _scalar(value):
    """A number, or the one of a tensor; a 0-d tensor inside a program, where it has no value yet."""
    if not isinstance(value, Tensor):
        return value
    return ops.cast(ops.reshape(value, []), "float64") if _C.is_symbolic(value) else value.item()


@creator
def linspace(start, stop, num, dtype=None, name=None) -> Tensor:
    """num numbers from start to stop, both included, evenly spaced.

    Args:
        start: the first number.
        stop: the last number.
        num: how many numbers.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linspace(0, 1, 5)
        Tensor(shape=[5], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.25000000, 0.50000000, 0.75000000, 1.        ])
    """
    start, stop, num = _scalar(start), _scalar(stop), num.item() if isinstance(num, Tensor) else num
    if not hasattr(num, "__index__"):
        raise TypeError(f"[linspace] num must be an integer, but is {num!r}.")
    if num < 0:
        raise ValueError(f"[linspace] num must not be negative, but is {num}.")
    dtype = _C.dtype(dtype or _C.get_default_dtype())
    step = (stop - start) / (num - 1) if num > 1 else 0.0
    steps = ops.range(0, int(num), 1, "float64")
    return ops.cast(steps * step + start, dtype)


@creator
def logspace(start, stop, num, base=10.0, dtype=None, name=None) -> Tensor:
    """num powers of base, whose exponents go evenly from start to stop, both included.

    Args:
        start: the first number.
        stop: the last number.
        num: how many numbers.
        base: the base of the powers.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.logspace(0, 2, 3)
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1.  , 10. , 100.])
    """
    start, stop, base, num = _scalar(start), _scalar(stop), _scalar(base), num.item() if isinstance(num, Tensor) else num
    if num < 1:
        raise ValueError(f"[logspace] num must be at least 1, not {num}.")
    exponents = linspace(start, stop, num, "float64")
    bases = base if isinstance(base, Tensor) else ops.full([], float(base), "float64")
    return ops.cast(ops.pow(bases, exponents), dtype or _C.get_default_dtype())


@creator
def eye(num_rows: int, num_columns: int | None = None, dtype=None, name=None) -> Tensor:
    """Ones on the diagonal, zeros elsewhere.

    Args:
        num_rows: the number of rows.
        num_columns: the number of columns; as many as rows if None.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.eye(2, 3)
        Tensor(shape=[2, 3], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1., 0., 0.],
                [0., 1., 0.]])
    """
    columns = num_rows if num_columns is None else num_columns
    if num_rows < 0 or columns < 0:
        raise TypeError(f"[eye] the sizes should be non-negative integers, not {num_rows} and {columns}.")
    # The ones are a broadcast view of one number: only the result takes memory.
    ones = ops.broadcast_to(ops.full([], 1, "float32"), [min(num_rows, columns)])
    return ops.cast(ops.as_strided_grad(ones, [num_rows, columns], [columns + 1]), dtype or _C.get_default_dtype())


@creator
def empty(shape, dtype=None, name=None) -> Tensor:
    """A tensor whose values are up to you; they start as zeros.

    Args:
        shape: the shape of the result.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.empty([2, 3]).shape
        [2, 3]
    """
    return ops.zeros(shape, dtype)


@creator
def empty_like(x: Tensor, dtype=None, name=None) -> Tensor:
    """As ``empty``, with the shape and dtype of x.

    Args:
        x: the input.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.empty_like(oar.to_tensor([1, 2, 3])).dtype
        oar.int64
    """
    return ops.zeros(list(x.shape), x.dtype if dtype is None else dtype)


@creator
def randint(low=0, high=None, shape=(1,), dtype=None, name=None) -> Tensor:
    """Integers from low up to but without high.

    Args:
        low: the smallest value.
        high: the end of the range, which is not included.
        shape: the shape of the result.
        dtype: the dtype of the result; None takes the default, or that of the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.randint(0, 10, [100])
        >>> x.dtype, bool((x >= 0).all()), bool((x < 10).all())
        (oar.int64, True, True)
    """
    if high is None:
        low, high = 0, low
    return ops.randint(low, high, list(shape) if not isinstance(shape, Tensor) else shape, dtype or "int64")


@creator
def normal(mean=0.0, std=1.0, shape=None, name=None) -> Tensor:
    """Normally distributed numbers; mean and std may be tensors.

    Args:
        mean: the mean. Around a complex one, both parts together have the standard deviation.
        std: the standard deviation.
        shape: the shape of the result.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.normal(mean=10.0, std=0.0, shape=[2])
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [10., 10.])
    """
    _check_moments(mean, std, shape)
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        like = mean if isinstance(mean, Tensor) else std
        other = std if isinstance(mean, Tensor) else mean
        sizes = (like + other).shape if isinstance(other, Tensor) else like.shape
        dtype = like.dtype
        if isinstance(mean, complex):
            dtype = _C.complex128 if dtype == _C.float64 else _C.complex64
        return _noise(sizes, dtype) * std + mean
    if shape is None:
        shape = [1]
    if isinstance(mean, complex):
        return _noise(shape, _C.complex64) * std + mean
    return ops.gaussian(shape, float(mean), float(std), 0, None)


def _check_moments(mean, std, shape) -> None:
    if not isinstance(mean, (Tensor, numbers.Number)) or not isinstance(std, (Tensor, numbers.Real)):
        raise _C.ArgumentTypeError(f"[normal] mean and std should be numbers or tensors, not {mean!r} and {std!r}.")
    if isinstance(shape, int):
        raise _C.ArgumentTypeError(f"[normal] shape should be a list of integers or a tensor, not {shape}.")


def _noise(shape, dtype) -> Tensor:
    if dtype not in (_C.complex64, _C.complex128):
        return ops.gaussian(shape, 0.0, 1.0, 0, dtype)
    from oar._random import standard_normal
    return standard_normal(shape, dtype)


def rand_like(input: Tensor, name: str | None = None, *, dtype=None, device=None,
              requires_grad: builtins.bool = False) -> Tensor:
    """Numbers spread evenly over [0, 1), in the shape and dtype of a tensor.

    Args:
        input: the tensor.
        dtype: the dtype of the result, one of floats; None takes that of the input.
        device: the device; None is the current one.
        requires_grad: whether gradients are computed for the result.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.rand_like(oar.zeros([2, 3]))
        >>> x.shape, bool((x < 1).all())
        ([2, 3], True)
    """
    return finished(ops.uniform(input.shape, dtype or input.dtype, 0.0, 1.0), "rand_like", None, device, requires_grad)


@creator
def randn_like(x: Tensor, dtype=None, name: str | None = None, *, device=None,
               requires_grad: builtins.bool = False) -> Tensor:
    """Normal numbers of mean 0 and variance 1, in the shape and dtype of a tensor.

    Args:
        x: the tensor.
        dtype: the dtype of the result, one of floats; None takes that of x.
        device: the device; None is the current one.
        requires_grad: whether gradients are computed for the result.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.randn_like(oar.zeros([2, 3])).shape
        [2, 3]
    """
    return finished(ops.gaussian(x.shape, 0.0, 1.0, 0, dtype or x.dtype), "randn_like", None, device, requires_grad)


def to_dlpack(x: Tensor):
    """A DLPack capsule on the memory of x.

    Args:
        x: the input.

    Examples:
        >>> import oar
        >>> capsule = oar.to_dlpack(oar.to_tensor([1.0, 2.0]))
        >>> oar.from_dlpack(capsule)
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [1., 2.])
    """
    return x.__dlpack__()


def from_dlpack(dlpack, *, device=None, copy: builtins.bool | None = None) -> Tensor:
    """A tensor on the memory of a DLPack capsule, or of an object that exports one.

    Args:
        dlpack: a capsule, or an object with ``__dlpack__``.
        device: the device; None is that of the memory.
        copy: whether the tensor gets memory of its own; None and False share it.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> import numpy as np
        >>> array = np.arange(3)
        >>> x = oar.from_dlpack(array)  # the same memory
        >>> array[0] = 7
        >>> x
        Tensor(shape=[3], dtype=int64, place=Place(cpu), stop_gradient=True,
               [7, 1, 2])
    """
    if hasattr(dlpack, "__dlpack__"):
        try:
            dlpack = dlpack.__dlpack__(max_version=(1, 0))
        except TypeError:
            dlpack = dlpack.__dlpack__()
    made = _C.from_dlpack_capsule(dlpack)
    return finished(ops.assign(made) if copy else made, "from_dlpack", None, device, False)


