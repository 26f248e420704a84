"""Writes type stubs for ops, and for what the package puts together while it is imported.

The modules `oar` and `oar.nn.functional` take ops from the registry, and Tensor takes methods from many files;
type checkers and editors see neither in the sources. So the built package is imported, and each name is traced
to the place that defines it. Writes only files whose content changed.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import types
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from schema import Op, Parameter, Result  # noqa: E402

HEAD = "# Generated from the built package. Do not edit.\n"
TYPES = {"Tensor": "Tensor", "bool": "_bool | Tensor", "int": "IntLike", "float": "FloatLike",
         "Scalar": "Number | Tensor", "str": "str", "dtype": "DTypeLike", "shape": "ShapeLike", "program": "object"}
LISTS = {"Tensor": "Sequence[Tensor]", "int": "IntsLike", "float": "Sequence[FloatLike]", "program": "Sequence[object]"}
# Names of ops hide those of builtins, so annotations use other names for those.
OPS_HEAD = HEAD + '''import builtins as _builtins
from collections.abc import Sequence
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias
import numpy as _np
import numpy.typing as _npt
from oar._C import Tensor as Tensor, dtype as _dtype

# The other stubs use these too; a plain import would not give them out.
_bool: TypeAlias = _builtins.bool
_complex: TypeAlias = _builtins.complex
_int: TypeAlias = _builtins.int
IntLike: TypeAlias = SupportsIndex
IntsLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | Tensor
FloatLike: TypeAlias = float | SupportsFloat
ShapeLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | Tensor
Number: TypeAlias = _bool | int | float | _complex | _np.number[Any] | _np.bool_
TensorLike: TypeAlias = Tensor | Number | _npt.NDArray[Any]
DTypeLike: TypeAlias = str | _dtype | type[float] | type[int] | type[_bool] | _np.dtype[Any] | type[_np.generic]
'''


def annotation(op: Op, p: Parameter) -> str:
    if p.list:
        kind = "Sequence[Tensor | None]" if p.optional_elements else LISTS[p.type]
    elif p.type == "Tensor" and not p.written and "Broadcast" in op.traits:
        kind = "TensorLike"
    else:
        kind = TYPES[p.type]
    return kind + (" | None" if p.optional else "")


def default(p: Parameter) -> str:
    if p.default is None:
        return ""
    return f" = {p.default!r}" if p.type == "dtype" and p.default != "None" else f" = {p.default}"


def signature(op: Op, method: bool) -> str:
    parts = ["self"] if method else []
    parts += [f"{p.name}: {annotation(op, p)}{default(p)}" for p in op.visible[1 if method else 0:]]
    parts.append("name: str | None = None")
    if len(op.results) == 1 and not op.results[0].list and not any(p.written or p.name == "out" for p in op.parameters):
        parts += ["*", "out: Tensor | None = None"]
    if len(op.results) > 1:
        result = "tuple[" + ", ".join("Tensor" for _ in op.results) + "]"
    else:
        result = "list[Tensor]" if op.results[0].list else "Tensor"
    return f"def {op.name}({', '.join(parts)}) -> {result}:"


def definition(op: Op, method: bool, indent: str) -> list[str]:
    brief = op.brief.replace("\\", "\\\\").replace('"""', "'''")
    return [indent + signature(op, method), f'{indent}    """{brief}"""', indent + "    ..."]


def is_method(op: Op) -> bool:
    from oar import _C

    return vars(_C.Tensor).get(op.name) is _C.op(op.name)


def ops_stub(ops: list[Op]) -> str:
    """Every op, and the methods of Tensor that are ops."""
    lines = [OPS_HEAD]
    for op in ops:
        lines += definition(op, False, "")
    lines += ["", "class TensorOps:", '    """Methods of Tensor that are ops."""']
    for op in ops:
        if is_method(op):
            lines += definition(op, True, "    ")
    return "\n".join(lines) + "\n"


def registered_ops() -> list[Op]:
    """The records of the ops, as the library itself has them."""
    from oar import _C

    ops = []
    for record in _C.op_records():
        function = _C.op(record["name"])
        op = Op(record["family"], record["name"], schema=record["schema"], results=[Result(**r) for r in function.results])
        op.parameters = [Parameter(**{key: p[key] for key in p if key != "text"}) for p in function.parameters]
        op.python, op.brief = record["python"] or "", record["brief"] or ""
        op.brief = "In place: " + op.brief if record["inplace_of"] else op.brief
        annotations = [p.annotation for p in function.__signature__.parameters.values()]
        op.traits = {"Broadcast"} if "Tensor | float" in annotations else set()
        ops.append(op)
    return ops


# Types of parameters that a function leaves open, by the names that they have all over the package.
GUESSES = {"dtype": "DTypeLike | None", "name": "str | None", "shape": "ShapeLike", "axis": "IntsLike | None"}
PLAIN = {"Tensor", "str", "int", "float", "bool", "complex", "None", "list", "tuple"}


def open_type(text: str) -> str:
    """An annotation with the names that a stub imports as `_t`."""
    words = re.findall(r"[A-Za-z]\w*", text)
    if not set(words) <= PLAIN:
        return "Any"
    own = {"Tensor": "_t.Tensor", "bool": "_t._bool", "complex": "_t._complex", "int": "_t._int"}
    return re.sub(r"[A-Za-z]\w*", lambda word: own.get(word[0], word[0]), text)


def parameter_type(p: inspect.Parameter) -> str:
    if isinstance(p.annotation, str):
        return open_type(p.annotation.replace("builtins.", ""))
    if p.name in GUESSES:
        guess = re.sub(r"\b(\w+Like)\b", r"_t.\1", GUESSES[p.name])
        return guess + (" | None" if p.default is None and "None" not in guess else "")
    return {bool: "_t._bool", str: "str"}.get(type(p.default), "Any")


