"""Embeddings as a picture shows them: principal components, neighbours."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from oar._lazy import np
from oar.board._projector import read_embedding
from oar.board._store import Store

__all__ = ["Embeddings"]

_MOST_SHOWN = 10_000
_COMPONENTS = 10
_MOST_CACHED = 4
_MOST_LABEL = 200


class _Embedding:
    def __init__(self, vectors: Any, labels: list[list[str]], header: list[str]) -> None:
        vectors = np.asarray(vectors, "float32")
        if vectors.ndim != 2 or 0 in vectors.shape or not np.isfinite(vectors).all():
            raise ValueError("the vectors are not a table of finite numbers")
        self.total = len(vectors)
        chosen = np.arange(0, self.total, -(-self.total // _MOST_SHOWN))
        self.vectors = vectors[chosen]
        self.labels = [labels[i] if i < len(labels) else [] for i in chosen.tolist()]
        self.header = header
        centred = self.vectors.astype("float64") - self.vectors.mean(axis=0, dtype="float64")
        # The axes of the smaller product of the matrix with itself.
        values, axes = np.linalg.eigh(centred.T @ centred if centred.shape[1] <= len(centred) else centred @ centred.T)
        values, axes = values[::-1][:_COMPONENTS].clip(0), axes[:, ::-1][:, :_COMPONENTS]
        self.points = centred @ axes if centred.shape[1] <= len(centred) else axes * np.sqrt(values)
        total = float((centred * centred).sum())
        self.variance = (values / total).tolist() if total else [0.0] * len(values)

    def answer(self) -> dict[str, Any]:
        largest = float(np.abs(self.points).max()) or 1.0
        return {"total": self.total, "size": self.vectors.shape[1], "variance": self.variance, "header": self.header,
                "points": np.round(self.points / largest, 4).tolist(),
                "labels": [[label[:_MOST_LABEL] for label in row] for row in self.labels]}

    def neighbours(self, index: int, count: int, cosine: bool) -> list[tuple[int, float]]:
        if not 0 <= index < len(self.vectors):
            raise KeyError(f"there is no vector {index}")
        vectors = self.vectors.astype("float64")
        if cosine:
            lengths = np.linalg.norm(vectors, axis=1)
            lengths[lengths == 0] = 1.0
            unit = vectors / lengths[:, None]
            distances = 1 - unit @ unit[index]
        else:
            distances = np.linalg.norm(vectors - vectors[index], axis=1)
        distances[index] = np.inf
        nearest = np.argsort(distances, kind="stable")[: min(count, len(vectors) - 1)]
        return [(int(i), float(distances[i])) for i in nearest]


class Embeddings:
    """Those of all runs. The last ones that were asked for are kept."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._cached: OrderedDict[tuple, _Embedding] = OrderedDict()

    def get(self, run: str, tag: str) -> _Embedding:
        """An embedding with its principal components."""
        with self._store.lock:
            found = self._store.runs.get(run)
            if found is None:
                raise KeyError(f"there is no run {run!r}")
            entry = found.embeddings.get(tag)
            series = found.series["embeddings"].get(tag)
            folder = found.folder
        if entry is not None:
            changed = (folder / entry["tensor_path"]).stat().st_mtime_ns
        elif series is not None:
            changed = series.version
        else:
            raise KeyError(f"run {run!r} has no embedding {tag!r}")
        key = (run, tag, changed)
        with self._lock:
            if key not in self._cached:
                parts = read_embedding(self._store.root, folder, entry) if entry else self._store.point("embeddings", run, tag, -1)
                self._cached[key] = _Embedding(*parts)
            self._cached.move_to_end(key)
            while len(self._cached) > _MOST_CACHED:
                self._cached.popitem(last=False)
            return self._cached[key]
