"""Running programs: scopes hold what lives on, an executor runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._framework import CPUPlace, place_of
from oar._lazy import np
from oar.static.program import Program, _some, default_main_program, written_elsewhere

__all__ = [
    "BuildStrategy",
    "CompiledProgram",
    "ExecutionStrategy",
    "Executor",
    "LoDTensor",
    "Scope",
    "global_scope",
    "scope_guard",
]

_MOST_DRAFTS = 64


class LoDTensor:
    """A tensor as older programs handle it: ``set`` gives it a content, arrays are made of it."""

    def __init__(self, scope: Scope | None = None, name: str = "") -> None:
        self._scope = Scope() if scope is None else scope
        self._name = name

    @property
    def _tensor(self) -> Tensor:
        found = self._scope._tensors.get(self._name)
        if found is None:
            raise RuntimeError("the tensor has no content yet; give it one with set().")
        return found

    def set(self, value: Any, place: Any = None) -> None:
        """Give it another content."""
        self._scope._set(self._name, value)

    def shape(self) -> list[int]:
        """The sizes."""
        return list(self._tensor.shape)

    def lod(self) -> list:
        """Empty: there are no nested sequences."""
        return []

    def recursive_sequence_lengths(self) -> list:
        """Empty: there are no nested sequences."""
        return []

    def _dtype(self) -> Any:
        return self._tensor.dtype

    def _is_initialized(self) -> bool:
        return self._name in self._scope._tensors

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self._tensor.numpy(), dtype)

    def __repr__(self) -> str:
        return repr(self._tensor) if self._is_initialized() else "LoDTensor()"


class ScopeVariable:
    """What a scope holds under one name."""

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope, self._name = scope, name

    def name(self) -> str:
        """Its name."""
        return self._name

    def get_tensor(self) -> LoDTensor:
        """Its content."""
        return LoDTensor(self._scope, self._name)

    def is_initialized(self) -> bool:
        """Whether it has a content."""
        return self._scope._tensors.get(self._name) is not None


class Scope:
    """Tensors by name, with a parent to look further in."""

    def __init__(self, parent: Scope | None = None) -> None:
        self._tensors: dict[str, Tensor] = {}
        self._names: set[str] = set()  # of variables without a content yet
        self._parent = parent
        self._kids: list[Scope] = []
        self._epoch = 0

    def var(self, name: str) -> ScopeVariable:
        """The variable of this name, made where there is none."""
        self._names.add(name)
        return ScopeVariable(self, name)

    def find_var(self, name: str) -> ScopeVariable | None:
        """The variable of this name, here or in a parent."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._tensors or name in scope._names:
                return ScopeVariable(scope, name)
            scope = scope._parent
        return None

    def local_var_names(self) -> list[str]:
        """The names here."""
        return sorted(self._names | set(self._tensors))

    def erase(self, names: Sequence[str]) -> None:
        """Forget some variables."""
        for name in names:
            self._tensors.pop(name, None)
            self._names.discard(name)
        self._epoch += 1

    def new_scope(self) -> Scope:
        """A scope with this one as its parent."""
        self._kids.append(Scope(self))
        return self._kids[-1]

    def drop_kids(self) -> None:
        """Forget the scopes made here."""
        self._kids.clear()

    def _tensor(self, name: str) -> Tensor | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope._tensors:
                return scope._tensors[name]
            scope = scope._parent
        return None

    def _put(self, name: str, tensor: Tensor) -> None:
        tensor.name = name
        tensor.persistable = True
        self._tensors[name] = tensor
        self._epoch += 1

    def _set(self, name: str, value: Any) -> None:
        with written_elsewhere():
            new = value if isinstance(value, Tensor) else oar.to_tensor(np.asarray(value))
            there = self._tensor(name)
            if there is not None and list(there.shape) == list(new.shape) and there.dtype == new.dtype:
                there.set_value(new)
            else:
                self._put(name, new.detach().clone())


_global_scope = Scope()
_scopes = [_global_scope]


def global_scope() -> Scope:
    """The scope that runs use unless they are given one."""
    return _scopes[-1]


