"""The sizes of a tensor, as PyTorch's users ask for them: ``x.size(0)``."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from oar._C import Tensor


class Size(list):
    """A shape: a list of sizes that also equals a tuple of them.

    Args:
        sizes: the sizes, as numbers or tensors of one.

    Examples:
        >>> import oar
        >>> size = oar.Size([2, 3])
        >>> size.numel(), size == (2, 3), size + (4,)
        (6, True, Size([2, 3, 4]))
    """

    def __init__(self, sizes: Iterable[Any] = ()) -> None:
        super().__init__(size if isinstance(size, int) else size.__index__() for size in sizes)

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        count = 1
        for size in self:
            count *= size
        return count

    def __eq__(self, other: object) -> bool:
        return list.__eq__(self, list(other) if isinstance(other, tuple) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Size:
        return Size([*self, *other])

    def __radd__(self, other: Any) -> Size:
        return Size([*other, *self])

    def __mul__(self, count: Any) -> Size:
        return Size(list.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        found = list.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __repr__(self) -> str:
        return f"Size({list.__repr__(self)})"


def size_along(self: Tensor, dim: int | None = None) -> Any:
    """The sizes of a tensor, or the one of an axis. ``x.size`` without a call is the number of elements.

    Args:
        dim: the axis, or None.

    Returns:
        a ``Size``, or a number.

    Examples:
        >>> import oar
        >>> x = oar.zeros([2, 3])
        >>> x.size(0), x.size(-1), x.size(), x.size
        (2, 3, Size([2, 3]), 6)
    """
    return Size(self.shape) if dim is None else self.shape[dim]


class TensorSize(int):
    """The number of elements of a tensor, which can be called for its sizes: ``x.size`` and ``x.size(0)``."""

    _tensor: Tensor

    def __new__(cls, count: int, tensor: Tensor) -> TensorSize:
        self = super().__new__(cls, count)
        self._tensor = tensor
        return self

    def __call__(self, dim: int | None = None) -> Any:
        return size_along(self._tensor, dim)

    def __reduce__(self) -> Any:
        return int, (int(self),)
