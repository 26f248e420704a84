"""Products of several matrices, powers, covariance."""

from __future__ import annotations

from oar import _C
from oar._C import Tensor, ops
from oar._spelling import spelled


@spelled
def matrix_power(x: Tensor, n: int, name: str | None = None) -> Tensor:
    """The n-th power of square matrices in the last two axes, by repeated squaring; of the inverse if n is negative.

    Args:
        x: the input.
        n: the exponent.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.matrix_power(oar.to_tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[1., 5.],
                [0., 1.]])
    """
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"[matrix_power] x of shape {list(x.shape)} must hold square matrices.")
    if n < 0:
        return matrix_power(ops.inverse(x), -n)
    result = None
    while n:
        if n & 1:
            result = x if result is None else ops.matmul(result, x)
        n >>= 1
        if n:
            x = ops.matmul(x, x)
    if result is not None:
        return ops.assign(result) if result is x else result
    from oar._creation import eye
    return ops.assign(ops.expand(eye(x.shape[-1], dtype=x.dtype), list(x.shape)))


def _cheapest_order(sizes: list[int]) -> list[list[int]]:
    """For matrices of sizes[i] x sizes[i + 1]: where to cut the product of i ... j so that the fewest multiplications are needed."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], cut[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j))
    return cut


@spelled
def multi_dot(x: list[Tensor], name: str | None = None) -> Tensor:
    """The product of several matrices in the cheapest order; the first and last may be vectors.

    Args:
        x: the input.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.multi_dot([oar.ones([2, 10]), oar.ones([10, 3]), oar.ones([3, 1])]).shape
        [2, 1]
    """
    tensors = list(x)
    if len(tensors) < 2:
        raise ValueError(f"[multi_dot] x holds {len(tensors)} tensors; at least two are needed.")
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    if row:
        tensors[0] = ops.unsqueeze(tensors[0], [0])
    if column:
        tensors[-1] = ops.unsqueeze(tensors[-1], [1])
    for t in tensors:
        if t.ndim != 2:
            raise ValueError(f"[multi_dot] a tensor of shape {list(t.shape)} is not a matrix; only the first and the last "
                             "may be vectors.")
    for a, b in zip(tensors, tensors[1:]):
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"[multi_dot] matrices of shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied.")
    cut = _cheapest_order([tensors[0].shape[0]] + [t.shape[1] for t in tensors])

    def product(i: int, j: int) -> Tensor:
        if i == j:
            return tensors[i]
        return ops.matmul(product(i, cut[i][j]), product(cut[i][j] + 1, j))

    out = product(0, len(tensors) - 1)
    dropped = ([0] if row else []) + ([1] if column else [])
    return ops.squeeze(out, dropped) if dropped else out


def _check_weights(op_argument: str, weights: Tensor, observations: int) -> None:
    if weights.ndim > 1 or weights.shape != [observations]:
        raise ValueError(f"[cov] {op_argument} of shape {list(weights.shape)} must have one number for each of the "
                         f"{observations} observations.")
    if not _C.is_symbolic(weights) and float(ops.min(weights).item()) < 0:
        raise ValueError(f"[cov] {op_argument} holds a negative number.")


@spelled
def cov(x: Tensor, rowvar: bool = True, ddof: bool = True, fweights: Tensor | None = None,
        aweights: Tensor | None = None, name: str | None = None) -> Tensor:
    """The covariance matrix of the rows of x (of its columns without rowvar), divided by n - 1, or by n without ddof.
    fweights says how often an observation counts, aweights how much.

    Args:
        x: the input.
        rowvar: whether each row is a variable; otherwise each column is.
        ddof: whether to divide by n - 1.
        fweights: how often each observation occurs, or None.
        aweights: the weight of each observation, or None.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.cov(oar.to_tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[ 1., -1.],
                [-1.,  1.]])
    """
    if x.ndim > 2 or x.ndim < 1:
        raise ValueError(f"[cov] x of shape {list(x.shape)} must be a vector or a matrix.")
    data = ops.reshape(x, [1, -1]) if x.ndim == 1 else x
    if not rowvar and data.shape[0] != 1:
        data = ops.transpose(data, [1, 0])
    observations = data.shape[1]
    weights = None
    if fweights is not None:
        _check_weights("fweights", fweights, observations)
        whole = not fweights.dtype.name.startswith("float") or ops.all(ops.equal(fweights, ops.floor(fweights)))
        if not _C.is_symbolic(fweights) and not whole:
            raise ValueError("[cov] fweights must hold integers.")
        weights = ops.cast(fweights, data.dtype)
    if aweights is not None:
        _check_weights("aweights", aweights, observations)
        analytic = ops.cast(aweights, data.dtype)
        weights = analytic if weights is None else weights * analytic
    if weights is None:
        total = ops.full([], observations, data.dtype)
        centred = data - ops.sum(data, [1], None, True) / total
        weighed = centred
    else:
        total = ops.sum(weights)
        if not _C.is_symbolic(total) and float(total.item()) == 0:
            raise ValueError("[cov] the weights sum to zero.")
        centred = data - ops.sum(data * weights, [1], None, True) / total
        weighed = centred * weights
    if weights is not None and aweights is not None and ddof:
        divisor = total - ops.sum(weights * ops.cast(aweights, data.dtype)) / total
    else:
        divisor = total - int(ddof)
    product = ops.matmul(centred, ops.conj(ops.transpose(weighed, [1, 0])))
    return ops.squeeze(product / ops.clip(divisor, 0.0))


@spelled
def corrcoef(x: Tensor, rowvar: bool = True, name: str | None = None) -> Tensor:
    """The correlation coefficients of the rows of x (of its columns without rowvar), within [-1, 1].

    Args:
        x: the input.
        rowvar: whether each row is a variable; otherwise each column is.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.linalg.corrcoef(oar.to_tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
        Tensor(shape=[2, 2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [[ 1., -1.],
                [-1.,  1.]])
    """
    if x.ndim > 2 or x.ndim < 1:
        raise ValueError(f"[corrcoef] x of shape {list(x.shape)} must be a vector or a matrix.")
    c = cov(x, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = ops.sqrt(ops.real(ops.diagonal(c)))
    scaled = c / ops.unsqueeze(deviation, [1]) / ops.unsqueeze(deviation, [0])
    if c.dtype.name.startswith("complex"):
        return ops.complex(ops.clip(ops.real(scaled), -1.0, 1.0), ops.clip(ops.imag(scaled), -1.0, 1.0))
    return ops.clip(scaled, -1.0, 1.0)


@spelled
def matrix_transpose(x: Tensor, name: str | None = None) -> Tensor:
    """The last two axes exchanged. A view.

    Args:
        x: the input, of at least two axes.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> oar.matrix_transpose(oar.zeros([5, 2, 3])).shape
        [5, 3, 2]
    """
    if x.ndim < 2:
        raise ValueError(f"[matrix_transpose] a tensor of shape {list(x.shape)} has no matrix axes; at least 2 are needed.")
    return ops.transpose(x, [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


def fp8_fp8_half_gemm_fused(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False,
                            bias: Tensor | None = None, scale: float = 1.0, output_dtype: str = "float16",
                            act: str = "identity", name: str | None = None) -> Tensor:
    """act(scale * x y + bias) for matrices of 8-bit floats, computed in float32.

    Args:
        x: matrices of float8_e4m3fn or float8_e5m2.
        y: matrices of the same kind.
        transpose_x: whether x is transposed first.
        transpose_y: whether y is transposed first.
        bias: what is added to each row, or None.
        scale: the factor of the product.
        output_dtype: "float16" or "bfloat16".
        act: "identity", "relu" or "gelu".

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> x = oar.ones([2, 2]).astype("float8_e4m3fn")
        >>> oar.linalg.fp8_fp8_half_gemm_fused(x, x, scale=0.5).tolist()
        [[1.0, 1.0], [1.0, 1.0]]
    """
    op = "[fp8_fp8_half_gemm_fused]"
    for argument, t in (("x", x), ("y", y)):
        if not t.dtype.name.startswith("float8"):
            raise TypeError(f"{op} {argument} has dtype {t.dtype.name}; it takes float8_e4m3fn or float8_e5m2.")
    if output_dtype not in ("float16", "bfloat16"):
        raise ValueError(f"{op} output_dtype is {output_dtype!r}; it can be 'float16' or 'bfloat16'.")
    activations = {"identity": lambda t: t, "relu": ops.relu, "gelu": ops.gelu}
    if act not in activations:
        raise ValueError(f"{op} act is {act!r}; it can be 'identity', 'relu' or 'gelu'.")
    out = ops.matmul(ops.cast(x, "float32"), ops.cast(y, "float32"), transpose_x, transpose_y) * scale
    if bias is not None:
        out = out + ops.cast(bias, "float32")
    return ops.cast(activations[act](out), output_dtype)