@contextlib.contextmanager
def scope_guard(scope: Scope) -> Iterator[None]:
    """Another global scope within the block."""
    _scopes.append(scope)
    try:
        yield
    finally:
        _scopes.pop()


class _Options:
    """Settings that are taken note of; programs are optimised the same way whatever they say."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"


class BuildStrategy(_Options):
    """Wishes about how a program is optimised. Oar's passes keep results as they are and always run."""

    class ReduceStrategy:
        """How gradients are shared."""

        AllReduce = 0
        Reduce = 1

    class GradientScaleStrategy:
        """How the loss is scaled."""

        CoeffNumDevice = 0
        One = 1
        Customized = 2

    def __init__(self) -> None:
        self.reduce_strategy = self.ReduceStrategy.AllReduce
        self.gradient_scale_strategy = self.GradientScaleStrategy.CoeffNumDevice


class ExecutionStrategy(_Options):
    """Wishes about how a program is run."""

    def __init__(self) -> None:
        self.num_threads = 0
        self.num_iteration_per_drop_scope = 1


class CompiledProgram:
    """A program with a strategy. Programs are compiled at their first run with or without it."""

    def __init__(self, program_or_graph: Program, build_strategy: BuildStrategy | None = None) -> None:
        if not isinstance(program_or_graph, Program):
            raise TypeError(
                f"CompiledProgram takes a Program, but received {type(program_or_graph).__name__}."
            )
        self._program = program_or_graph
        self._build_strategy = build_strategy or BuildStrategy()


def _flat(fetch_list: Any) -> list[Any]:
    if fetch_list is None:
        return []
    if isinstance(fetch_list, (Tensor, str)):
        return [fetch_list]
    if not isinstance(fetch_list, (list, tuple)):
        raise TypeError(f"[Executor.run] fetch_list should be a list, but received {type(fetch_list).__name__}.")
    return [item for entry in fetch_list for item in (_flat(entry) if isinstance(entry, (list, tuple)) else [entry])]


class Executor:
    """Runs programs.

    Args:
        place: where; the current device when None.
    """

    def __init__(self, place: Any = None) -> None:
        self.place = place if place is not None else place_of(_C.get_device())
        if isinstance(self.place, str):
            self.place = CPUPlace() if self.place == "cpu" else place_of(self.place)

    def run(
        self,
        program: Program | CompiledProgram | None = None,
        feed: Any = None,
        fetch_list: Any = None,
        feed_var_name: str = "feed",
        fetch_var_name: str = "fetch",
        scope: Scope | None = None,
        return_numpy: bool = True,
        use_program_cache: bool = False,
        use_prune: bool = False,
    ) -> list[Any]:
        """Run a program on what is fed and give back what is fetched.

        Args:
            program: the default main program when None.
            feed: arrays or tensors by the names of the program's inputs.
            fetch_list: variables, or names of them.
            scope: where the program's states live; the global scope when None.
            return_numpy: arrays rather than tensors.
            use_prune: leave out the updates of parameters unless something fetched needs them.
        """
        if isinstance(program, CompiledProgram):
            program = program._program
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise TypeError(f"[Executor.run] program should be a Program, but received {type(program).__name__}.")
        scope = global_scope() if scope is None else scope
        wanted = _flat(fetch_list)
        with written_elsewhere():
            return _run(program, _checked_feed(program, feed), wanted, scope, return_numpy)

    def close(self) -> None:
        """Nothing is held."""

    def flush(self) -> None:
        """Nothing waits."""


def _checked_feed(program: Program, feed: Any) -> dict[str, Any]:
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)):
        if len(feed) != 1:
            raise TypeError(f"[Executor.run] feed should be a dictionary; a list may hold one, not {len(feed)}.")
        feed = feed[0]
    if not isinstance(feed, dict):
        raise TypeError(f"[Executor.run] feed requires dict as its Parameter, but received {type(feed).__name__}.")
    known = program._builder.input_names
    for name in feed:
        if name not in known:
            raise ValueError(f"[Executor.run] the program has no input {name!r}. Its inputs are {_some(known)}.")
    return feed


