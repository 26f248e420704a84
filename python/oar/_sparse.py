"""Methods of Tensor for sparse tensors: their parts, conversions, and how one is shown."""

from __future__ import annotations

import builtins

from oar import _C, _printing
from oar._C import Tensor, ops

_SPARSE = ("sparse_coo", "sparse_csr")


def require(t: Tensor, method: str, kinds: tuple[str, ...] = _SPARSE) -> None:
    """An error unless the tensor has one of these kinds."""
    if t._kind not in kinds:
        wanted = " or ".join({"sparse_coo": "COO", "sparse_csr": "CSR"}[kind] for kind in kinds)
        raise TypeError(f"[{method}] a sparse ({wanted}) tensor is needed; this one is {t._kind.replace('_', ' ')}. "
                        f"Convert it with {'to_sparse_coo(sparse_dim)' if 'sparse_coo' in kinds else 'to_sparse_csr()'}.")


def is_sparse(self) -> builtins.bool:
    """Whether it is a sparse tensor, COO or CSR.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.eye(3).is_sparse(), oar.eye(3).to_sparse_csr().is_sparse()
        (False, True)
    """
    return self._kind in _SPARSE


def is_sparse_coo(self) -> builtins.bool:
    """Whether it is a sparse tensor of coordinates and values.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.eye(3).to_sparse_coo(2).is_sparse_coo()
        True
    """
    return self._kind == "sparse_coo"


def is_sparse_csr(self) -> builtins.bool:
    """Whether it is a sparse tensor of compressed rows.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.eye(3).to_sparse_coo(2).is_sparse_csr()
        False
    """
    return self._kind == "sparse_csr"


def to_sparse_coo(self, sparse_dim: int) -> Tensor:
    """The elements that are not zero, with their coordinates on the first axes. Gradients pass.

    Args:
        sparse_dim: the number of axes with coordinates; the others are dense.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_coo(2)
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               indices=[[0, 1],
                        [1, 0]],
               values=[2., 3.])
    """
    return _C.sparse_to_coo(self, sparse_dim)


def to_sparse_csr(self) -> Tensor:
    """The elements that are not zero, row by row. Gradients pass.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr()
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               crows=[0, 1, 2],
               cols=[1, 0],
               values=[2., 3.])
    """
    out = _C.sparse_to_csr(self)
    if not out.stop_gradient and not out.is_leaf:
        out.retain_grads()  # in Paddle it is a leaf
    return out


def to_dense(self) -> Tensor:
    """All elements of a sparse tensor; those of one place are summed. A dense tensor is itself. Of a gradient that holds
    some rows only, all rows.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[0, 1, 0]], [1.0, 2.0, 3.0], [3])
        >>> x.to_dense().tolist()
        [4.0, 2.0, 0.0]
    """
    if self._kind in _SPARSE:
        return _C.sparse_to_dense(self)
    return ops.selected_rows_to_dense(self) if self._kind == "selected_rows" else self


def values(self) -> Tensor:
    """The elements that a sparse tensor holds. Gradients pass.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr().values().tolist()
        [2.0, 3.0]
    """
    require(self, "values")
    return _C.sparse_parts(self)[1]


def indices(self) -> Tensor:
    """The coordinates of the elements of a COO tensor, one row per sparse axis.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_coo(2).indices().tolist()
        [[0, 1], [1, 0]]
    """
    require(self, "indices", ("sparse_coo",))
    return _C.sparse_parts(self)[0][0]


def crows(self) -> Tensor:
    """Where the elements of each row of a CSR tensor begin, and the number of elements at the end.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr().crows().tolist()
        [0, 1, 3]
    """
    require(self, "crows", ("sparse_csr",))
    return _C.sparse_parts(self)[0][0]


def cols(self) -> Tensor:
    """The columns of the elements of a CSR tensor.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.to_tensor([[0.0, 2.0], [3.0, 4.0]]).to_sparse_csr().cols().tolist()
        [1, 0, 1]
    """
    require(self, "cols", ("sparse_csr",))
    return _C.sparse_parts(self)[0][1]


