"""What the page asks for, as values for JSON."""

from __future__ import annotations

import math
import zlib
from typing import Any

from oar.board._embeddings import Embeddings
from oar.board._graphs import draw
from oar.board._items import KINDS, Blob
from oar.board._store import Points, Run, Store, Stored

__all__ = ["Answers", "NotThere"]

_MOST_TEXTS = 50
_MOST_LETTERS = 100_000


class NotThere(Exception):
    """The page asks for something that does not exist, or no longer."""


def number(value: float) -> float | str:
    """A number for JSON, which has no NaN and no infinity: those are texts."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _key(stored: Stored) -> str:
    """Says which record of which file an item is; it stays the same while files grow."""
    return f"{zlib.crc32(str(stored.file.path).encode()):08x}-{stored.at}-{stored.number}"


def _scalars(points: Points, seen: int) -> dict[str, Any]:
    return {"step": [p[0] for p in points], "wall": [round(p[1], 3) for p in points],
            "value": [number(p[2]) for p in points], "seen": seen}


def _histograms(points: Points, seen: int) -> list[Any]:
    return [[step, wall, list(map(number, h.edges)), list(map(number, h.counts))] for step, wall, h in points]


def _curves(points: Points, seen: int) -> list[Any]:
    return [[step, wall, c.form, list(map(number, c.x)), list(map(number, c.y)), [list(map(number, part)) for part in c.counts]]
            for step, wall, c in points]


def _places(points: Points, seen: int) -> list[Any]:
    return [[step, wall, _key(stored)] for step, wall, stored in points]


def _text(stored: Stored) -> str:
    try:
        return stored.fetch()[:_MOST_LETTERS]
    except (OSError, ValueError) as error:  # the file was removed or replaced a moment ago
        return f"(not there any more: {error})"


def _texts(points: Points, seen: int) -> list[Any]:
    return [[step, wall, _text(stored)] for step, wall, stored in points[-_MOST_TEXTS:]]


_BY_TAG = {"scalars": _scalars, "histograms": _histograms, "curves": _curves, "images": _places, "audio": _places, "text": _texts}


class Answers:
    """Answers from a store.

    Args:
        store: the runs.
        reload: how often the page should ask, in seconds.
    """

    def __init__(self, store: Store, reload: float) -> None:
        self._store = store
        self._reload = reload
        self._embeddings = Embeddings(store)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that ``by_tag`` knows."""
        return tuple(_BY_TAG)

    def overview(self) -> dict[str, Any]:
        """Runs, tags and problems."""
        store = self._store
        problems = store.problems()
        with store.lock:
            # The order in which runs began stays, whatever is added, and so do their colours.
            runs = sorted(store.runs.values(), key=lambda run: (run.started, run.name))
            tags: dict[str, dict[str, list[str]]] = {kind: {} for kind in KINDS}
            for run in runs:
                for kind, names in self._tags(run).items():
                    for name in names:
                        tags[kind].setdefault(name, []).append(run.name)
            listed = [{"name": run.name, "display": run.display or (store.root.resolve().name if run.name == "." else run.name),
                       "empty": not any(self._tags(run).values())} for run in runs]
            return {"version": store.version, "root": str(store.root), "loading": store.loading, "reload": self._reload,
                    "runs": listed, "tags": {kind: dict(sorted(found.items())) for kind, found in tags.items()}, "problems": problems}

    @staticmethod
    def _tags(run: Run) -> dict[str, list[str]]:
        found = {kind: list(tags) for kind, tags in run.series.items()}
        if "program" in found["graphs"]:  # the same graph, in Oar's own words
            found["graphs"] = [tag for tag in found["graphs"] if tag != "graph"]
        found["embeddings"] += [tag for tag in run.embeddings if tag not in found["embeddings"]]
        found["hparams"] = ["hparams"] if run.hparams.values else []
        return found

    def version(self, kind: str, tag: str) -> str:
        """Changes if an answer of ``by_tag`` would."""
        with self._store.lock:
            versions = [run.series[kind][tag].version for run in self._store.runs.values() if tag in run.series[kind]]
        return f"{len(versions)}-{max(versions, default=0)}-{sum(versions)}"

    def by_tag(self, kind: str, tag: str) -> dict[str, Any]:
        """What each run has under a tag."""
        return {run: _BY_TAG[kind](points, seen) for run, (points, seen) in self._store.each(kind, tag).items()}

    def blob(self, kind: str, run: str, tag: str, key: str) -> Blob:
        """An image or sound."""
        with self._store.lock:
            found = self._store.runs.get(run)
            series = found.series[kind].get(tag) if found is not None else None
            stored = next((p[2] for p in series or () if _key(p[2]) == key), None)
        if stored is None:
            raise NotThere(f"run {run!r} has no such item of {tag!r}")
        return stored.fetch()

    def graph(self, run: str, tag: str) -> dict[str, Any]:
        """The picture of a graph; with the text, if it is a program."""
        try:
            content = self._store.point("graphs", run, tag, -1)
        except KeyError as error:
            raise NotThere(str(error)) from None
        text = content if isinstance(content, str) else ""
        try:
            return {"svg": draw(content), "text": text, "note": ""}
        except (ValueError, RuntimeError) as error:
            note = str(error)
        if text:  # an op that is registered in the training program alone: the boxes are there without it
            try:
                return {"svg": draw(self._store.point("graphs", run, "graph", -1)), "text": text, "note": ""}
            except (KeyError, ValueError, RuntimeError):
                pass
        return {"svg": "", "text": text, "note": note}

    def embedding(self, run: str, tag: str) -> dict[str, Any]:
        """Principal components and labels."""
        return self._embedding(run, tag).answer()

    def neighbours(self, run: str, tag: str, index: int, count: int, metric: str) -> list[Any]:
        """The nearest vectors of one, with their distances."""
        try:
            return self._embedding(run, tag).neighbours(index, count, metric == "cosine")
        except KeyError as error:
            raise NotThere(str(error)) from None

    def _embedding(self, run: str, tag: str) -> Any:
        try:
            return self._embeddings.get(run, tag)
        except KeyError as error:
            raise NotThere(str(error)) from None

    def hparams(self) -> dict[str, Any]:
        """A row for each run that has hyper-parameters, with the last value of each metric."""
        with self._store.lock:
            runs = [run for run in self._store.runs.values() if run.hparams.values]
            runs.sort(key=lambda run: (run.started, run.name))
            names = list(dict.fromkeys(name for run in runs for name in run.hparams.values))
            metrics = list(dict.fromkeys(tag for run in runs for tag in run.hparams.metrics))
            rows = []
            for run in runs:
                values = {name: number(value) if isinstance(value, float) else value for name, value in run.hparams.values.items()}
                judged = {tag: number(last) for tag in metrics if (last := self._last(run, tag)) is not None}
                rows.append({"run": run.name, "values": values, "metrics": judged})
            return {"names": names, "metrics": metrics, "rows": rows}

    def _last(self, run: Run, tag: str) -> float | None:
        """The last value of a metric in a run, or else in one below it."""
        below = (r for name, r in self._store.runs.items() if name.startswith(f"{run.name}/"))
        for place in (run, *below):
            series = place.series["scalars"].get(tag)
            if series is not None and series.last is not None:
                return series.last[2]
        return None
