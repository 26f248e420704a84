"""Which differences are meant: op -> [(where, why)]. `where` is an expression of the op's arguments, `dtype`, `special`
(extreme numbers among the operands), `wild` (numbers of 1e4 and more), `results` (ours) and `fault`, the text of the difference."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from registry.compare import values
from registry.records import tensors_of

Reasons = dict[str, list[tuple[str, str]]]


def _each(ops: str, where: str, why: str) -> Reasons:
    return {op: [(where, why)] for op in ops.split()}


def _joined(*parts: Reasons) -> Reasons:
    found: Reasons = {}
    for part in parts:
        for op, reasons in part.items():
            found.setdefault(op, []).extend(reasons)
    return found


def _is_sorted(a, strictly: bool = False) -> bool:
    steps = np.diff(a.numpy().astype(np.float64), axis=-1)
    return bool(np.all(steps > 0 if strictly else steps >= 0))


def _is_spectrum(x, results: list) -> bool:
    """Whether the first result holds the eigenvalues of x in some order, and the second, if there is one, vectors for them."""
    if not results:
        return False
    matrix, found = values(x).astype(np.complex128), results[0].astype(np.complex128)
    if not np.all(np.isfinite(matrix)):
        return True
    room = (1e-6 if x.dtype.name in ("float64", "complex128") else 2e-3) * (np.abs(matrix).max(initial=0) + 1e-30)
    wanted = np.linalg.eigvals(matrix)
    for ours, theirs in zip(found.reshape(-1, found.shape[-1]), wanted.reshape(-1, found.shape[-1])):
        rows, columns = linear_sum_assignment(np.abs(ours[:, None] - theirs[None, :]))
        if np.any(np.abs(ours[rows] - theirs[columns]) > room):
            return False
    vectors = results[1].astype(np.complex128) if len(results) > 1 else None
    return vectors is None or bool(np.all(np.abs(matrix @ vectors - vectors * found[..., None, :]) <= room * matrix.shape[-1]))


def _only_where_reference_is_nan(judged) -> bool:
    """Whether the NumPy expression gives NaN wherever the results differ."""
    pairs = zip(judged.wrong or [], judged.wanted)
    return all(np.all(np.isnan(w[bad])) for bad, w in pairs if w is not None and bad.any())


def _largest(arguments: list) -> float:
    """The largest of all integers among the operands."""
    found = [np.abs(t.numpy().astype(np.float64)).max(initial=0) for t in tensors_of(arguments) if "int" in t.dtype.name]
    return max(found, default=0.0)


_WORDS = {"np": np, "is_sorted": _is_sorted, "largest": _largest, "is_spectrum": _is_spectrum}

KNOWN = _joined(
    # what is promised for other operands only
    _each("searchsorted bucketize", "not is_sorted(sorted_sequence)", "a sequence that is not sorted"),
    _each("merge_sorted", "not (is_sorted(x, True) and is_sorted(y, True))", "keys that do not rise"),
    _each("avg_pool avg_pool_grad", "'nan' in fault.partition('ours')[2]", "the mean of a window without a pixel"),
    # rounding
    _each("psroi_pool psroi_pool_grad", "'Paddle' not in fault", "a bin that ends where a pixel begins may round to either side"),
    _each("grid_sample_grad_grid", "padding_mode == 'reflection'",
          "the reference is a difference, which is no derivative at an edge of a pixel"),
    _each("viterbi_decode", "'result 1' in fault", "one of several best paths"),
    _each("eig eigvals", "is_spectrum(x, results)", "the order of eigenvalues, and the phase of vectors where several have one value"),
    _each("scale clip", "'int' in dtype and np.any(np.abs(x.numpy().astype('float64')) > 2.0 ** 53)",
          "integers that a double does not hold; ours stay inside the range of the dtype"),
    _each("*", "'int' in dtype and 'ours np.float32' in fault and largest(arguments) > 2.0 ** 24",
          "integers become float32 first; in double by the expression"),
    _each("*", "wild and 'PyTorch' not in fault and 'Paddle' not in fault and any(f' is np.float64({v})' in fault "
          "for v in ('nan', 'inf', '-inf'))", "the formula overflows on the way"),
    # arguments outside of what the expression is for
    _each("generate_proposals", "np.any(im_shape.numpy() < 1)", "an image without a pixel"),
    # infinities
    _each("gammainc_order", "order > 0", "the reference is a difference, whose points may be below 0"),
    _each("gammainc gammaincc", "np.any((x.numpy() < 1e-300) & (x.numpy() > 0))", "SciPy takes a subnormal number for 0"),
    _each("conv conv1d conv2d conv3d conv_fused", "special and only_where_reference_is_nan",
          "padding is left out; 0 * infinity in the reference"),
    _each("conv conv1d conv2d conv3d conv_fused", "largest(arguments) > (65504 if 'float16' in fault else 2.0 ** 53)",
          "integers beside floats become floats first, infinite in float16; by the expression they wrap before"),
)


def reason(judged, fault: str) -> str | None:
    """Why the difference is meant, if it is."""
    call = judged.call
    names = {**dict(zip(call.record.parameters, judged.args)), **_WORDS, "dtype": call.dtype, "special": call.special,
             "wild": call.wild, "results": judged.results or [],
             "only_where_reference_is_nan": _only_where_reference_is_nan(judged), "fault": fault, "arguments": judged.args}
    for name in (call.record.inplace_of or call.record.name, "*"):
        for where, why in KNOWN.get(name, ()):
            if eval(where, names):  # the table is ours
                return why
    return None
