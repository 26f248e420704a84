"""Whether frameworks computed the same: who disagrees with the others is not timed."""

import base64
import math

import numpy as np

def decode(s):
    data = np.frombuffer(base64.b64decode(s["data"]), np.complex128 if s["complex"] else np.float64)
    return tuple(s["shape"]), data


def differs(reference, got, check, tol, low_precision):
    """None, or why two lists of samples do not agree."""
    if len(reference) != len(got):
        return f"{len(got)} results, expected {len(reference)}"
    if low_precision:
        tol = max(tol, 3e-2)
    for i, (r, g) in enumerate(zip(reference, got)):
        if check == "first" and i:
            break
        (shape, x), (other, y) = decode(r), decode(g)
        label = f"result {i}: " if len(reference) > 1 else ""
        if shape != other and not (x.size == y.size == 1):
            return f"{label}shape {list(other)}, expected {list(shape)}"
        if check == "shape" or x.size == 0:
            continue
        if check == "random":
            spread = 7.0 / math.sqrt(x.size)
            if abs(x.mean() - y.mean()) > spread * (x.std() + 1e-9) * 1.5 or abs(x.std() - y.std()) > 1.5 * spread * (x.std() + 1e-9):
                return f"{label}mean {y.mean():.4g} and spread {y.std():.4g}, expected {x.mean():.4g} and {x.std():.4g}"
            continue
        if check == "abs":
            x, y = np.abs(x), np.abs(y)
        finite = np.isfinite(x)
        if not np.array_equal(finite, np.isfinite(y)):
            return f"{label}finite in other places"
        x, y = x[finite], y[finite]
        if x.size == 0:
            continue
        if check == "alike":
            likeness = float(np.corrcoef(x, y)[0, 1])
            if likeness < 0.99:
                return f"{label}its correlation is {likeness:.3f}, expected at least 0.99"
            continue
        error, scale = np.abs(x - y), np.abs(x).max()
        bad = error > tol * np.abs(x) + (0.3 if low_precision else 0.1) * tol * scale + 1e-12
        if bad.sum() > (0.01 * x.size if low_precision else 0):
            at = int(np.argmax(error))
            return f"{label}{y[at]:.6g}, expected {x[at]:.6g} ({int(bad.sum())} of {x.size} compared elements off)"
    return None


def find_wrong(samples, check, tol, low_precision):
    """Which roles disagree with the majority; a tie is decided in favour of the peers."""
    roles = sorted(samples, key=lambda r: (r == "oar", r != "torch", r))
    if len(roles) < 2:
        return {}
    votes = {r: sum(differs(samples[r], samples[o], check, tol, low_precision) is None for o in roles if o != r) for r in roles}
    reference = max(roles, key=lambda r: votes[r])
    wrong = {}
    for role in roles:
        if role != reference:
            why = differs(samples[reference], samples[role], check, tol, low_precision)
            if why:
                wrong[role] = f"against {reference}: {why}"
    return wrong
