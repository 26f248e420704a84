"""Wrong arguments of every op: an error of the right class that names the op, never a crash. And signatures."""

import inspect
import pickle
import re

import oar
from oar._schema_types import python_type
from registry.records import DTYPES, INTS, RECORDS, SAMPLED, Trait, each, replaced, tensors_of
from registry.tally import Tally

CLASSES = (TypeError, ValueError, IndexError)


def base_dtype(record):
    return next(d for d in ("float32", "complex64", "int64", "bool") if d in record.allowed())


def arguments(record):
    return record.samples(base_dtype(record))[0]


def check_fails(record, args, kwargs, what, classes=CLASSES):
    try:
        result = record.function(*args, **kwargs)
    except classes as error:
        assert f"[{record.name}]" in str(error), f"{what}: the error does not name {record.name}: {error}"
        return
    except Exception as error:  # noqa: BLE001
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from None
    raise AssertionError(f"{what}: no error, but {result!r}")


@each(SAMPLED)
def test_bad_arguments(record):
    args = arguments(record)
    tally = Tally(record)

    def attempt(what, given, kwargs=None, classes=CLASSES):
        with tally.sample(what):
            check_fails(record, given, kwargs or {}, what, classes)
            tally.add(1)

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
    tally.close()


def refused(record):
    """The dtypes that the op does not take, other than integers that become floats first."""
    turned = set(INTS) | {"bool"} if "float" in record.dtypes and record.has(Trait.FLOAT_MATH) else set()
    return [d for d in DTYPES if d not in record.allowed() and d not in turned]


@each(r for r in SAMPLED if refused(r) and r.types[0].startswith("Tensor"))
def test_dtypes_it_does_not_take(record):
    tally = Tally(record)
    for dtype in refused(record):
        args = arguments(record)
        own = tensors_of(args[:1])[0].dtype
        changed = [t.astype(dtype) if t.dtype == own or record.has(Trait.PROMOTE) else t for t in tensors_of(args)]
        with tally.sample(f"dtype {dtype}"):
            check_fails(record, replaced(args, changed), {}, f"dtype {dtype}")
            tally.add(1)
    tally.close()


@each(RECORDS)
def test_signature(record):
    signature = inspect.signature(record.function)
    assert [name for name in signature.parameters if name != "out"][-1] == "name"
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


@each(r for r in SAMPLED if arguments(r))
def test_keywords(record):
    """Every argument may be given by name."""
    tally = Tally(record)
    args = arguments(record)
    if record.traits & record.traits.RANDOM:
        oar.seed(1)
    one = record.function(**dict(zip(record.parameters, arguments(record))), name=None)
    if record.traits & record.traits.RANDOM:
        oar.seed(1)
    other = record.function(*args)
    one, other = (list(r) if isinstance(r, (list, tuple)) else [r] for r in (one, other))
    assert len(one) == len(other)
    for a, b in zip(one, other):
        assert a.shape == b.shape and a.dtype == b.dtype and bytes(a.numpy()) == bytes(b.numpy())
        tally.add(a.size)
    tally.close()
