"""Scenarios that run twice, with plain functions and with captured ones, and must not differ.

A scenario is a generator. It gets ``static``, which captures a function or leaves it as it is, defines functions,
changes something outside between calls, and yields whatever a caller could see: results, lists, attributes,
errors. After every step both runs are compared: values, dtypes, the structure in Python, which objects are one and the
same, what was printed, the gradients of all inputs, and the parameters, gradients and buffers of what is watched.

    @side_by_side
    def test_an_attribute(static, x):
        c = Box(s=1.0)
        f = static(lambda t: t * c.s)
        for c.s in (1.0, 1.0, 2.0, 1.0):
            yield f(x())
"""

import collections
import contextlib
import enum
import functools
import inspect
import io
import os
import pathlib
import random
import types

import numpy as np
import pytest

import oar
from oar.jit import capture_counts, to_static

__all__ = ["Box", "assert_whole", "over_values", "raised", "run_side_by_side", "side_by_side", "snapshot"]


class Box:
    """An object with the attributes that it is given."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def raised(function, *args, message=True, **kwargs):
    """What a call raises, as a value that can be compared; its result, if it raises nothing."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - whatever it is, the other run must raise the same
        return ("raised", type(error).__name__, str(error) if message else None)


class Inputs:
    """Makes the same tensors for both runs, other numbers at every call. Watches layers and tensors."""

    def __init__(self, derivatives):
        self._derivatives, self._made, self._given, self._watched = derivatives, 0, [], []

    def __call__(self, *shape, fill=None, dtype="float32", grad=None):
        self._made += 1
        shape = shape or (2, 3)
        values = np.random.default_rng(self._made).uniform(-2, 2, shape) if fill is None else np.full(shape, fill)
        tensor = oar.to_tensor(values.astype(dtype))
        if "float" in dtype:
            tensor.stop_gradient = not (self._derivatives if grad is None else grad)
        self._given.append(tensor)
        return tensor

    def watch(self, *owners):
        """Layers, or tensors, whose values and gradients are compared after every step."""
        self._watched.extend(owners)

    def of_step(self):
        given, self._given = self._given, []
        return given

    def watched(self):
        found = []
        for owner in self._watched:
            if isinstance(owner, oar.Tensor):
                found.append((owner, owner.grad))
            else:
                found.append([(name, p, p.grad) for name, p in owner.named_parameters()])
                found.append(list(owner.named_buffers()))
        return found


# what a caller can see ---------------------------------------------------------------------------


def snapshot(value, seen=None):
    """A copy of a value that later writes do not reach. An object that comes again is the number of its first place."""
    seen = {} if seen is None else seen
    if value is None or isinstance(value, (bool, range, slice)):
        return type(value).__name__, value
    for plain in (int, float, complex, str, bytes):
        if isinstance(value, plain) and not isinstance(value, enum.Enum):
            return type(value).__name__, plain(value)
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType)):
        return "named", getattr(value, "__qualname__", None) or value.__name__
    if not isinstance(value, (tuple, frozenset, np.generic)):  # equal ones are as good as one
        if id(value) in seen:
            return "the same as", seen[id(value)][0]
        seen[id(value)] = len(seen), value  # held, so that no other object gets its id
    return _snapshot_of_object(value, functools.partial(snapshot, seen=seen))


def _snapshot_of_object(value, inner):
    kind = type(value).__name__
    if isinstance(value, oar.Tensor):
        return "Tensor", str(value.dtype), list(value.shape), value.stop_gradient, _contents(value)
    if isinstance(value, np.ndarray):
        return kind, str(value.dtype), list(value.shape), value.copy()
    if isinstance(value, np.generic):
        return kind, value.item()
    if isinstance(value, enum.Enum):
        return kind, value.name
    if isinstance(value, (list, tuple, collections.deque)):
        return kind, [inner(v) for v in value], _attributes(value, inner)
    if isinstance(value, dict):
        return kind, [(inner(k), inner(v)) for k, v in value.items()], _attributes(value, inner)
    if isinstance(value, (set, frozenset)):
        return kind, sorted((inner(v) for v in value), key=repr)
    if isinstance(value, BaseException):
        return kind, str(value)
    return kind, _attributes(value, inner)


def _attributes(value, inner):
    return [(k, inner(v)) for k, v in getattr(value, "__dict__", {}).items() if not k.startswith("_")]


def _contents(tensor):
    with oar.no_grad():
        plain = tensor.detach()
        return (plain.astype("float32") if plain.dtype in (oar.bfloat16, oar.float16) else plain).numpy().copy()


