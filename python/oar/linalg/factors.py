"""Factors of matrices in the forms that Paddle returns."""

from __future__ import annotations

from oar._C import Tensor, ops
from oar._spelling import spelled


@spelled
def lu(x: Tensor, pivot: bool = True, get_infos: bool = False, name: str | None = None) -> tuple[Tensor, ...]:
    """LU factors with exchanges of rows. L (without its diagonal of ones) and U are parts of one matrix.

    Args:
        x: matrices in the last two axes, of any sizes.
        pivot: must be True; factors without exchanges of rows are not available.
        get_infos: whether to return the infos, too.

    Returns:
        the factors; pivots as int32: row i was exchanged with row pivots[i], counted from 1; and with get_infos an
        int32 for each matrix: 0, or the number of the first zero pivot.

    Examples:
        >>> import oar
        >>> factors, pivots = oar.linalg.lu(oar.to_tensor([[1.0, 2.0], [4.0, 6.0]]))
        >>> factors
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[4.        , 6.        ],
                [0.25000000, 0.50000000]])
        >>> pivots.tolist()
        [2, 2]
    """
    if not pivot:
        raise ValueError("[lu] pivot is False; factors without exchanges of rows are not available. Pass pivot=True.")
    factors, pivots, infos = ops.lu_factor(x)
    return (factors, pivots, infos) if get_infos else (factors, pivots)


@spelled
def lu_unpack(x: Tensor, y: Tensor, unpack_ludata: bool = True, unpack_pivots: bool = True,
              name: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The matrices P, L and U of A = P L U from what lu returns. Those that are not wanted are empty.

    Args:
        x: the factors that lu returns.
        y: the pivots that lu returns.
        unpack_ludata: whether to return L and U.
        unpack_pivots: whether to return P.

    Returns:
        three tensors: P, L and U.

    Examples:
        >>> import oar
        >>> a = oar.to_tensor([[1.0, 2.0], [4.0, 6.0]])
        >>> p, l, u = oar.linalg.lu_unpack(*oar.linalg.lu(a))
        >>> (p @ l @ u).tolist()
        [[1.0, 2.0], [4.0, 6.0]]
    """
    p, lower, upper = ops.lu_parts(x, y)
    empty = ops.zeros([0], x.dtype)
    return (p if unpack_pivots else empty, *((lower, upper) if unpack_ludata else (empty, empty)))


@spelled
def qr(x: Tensor, mode: str = "reduced", name: str | None = None) -> Tensor | tuple[Tensor, Tensor]:
    """x = Q R with orthonormal columns of Q and an upper triangular R.

    A derivative needs the first columns of x (as many as it has rows, at most) to be linearly independent.

    Args:
        x: matrices in the last two axes, of any sizes.
        mode: "reduced" for as few columns of Q as possible, "complete" for a square Q, "r" for R alone.

    Returns:
        Q and R, or R.

    Examples:
        >>> import oar
        >>> q, r = oar.linalg.qr(oar.to_tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> r
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[-5.        , -2.20000005],
                [ 0.        ,  0.39999998]])
        >>> oar.linalg.qr(oar.ones([4, 2]), mode="complete")[0].shape
        [4, 4]
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"[qr] mode is {mode!r}; it can be 'reduced', 'complete' or 'r'.")
    q, r = ops.qr_parts(x, mode == "complete")
    return r if mode == "r" else (q, r)


@spelled
def slogdet(x: Tensor, name: str | None = None) -> Tensor:
    """The sign and the logarithm of the magnitude of the determinant, as one tensor.

    The sign of a complex determinant is its direction. A singular matrix has 0 and -inf, and no derivative.

    Args:
        x: square matrices in the last two axes.

    Returns:
        a tensor of shape [2, ...]: signs, then logarithms.

    Examples:
        >>> import oar
        >>> oar.linalg.slogdet(oar.to_tensor([[0.0, 1.0], [1.0, 0.0]]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [-1.,  0.])
    """
    sign, logarithm = ops.slogdet_parts(x)
    return ops.stack([sign, ops.cast(logarithm, sign.dtype)], 0)


def _basis(x: Tensor, q: int, niter: int) -> Tensor:
    """q orthonormal columns that nearly span the columns of x: random combinations, improved by power iterations."""
    from oar._random import randn
    turned = adjoint(x)
    found, _ = ops.qr_parts(ops.matmul(x, randn([x.shape[-1], q], dtype=x.dtype)))
    for _ in range(niter):
        found, _ = ops.qr_parts(ops.matmul(turned, found))
        found, _ = ops.qr_parts(ops.matmul(x, found))
    return found


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transposes of the matrices."""
    turned = ops.swapaxes(x, -2, -1)
    return ops.conj(turned) if x.dtype.name.startswith("complex") else turned


def _checked_rank(op: str, x: Tensor, q: int | None, niter: int) -> int:
    if not isinstance(x, Tensor):
        raise ValueError(f"[{op}] x is {type(x).__name__}, not a tensor.")
    if x.ndim < 2:
        raise ValueError(f"[{op}] x of shape {list(x.shape)} must hold matrices.")
    most = min(x.shape[-2:])
    if q is None:
        q = min(6, most)
    if not 0 <= q <= most:
        raise ValueError(f"[{op}] q is {q}; it can be from 0 to {most} for x of shape {list(x.shape)}.")
    if niter < 0:
        raise ValueError(f"[{op}] niter is {niter}; it must not be negative.")
    return q


@spelled
def svd_lowrank(x: Tensor, q: int | None = None, niter: int = 2, M: Tensor | None = None,
                name: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The q largest singular values and their vectors, nearly: x - M is about U diag(S) V^H.

    The space of the vectors is found by a random projection and improved by niter iterations. It is nearly exact if x
    has a rank up to q.

    Args:
        x: matrices in the last two axes.
        q: how many singular values; a little more than the rank of x. None means 6, or the smaller size of x.
        niter: how many iterations improve the projection.
        M: what is subtracted from x, broadcast to its shape, or None.

    Returns:
        three tensors: U, S and V.

    Examples:
        >>> import oar
        >>> x = oar.to_tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> u, s, v = oar.linalg.svd_lowrank(x, q=2)
        >>> [round(value, 4) for value in s.tolist()]
        [2.0, 1.0]
    """
    q = _checked_rank("svd_lowrank", x, q, niter)
    if M is not None:
        x = x - ops.broadcast_to(M, list(x.shape))
    basis = _basis(x, q, niter)
    u, s, vh = ops.svd(ops.matmul(adjoint(basis), x))
    return ops.matmul(basis, u), s, adjoint(vh)


@spelled
def pca_lowrank(x: Tensor, q: int | None = None, center: bool = True, niter: int = 2,
                name: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The q principal components of the rows of x, by svd_lowrank of x without the mean of its rows.

    Args:
        x: matrices in the last two axes.
        q: how many components; None means 6, or the smaller size of x.
        center: whether the mean of the rows is subtracted.
        niter: how many iterations improve the projection.

    Returns:
        three tensors: U, S and V.

    Examples:
        >>> import oar
        >>> u, s, v = oar.linalg.pca_lowrank(oar.to_tensor([[1.0, 5.0], [3.0, 5.0]]), q=1)
        >>> [round(abs(value), 4) for value in v.flatten().tolist()]
        [1.0, 0.0]
    """
    q = _checked_rank("pca_lowrank", x, q, niter)
    return svd_lowrank(x - ops.mean(x, [-2], True) if center else x, q, niter)
