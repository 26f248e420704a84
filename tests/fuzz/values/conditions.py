"""What holds for a call whose result differs: the words of known.py."""

from __future__ import annotations

import re

import numpy as np

from registry.compare import values
from registry.records import tensors_of

from .compare import EPSILON


def is_sorted(a, strictly: bool = False) -> bool:
    steps = np.diff(values(a).astype(np.float64), axis=-1)
    return bool(np.all(steps > 0 if strictly else steps >= 0))


def is_spectrum(x, results: list, special: bool) -> bool:
    """Whether the first result holds the eigenvalues of matrices that differ from x by rounding, and the second, if there is
    one, unit vectors for them. Of a matrix with NaN or infinities there are none."""
    if not results:
        return False
    matrix, found = values(x).astype(np.complex128), results[0].astype(np.complex128)
    if not np.all(np.isfinite(matrix)):
        return special
    size = matrix.shape[-1]
    room = 16 * size * EPSILON[x.dtype.name] * np.linalg.norm(matrix, axis=(-2, -1))[..., None]
    # Each is an eigenvalue of a matrix near to x; together they have its trace, and its square has that of theirs.
    shifted = matrix[..., None, :, :] - found[..., None, None] * np.eye(size)
    if np.any(np.linalg.svd(shifted, compute_uv=False)[..., -1] > room):
        return False
    scale = np.linalg.norm(matrix, axis=(-2, -1))
    for power, rest in ((matrix, found), (matrix @ matrix / np.maximum(scale, 1e-300)[..., None, None],
                                          found ** 2 / np.maximum(scale, 1e-300)[..., None])):
        if np.any(np.abs(np.trace(power, axis1=-2, axis2=-1) - rest.sum(-1)) > size * room[..., 0]):
            return False
    if len(results) == 1:
        return True
    vectors = results[1].astype(np.complex128)
    rest = np.linalg.norm(matrix @ vectors - vectors * found[..., None, :], axis=-2)
    return bool(np.all(rest <= room) and np.all(np.abs(np.linalg.norm(vectors, axis=-2) - 1) <= 16 * size * EPSILON[x.dtype.name]))


def is_hermitian_spectrum(x, uplo: str, results: list) -> bool:
    """Whether the results are eigenvalues and unitary vectors of the Hermitian matrices whose triangles x holds."""
    matrix = values(x).astype(np.complex128)
    if not np.all(np.isfinite(matrix)):
        return False
    half = np.tril(matrix, -1) if uplo == "L" else np.conj(np.swapaxes(np.triu(matrix, 1), -1, -2))
    size = matrix.shape[-1]
    whole = half + np.conj(np.swapaxes(half, -1, -2)) + np.real(matrix) * np.eye(size)
    found, vectors = results[0].astype(np.complex128), results[1].astype(np.complex128)
    epsilon = 16 * size * EPSILON[x.dtype.name]
    rest = np.linalg.norm(whole @ vectors - vectors * found[..., None, :], axis=-2)
    products = np.conj(np.swapaxes(vectors, -1, -2)) @ vectors - np.eye(size)
    return bool(np.all(rest <= epsilon * np.linalg.norm(whole, axis=(-2, -1))[..., None]) and np.all(np.abs(products) <= epsilon))


def is_euclidean_norm(x, axis, keepdim: bool, results: list) -> bool:
    """Whether the result is the norm, computed with the exponents of long doubles."""
    wide = np.abs((x if isinstance(x, np.ndarray) else values(x)).astype(np.clongdouble))
    axes = tuple(axis) if axis else tuple(range(wide.ndim))
    wanted = np.sqrt((wide * wide).sum(axis=axes, keepdims=keepdim))
    return bool(np.allclose(results[0].astype(np.longdouble), wanted, rtol=16 * EPSILON[results[0].dtype.name], atol=0, equal_nan=True))


def see_nothing(results: list, wrong: list) -> bool:
    """Whether the queries whose results are wrong have scores that add up to nothing: attention's logarithms of sums are -infinity."""
    queries = np.swapaxes(wrong[0].any(-1), 1, 2) | wrong[1]
    return bool(np.all(np.isneginf(results[1][queries])))


