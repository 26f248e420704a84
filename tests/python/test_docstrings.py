"""Every public function, class and method has a docstring with an example, and the examples give what they show."""

import doctest
import importlib.util
import inspect
import os
import re
import shutil
import types

import numpy as np
import pytest

import oar
import oar.utils.cpp_extension  # loaded on first use
import oar.vision.models  # the same

oar._lazy_names.load_all()

# Paddle's inner names, for programs that reach below the public interface. Their docstrings need no example.
INNER = {"oar.base", "oar.common_ops_import", "oar.core", "oar.framework", "oar.pir", "oar.pir_utils"}
# Readers of older programs: an example would need the files.
INNER |= {f"oar.dataset.{name}" for name in ("cifar", "conll05", "imdb", "imikolov", "mnist", "movielens", "uci_housing", "wmt14", "wmt16")}
# Their examples need a compiler, and setuptools, which a user may not have.
NEED_COMPILER = {"oar.utils.cpp_extension.load"}
NEED_SETUPTOOLS = {f"oar.utils.cpp_extension.{name}" for name in ("BuildExtension", "CppExtension", "setup")}


def _is_namespace(module: types.ModuleType, parent: types.ModuleType, name: str) -> bool:
    """Whether users find functions there: a folder or a top module of the package, or what its parent lists."""
    if name in getattr(parent, "__all__", ()):
        return True
    child = module.__name__ == f"{parent.__name__}.{name}"
    return child and (parent is oar or hasattr(module, "__path__"))


def _namespaces() -> dict[str, types.ModuleType]:
    found, todo = {}, [("oar", oar)]
    while todo:
        path, module = todo.pop()
        if path in found or path in INNER:
            continue
        found[path] = module
        for name, value in list(vars(module).items()):
            if isinstance(value, types.ModuleType) and not name.startswith("_") and _is_namespace(value, module, name):
                todo.append((f"{path}.{name}", value))
    return dict(sorted(found.items()))


def _is_ours(value) -> bool:
    return callable(value) and (isinstance(value, oar._C.OpFunction) or str(value.__module__).startswith("oar"))


def _public_objects() -> dict[str, object]:
    """Functions and classes by the first path under which users find them."""
    paths: dict[int, str] = {}
    found = {}
    for space, module in _namespaces().items():
        for name in getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]:
            value = getattr(module, name)
            if not isinstance(value, types.ModuleType) and _is_ours(value) and id(value) not in paths:
                paths[id(value)] = f"{space}.{name}"
                found[f"{space}.{name}"] = value
    return found


def _tensor_members() -> dict[str, object]:
    return {name: inspect.getattr_static(oar.Tensor, name) for name in dir(oar.Tensor) if not name.startswith("_")}


OBJECTS = _public_objects()
METHODS = {f"oar.Tensor.{name}": member for name, member in _tensor_members().items() if callable(member)}


def test_the_walk_finds_the_package():
    spaces = _namespaces()
    for space in ("oar", "oar.nn", "oar.nn.functional", "oar.nn.initializer", "oar.nn.utils", "oar.optimizer",
                  "oar.optimizer.lr", "oar.io", "oar.jit", "oar.static", "oar.static.nn", "oar.linalg", "oar.metric",
                  "oar.amp", "oar.autograd", "oar.func", "oar.distributed", "oar.incubate", "oar.vision.ops", "oar.vision.models"):
        assert space in spaces, space
    assert len(OBJECTS) > 900 and len(METHODS) > 300


def _own_doc(value) -> str:
    """The docstring that was written for the object itself: a subclass does not borrow its parent's."""
    doc = vars(value).get("__doc__") if isinstance(value, type) else value.__doc__
    return inspect.cleandoc(doc) if doc else ""


@pytest.mark.parametrize("kind", ["objects", "methods"])
def test_everything_public_has_an_example(kind):
    every = OBJECTS if kind == "objects" else METHODS
    without = [path for path, value in every.items() if ">>>" not in _own_doc(value)]
    assert not without, (f"{without} have no example. Write one under 'Examples:' in the docstring; for an op, add it to "
                         "python/oar/_docs/examples/<family>.txt.")  # fmt: skip


def test_every_member_of_tensor_is_described():
    assert [name for name, member in _tensor_members().items() if not (member.__doc__ or "").strip()] == []


def _members(value: type) -> dict[str, object]:
    """The public methods and properties that a class itself defines."""
    kinds = (types.FunctionType, staticmethod, classmethod, property)
    return {name: member for name, member in vars(value).items()
            if not name.startswith("_") and isinstance(member, kinds)}  # fmt: skip


