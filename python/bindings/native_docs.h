// The docstrings of native types and methods. Their examples run in tests/python/test_docstrings.py.
#pragma once

namespace oar::python::docs {

inline constexpr char kTensor[] = R"(An n-dimensional array that can record how it was computed.

Use ``oar.to_tensor`` or one of the functions that create tensors, such as ``oar.zeros``. Every op whose record
says so is a method too: ``x.sum(axis=0)`` is ``oar.sum(x, axis=0)``.

Examples:
    >>> import oar
    >>> x = oar.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    >>> x.shape, x.dtype
    ([2, 2], oar.float32)
    >>> (x * x).sum().backward()
    >>> x.grad.tolist()
    [[2.0, 4.0], [6.0, 8.0]]
)";

inline constexpr char kDim[] = R"(A symbolic size: an integer that is known when a program runs.

Args:
    name: the name of the size.
    hint: a number to use for it while the program is written.

Examples:
    >>> import oar
    >>> n = oar.Dim('n', 8)
    >>> n * 2 + 1
    1 + 2*n
)";

inline constexpr char kDType[] = R"(An element type, such as ``oar.float32``.

Args:
    dtype: a name, a NumPy dtype or a dtype.

Examples:
    >>> import oar
    >>> oar.dtype('float32') == oar.float32
    True
    >>> oar.float32.name, oar.float32.itemsize
    ('float32', 4)
)";

inline constexpr char kArgumentTypeError[] =
    R"(An argument has the wrong type or dtype. It is a TypeError, a ValueError, an AssertionError
and a RuntimeError.

Examples:
    >>> import oar
    >>> try:
    ...     oar.abs('text')
    ... except oar.ArgumentTypeError as error:
    ...     isinstance(error, TypeError), isinstance(error, ValueError), isinstance(error, RuntimeError)
    (True, True, True)
)";

inline constexpr char kArgumentValueError[] =
    R"(An argument has a value or a shape that an op does not take. It is a ValueError, an AssertionError and a
RuntimeError.

Examples:
    >>> import oar
    >>> try:
    ...     oar.ones([2]) + oar.ones([3])
    ... except oar.ArgumentValueError as error:
    ...     isinstance(error, ValueError), isinstance(error, AssertionError)
    (True, True)
)";

inline constexpr char kArgumentIndexError[] =
    R"(A place or an axis that a tensor does not have. It is an IndexError and an ArgumentValueError.

Examples:
    >>> import oar
    >>> try:
    ...     oar.cumsum(oar.ones([2]), axis=3)
    ... except oar.ArgumentIndexError as error:
    ...     isinstance(error, IndexError), isinstance(error, ValueError)
    (True, True)
)";

inline constexpr char kNumpy[] = R"(A copy as a NumPy array.

Args:
    blocking: accepted for compatibility; the call always waits for the values.

Examples:
    >>> import oar
    >>> oar.to_tensor([0.5, 2.0]).numpy()
    array([0.5, 2. ], dtype=float32)
)";

inline constexpr char kItem[] = R"(The element at an index, or the only one, as a Python number.

Args:
    args: nothing, a position in the flattened tensor, or one index per axis.

Examples:
    >>> import oar
    >>> oar.to_tensor([2.5]).item()
    2.5
    >>> oar.to_tensor([[1, 2], [3, 4]]).item(1, 0)
    3
)";

inline constexpr char kToList[] = R"(The values as nested lists.

Examples:
    >>> import oar
    >>> oar.to_tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
)";

inline constexpr char kDetach[] =
    R"(A tensor on the same memory, without history: gradients end there.

Examples:
    >>> import oar
    >>> x = oar.to_tensor([1.0], stop_gradient=False)
    >>> (x * 2).detach().stop_gradient
    True
)";

inline constexpr char kDataPtr[] = R"(The address of the first element.

Examples:
    >>> import oar
    >>> x = oar.to_tensor([1.0, 2.0])
    >>> x.detach().data_ptr() == x.data_ptr()
    True
)";

inline constexpr char kIsContiguous[] = R"(Whether the elements are in row-major order without gaps.

Examples:
    >>> import oar
    >>> x = oar.zeros([2, 3])
    >>> x.is_contiguous(), x.T.is_contiguous()
    (True, False)
)";

inline constexpr char kContiguous[] =
    R"(The tensor itself if it is contiguous, else a row-major copy.

Examples:
    >>> import oar
    >>> oar.zeros([2, 3]).T.contiguous().is_contiguous()
    True
)";

inline constexpr char kBackward[] =
    R"(Adds the gradients of this tensor to ``.grad`` of the leaves it was computed from.

Args:
    grad_tensor: the gradient of this tensor itself; ones if None.
    retain_graph: whether the recorded calls are kept for another backward.

Examples:
    >>> import oar
    >>> x = oar.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> (x ** 2).sum().backward()
    >>> x.grad.tolist()
    [2.0, 4.0]
)";

inline constexpr char kClearGradient[] = R"(Sets the gradient to zero, or removes it.

Args:
    set_to_zero: whether zeros stay; otherwise ``.grad`` becomes None.

Examples:
    >>> import oar
    >>> x = oar.to_tensor([1.0], stop_gradient=False)
    >>> (x * 3).backward()
    >>> x.clear_gradient()
    >>> x.grad.tolist()
    [0.0]
)";

inline constexpr char kRetainGrads[] = R"(Keeps the gradient of a tensor that is not a leaf.

Examples:
    >>> import oar
    >>> x = oar.to_tensor([1.0], stop_gradient=False)
    >>> y = x * 2
    >>> y.retain_grads()
    >>> (y * y).backward()
    >>> y.grad.tolist()
    [4.0]
)";

}  // namespace oar::python::docs
