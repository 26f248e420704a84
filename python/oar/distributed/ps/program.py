"""Static programs whose sparse embeddings are on servers: an executor feeds their rows, and sends the gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.distributed.entry_attr import ShowClickEntry
from oar.distributed.ps.embedding import counts_of
from oar.distributed.ps.optimizer import DenseParameters
from oar.distributed.ps.runtime import Lookup, Runtime
from oar.distributed.ps.tables import TableConfig

__all__ = ["LookupInputs", "ServerStep", "lookup", "minimize", "run"]


@dataclasses.dataclass
class LookupInputs:
    """A lookup in a program: the input with the keys, and the inputs that stand for the rows and for the places of the keys in them."""

    runtime: Runtime
    table: TableConfig
    ids: str
    rows: str
    places: str
    padding: int | None
    show: str | None = None
    click: str | None = None
    taught: bool = False  # whether the table has its rule


class ServerStep:
    """What a run of a training program does besides computing: the gradients to fetch, and the parameters."""

    def __init__(self, runtime: Runtime, dense: list[tuple[Tensor, Tensor]], rows: dict[str, Tensor]) -> None:
        self.runtime, self.rows = runtime, rows
        self.names = [parameter.name for parameter, _ in dense]
        self.gradients = [gradient for _, gradient in dense]
        self.dense = DenseParameters(self.names, [p.shape for p, _ in dense], [p.dtype.name for p, _ in dense])
        self.begun = False


def lookup(input: Tensor, table: TableConfig, runtime: Runtime, padding_idx: int | None) -> Tensor:
    """The rows of keys, which must be an input of the program."""
    program = oar.static.program.program_of(input)
    if program is None or input.name not in program._builder.input_names:
        raise ValueError("[sparse_embedding] input must be an input of the program, made by static.data: its keys are looked up before "
                         "the program runs.")
    stem = f"{table.name}.{len(program._lookups)}"
    rows = oar.static.data(f"{stem}.rows", [None, table.width], "float32")
    rows.stop_gradient = False
    places = oar.static.data(f"{stem}.places", input.shape, "int64")
    inputs = LookupInputs(runtime, table, input.name, rows.name, places.name, padding_idx)
    if isinstance(table.entry, ShowClickEntry):
        inputs.show, inputs.click = table.entry._show_name, table.entry._click_name
    program._lookups.append(inputs)
    return oar.nn.functional.embedding(places, rows)


def minimize(runtime: Runtime, loss: Any, startup_program: Any, parameter_list: Any, no_grad_set: Any) -> Any:
    """Adds the gradients of a loss to its program. Servers update the parameters; in the geo mode the program does."""
    (loss,) = loss if isinstance(loss, (list, tuple)) else (loss,)
    program = oar.static.program.program_of(loss)
    if program is None:
        raise TypeError("[fleet.minimize] the loss must be a variable of a program.")
    rows = [program._find(lookup.rows) for lookup in program._lookups]
    names = {variable.name for variable in rows if variable is not None}
    parameters = parameter_list if parameter_list is not None else program.all_parameters()
    pairs = oar.static.append_backward(loss, [*parameters, *rows], no_grad_set)
    dense = [(variable, gradient) for variable, gradient in pairs if variable.name not in names]
    if runtime.mode == "geo":
        runtime.optimizer.apply_gradients(dense)
    program._server_step = ServerStep(runtime, dense, {v.name: gradient for v, gradient in pairs if v.name in names})
    return [], dense


def _rows_of(lookup: LookupInputs, feed: dict[str, Any]) -> tuple[Any, Any]:
    """The keys of a batch and their places."""
    if lookup.ids not in feed:
        raise ValueError(f"[Executor.run] the program needs {lookup.ids!r}, which the feed does not have.")
    content = feed[lookup.ids]
    keys, places = np.unique(np.asarray(content.numpy() if isinstance(content, Tensor) else content).astype("int64"),
                             return_inverse=True)
    return keys, places.reshape(np.shape(content) if not isinstance(content, Tensor) else content.shape)


def _begin(step: ServerStep, scope: Any) -> None:
    contents = [scope._tensor(name) for name in step.names]
    missing = [name for name, content in zip(step.names, contents) if content is None]
    if missing:
        raise RuntimeError(f"[Executor.run] the scope has no {', '.join(missing)}. hint: run the startup program first.")
    if step.dense.size:
        _write(step, scope, step.runtime.begin_dense(step.dense.joined([content.numpy() for content in contents])))
    step.begun = True


def _write(step: ServerStep, scope: Any, values: Any) -> None:
    for name, content in zip(step.names, step.dense.cut(values)):
        scope._set(name, np.ascontiguousarray(content))


def run(program: Any, feed: dict[str, Any], scope: Any, execute: Callable[[dict[str, Any], list[Any]], list[Any]]) -> list[Any]:
    """Runs a program with lookups: ``execute(feed, more)`` returns what was asked for, then the arrays of ``more``."""
    step: ServerStep | None = program._server_step
    if step is not None and not step.begun:
        _begin(step, scope)
    feed, found = dict(feed), []
    for lookup in program._lookups:
        if not lookup.taught:
            lookup.table = dataclasses.replace(lookup.table, rule=lookup.runtime.sparse_rule())
            lookup.runtime.create(lookup.table)
            lookup.taught = True
        keys, places = _rows_of(lookup, feed)
        rows = lookup.runtime.pull(lookup.table.name, keys)
        if lookup.padding is not None:
            rows[keys == lookup.padding] = 0.0
        feed[lookup.rows], feed[lookup.places] = rows, places
        found.append((lookup, keys, places))
    if step is None:
        return execute(feed, [])
    trained = [entry for entry in found if entry[0].rows in step.rows]
    more = [*(step.gradients if step.runtime.mode != "geo" else []), *(step.rows[entry[0].rows] for entry in trained)]
    results = execute(feed, more)
    gradients = results[len(results) - len(more) :]
    _finish(step, scope, gradients[: len(more) - len(trained)], _lookups(trained, gradients[len(more) - len(trained) :], feed))
    return results[: len(results) - len(more)]


def _lookups(trained: Sequence[Any], gradients: Sequence[Any], feed: dict[str, Any]) -> list[Lookup]:
    made = []
    for (lookup, keys, places), gradient in zip(trained, gradients):
        kept = keys != lookup.padding if lookup.padding is not None else slice(None)
        counts = [counts_of(feed.get(name) if name else None, places, len(keys)) for name in (lookup.show, lookup.click)]
        counts = [None if count is None else count[kept] for count in counts]
        made.append(Lookup(lookup.table.name, keys[kept], np.ascontiguousarray(gradient[kept]), *counts))
    return made


def _finish(step: ServerStep, scope: Any, gradients: Sequence[Any], lookups: list[Lookup]) -> None:
    rate = float(step.runtime.optimizer.get_lr())
    if step.runtime.mode == "geo":
        contents = [scope._tensor(name).numpy() for name in step.names]
        values = step.runtime.step_of_geo(step.dense.joined(contents), lookups, rate)
    else:
        values = step.runtime.step(step.dense.joined(gradients), lookups, rate)
    if values is not None and step.dense.size:
        _write(step, scope, values)