def _fetched(program: Program, entry: Any, scope: Scope) -> Tensor:
    """The variable, or the tensor that stands for it."""
    if isinstance(entry, Tensor):
        return entry
    if not isinstance(entry, str):
        raise TypeError(
            f"[Executor.run] fetch_list should hold variables or their names, but received {type(entry).__name__}."
        )
    found = program._find(entry)
    if found is None:
        found = scope._tensor(entry)
    if found is None:
        names = [v.name for v in program.list_vars()]
        raise ValueError(f"[Executor.run] the program has no variable {entry!r} to fetch. It has {_some(names)}.")
    return found


def _as_tensor(value: Any, name: str, variable: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        tensor = value
    else:
        plain = not hasattr(value, "dtype")  # lists of numbers have no dtype of their own
        array = np.asarray(value)
        tensor = oar.to_tensor(array.astype(variable.dtype.name) if plain and array.dtype != object else array)
    if tensor.dtype != variable.dtype:
        raise ValueError(
            f"[Executor.run] the data type of the input {name!r} is {variable.dtype.name}, but {tensor.dtype.name} was fed."
        )
    fits = len(tensor.shape) == len(variable.shape) and all(
        not isinstance(size, int) or size == given for size, given in zip(variable.shape, tensor.shape)
    )
    if not fits:
        raise ValueError(
            f"[Executor.run] the shape of the input {name!r} is {list(variable.shape)}, but {list(tensor.shape)} was fed."
        )
    return tensor


def _contents(scope: Scope) -> Any:
    """The tensors behind a program's states, in this scope."""

    def content(name: str, shape: list[int], dtype: Any, read: bool) -> Tensor:
        there = scope._tensor(name)
        fits = there is not None and list(there.shape) == shape and there.dtype == dtype
        if not fits and read:
            if there is None:
                raise RuntimeError(
                    f"[Executor.run] the variable {name!r} has no content in this scope. Run the startup program first."
                )
            raise ValueError(
                f"[Executor.run] the variable {name!r} should be {dtype.name}{shape}, but the scope holds "
                f"{there.dtype.name}{list(there.shape)}."
            )
        if not fits:
            there = oar.zeros(shape, dtype)
            scope._put(name, there)
        return there

    return content


def _draft(program: Program, fetches: list[Tensor], scope: Scope) -> tuple[Any, list[str]]:
    """The program with these outputs, ready to run, and the names of its inputs."""
    values = tuple(program._builder.resolve(v) for v in fetches)
    key = (program._builder.version, values, id(scope), scope._epoch)
    found = program._drafts.get(key)
    if found is None:
        found = (*program._builder.draft(fetches, _contents(scope)), scope)
        if len(program._drafts) >= _MOST_DRAFTS:
            program._drafts.pop(next(iter(program._drafts)))
        program._drafts[(*key[:3], scope._epoch)] = found
    return found[0], found[1]


def _run(program: Program, feed: dict[str, Any], wanted: list[Any], scope: Scope, return_numpy: bool) -> list[Any]:
    found = [_fetched(program, entry, scope) for entry in wanted]
    fetches = [v for v in found if _C.capture_of(v) is not None]
    for optimizer in program._optimizers:
        optimizer._feed_learning_rate(scope)
    executable, names = _draft(program, fetches, scope)
    missing = [name for name in names if name not in feed]
    if missing:
        raise ValueError(f"[Executor.run] the program needs {_some(missing)}, which the feed does not have.")
    inputs = [_as_tensor(feed[name], name, program._find(name)) for name in names]
    with _seeded(program.random_seed):
        results = iter(executable.run(inputs))
    outputs = [next(results) if _C.capture_of(v) is not None else v for v in found]
    return [t.numpy() if return_numpy else t.detach().clone() for t in outputs]


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Random numbers of this seed, if it is not 0; the stream outside is as it was."""
    if not seed:
        yield
        return
    before = oar.get_rng_state()
    oar.seed(seed)
    try:
        yield
    finally:
        oar.set_rng_state(before)
