"""Ops in the forms that Paddle's inner interfaces give them.

``oar._C_ops`` calls an op with positional arguments, ``Block.append_op`` with named slots of an older generation of
names. Both are read from one table (``table.py``), which says for each op the order of its arguments, their older
names and the function of Oar that does it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any

import oar
from oar import _C
from oar._C import Tensor

__all__ = ["Form", "append", "find", "find_older", "names", "older_names", "put"]

_MISSING = object()
# Attributes that say how Paddle is to carry a call out, or repeat what the tensors say.
_HINTS = {"force_cpu", "in_dtype", "is_test", "place_type", "reduce_all", "str_value", "with_quant_attr",
          "workspace_size_MB"}


class Argument:
    """One argument: its name, its older names, its default, and its name in the function that does the work.

    Written ``name[]:Older|Other=default>target?``: ``[]`` marks lists of tensors, a target that is empty an argument
    without meaning here, ``?`` one whose empty list means None.
    """

    def __init__(self, text: str) -> None:
        self.empty_is_none = text.endswith("?")
        text, marked, target = text.removesuffix("?").partition(">")
        text, given, default = text.partition("=")
        text, _, older = text.partition(":")
        self.many = text.endswith("[]")
        self.name = text.removesuffix("[]")
        self.older = older.split("|") if older else [self.name]
        self.default = ast.literal_eval(default) if given else _MISSING
        self.target = target if marked else self.name

    @property
    def optional(self) -> bool:
        """Whether it has a default."""
        return self.default is not _MISSING

    def read(self, value: Any) -> Any:
        """A value as the function takes it."""
        if self.empty_is_none and isinstance(value, (list, tuple)) and not value:
            return None
        return value


class Form:
    """An op in Paddle's form, callable with its arguments in Paddle's order.

    Written ``name older | argument … -> Result … @ function``; the function is that of the same name unless one is
    given.
    """

    def __init__(self, line: str) -> None:
        head, _, rest = line.partition(" | ")
        rest, _, function = rest.partition(" @ ")
        arguments, _, results = rest.partition("->")
        names = head.split()
        self.name, self.older = names[0], names[-1]
        self.arguments = [Argument(text) for text in arguments.split()]
        self.results = [text.removesuffix("[]") for text in results.split()]
        self.many = [text.endswith("[]") for text in results.split()]
        self.__name__ = self.name
        self._function = function.strip() or self.name

    @functools.cached_property
    def function(self) -> Callable:
        """What does the work."""
        return _function(self._function)

    def calls(self, op: str) -> bool:
        """Whether it only calls this op of the registry."""
        return self._function == f"ops.{op}"

    def older_attributes(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Attributes of the op under their older names; those that Oar does not have hold their defaults."""
        names = {argument.target: argument.older[0] for argument in self.arguments if argument.target}
        unused = {a.older[0]: a.default for a in self.arguments if not a.target and a.optional and a.default is not None}
        return unused | {names.get(key, key): value for key, value in given.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(self.arguments):
            names = ", ".join(a.name for a in self.arguments)
            raise TypeError(
                f"[{self.name}] takes at most {len(self.arguments)} arguments ({names}); {len(args)} were passed."
            )
        given = {a.name: value for a, value in zip(self.arguments, args)}
        unknown = [name for name in kwargs if name in given or all(name != a.name for a in self.arguments)]
        if unknown:
            raise TypeError(f"[{self.name}] the argument {unknown[0]!r} is unknown, or given twice.")
        return self.call(given | kwargs)

    def call(self, given: Mapping[str, Any]) -> Any:
        """The op on arguments by name; those that are missing have their defaults."""
        passed = {}
        for argument in self.arguments:
            value = given.get(argument.name, argument.default)
            if value is not _MISSING and argument.target:
                passed[argument.target] = argument.read(value)
        return self.function(**passed)

    def of_slots(self, inputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by name, from inputs and attributes under their older names."""
        given: dict[str, Any] = {}
        for argument in self.arguments:
            # A tensor that holds an attribute takes precedence over the attribute itself.
            for name in reversed(argument.older):
                value = inputs.get(name)
                if value is not None and not (isinstance(value, (list, tuple)) and not value):
                    given[argument.name] = _listed(value) if argument.many else _single(value)
                    break
            else:
                present = next((n for n in (*argument.older, argument.name) if n in attrs), None)
                if present is not None:
                    given[argument.name] = attrs[present]
        if attrs.get("reduce_all"):
            given["axis"] = None
        return given

    def takes(self, attribute: str) -> bool:
        """Whether it has an attribute of this name, or the attribute is a hint for another engine."""
        known = any(attribute in (a.name, *a.older) for a in self.arguments)
        return known or attribute in _HINTS or attribute.startswith(("use_", "mkldnn_", "op_"))

    def listed(self, made: Any) -> list[Any]:
        """What the op gave, one entry for each of its results."""
        return [made] if len(self.results) == 1 else list(made) if isinstance(made, (list, tuple)) else [made]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _function(path: str) -> Callable:
    """A function by name: one of ``functions.py``, of Oar's public modules, or an op of the registry."""
    from oar.base.operators import detection, functions, layers, updates

    if "." in path:
        roots: Any = _Roots()
        return functools.reduce(getattr, path.split("."), roots)
    for home in (functions, layers, updates, detection, oar, oar.nn.functional, oar.linalg):
        found = vars(home).get(path)
        if found is not None:
            return found
    return getattr(_C.ops, path)


class _Roots:
    ops = _C.ops

    def __getattr__(self, name: str) -> Any:
        return getattr(oar, name)


@functools.cache
def _table() -> tuple[dict[str, Form], dict[str, Form]]:
    from oar.base.operators.table import LINES

    forms = [Form(line) for line in LINES.replace("\n ", " ").strip().splitlines()]
    return {f.name: f for f in forms if f.name != "-"}, {f.older: f for f in forms}


def find(name: str) -> Callable | None:
    """The op of this name; with ``_`` at the end, the one that writes its first argument."""
    forms = _table()[0]
    if name in forms:
        return forms[name]
    if name.endswith("_") and name[:-1] in forms:
        return _writing(forms[name[:-1]])
    return None


def names() -> list[str]:
    """The names of all ops of the table."""
    return sorted(_table()[0])


def older_names() -> list[str]:
    """The names that ``append_op`` takes."""
    return sorted(_table()[1])


def find_older(name: str) -> Form | None:
    """The op of this older name."""
    return _table()[1].get(name)


@functools.cache
def form_of(op: str) -> Form | None:
    """How Paddle calls an op of the registry: the line of its name, or else one that leads to the op."""
    forms = _table()[0]
    return forms.get(op) or next((form for form in forms.values() if form.calls(op)), None)


def _writing(form: Form) -> Callable:
    def write(*args: Any, **kwargs: Any) -> Any:
        written = args[0] if args else kwargs[form.arguments[0].name]
        made = form(*args, **kwargs)
        if isinstance(made, Tensor):
            return put(written, made)
        put(written, made[0])
        return (written, *made[1:])

    write.__name__ = form.name + "_"
    return write


def put(variable: Tensor, value: Tensor) -> Tensor:
    """Gives a tensor another content: in place where shape and dtype stay, else it becomes the other tensor."""
    if variable is value:
        return variable
    alike = variable.dtype == value.dtype and [str(s) for s in variable.shape] == [str(s) for s in value.shape]
    if alike:
        _C.ops.copy_into(variable, value)
    else:
        variable._become(value)
    return variable


# calls with slots --------------------------------------------------------------------------------


def append(kind: str, inputs: Mapping[str, Any], outputs: Mapping[str, Any], attrs: Mapping[str, Any]) -> None:
    """Makes the call ``kind`` and gives its results to the variables of ``outputs``.

    An op that is not in the table is looked for among the registered ones, those of users too: its slots have the
    names of its arguments, also with a capital letter in front.
    """
    form = find_older(kind) or _registered(kind)
    given = form.of_slots(inputs, attrs)
    unknown = [name for name in attrs if not form.takes(name)]
    if unknown:
        raise ValueError(f"[{kind}] has no attribute {unknown[0]!r}. hint: it has "
                         f"{', '.join(a.older[0] for a in form.arguments)}.")
    made = form.listed(form.call(given))
    alone = next(iter(outputs.values())) if len(outputs) == len(made) == 1 else None
    for slot, many, value in zip(form.results, form.many, made):
        target = outputs.get(slot, alone)
        if target is None or value is None:
            continue
        targets = _listed(target)
        for variable, part in zip(targets, value if many or len(targets) > 1 else [value]):
            put(variable, part)


def _registered(kind: str) -> Form:
    """The form of an op of the registry: its own names, also with a capital letter in front."""
    try:
        op = getattr(_C.ops, kind)
    except AttributeError:
        raise ValueError(f"[append_op] there is no op {kind!r}.") from None
    tokens = [f"{p['name']}{'[]' if p['list'] else ''}:{p['name']}|{p['name'].capitalize()}" for p in op.parameters]
    slots = [r["name"].capitalize() for r in op.results]
    return Form(f"{kind} | {' '.join(tokens)} -> {' '.join(slots)} @ ops.{kind}")
