"""Which differences are meant: op -> [(where, why)]. `where` is an expression of the op's arguments, `dtype`, `special`
(extreme numbers among the operands), `wild` (numbers of 1e4 and more) and `fault`, the text of the difference."""

from __future__ import annotations

import numpy as np

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


def _largest(arguments: list) -> float:
    """The largest of all integers among the operands."""
    found = [np.abs(t.numpy().astype(np.float64)).max(initial=0) for t in tensors_of(arguments) if "int" in t.dtype.name]
    return max(found, default=0.0)


_WORDS = {"np": np, "is_sorted": _is_sorted, "largest": _largest}

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
    # rounding
    _each("psroi_pool psroi_pool_grad", "'Paddle' not in fault", "a bin that ends where a pixel begins may round to either side"),
    _each("grid_sample_grad_grid", "padding_mode == 'reflection'",
          "the reference is a difference, which is no derivative at an edge of a pixel"),
    _each("viterbi_decode", "'result 1' in fault", "one of several best paths"),
    _each("eig eigvals", "True", "the order of eigenvalues is nobody's promise"),
    _each("scale clip", "'int' in dtype and np.any(np.abs(x.numpy().astype('float64')) > 2.0 ** 53)",
          "integers that a double does not hold; ours stay inside the range of the dtype"),
    _each("*", "'int' in dtype and 'ours np.float32' in fault and largest(arguments) > 2.0 ** 24",
          "integers become float32 first; in double by the expression"),
    _each("*", "wild and 'PyTorch' not in fault and 'Paddle' not in fault and any(f' is np.float64({v})' in fault "
          "for v in ('nan', 'inf', '-inf'))", "the formula overflows on the way"),
    # arguments outside of what the expression is for
    _each("take_along_axis", "not broadcast", "the expression broadcasts"),
    _each("generate_proposals", "np.any(im_shape.numpy() < 1)", "an image without a pixel"),
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
             "wild": call.wild,
             "fault": fault, "arguments": judged.args}
    for name in (call.record.inplace_of or call.record.name, "*"):
        for where, why in KNOWN.get(name, ()):
            if eval(where, names):  # the table is ours
                return why
    return None
