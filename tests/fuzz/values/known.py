"""Which differences are meant: op -> [(where, why)]. `where` is an expression of the op's arguments, `dtype`, `special`
(extreme numbers among the operands) and `fault`, the text of the difference."""

from __future__ import annotations

import numpy as np

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


_WORDS = {"np": np, "is_sorted": _is_sorted}

KNOWN = _joined(
    # what is promised for other operands only
    _each("searchsorted bucketize", "not is_sorted(sorted_sequence)", "a sequence that is not sorted"),
    _each("merge_sorted", "not (is_sorted(x, True) and is_sorted(y, True))", "keys that do not rise"),
    _each("pad_edges_grad", "any(p >= n - sum(paddings[2 * i:2 * i + 2]) for i, n in enumerate(grad.shape) "
          "for p in paddings[2 * i:2 * i + 2])", "edges that are wider than the image, which pad refuses"),
    _each("avg_pool avg_pool_grad",
          "any(p > k for k, *both in zip(kernel_size, padding[::2], padding[1::2]) for p in both)",
          "windows that lie in the padding alone, for which the expression takes other pixels"),
    _each("linear_recurrence", "0 in a.shape", "the expression loses the order of axes that are empty"),
    _each("npair_loss", "'is np.float64(nan)' in fault or 'inf' in fault", "the expression overflows"),
    # rounding
    _each("psroi_pool psroi_pool_grad", "dtype != 'float64'",
          "bins that end where a pixel begins, in double by the expression"),
    # infinities
    _each("cumsum_along", "special and exclusive", "the references subtract the element from the sum that includes it"),
    _each("gammainc_order", "order > 0", "the reference is a difference, whose points may be below 0"),
    _each("gammainc gammaincc", "np.any((x.numpy() < 1e-300) & (x.numpy() > 0))", "SciPy takes a subnormal number for 0"),
    _each("conv conv1d conv2d conv3d conv_fused", "special", "padding is left out; 0 * infinity in the reference"),
)


def reason(judged, fault: str) -> str | None:
    """Why the difference is meant, if it is."""
    call = judged.call
    names = {**dict(zip(call.record.parameters, judged.args)), **_WORDS, "dtype": call.dtype, "special": call.special,
             "fault": fault}
    for name in (call.record.inplace_of or call.record.name, "*"):
        for where, why in KNOWN.get(name, ()):
            if eval(where, names):  # the table is ours
                return why
    return None
