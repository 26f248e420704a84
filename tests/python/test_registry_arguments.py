"""Wrong arguments of every op: an error of the right class that names the op, never a crash. And signatures."""

import inspect
import pickle
import re

import pytest

import oar
from oar._schema_types import python_type
from registry.records import DTYPES, RECORDS, Trait, each

CLASSES = (TypeError, ValueError, IndexError)


def base_dtype(record):
    return next(d for d in ("float32", "complex64", "int64", "bool") if d in record.allowed())


def arguments(record):
    samples = record.samples(base_dtype(record))
    return samples[0] if samples else None


def check_fails(record, args, kwargs, what, classes=CLASSES):
    try:
        result = record.function(*args, **kwargs)
    except classes as error:
        assert f"[{record.name}]" in str(error), f"{what}: the error does not name {record.name}: {error}"
        return
    except Exception as error:  # noqa: BLE001
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from None
    raise AssertionError(f"{what}: no error, but {result!r}")


@each(RECORDS)
def test_bad_arguments(record):
    args = arguments(record)
    if args is None:
        pytest.skip("no samples")
    bad = []

    def attempt(what, given, kwargs=None, classes=CLASSES):
        try:
            check_fails(record, given, kwargs or {}, what, classes)
        except AssertionError as error:
            bad.append(str(error))

    for i, (name, kind) in enumerate(zip(record.parameters, record.types)):
        if not kind.startswith("Tensor"):
            continue
        if not kind.endswith("?"):
            attempt(f"None for {name}", [*args[:i], None, *args[i + 1:]], classes=TypeError)
        attempt(f"a string for {name}", [*args[:i], "text", *args[i + 1:]], classes=TypeError)
        attempt(f"an object for {name}", [*args[:i], object(), *args[i + 1:]], classes=TypeError)
    attempt("an unknown keyword", args, {"no_such_argument": 1}, TypeError)
    attempt("too many arguments", [*args, None, 1, 2], classes=TypeError)
    if args and record.parameters:
        attempt("an argument given twice", args, {record.parameters[0]: args[0]}, TypeError)
    required = [p for p in list(inspect.signature(record.function).parameters.values())[:-1]
                if p.default in (inspect.Parameter.empty, ...)]
    if required:
        attempt("no arguments", [], classes=TypeError)
    for i, (name, kind) in enumerate(zip(record.parameters, record.types)):
        if kind in ("int", "int?", "float", "bool", "int[]", "shape", "dtype", "dtype?"):
            attempt(f"an object for {name}", [*args[:i], object(), *args[i + 1:]], classes=TypeError)
        if name == "axis" and kind in ("int", "int?"):
            for axis in (1000, -1000):
                attempt(f"axis={axis}", [*args[:i], axis, *args[i + 1:]])
        if name == "axis" and kind in ("int[]", "int[]?"):
            attempt("axis=[1000]", [*args[:i], [1000], *args[i + 1:]])
    assert not bad, f"{len(bad)} wrong\n" + "\n".join(bad)


@each(r for r in RECORDS if r.dtypes and set(DTYPES) - set(r.allowed()) and arguments(r)
      and any(t.startswith("Tensor") for t in r.types[:1]))
def test_dtypes_it_does_not_take(record):
    for dtype in set(DTYPES) - set(record.allowed()):
        if dtype in ("bool", "uint8", "int8", "int16", "int32", "int64") and "float" in record.dtypes and \
                record.traits & record.traits.FLOAT_MATH:
            continue  # made a float first
        for args in record.samples(dtype)[:1]:
            if isinstance(args[0], oar.Tensor) and args[0].dtype.name == dtype:
                check_fails(record, args, {}, f"dtype {dtype}")


@each(RECORDS)
def test_signature(record):
    signature = inspect.signature(record.function)
    assert tuple(signature.parameters)[-1] == "name"
    for name, kind in zip(record.parameters, record.types):
        assert re.search(rf"{re.escape(kind)} {name}\b", record.schema), (kind, name)
        assert signature.parameters[name].annotation == python_type(kind, record.has(Trait.BROADCAST)), (kind, name)
        assert not (kind.endswith("?") and signature.parameters[name].default is inspect.Parameter.empty
                    and re.search(rf"\b{name} =", record.schema))
    assert record.function.__name__ == record.name
    assert " ".join(record.brief.split()) in " ".join(record.function.__doc__.split())  # lines are wrapped


@each(RECORDS)
def test_function_can_be_pickled(record):
    assert pickle.loads(pickle.dumps(record.function)) is record.function


@each(r for r in RECORDS if r.python)
def test_function_is_where_it_says(record):
    for place in record.python.split():
        if place == "Tensor":
            assert callable(getattr(oar.Tensor, record.name))
            continue
        module = oar
        for part in place.split(".")[1:]:
            module = getattr(module, part)
        assert callable(getattr(module, record.name)), place


@each(r for r in RECORDS if arguments(r))
def test_keywords(record):
    """Every argument may be given by name."""
    args = arguments(record)
    if record.traits & record.traits.RANDOM:
        oar.seed(1)
    one = record.function(**dict(zip(record.parameters, arguments(record))), name=None)
    if record.traits & record.traits.RANDOM:
        oar.seed(1)
    other = record.function(*args)
    for a, b in zip(*(list(r) if isinstance(r, (list, tuple)) else [r] for r in (one, other))):
        assert a.shape == b.shape and a.dtype == b.dtype and bytes(a.numpy()) == bytes(b.numpy())