def is_svd(x, results: list) -> bool:
    """Whether the factors are unitary and their product is x."""
    matrix = values(x).astype(np.complex128)
    u, s, vh = (r.astype(np.complex128) for r in results)
    if not np.all(np.isfinite(matrix)):
        return False
    room = 1e-11 if x.dtype.name in ("float64", "complex128") else 1e-5
    count = s.shape[-1]

    def is_unit(columns) -> bool:
        return bool(np.all(np.abs(np.conj(np.swapaxes(columns, -1, -2)) @ columns - np.eye(columns.shape[-1])) <= room))

    rest = u[..., :count] * s[..., None, :] @ vh[..., :count, :] - matrix
    return is_unit(u) and is_unit(np.swapaxes(vh, -1, -2)) and bool(np.all(np.abs(rest) <= room * np.abs(s).max(initial=0)))


def all_wrong(judged, holds) -> bool:
    """Whether something holds for every element that no reference agrees with: holds(ours, the first reference's)."""
    pairs = zip(judged.wrong or [], judged.results or [], judged.wanted)
    return all(np.all(holds(ours[bad], w[bad])) for bad, ours, w in pairs if w is not None and bad.any())


def largest(arguments: list) -> float:
    """The largest of all integers among the operands."""
    found = [np.abs(t.numpy().astype(np.float64)).max(initial=0) for t in tensors_of(arguments) if "int" in t.dtype.name]
    return max(found, default=0.0)


def reach(t) -> float:
    """The largest finite number of a tensor, 0 of None."""
    a = values(t) if t is not None else np.zeros(0)
    return float(np.abs(a[np.isfinite(a)]).max(initial=0.0))


def largest_of(t) -> float:
    """The largest number in which a tensor is computed: 16-bit floats as float32."""
    return float(np.finfo("float64" if t.dtype.name in ("float64", "complex128") else "float32").max)


def squares_overflow(*tensors) -> bool:
    """Whether the sum of the squares of a tensor's distances from a mean may be no number of its dtype."""
    return any(reach(t) > (largest_of(t) / max(t.size, 1)) ** 0.5 / 2 for t in tensors if t is not None)


def is_finite(*tensors) -> bool:
    return all(bool(np.isfinite(values(t)).all()) for t in tensors if t is not None)


def is_best_path(potentials, transitions, lengths, with_ends: bool, results: list) -> bool:
    """Whether each path has the score that is claimed for it, which the reference says is the best one."""
    p, t = values(potentials).astype(np.float64), values(transitions).astype(np.float64)
    room = 1e-5 if potentials.dtype.name in ("float32", "float64") else 2e-2
    for scores, path, length, claimed in zip(p, results[1], lengths.numpy(), results[0]):
        tags = path[:length]
        total = sum(scores[i, tag] for i, tag in enumerate(tags)) + sum(t[a, b] for a, b in zip(tags, tags[1:]))
        if with_ends and length:
            total += t[-1, tags[0]] + t[-2, tags[-1]]
        if abs(total - claimed) > room * (1 + np.abs(p).max() + np.abs(t).max()) * max(length, 1):
            return False
    return True


def touches_pixels(boxes, output_size: list, scale: float) -> bool:
    """Whether a bin of psroi_pool begins or ends where a pixel does, or a corner is half way between two, up to rounding."""
    def near(a, to: float) -> bool:
        distance = np.abs((a - to) - np.round(a - to))
        return bool(np.any(distance <= 1e-5 * (1 + np.abs(a))))

    corners = values(boxes).astype(np.float64)
    starts, ends = np.floor(corners[:, :2] + 0.5) * scale, np.floor(corners[:, 2:] + 1.5) * scale
    sizes = np.maximum(ends - starts, 0.1)[:, :, None] / np.array([*output_size, *output_size])[1::-1][:, None]
    steps = np.arange(max(output_size) + 1)
    return near(corners, 0.5) or near(starts[:, :, None] + sizes * steps, 0.0)


