"""The type of an input whose sizes may be open."""

from __future__ import annotations

from oar import _C


class InputSpec:
    """Shape, dtype and name of an input. A size of None or -1 is open; a string names an open size, and equal
    strings are equal sizes.

    Args:
        shape: the shape of the result.
        dtype: the dtype of the result; None takes the default, or that of the input.
        stop_gradient: whether no gradient is computed for the tensor.

    Examples:
        >>> import oar
        >>> spec = oar.static.InputSpec(['batch', 3], 'float32', name='x')
        >>> spec.shape, spec.dtype, spec.name
        (('batch', 3), oar.float32, 'x')
        >>> program = oar.jit.capture(lambda x: x * 2, [spec])
        >>> program(oar.ones([5, 3])).shape
        [5, 3]
    """

    def __init__(self, shape, dtype="float32", name: str | None = None, stop_gradient: bool = False):
        self.shape = tuple(None if d == -1 else d for d in shape)
        self.dtype = _C.dtype(dtype)
        self.name = name
        self.stop_gradient = stop_gradient

    @classmethod
    def from_tensor(cls, tensor, name: str | None = None) -> InputSpec:
        """The spec of a tensor as it is."""
        return cls(tensor.shape, tensor.dtype, name or tensor.name, tensor.stop_gradient)

    @classmethod
    def from_numpy(cls, ndarray, name: str | None = None) -> InputSpec:
        """The spec of an array as it is."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size: int) -> InputSpec:
        """The same with a leading size."""
        return InputSpec((batch_size, *self.shape), self.dtype, self.name, self.stop_gradient)

    def unbatch(self) -> InputSpec:
        """The same without its leading size."""
        if not self.shape:
            raise ValueError("a spec without axes cannot be unbatched.")
        return InputSpec(self.shape[1:], self.dtype, self.name, self.stop_gradient)

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name}, " \
               f"stop_gradient={self.stop_gradient})"

    def __eq__(self, other) -> bool:
        return isinstance(other, InputSpec) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.name))
