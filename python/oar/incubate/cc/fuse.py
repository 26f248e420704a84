"""Parts of a function that should be one kernel. The compiler decides by itself what it fuses."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import oar
from oar._C import Tensor

__all__ = ["by_register", "matmul"]


@contextlib.contextmanager
def by_register() -> Iterator[None]:
    """Marks ops whose results should not be written to memory. The compiler decides by itself; results do not depend on it.

    Examples:
        >>> import oar
        >>> with oar.incubate.cc.fuse.by_register():
        ...     y = oar.nn.functional.relu(oar.ones([2]))
        ...
    """
    yield


def matmul(x: Tensor, w: Tensor, epilogue: Callable[[Tensor], Tensor], **kwargs: Any) -> Tensor:
    """A product of matrices, and a function of it.

    Args:
        x: the first factor.
        w: the second factor.
        epilogue: the function of the product.
        kwargs: further arguments of ``oar.matmul``.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.incubate.cc.fuse.matmul(oar.ones([2, 3]), oar.ones([3, 1]), oar.nn.functional.relu).tolist()
        [[3.0], [3.0]]
    """
    with by_register():
        return epilogue(oar.matmul(x, w, **kwargs))
