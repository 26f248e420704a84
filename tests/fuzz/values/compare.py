"""How a result is judged.

An element agrees with a reference if both are NaN, both are equal, or they differ by no more than

    TOLERANCE[dtype] * (|wanted| + min(1, size) + size / 1000)      (size: the largest finite number of the reference)

or by no more than 8 times what the reference itself moves when its float operands move by one rounding error of their
dtype: no kernel can do better where a result is ill-conditioned. Integers and bools agree if they are equal, or,
computed from floats, if the reference takes the same value for operands that moved.

The references of an op: its NumPy expression in the widest dtype, the same in the dtype of the call, PyTorch,
PaddlePaddle. An element is right if it agrees with one of them; the tool counts what each of them says. The shape is
that of the reference, the dtype that of the NumPy expression in the dtype of the call.
"""

from __future__ import annotations

import functools
import signal
from contextlib import contextmanager

import numpy as np

import oar
from registry.compare import SMALLEST, TOLERANCE, expected_dtypes, reference, values, wide
from registry.records import BY_NAME, replaced, tensors_of

from .calls import FuzzCall

EPSILON = {"float16": 2.0 ** -11, "bfloat16": 2.0 ** -8, "float32": 2.0 ** -24, "float64": 2.0 ** -53,
           "complex64": 2.0 ** -24, "complex128": 2.0 ** -53}
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895314e38, "float32": 3.4028235e38, "complex64": 3.4028235e38}
UNDERFLOW = {True: 2e-38, False: 1e-303}  # a factor that underflowed in double may have met one of 1e4 and more
USERS = (TypeError, ValueError, IndexError, NotImplementedError, OverflowError, MemoryError)


SECONDS = 0.5  # of processor time for a NumPy expression: some try every path