def test_methods_of_classes_are_described():
    """By their own docstring, or by that of the method they override."""
    silent = []
    for path, value in OBJECTS.items():
        for name, member in _members(value).items() if isinstance(value, type) else ():
            bound = member if isinstance(member, property) else getattr(value, name)
            if not inspect.getdoc(bound):
                silent.append(f"{path}.{name}")
    assert not silent


def _arguments(value) -> list[str]:
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # native methods
        return []
    return [p.name for p in parameters if p.name not in ("self", "name", "args", "kwargs")]


def test_docstrings_name_every_argument():
    """In a list under 'Args:', or in the text: ``x`` or x."""
    silent = {}
    for path, value in OBJECTS.items():
        lacking = [a for a in _arguments(value) if not re.search(rf"\b{re.escape(a)}\b", _own_doc(value))]
        refers = re.search(r"arguments are those of|other arguments are|see ``", _own_doc(value))
        if lacking and not refers and not (isinstance(value, type) and "__init__" not in vars(value)):
            silent[path] = lacking
    assert not silent


def test_arguments_of_ops_are_explained():
    unexplained = []
    for path, value in {**OBJECTS, **METHODS}.items():
        if isinstance(value, oar._C.OpFunction):
            listed = re.findall(r"^    (\w+) \([^)]*\):? ?(.*)$", _own_doc(value), re.MULTILINE)
            unexplained += [f"{path}: {name}" for name, meaning in listed if not meaning and name != "name"]
    assert not unexplained, f"add these names to python/oar/_docs/arguments.txt: {unexplained}"


def test_docstring_of_an_op_of_a_user():
    op = oar.utils.register_op("doc_test_op(Tensor x, int[]? k = None) -> (Tensor a, Tensor b)", lambda x, k: [x, x], brief="Twice x.")
    assert op.__doc__ == """Twice x.

Args:
    x (Tensor)
    k (list of ints or int or None, default None)

Returns:
    a tuple: a, b.

Schema: doc_test_op(Tensor x, int[]? k = None) -> (Tensor a, Tensor b)"""


# ---- Examples run --------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?(?![\w])", re.IGNORECASE)


class _Checker(doctest.OutputChecker):
    """The same text, in which floats may differ in the last digits: kernels differ between processors."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        spaced = [" ".join(_NUMBER.sub("#", text).split()) for text in (want, got)]
        if spaced[0].replace(" ", "") != spaced[1].replace(" ", ""):
            return False
        wanted, found = ([float(n) for n in _NUMBER.findall(text)] for text in (want, got))
        return np.allclose(wanted, found, rtol=2e-5, atol=2e-6)


def _run_examples(path: str, doc: str) -> str:
    """What went wrong, as text."""
    test = doctest.DocTestParser().get_doctest(doc, {"__name__": "__main__"}, path, None, None)
    said: list[str] = []
    doctest.DocTestRunner(_Checker(), verbose=False).run(test, out=said.append)
    return "".join(said)


@pytest.fixture
def clean_state(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    yield
    oar.disable_static()
    oar.set_default_dtype("float32")
    oar.set_printoptions(precision=8)


def _groups() -> dict[str, list[tuple[str, str]]]:
    """The examples by namespace. A method that is a function of the package has the same docstring."""
    seen, groups = set(), {}
    for path, value in {**OBJECTS, **METHODS}.items():
        doc = _own_doc(value)
        if ">>>" in doc and doc not in seen:
            seen.add(doc)
            groups.setdefault(path.rpartition(".")[0], []).append((path, doc))
    return groups


GROUPS = _groups()


def _lacks_what_it_needs(path: str) -> bool:
    if path in NEED_COMPILER:
        chosen = os.environ.get("CXX", "").split()[:1]
        return not any(map(shutil.which, chosen or ("c++", "g++", "clang++")))
    return path in NEED_SETUPTOOLS and importlib.util.find_spec("setuptools") is None


def test_what_examples_need_is_known():
    assert NEED_COMPILER | NEED_SETUPTOOLS <= OBJECTS.keys()


@pytest.mark.parametrize("space", GROUPS)
def test_examples_give_what_they_show(space, clean_state):
    failures = []
    for path, doc in GROUPS[space]:
        if _lacks_what_it_needs(path):
            continue
        failures.append(_run_examples(path, doc))
        oar.disable_static()
    assert not any(failures), "\n".join(filter(None, failures))
