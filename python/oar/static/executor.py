"""Running programs."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import oar
from oar import _C
from oar._C import Tensor
from oar._places import CPUPlace, place_of
from oar._lazy import np
from oar.optimizer._in_program import feed_learning_rate
from oar.static.program import Operator, Program, _some, default_main_program, written_elsewhere
from oar.static.scope import Scope, global_scope
from oar.static.sequences import content_with_lengths, fed_levels, fed_with_lengths, hint_at_lengths

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "Executor"]

_MOST_DRAFTS = 64


class _Options:
    """Settings that are stored; they do not change how programs are optimised."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"


class BuildStrategy(_Options):
    """Accepted for compatibility. Oar's passes do not change results and always run.

    Examples:
        >>> import oar
        >>> strategy = oar.static.BuildStrategy()
        >>> strategy.fuse_elewise_add_act_ops = True
    """

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
    """Accepted for compatibility.

    Examples:
        >>> import oar
        >>> strategy = oar.static.ExecutionStrategy()
        >>> strategy.num_threads = 2
    """

    def __init__(self) -> None:
        self.num_threads = 0
        self.num_iteration_per_drop_scope = 1


class CompiledProgram:
    """A program with a strategy. Programs are compiled at their first run with or without it.

    Args:
        program_or_graph: the program.
        build_strategy: accepted for compatibility.

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> compiled = oar.static.CompiledProgram(main)
        >>> executor.run(compiled, feed={'x': np.ones([1, 3], 'float32')}, fetch_list=[y])[0].tolist()
        [[2.0, 2.0, 2.0]]
        >>> oar.disable_static()
    """

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

    Examples:
        >>> import numpy as np
        >>> import oar
        >>> oar.enable_static()
        >>> main, startup = oar.static.Program(), oar.static.Program()
        >>> with oar.static.program_guard(main, startup):
        ...     x = oar.static.data('x', [None, 3])
        ...     y = x * 2
        ...
        >>> executor = oar.static.Executor()
        >>> _ = executor.run(startup)
        >>> executor.run(main, feed={'x': np.ones([2, 3], 'float32')}, fetch_list=[y])[0].shape
        (2, 3)
        >>> oar.disable_static()
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
        """Run a program on the feed and return what is fetched.

        Args:
            program: the default main program when None.
            feed: arrays or tensors by the names of the program's inputs.
            fetch_list: variables, or names of them.
            scope: where the program's states live; the global scope when None.
            return_numpy: arrays rather than tensors; rows of sequences are a ``LoDTensor`` otherwise.
            use_prune: write no states, unless ops of an update are in ``fetch_list`` too.
        """
        if isinstance(program, CompiledProgram):
            program = program._program
        program = default_main_program() if program is None else program
        if not isinstance(program, Program):
            raise TypeError(f"[Executor.run] program should be a Program, but received {type(program).__name__}.")
        scope = global_scope() if scope is None else scope
        wanted = _flat(fetch_list)
        fetched = [entry for entry in wanted if not isinstance(entry, Operator)]
        pruned = use_prune and len(fetched) == len(wanted)
        with written_elsewhere():
            given = _checked_feed(program, feed)
            if not program._lookups and program._server_step is None:
                return _run(program, given, fetched, scope, return_numpy, pruned)
            return _run_with_servers(program, given, fetched, scope, return_numpy, pruned)

    def train_from_dataset(
        self,
        program: Program | CompiledProgram | None = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Any = None,
        fetch_info: list[str] | None = None,
        print_period: int = 100,
        fetch_handler: Any = None,
    ) -> None:
        """Run a training program once over a dataset.

        Args:
            program: the default main program when None.
            dataset: an ``InMemoryDataset`` or a ``QueueDataset``.
            scope: where the program's states live; the global scope when None.
            thread: accepted for compatibility; batches run one after another.
            debug: print what is fetched for every batch.
            fetch_list: variables to print.
            fetch_info: a text for each of them.
            print_period: batches between two lines.
            fetch_handler: not there yet.
        """
        from oar.static.from_dataset import run_from_dataset

        run_from_dataset(self, "train_from_dataset", program, dataset, scope, debug, fetch_list, fetch_info, print_period, fetch_handler)

    def infer_from_dataset(
        self,
        program: Program | CompiledProgram | None = None,
        dataset: Any = None,
        scope: Scope | None = None,
        thread: int = 0,
        debug: bool = False,
        fetch_list: Any = None,
        fetch_info: list[str] | None = None,
        print_period: int = 100,
        fetch_handler: Any = None,
    ) -> None:
        """Run a program once over a dataset. Pass one without updates: ``program.clone(for_test=True)``.

        Args:
            program: the default main program when None.
            dataset: an ``InMemoryDataset`` or a ``QueueDataset``.
            scope: where the program's states live; the global scope when None.
            thread: accepted for compatibility; batches run one after another.
            debug: print what is fetched for every batch.
            fetch_list: variables to print.
            fetch_info: a text for each of them.
            print_period: batches between two lines.
            fetch_handler: not there yet.
        """
        from oar.static.from_dataset import run_from_dataset

        run_from_dataset(self, "infer_from_dataset", program, dataset, scope, debug, fetch_list, fetch_info, print_period, fetch_handler)

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
            warnings.warn(f"[Executor.run] the program has no input {name!r}; what is fed as it is ignored. The inputs are "
                          f"{_some(known)}.", stacklevel=3)
    return fed_with_lengths(known, {name: value for name, value in feed.items() if name in known})