@contextmanager
def limited():
    """Raises TimeoutError in what runs longer than SECONDS."""
    def stop(*_):
        raise TimeoutError(f"takes more than {SECONDS} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Judged:
    """A call that has run: our results or error, and per result which elements no reference agrees with yet."""

    def __init__(self, call: FuzzCall):
        self.call = call
        self.results: list[np.ndarray] | None = None
        self.dtypes: list[str] = []
        self.error: Exception | None = None
        self.wrong: list[np.ndarray] | None = None  # None: no reference has a result of this form
        self.wanted: list[np.ndarray] = []
        self.says: dict[str, str] = {}  # reference -> "agrees", "differs: why", "refuses: why"
        self.before = [ops_copy(t) for t in tensors_of(call.args)]

    @property
    def args(self) -> list:
        """The operands as they were before the call."""
        return replaced(self.call.args, self.before)

    def as_float32(self) -> list:
        """The operands, those in the dtype of the call as float32."""
        kept = ("int32", "int64") if self.call.dtype in ("int32", "int64") else ()
        return replaced(self.args, [oar._C.ops.cast(t, "float32") if t.dtype.name == self.call.dtype not in kept else t
                                    for t in self.before])

    def run(self) -> None:
        record = self.call.record
        try:
            found = [record.function(*self.call.args)] if record.written is not None else record.call(self.call.args)
            self.results = [values(t) for t in found]
            self.dtypes = [t.dtype.name for t in found]
        except Exception as error:  # noqa: BLE001  (judged below)
            self.error = error

    # references ---------------------------------------------------------------------------------------

    def by_numpy(self) -> None:
        record = self.call.record
        if record.numpy is None and not record.inplace_of:
            return
        try:
            wanted = self._by_expression(self.args, wide)
        except Exception as error:  # noqa: BLE001
            self.says["NumPy"] = f"refuses: {type(error).__name__}: {error}"
            return
        self.take("NumPy", wanted, moved=True)
        if self.says.get("NumPy") != "agrees":
            try:
                self.take("NumPy", self._by_expression(self.args, values), moved=False)
            except Exception:  # noqa: BLE001, S110  (an expression may need wide numbers)
                pass

    def _by_expression(self, args: list, convert) -> list[np.ndarray]:
        record = self.call.record
        with np.errstate(all="ignore"), limited():
            if record.inplace_of is None:
                return reference(record, args, convert)
            target = args[record.written]
            found = reference(BY_NAME[record.inplace_of], args, convert)[0]
            if found.shape != tuple(target.shape):
                raise ValueError(f"a result of shape {found.shape} does not fit")
            return [np.asarray(found).astype(values(target).dtype if target.dtype.name != "bfloat16" else np.float64)]

    def take(self, name: str, wanted: list, moved: bool) -> None:
        """Notes what a reference says. A result that it does not have is None."""
        if self.results is None:
            self.says[name] = "accepts"
            return
        if len(wanted) != len(self.results):
            self._differs(name, f"{len(wanted)} results, we have {len(self.results)}")
            return
        for ours, theirs in zip(self.results, wanted):
            if theirs is not None and tuple(ours.shape) != tuple(theirs.shape):
                self._differs(name, f"shape {list(theirs.shape)}, we have {list(ours.shape)}")
                return
        wrong = [np.zeros(a.shape, bool) if w is None else wrong_elements(a, w, dtype)
                 for a, w, dtype in zip(self.results, wanted, self.dtypes)]
        if moved and any(w.any() for w in wrong):
            wrong = self._allowing_for_moves(wanted, wrong)
        agrees = not any(w.any() for w in wrong)
        self.wrong = wrong if self.wrong is None else [a & b for a, b in zip(self.wrong, wrong)]
        self.wanted = self.wanted or wanted
        if agrees:
            self.says[name] = "agrees"
        else:
            self._differs(name, _worst(self.results, wanted, wrong))

    def _differs(self, name: str, why: str) -> None:
        self.says.setdefault(name, f"differs: {why}")

    def _allowing_for_moves(self, wanted: list, wrong: list) -> list:
        """What is still wrong if operands may move by a rounding error."""
        spread = [np.zeros(w.shape) for w in wanted]
        hit = [np.zeros(w.shape, bool) for w in wanted]
        for seed in range(6):
            try:
                other = self._by_expression(self.args, lambda t, seed=seed: _moved(t, seed))
            except Exception:  # noqa: BLE001, S112
                continue
            for i, (w, o, ours) in enumerate(zip(wanted, other, self.results)):
                if o.shape != w.shape:
                    continue
                with np.errstate(all="ignore"):
                    same = (o == ours) | ((o != o) & (ours != ours))
                    step = np.abs(o.astype(complex) - w.astype(complex)) if w.dtype.kind in "fc" else np.zeros(w.shape)
                hit[i] |= same
                # From a number to infinity or NaN: any value can be right there.
                step = np.where(np.isnan(step), np.inf, step)
                spread[i] = np.maximum(spread[i], np.where((w != w) & (o != o) | (w == o), 0, step))
        allowed = []
        for w, ours, bad, s, h in zip(wanted, self.results, wrong, spread, hit):
            with np.errstate(all="ignore"):
                near = np.abs(ours.astype(complex) - w.astype(complex)) <= 8 * s
            allowed.append(bad & ~h & ~near & ~np.isinf(s))
        return allowed

    # the verdict ------------------------------------------------------------------------------------

    @functools.cached_property
    def dtype_fault(self) -> str | None:
        """The dtype that the NumPy expression has in the dtype of the call, for operands of one dtype."""
        record = self.call.record
        if self.call.mixed or record.numpy is None or record.written is not None or self.says.get("NumPy") != "agrees":
            return None
        try:
            with limited():
                expected = expected_dtypes(record, self.args, self.call.dtype)
        except Exception:  # noqa: BLE001
            return None
        for i, (found, wanted) in enumerate(zip(self.dtypes, expected)):
            if found not in wanted:
                return f"result {i} has dtype {found}, expected {' or '.join(wanted)}"
        return None

    def fault(self) -> str | None:
        """What is wrong with the call, or None."""
        name = self.call.record.name
        if self.error is not None:
            if not isinstance(self.error, USERS):
                return f"an internal error: {type(self.error).__name__}: {self.error}"
            if not str(self.error).startswith(f"[{name}]"):
                return f"the error does not begin with [{name}]: {type(self.error).__name__}: {self.error}"
            return self._refusal()
        differing = [f"{who} {said}" for who, said in self.says.items() if said.startswith("differs")]
        if any(said == "agrees" for said in self.says.values()):
            return self.dtype_fault
        if self.unsettled or not differing or (self.wrong is not None and not any(w.any() for w in self.wrong)):
            return None
        return "; ".join(differing)

    @property
    def unsettled(self) -> bool:
        """A difference at NaN, infinities or extreme numbers that no peer was asked about: NumPy expressions are formulas
        for plain numbers."""
        said = {who: text for who, text in self.says.items() if not text.startswith("refuses")}
        return self.call.special and list(said) == ["NumPy"] and said["NumPy"].startswith("differs")

    def _refusal(self) -> str | None:
        """A call that NumPy and a peer answer should not be an error, unless it is one in Paddle. An op that writes may be
        refused what its functional twin, which they answer for, may do. An op without a public name asks for what the functions
        that use it guarantee, which its expression does not check."""
        record = self.call.record
        accepting = [who for who, said in self.says.items() if said == "accepts"]
        if len(accepting) < 2 or record.inplace_of or not record.python or self.says.get("Paddle", "").startswith("refuses"):
            return None
        return f"refused, though {' and '.join(accepting)} have a result: {self.error}"

    @property
    def compared(self) -> bool:
        return any(said.startswith(("agrees", "differs")) for said in self.says.values())


def ops_copy(t: oar.Tensor) -> oar.Tensor:
    return oar._C.ops.assign(t.detach())


def _moved(t: oar.Tensor, seed: int) -> np.ndarray:
    """The numbers of a tensor, each moved by up to one rounding error."""
    a = wide(t)
    if a.dtype.kind not in "fc":
        return a
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        sign = rng.choice([-1.0, 1.0], a.shape) if seed < 4 else np.full(a.shape, (-1.0) ** seed)
        return a * (1 + EPSILON[t.dtype.name] * sign)


def _rounded(wanted: np.ndarray, dtype: str) -> np.ndarray:
    """What a narrow float cannot hold is infinite there."""
    if dtype not in LARGEST or wanted.dtype.kind not in "fc":
        return wanted
    most = LARGEST[dtype] * (1 + EPSILON[dtype])
    if wanted.dtype.kind == "c":
        return _rounded(wanted.real, dtype) + 1j * _rounded(wanted.imag, dtype)
    return np.where(np.abs(wanted) >= most, np.sign(wanted) * np.inf, wanted)


def wrong_elements(ours: np.ndarray, wanted: np.ndarray, dtype: str) -> np.ndarray:
    if ours.dtype.kind in "iub" and wanted.dtype.kind in "iub":
        with np.errstate(all="ignore"):
            return ours != wanted.astype(ours.dtype)
    with np.errstate(all="ignore"):
        kind = np.complex128 if "c" in (ours.dtype.kind, wanted.dtype.kind) else np.float64
        if ours.dtype.kind in "iu":  # a float of the reference that we keep as an integer
            wanted = np.trunc(wanted.real) if wanted.dtype.kind == "f" else wanted
        a, w = ours.astype(kind), _rounded(wanted.astype(kind), dtype)
        finite = np.isfinite(w)
        size = float(np.max(np.abs(w[finite]), initial=0.0))
        smallest = max(SMALLEST.get(dtype, 0.0), UNDERFLOW[dtype in LARGEST])
        room = TOLERANCE.get(dtype, 0.0) * (np.abs(w) + min(size, 1.0) + 1e-3 * size) + smallest
        near = (np.abs(a - w) <= room) & finite
        same = (a == w) | (np.isnan(a) & np.isnan(w))
        if kind is np.complex128:  # which part of a complex number is infinite is unspecified
            same |= ~np.isfinite(a) & ~finite
        # The largest numbers and infinity are a rounding error apart.
        if dtype in LARGEST:
            edge = LARGEST[dtype] * (1 - 4 * TOLERANCE[dtype])
            same |= (np.abs(a) >= edge) & (np.abs(w) >= edge) & (np.sign(a.real) == np.sign(w.real))
        return ~(same | near)


def _worst(results: list, wanted: list, wrong: list) -> str:
    for i, (a, w, bad) in enumerate(zip(results, wanted, wrong)):
        if w is None or not bad.any():
            continue
        at = tuple(int(n) for n in np.argwhere(bad)[0])
        part = f"result {i}" if len(results) > 1 else "result"
        return f"{part}{list(at)} is {w[at]!r}, ours {a[at]!r} ({int(bad.sum())} of {bad.size})"
    return ""