def total_is_below_scores(query, key, mask, lse, scale: float, causal: bool) -> bool:
    """Whether a share of attention, exp(score - lse), is no float32, or an operand of it is not finite."""
    q, k = values(query).astype(np.float64), values(key).astype(np.float64)
    with np.errstate(all="ignore"):
        scores = np.einsum("bqhd,bkhd->bhqk", q, np.repeat(k, q.shape[2] // k.shape[2], 2)) * scale
        if mask is not None:
            m = values(mask)
            scores = np.where(m, scores, -np.inf) if m.dtype == bool else scores + m
        if causal:
            scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
        exponents = scores - values(lse)[..., None]
    return not is_finite(query, key, lse) or bool(np.any(exponents > 80))


def overflows_on_the_way(x) -> bool:
    """Whether the product of a tensor's large elements is no number of its dtype; the order then decides."""
    a = np.abs(values(x).astype(np.complex128))
    with np.errstate(all="ignore"):
        large = np.log10(np.where((a > 1) & np.isfinite(a), a, 1)).sum()
    return bool(large > np.log10(float(np.finfo(values(x).dtype).max))) or not is_finite(x)


def are_beside(judged) -> bool:
    """Whether what is wrong is a rounding error beside the gradients that a recurrent layer multiplies with its slopes: 1 - h * h
    of a gate near 1 keeps none of its digits."""
    _, weight, *_, grad_states, grad_cells, _, _ = judged.args
    epsilon = EPSILON["float64" if grad_states.dtype.name == "float64" else "float32"]
    room = 16 * epsilon * max(reach(grad_states), reach(grad_cells)) * max(reach(weight), 1.0)
    return all_wrong(judged, lambda ours, w: np.abs(ours - w) <= room)


def loses_sizes(boxes, scale: float) -> bool:
    """Whether a box's size is lost beside the half pixel that it is moved by."""
    corners = np.abs(values(boxes).astype(np.float64)) * scale
    return bool(np.any(np.abs(corners[:, 2:] - corners[:, :2]) < 1e-6))


def are_nowhere(judged) -> bool:
    """Whether every point of a grid where the result differs is NaN, infinite or so far away that it has no half pixels. A
    gradient by the grid may differ, too, where that of the point is NaN, infinite or a number whose sums overflow."""
    if judged.wrong is None:
        return False
    wrong, grid = judged.wrong[0], judged.args[1]
    if judged.call.record.name == "grid_sample":
        points = wrong.any(1)
        huge = np.zeros(points.shape, bool)
    else:
        grid, points = judged.args[2], wrong.any(-1)
        huge = ~(np.abs(values(judged.args[0])) < 1e36).all(1)
    far = ~(np.abs(values(grid).astype(np.float64)) < 1e6)
    return bool(np.all((far.any(-1) | huge)[points]))


def is_conditioned(judged, matrix) -> bool:
    """Whether the largest error is what operands that move by a rounding error can cause."""
    x, ours, wanted = values(matrix), judged.results[0], judged.wanted[0]
    if not np.isfinite(x).all() or not np.isfinite(wanted).all():
        return False
    error = np.abs(ours - wanted).max(initial=0) / max(np.abs(wanted).max(initial=0), 1e-30)
    return bool(error <= 32 * np.max(np.linalg.cond(x), initial=0) * EPSILON[matrix.dtype.name])


def _pixels(grid, shape, align_corners: bool) -> np.ndarray:
    """The coordinates of a grid, counted in pixels of images of a shape."""
    sizes = np.array(shape[2:][::-1])
    place = values(grid).astype(np.float64) + 1
    return place / 2 * (sizes - 1) if align_corners else (place * sizes - 1) / 2


def _is_whole(a: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.abs(a - np.round(a)) <= 1e-4 * (1 + np.abs(a))


def has_halves(grid, shape, align_corners: bool) -> bool:
    """Whether a point is half way between two pixels."""
    return bool(np.any(_is_whole(_pixels(grid, shape, align_corners) - 0.5)))


def are_on_edges(judged) -> bool:
    """Whether every point of a grid whose gradient differs has a coordinate that is a whole number of pixels, up to rounding."""
    _, x, grid, *_, align_corners = judged.args
    if judged.wrong is None:
        return False
    whole = _is_whole(_pixels(grid, x.shape, align_corners))
    return bool(np.all(whole.any(-1)[judged.wrong[0].any(-1)]))


def is_wrong_axis(fault: str) -> bool:
    """Whether the error says that an axis is outside of [-rank, rank), and it is."""
    found = re.search(r"ax[ei]s (-?\d+) does not fit a tensor of rank (\d+)", fault)
    return found is not None and not -int(found[2]) <= int(found[1]) < int(found[2])