def open_definition(name: str, function: Any, method: bool) -> str | None:
    """A definition with types for a function that leaves some open; None for one that has them all."""
    if not inspect.isfunction(inspect.unwrap(function)):
        return None
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1 if method else 0:]
    empty = inspect.Parameter.empty
    if signature.return_annotation is not empty and all(p.annotation is not empty for p in parameters):
        return None
    parts = ["self"] if method else []
    for p in parameters:
        sign = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind == p.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(f"{sign}{p.name}: {parameter_type(p)}" + ("" if p.default is empty else " = ..."))
    returns = signature.return_annotation
    result = open_type(returns.replace("builtins.", "")) if isinstance(returns, str) else "Any"
    return f"def {name}({', '.join(parts)}) -> {result}: ..."


def defining_place(value: Any) -> tuple[str, str] | None:
    """The module and the name under which a function or class can be imported."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not module or not name or not module.startswith("oar"):
        return None
    return (module, name) if getattr(sys.modules.get(module), name, None) is value else None


def origin(package: types.ModuleType, name: str, value: Any) -> tuple[str, str] | None:
    """Where a name of a package comes from: a module and a name in it."""
    from oar import _C

    if isinstance(value, types.ModuleType):
        parent, _, last = value.__name__.rpartition(".")
        if parent == package.__name__ and last == name:
            return ".", name
        return (parent, last) if parent.partition(".")[0] == "oar" else None
    if isinstance(value, _C.OpFunction):
        return "oar._ops", value.__name__
    if isinstance(value, _C.dtype):
        return "oar._C", value.name
    if getattr(_C, name, None) is value:
        return "oar._C", name
    place = defining_place(value)
    return None if place is not None and place[0] == package.__name__ else place


def collecting_packages() -> list[types.ModuleType]:
    """Packages that define nothing themselves: all of their public names come from elsewhere."""
    from oar import _C

    def is_own(value: Any, package: str) -> bool:
        if not isinstance(value, (type, types.FunctionType, _C.SpelledFunction)) or getattr(_C, value.__name__, None) is value:
            return False
        return value.__module__ == package

    packages = []
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] != "oar" or not hasattr(module, "__path__"):
            continue
        public = [getattr(module, n) for n in getattr(module, "__all__", dir(module)) if not n.startswith("_")]
        if not any(is_own(value, name) for value in public):
            packages.append(module)
    return packages


def package_stub(package: types.ModuleType) -> str:
    """Every public name of a package, imported from where it is defined."""
    imported: dict[str, list[str]] = {}
    others = []
    for name in sorted(n for n in dir(package) if not n.startswith("_")):
        value = getattr(package, name)
        found = origin(package, name, value)
        definition = open_definition(name, value, False) if found is not None else None
        if definition is not None:
            others.append(definition)
        elif found is not None:
            imported.setdefault(found[0], []).append(f"{found[1]} as {name}")
        elif not isinstance(value, types.ModuleType) and not callable(value):
            others.append(f"{name}: Any")
    lines = [HEAD, "from typing import Any", "import oar._ops as _t"]
    for module, names in sorted(imported.items()):
        lines.append(f"from {module} import (\n    " + ",\n    ".join(names) + ",\n)")
    return "\n".join(lines + others + ["__version__: str"]) + "\n"


def method_line(name: str, value: Any) -> tuple[str, str] | None:
    """The module of a method that is written in Python, and its line in the class."""
    if isinstance(value, property):
        returns = value.fget.__annotations__.get("return")
        simple = returns if returns in ("Tensor", "int", "str") and value.fset is None else None
        return "", f"    @property\n    def {name}(self) -> {simple}: ..." if simple else f"    {name}: Any"
    definition = open_definition(name, value, True)
    if definition is not None:
        return "", "    " + definition
    place = defining_place(value)
    return ("", f"    {name}: Any") if place is None else (place[0], f"    {name} = {place[0]}.{place[1]}")


def tensor_stub() -> str:
    """The methods of Tensor that are Python functions or second names, in a class that the stub of Tensor inherits from."""
    from oar import _C

    modules, lines = set(), []
    for name, value in sorted(vars(_C.Tensor).items()):
        if name.startswith("_"):
            continue
        if isinstance(value, _C.OpFunction) and value.__name__ != name:  # a second name of an op
            lines.append(f"    {name} = _t.TensorOps.{value.__name__}")
            continue
        if not (inspect.isfunction(inspect.unwrap(value)) or isinstance(value, property)):
            continue
        module, line = method_line(name, value)
        modules.add(module)
        lines.append(line)
    imports = [f"import {module}" for module in sorted(modules - {""})]
    return "\n".join([HEAD, "from typing import Any", *imports,
                      "import oar._ops as _t", "from oar._C import Tensor", "", "class TensorMethods:", *lines]) + "\n"


def write(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True, help="the folder that holds the package oar")
    parser.add_argument("--out", type=Path, required=True, help="where the stubs go")
    options = parser.parse_args()
    sys.path.insert(0, str(options.package))
    import oar

    oar._lazy_names.load_all()  # the stubs know every part
    stubs = {Path("_ops.pyi"): ops_stub(registered_ops()), Path("_methods.pyi"): tensor_stub()}
    for package in collecting_packages():
        stubs[Path(*package.__name__.split(".")[1:], "__init__.pyi")] = package_stub(package)
    for path, text in stubs.items():
        write(options.out / path, text)
    for path in options.out.rglob("*.pyi"):
        if path.relative_to(options.out) not in stubs:
            path.unlink()


if __name__ == "__main__":
    main()