def differences(got, want, where="", rtol=1e-5, atol=1e-6):
    """The first place in which two snapshots differ, in words."""
    if isinstance(want, np.ndarray) and isinstance(got, np.ndarray):
        if got.shape == want.shape and np.allclose(got, want, rtol=rtol, atol=atol, equal_nan=want.dtype.kind in "fc"):
            return None
        return f"{where}: got {_short(got.tolist())}, eager mode gives {_short(want.tolist())}"
    if isinstance(want, (list, tuple)) and type(got) is type(want) and len(got) == len(want):
        found = (differences(g, w, f"{where}[{i}]", rtol, atol) for i, (g, w) in enumerate(zip(got, want)))
        return next((f for f in found if f), None)
    if isinstance(want, float) and type(got) is type(want):
        same = np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    else:
        same = type(got) is type(want) and got == want
    return None if same else f"{where}: got {_short(got)}, eager mode gives {_short(want)}"


def _short(value):
    text = repr(value)
    return text if len(text) < 400 else text[:400] + " ..."


# the two runs --------------------------------------------------------------------------------------


def _tensors(value, found, seen):
    """The tensors in a result that gradients can start from."""
    if id(value) in seen:
        return found
    seen[id(value)] = value
    if isinstance(value, oar.Tensor):
        if not value.stop_gradient:
            found.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _tensors(item, found, seen)
    elif isinstance(value, (list, tuple, set, collections.deque)):
        for item in value:
            _tensors(item, found, seen)
    if not isinstance(value, (oar.Tensor, oar.nn.Layer, type)):
        for item in getattr(value, "__dict__", {}).values():
            _tensors(item, found, seen)
    return found


def backward(result):
    roots = [t.astype("float32") for t in _tensors(result, [], {})]
    try:
        if roots:
            sum((t * (t + 0.5)).sum() for t in roots).backward()
    except RuntimeError as error:  # a graph that an earlier step has used up
        return type(error).__name__
    return None


def _steps(scenario, static, derivatives, fixtures):
    oar.seed(7), random.seed(7), np.random.seed(7)
    inputs = Inputs(derivatives)
    known = {"static": static, "x": inputs, **fixtures}
    steps = scenario(**{name: known[name] for name in inspect.signature(scenario).parameters})
    while True:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                result = next(steps)
            except StopIteration:
                return
        given = inputs.of_step()
        made = snapshot((result, given))
        failed = backward(result) if derivatives else None
        gradients = failed, snapshot([t.grad for t in given]), snapshot(inputs.watched())
        yield made, gradients, printed.getvalue()


@contextlib.contextmanager
def _fixtures(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        found = os.environ.copy()
        try:
            yield {"patch": patch, "folder": folder}
        finally:
            for name in set(os.environ) - set(found):
                del os.environ[name]
            os.environ.update(found)


def run_side_by_side(scenario, derivatives=False, folder=pathlib.Path("."), rtol=1e-5):
    """Runs both, compares them step by step, and returns how the captured functions ran."""
    captured = []

    def static(function):
        made = to_static(function)
        captured.append(made)
        return made

    with _fixtures(folder / "eager") as fixtures:
        wanted = list(_steps(scenario, lambda function: function, derivatives, fixtures))
    assert wanted, "the scenario yields nothing to compare"
    count = 0
    with _fixtures(folder / "captured") as fixtures:
        for got, want in zip(_steps(scenario, static, derivatives, fixtures), wanted):
            count += 1
            for part, g, w in zip(("result", "gradients", "printed"), got, want):
                found = differences(g, w, part, rtol)
                assert found is None, f"step {count}: {found}"
    assert count == len(wanted), f"the captured run ended after {count} of {len(wanted)} steps"
    return [capture_counts(f) for f in captured]


def side_by_side(scenario):
    """Makes a test of a scenario: once with values alone, once with gradients."""

    @pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
    def test(derivatives, tmp_path):
        run_side_by_side(scenario, derivatives, tmp_path)

    test.__name__ = test.__qualname__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    return test


def assert_whole(scenario):
    """The same for a scenario whose functions must each run as one program at every call."""

    @pytest.mark.parametrize("derivatives", [False, True], ids=["values", "gradients"])
    def test(derivatives, tmp_path):
        for counts in run_side_by_side(scenario, derivatives, tmp_path):
            assert counts["whole"] > 0 and counts["segments"] == counts["eager"] == 0, counts

    test.__name__ = test.__qualname__ = scenario.__name__
    test.__doc__ = scenario.__doc__
    return test


# Values of many sizes and signs: every branch is taken, and loops run from never to often.
_FILLS = (1.0, -1.0, 0.5, 0.0, 3.0, -0.25, 1.0, 8.0, -1.0)
_ROWS = (3, 4, 5)


def over_values(function, reset=None):
    """A scenario that calls a function with tensors of many values, then of other sizes."""

    def scenario(static, x):
        if reset is not None:
            reset()
        f = static(function)
        for fill in _FILLS:
            yield raised(f, x(2, 3, fill=fill)), raised(f, x(2, 3) * 0.1 + x(2, 3, fill=fill))
        for rows in _ROWS:
            yield raised(f, x(rows, 3))

    return scenario


over_values.calls = 2 * len(_FILLS) + len(_ROWS)
