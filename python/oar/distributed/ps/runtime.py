"""What connects a process with the servers of parameters, and the steps of training in each mode."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

from oar import _C
from oar._lazy import np
from oar.distributed.fleet.base.role_maker import RoleMakerBase
from oar.distributed.ps.geo import LocalRows
from oar.distributed.ps.tables import Initial, Rule, TableConfig

__all__ = ["Lookup", "Runtime"]

_DENSE = "dense_parameters"


class Lookup(NamedTuple):
    """Rows that a step has used, and their gradients."""

    table: str
    keys: Any
    gradients: Any
    shows: Any = None
    clicks: Any = None


def _merged(lookups: Sequence[Lookup]) -> list[Lookup]:
    """One lookup for each table, with each key once."""
    tables: dict[str, list[Lookup]] = {}
    for lookup in lookups:
        tables.setdefault(lookup.table, []).append(lookup)
    return [found[0] if len(found) == 1 else _joined(found) for found in tables.values()]


def _joined(lookups: list[Lookup]) -> Lookup:
    keys, places = np.unique(np.concatenate([lookup.keys for lookup in lookups]), return_inverse=True)
    gradients = np.zeros((len(keys), lookups[0].gradients.shape[1]), "float32")
    np.add.at(gradients, places, np.concatenate([lookup.gradients for lookup in lookups]))
    counts: list[Any] = []
    for name, default in (("shows", 1.0), ("clicks", 0.0)):
        listed = [getattr(lookup, name) for lookup in lookups]
        given = [np.full(len(lookup.keys), default, "float32") if c is None else c for c, lookup in zip(listed, lookups)]
        counts.append(np.bincount(places, np.concatenate(given), len(keys)).astype("float32"))
    return Lookup(lookups[0].table, keys, gradients, *counts)


def _token() -> str:
    token = os.environ.get("OAR_PS_TOKEN", "")
    if not token:
        raise RuntimeError("[fleet] the environment has no OAR_PS_TOKEN, the secret that servers and workers share. hint: start the "
                           "job with python -m oar.distributed.launch --server_num ..., or set it to the same text for all processes.")
    return token


class Runtime:
    """A process of a job with servers. Workers are connected at their first call."""

    def __init__(self, roles: RoleMakerBase, strategy: Any) -> None:
        self.roles = roles
        self.strategy = strategy
        self.optimizer: Any = None
        self.layers: list[Any] = []  # that take part in a step
        self._client: Any = None
        self._server: Any = None
        self._loaded_from: str | None = None
        self._tables: dict[str, TableConfig] = {}
        self._local: dict[str, LocalRows] = {}
        self._dense: Any = None
        self._base: Any = None
        self._steps = 0
        self._sender: ThreadPoolExecutor | None = None
        self._sent: list[Future[None]] = []

    @property
    def k_steps(self) -> int:
        """Steps between two exchanges of the geo mode; 0 in other modes."""
        return max(0, int(self.strategy.a_sync_configs["k_steps"])) if self.strategy.a_sync else 0

    @property
    def mode(self) -> str:
        """``'sync'``, ``'async'`` or ``'geo'``."""
        if not self.strategy.a_sync:
            return "sync"
        return "geo" if self.k_steps > 0 else "async"

    # ---- Servers

    def init_server(self, dirname: str | None) -> None:
        """Remembers which saved tables the server begins with."""
        self._loaded_from = dirname
        _token()

    def run_server(self) -> None:
        """Serves until all workers have stopped."""
        index, endpoints = self.roles._server_index(), self.roles._get_pserver_endpoints()
        folder = os.path.join(os.environ.get("OAR_PS_FOLDER", "parameter_servers"), f"server-{index}")
        fresh = not os.path.exists(os.path.join(folder, "lock"))
        self._server = _C.parameter_server_serve(endpoints[index], _token(), folder, index, len(endpoints), self.roles._worker_num(),
                                                 int(os.environ.get("OAR_PS_MESSAGE_BYTES", 64 << 20)), 256 << 20)
        if self._loaded_from and fresh:
            self._server.load(self._loaded_from)
        while not self._server.wait(200):  # a signal is handled in between
            pass
        self._server.checkpoint()
        self._server = None

    # ---- Workers

    @property
    def client(self) -> Any:
        """The connection with all servers."""
        if self._client is None:
            seconds = float(os.environ.get("OAR_PS_TIMEOUT", "60"))
            self._client = _C.parameter_server_connect(self.roles._get_pserver_endpoints(), _token(), self.roles._worker_index(),
                                                       int(seconds * 1000))
        return self._client

    def barrier(self) -> None:
        """Waits for all workers."""
        self.client.arrive("barrier", False)

    def stop(self) -> None:
        """Sends what waits, and tells the servers that this worker has ended."""
        if self.mode == "geo" and self._steps % self.k_steps:
            self._exchange()
        self.flush()
        if self._sender is not None:
            self._sender.shutdown()
        self.client.stop()
        self._client = self._sender = None

    def flush(self) -> None:
        """Waits until all pushes have been answered."""
        self._drain(0)

    def create(self, table: TableConfig) -> None:
        """Makes a table known, and creates it if it is not there."""
        if table.name in self._tables:
            if self._tables[table.name] != table:
                raise ValueError(f"[ps] there are two tables '{table.name}' with different settings. hint: give them different names.")
            return
        table._create(self.client)
        self._tables[table.name] = table

    def sparse_rule(self) -> Rule:
        """The rule of tables that were given none."""
        from oar.distributed.ps.tables import rule_of

        if self.optimizer is None:
            raise RuntimeError("[ps] the table has no rule, and there is no optimiser. hint: call fleet.distributed_optimizer before "
                               "the first step, or pass a rule.")
        rule = rule_of(self.optimizer)
        if self.mode != "geo":
            return rule
        if rule.kind != "sgd":
            raise NotImplementedError("[ps] with k_steps above 0 rows are updated by SGD on the workers. hint: use SGD, or the "
                                      "asynchronous mode with k_steps 0.")
        return Rule("sum")

    def pull(self, table: str, keys: Any) -> Any:
        """The rows of keys, which differ."""
        if self.mode == "geo":
            local = self._local.setdefault(table, LocalRows(self._tables[table].width))
            return local.read(keys, lambda missing: self._pull(table, missing))
        return self._pull(table, keys)

    def _pull(self, table: str, keys: Any) -> Any:
        rows = np.empty((len(keys), self._tables[table].width), "float32")
        if len(keys):
            self.client.pull_sparse(table, keys, rows)
        return rows

    # ---- Steps

    def begin_dense(self, values: Any) -> Any:
        """The values that all workers begin with: those of the servers or, in a new job, those of worker 0."""
        from oar.distributed.ps.tables import rule_of

        rule = Rule("sum") if self.mode == "geo" else rule_of(self.optimizer)
        table = TableConfig(_DENSE, len(values), sparse=False, rule=rule, initial=Initial("constant"))
        if self.roles._is_first_worker() and self.client.size(_DENSE) is None:
            self.create(table)
            self.client.set_dense(_DENSE, values)
        self.barrier()
        self.create(table)
        self._dense = np.empty_like(values)
        self.client.pull_dense(_DENSE, self._dense)
        self._base = self._dense.copy()
        return self._dense

    def step(self, gradients: Any, lookups: Sequence[Lookup], rate: float) -> Any:
        """Ends a step: sends gradients, and returns the values of the dense parameters. Not for the geo mode."""
        lookups = _merged(lookups)
        self._steps += 1
        if self.mode == "sync":
            self._push(gradients, lookups, rate, True)
            self.client.arrive("step", True)
        else:
            self._sender = self._sender or ThreadPoolExecutor(1)
            self._sent.append(self._sender.submit(self._push, gradients, lookups, rate, False))
            self._drain(max(1, int(self.strategy.a_sync_configs["send_queue_size"])))
        if self._dense is None:
            return None
        self.client.pull_dense(_DENSE, self._dense)
        return self._dense

    def step_of_geo(self, values: Any, lookups: Sequence[Lookup], rate: float) -> Any:
        """Ends a step of the geo mode. Returns new values of the dense parameters with every exchange, None otherwise."""
        self._steps += 1
        for lookup in _merged(lookups):
            self._local[lookup.table].update(lookup.keys, lookup.gradients, rate)
        self._dense = values
        return None if self._steps % self.k_steps else self._exchange()

    def _exchange(self) -> Any:
        share = 1.0 / self.roles._worker_num()
        for table, local in self._local.items():
            keys, deltas = local.take_deltas()
            if len(keys):
                self.client.push_sparse(table, keys, deltas * np.float32(share), None, None, 0.0, False)
        if self._dense is None or not len(self._dense):
            return None
        self.client.push_dense(_DENSE, (self._dense - self._base) * np.float32(share), 0.0, False)
        self.client.pull_dense(_DENSE, self._base)
        return self._base

    def _push(self, gradients: Any, lookups: Sequence[Lookup], rate: float, later: bool) -> None:
        if len(gradients):
            self.client.push_dense(_DENSE, gradients, rate, later)
        for lookup in lookups:
            if len(lookup.keys):
                self.client.push_sparse(lookup.table, lookup.keys, lookup.gradients, lookup.shows, lookup.clicks, rate, later)

    def _drain(self, most: int) -> None:
        """Waits until at most so many pushes are under way. Raises what went wrong with those that have ended."""
        while len(self._sent) > most:
            self._sent.pop(0).result()

    # ---- Tables as a whole

    def save(self, dirname: str, delta: bool = False) -> None:
        """Writes all tables, as they are when all workers have come this far."""
        self.flush()
        self.barrier()
        if self.roles._is_first_worker():
            self.client.save("", os.path.abspath(dirname), delta)
        self.barrier()

    def load(self, dirname: str, table: str = "") -> None:
        """Reads tables into the servers."""
        self.flush()
        self.barrier()
        if self.roles._is_first_worker():
            self.client.load(table, os.path.abspath(dirname))
        self.barrier()
        self._local.clear()

    def shrink(self, table: str = "") -> None:
        """Ends a period of shows and clicks, and removes rows."""
        self.flush()
        self.barrier()
        if self.roles._is_first_worker():
            self.client.shrink(table)
        self.barrier()