def nnz(self) -> int:
    """The number of elements that a sparse tensor holds.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.eye(3).to_sparse_coo(2).nnz()
        3
    """
    require(self, "nnz")
    return _C.sparse_parts(self)[1].shape[0]


def sparse_dim(self) -> int:
    """The number of axes of a sparse tensor that have coordinates.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.ones([2, 3]).to_sparse_coo(1).sparse_dim()
        1
    """
    require(self, "sparse_dim")
    return _C.sparse_dim(self)


def dense_dim(self) -> int:
    """The number of dense axes of a sparse tensor.

    Returns:
        an integer.

    Examples:
        >>> import oar
        >>> oar.ones([2, 3]).to_sparse_coo(1).dense_dim()
        1
    """
    require(self, "dense_dim")
    return self.ndim - _C.sparse_dim(self)


def coalesce(self, name: str | None = None) -> Tensor:
    """A COO tensor whose elements are in row-major order, those of one place summed.

    Returns:
        a sparse tensor.

    Examples:
        >>> import oar
        >>> oar.sparse.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 3.0], [3]).coalesce()
        Tensor(shape=[3], dtype=float32, place=Place(cpu), stop_gradient=True,
               indices=[[0, 2]],
               values=[2., 4.])
    """
    require(self, "coalesce", ("sparse_coo",))
    return _C.sparse_coalesce(self)


def is_coalesced(self) -> builtins.bool:
    """Whether a COO tensor is known to have its elements in order, each once.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> x = oar.sparse.sparse_coo_tensor([[2, 0, 2]], [1.0, 2.0, 3.0], [3])
        >>> x.is_coalesced(), x.coalesce().is_coalesced()
        (False, True)
    """
    require(self, "is_coalesced", ("sparse_coo",))
    return _C.sparse_parts(self)[2]


def is_same_shape(self, y: Tensor) -> builtins.bool:
    """Whether another tensor, dense or sparse, has the same shape.

    Args:
        y: the other tensor.

    Returns:
        a bool.

    Examples:
        >>> import oar
        >>> oar.eye(3).to_sparse_coo(2).is_same_shape(oar.zeros([3, 3]))
        True
    """
    return list(self.shape) == list(y.shape)


def lines(t: Tensor, summarised) -> str:
    """The parts of a sparse tensor as ``repr`` shows them."""
    places, held, _ = _C.sparse_parts(t)
    names = ("indices",) if t._kind == "sparse_coo" else ("crows", "cols")
    shown = []
    for name, part in zip((*names, "values"), (*places, held), strict=True):
        shown.append(f"       {name}={_printing.body(summarised(part.detach()), 8 + len(name))}")
    return ",\n".join(shown)


def rebuild(kind, places, held, shape, coalesced, stop_gradient):
    """For pickles."""
    if kind == "sparse_coo":
        out = _C.sparse_coo(*places, held, shape, coalesced, False)
    else:
        out = _C.sparse_csr(*places, held, shape, False)
    out.stop_gradient = stop_gradient
    return out


def reduce(t: Tensor):
    places, held, coalesced = _C.sparse_parts(t)
    return rebuild, (t._kind, list(places), held.detach(), list(t.shape), coalesced, t.stop_gradient)


METHODS: dict[str, object] = {
    "is_sparse": is_sparse, "is_sparse_coo": is_sparse_coo, "is_sparse_csr": is_sparse_csr,
    "to_sparse_coo": to_sparse_coo, "to_sparse_csr": to_sparse_csr, "to_dense": to_dense, "values": values,
    "indices": indices, "crows": crows, "cols": cols, "nnz": nnz, "sparse_dim": sparse_dim, "dense_dim": dense_dim,
    "coalesce": coalesce, "is_coalesced": is_coalesced, "is_same_shape": is_same_shape,
}  # fmt: skip
