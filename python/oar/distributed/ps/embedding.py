"""A layer whose rows live on servers."""

from __future__ import annotations

import dataclasses
import weakref
from typing import Any

import oar
from oar._C import Tensor
from oar._lazy import np
from oar.distributed.ps.runtime import Lookup, Runtime
from oar.distributed.ps.tables import Initial, Rule, Score, TableConfig, initial_of
from oar.nn.layer.layers import Layer

__all__ = ["SparseEmbedding", "counts_of"]


def _runtime() -> Runtime:
    from oar.distributed.fleet import _process

    return _process.fleet._servers_of("SparseEmbedding")


def counts_of(given: Any, places: Any, count: int) -> Any:
    """Sums for each key of numbers that come for each place, or for each row of places."""
    if given is None:
        return None
    numbers = np.asarray(given, "float32")
    numbers = np.broadcast_to(numbers.reshape(numbers.shape[0], *[1] * (places.ndim - 1)) if numbers.size == places.shape[0] else
                              numbers.reshape(places.shape), places.shape)
    return np.bincount(places.reshape(-1), numbers.reshape(-1), count).astype("float32")


class SparseEmbedding(Layer):
    """An embedding whose rows live on the servers of ``fleet``. A key is any 64-bit integer; its row is created with its first
    gradient. ``forward`` pulls the rows of a batch, each once; ``step`` of the optimiser of ``fleet.distributed_optimizer`` pushes their
    gradients.

    Args:
        embedding_dim: the width of a row.
        name: the name of the table, the same for all workers.
        padding_idx: a key that reads as zeros and is never pushed.
        weight_attr: how rows begin: an ``Initial``, or an initialiser (``Constant``, ``Uniform``, ``Normal``).
        rule: how rows change; by default as the optimiser changes parameters.
        entry: which keys get a row: ``CountFilterEntry``, ``ProbabilityEntry``, ``ShowClickEntry``, or None for all.
        score: which rows ``fleet.shrink`` removes.
        on_disk: whether the rows are kept in a database on the disk of each server.
        cache_bytes: the memory of a table on disk, on each server.

    Examples:
        >>> from oar.distributed import ps
        >>> layer = ps.SparseEmbedding(8, name='words', on_disk=True)
        >>> layer.table.width
        8
    """

    def __init__(
        self, embedding_dim: int, name: str, padding_idx: int | None = None, weight_attr: Any = None, rule: Rule | None = None,
        entry: Any = None, score: Score | None = None, on_disk: bool = False, cache_bytes: int = 256 << 20,
    ) -> None:  # fmt: skip
        super().__init__()
        initial = weight_attr if isinstance(weight_attr, Initial) else initial_of(weight_attr, embedding_dim)
        self.table = TableConfig(name, embedding_dim, on_disk=on_disk, cache_bytes=cache_bytes, initial=initial, entry=entry,
                                 score=score or Score())
        self._rule, self._padding = rule, padding_idx
        self._used: list[tuple[Any, Tensor, Any, Any]] = []
        self._connected: weakref.ref[Runtime] | None = None

    def _connect(self) -> Runtime:
        runtime = _runtime()
        if self._connected is None or self._connected() is not runtime:
            self.table = dataclasses.replace(self.table, rule=self._rule or runtime.sparse_rule())
            runtime.create(self.table)
            runtime.layers.append(self)
            self._connected = weakref.ref(runtime)
        return runtime

    def forward(self, ids: Tensor, shows: Any = None, clicks: Any = None) -> Tensor:
        """The rows of keys.

        Args:
            ids: keys, integers of any shape.
            shows: how often each sample was shown: a number for each key, or for each entry of the first axis. 1 by default.
            clicks: how often it was clicked. 0 by default.

        Returns:
            a tensor with one more axis than ``ids``.
        """
        runtime = self._connect()
        keys, places = np.unique(ids.numpy().astype("int64"), return_inverse=True)
        places = places.reshape(ids.shape)
        content = runtime.pull(self.table.name, keys)
        if self._padding is not None:
            content[keys == self._padding] = 0.0
        rows = oar.to_tensor(content)
        if self.training and oar.is_grad_enabled():
            rows.stop_gradient = False
            counts = [counts_of(given, places, len(keys)) for given in (shows, clicks)]
            self._used.append((keys, rows, *counts))
        return oar.nn.functional.embedding(oar.to_tensor(places), rows)

    def take_lookups(self) -> list[Lookup]:
        """The gradients since the last call."""
        taken, self._used = self._used, []
        found = []
        for keys, rows, shows, clicks in taken:
            if rows.grad is None:
                continue
            kept = keys != self._padding if self._padding is not None else slice(None)
            counts = [None if count is None else count[kept] for count in (shows, clicks)]
            found.append(Lookup(self.table.name, keys[kept], np.ascontiguousarray(rows.grad.numpy()[kept]), *counts))
        return found