def _fetched(program: Program, entry: Any, scope: Scope) -> Tensor:
    """The variable, or the tensor that replaces it."""
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


def _as_tensor(value: Any, name: str, variable: Any) -> Tensor:
    if isinstance(value, Tensor):
        tensor = value
    else:
        plain = not hasattr(value, "dtype")  # lists of numbers have no dtype
        array = np.asarray(value)
        tensor = oar.to_tensor(array.astype(variable.dtype.name) if plain and array.dtype != object else array)
    if tensor.dtype != variable.dtype:
        raise ValueError(
            f"[Executor.run] the data type of the input {name!r} is {variable.dtype.name}, but {tensor.dtype.name} was fed."
        )
    return tensor


def _has_declared_shape(tensor: Tensor, name: str, variable: Any) -> bool:
    """Warns if not, as Paddle does: the calls then run one by one, on what is fed."""
    fits = len(tensor.shape) == len(variable.shape) and all(
        not isinstance(size, int) or size == given for size, given in zip(variable.shape, tensor.shape)
    )
    if not fits:
        warnings.warn(
            f"[Executor.run] the shape of the input {name!r} is {list(variable.shape)}, but {list(tensor.shape)} was fed.",
            stacklevel=5,
        )
    return fits


def _contents(scope: Scope) -> Any:
    """The tensors of a program's states, in this scope."""

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
        if there is None or not fits:
            there = oar.zeros(shape, dtype)
            scope._put(name, there)
        return there

    return content


def _draft(program: Program, fetches: list[Tensor], scope: Scope, pruned: bool) -> tuple[Any, list[str]]:
    """The program with these outputs, ready to run, and the names of its inputs."""
    values = tuple(program._builder.resolve(v) for v in fetches)
    key = (program._builder.version, values, pruned, id(scope), scope._epoch)
    found = program._drafts.get(key)
    if found is None:
        found = (*program._builder.draft(fetches, _contents(scope), pruned), scope)
        if len(program._drafts) >= _MOST_DRAFTS:
            program._drafts.pop(next(iter(program._drafts)))
        program._drafts[(*key[:4], scope._epoch)] = found
    return found[0], found[1]


def _run(
    program: Program, feed: dict[str, Any], wanted: list[Any], scope: Scope, return_numpy: bool, pruned: bool
) -> list[Any]:
    found = [_fetched(program, entry, scope) for entry in wanted]
    fetches = [v for v in found if _C.capture_of(v) is not None]
    for optimizer in program._optimizers:
        feed_learning_rate(optimizer, scope)
    levels = [[] if return_numpy or _C.capture_of(v) is None else fed_levels(v, feed) for v in found]
    executable, names = _draft(program, [*fetches, *itertools.chain(*levels)], scope, pruned)
    missing = [name for name in names if name not in feed]
    if missing:
        raise ValueError(f"[Executor.run] the program needs {_some(missing)}, which the feed does not have."
                         + hint_at_lengths(missing, feed))
    inputs = [_as_tensor(feed[name], name, program._find(name)) for name in names]
    fits = all([_has_declared_shape(tensor, name, program._find(name)) for tensor, name in zip(inputs, names)])
    with _seeded(program.random_seed):
        results = iter(executable.run(inputs) if fits else executable.run_on_other_shapes(inputs))
    outputs = [next(results) if _C.capture_of(v) is not None else v for v in found]
    if return_numpy:
        return [t.numpy() for t in outputs]
    lengths = [[next(results).tolist() for _ in level] for level in levels]
    return [content_with_lengths(t, rows) if rows else t.detach().clone() for t, rows in zip(outputs, lengths)]


def _run_with_servers(
    program: Program, feed: dict[str, Any], fetched: list[Any], scope: Scope, return_numpy: bool, pruned: bool
) -> list[Any]:
    from oar.distributed.ps import program as servers

    def execute(feed: dict[str, Any], more: list[Any]) -> list[Any]:
        results = _run(program, feed, [*fetched, *more], scope, return_numpy, pruned)
        return [*results[: len(fetched)], *(np.asarray(result) for result in results[len(fetched) :])]

    return servers.run(program, feed, scope, execute)


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
