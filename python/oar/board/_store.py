"""The runs of a folder: what they logged, kept up to date while they run."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from oar.board._follow import LogFile, is_log, unreadable_log
from oar.board._items import KINDS, Hparams, Item, Purge
from oar.board._projector import CONFIG, read_config
from oar.board._series import ScalarSeries, Series

__all__ = ["MOST_POINTS", "Points", "Run", "Store", "Stored"]

Points = list[tuple[int, float, Any]]  # step, wall, value
MOST_POINTS = 5000
# How many steps of a tag to keep. What is large stays in its file.
_MOST = {"histograms": 200, "images": 200, "audio": 100, "text": 200, "curves": 100, "graphs": 1, "embeddings": 1}
_IN_MEMORY = ("scalars", "histograms", "curves")
_MOST_TAGS = 10_000
_PIECE = 1 << 22  # bytes of a file that are read before it is the next file's turn


class Stored(NamedTuple):
    """Where an item is."""

    file: LogFile
    at: int
    number: int

    def fetch(self) -> Any:
        """Its value."""
        return self.file.fetch(self.at, self.number).value


class Run:
    """A folder with log files, or one of several lines of a chart that a file holds.

    Args:
        name: the path below the folder of all logs.
        folder: the folder.
        most_points: how many points of a scalar to keep.
        parent: the run whose files hold it, if it has none.
    """

    def __init__(self, name: str, folder: Path, most_points: int, parent: str | None = None) -> None:
        self.name, self.folder, self.parent = name, folder, parent
        self.display = ""
        self.files: dict[Path, LogFile] = {}
        self.series: dict[str, dict[str, Series]] = {kind: {} for kind in KINDS}
        self.hparams = Hparams({}, ())
        self.embeddings: dict[str, dict[str, str]] = {}  # entries of a projector's configuration
        self.started = float("inf")
        self.problem = ""
        self._most_points = most_points
        self._config_changed = 0

    def add(self, file: LogFile, at: int, number: int, item: Item, version: int) -> None:
        """Adds an item."""
        if not math.isfinite(item.wall):
            item = item._replace(wall=0.0)
        if item.wall:
            self.started = min(self.started, item.wall)
        if item.kind == "meta":
            self.display = item.value
        elif item.kind == "hparams":
            values = {**self.hparams.values, **item.value.values}
            self.hparams = Hparams(values, tuple(dict.fromkeys([*self.hparams.metrics, *item.value.metrics])))
        else:
            series = self._series(item.kind, item.tag)
            value = item.value if item.kind in _IN_MEMORY else Stored(file, at, number)
            if series is not None and series.add(file.place, (item.step, item.wall, value)):
                series.version = version

    def _series(self, kind: str, tag: str) -> Series | None:
        tags = self.series[kind]
        if tag not in tags:
            if len(tags) >= _MOST_TAGS:
                self.problem = f"there are more than {_MOST_TAGS} tags of {kind}; the others are left out"
                return None
            tags[tag] = ScalarSeries(self._most_points) if kind == "scalars" else Series(_MOST[kind])
        return tags[tag]

    def purge(self, step: int, version: int) -> None:
        """Removes what was logged from a step on."""
        for tags in self.series.values():
            for series in tags.values():
                series.purge(step)
                series.version = version

    def read_config(self) -> bool:
        """Looks whether the embeddings have changed."""
        path = self.folder / CONFIG
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            return False
        if changed == self._config_changed:
            return False
        self._config_changed = changed
        try:
            self.embeddings = {entry.get("tensor_name") or entry["tensor_path"]: entry for entry in read_config(path)}
        except (OSError, ValueError) as error:
            self.problem = f"{CONFIG}: {error}"
        return True


class Store:
    """All runs below a folder. Any thread may ask; one reads.

    Args:
        root: the folder.
        most_points: how many points of a scalar to keep.
    """

    def __init__(self, root: str | Path, most_points: int = MOST_POINTS) -> None:
        self.root = Path(root)
        self.lock = threading.RLock()
        self.runs: dict[str, Run] = {}
        self.version = 1
        self.loading = True
        self._most_points = most_points
        self._notes: dict[str, str] = {}  # problems by file
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # ---- reading

    def start(self, seconds: float) -> None:
        """Reads in a thread, again and again.

        Args:
            seconds: the time between.
        """

        def follow() -> None:
            while not self._stopping.is_set():
                began = time.monotonic()
                try:
                    self.refresh()
                except Exception as error:  # noqa: BLE001: the page must go on with what it has, and say why
                    self._note(".", f"{type(error).__name__}: {error}")
                # A folder that takes long to look through is not looked through all the time.
                self._stopping.wait(max(seconds, time.monotonic() - began))

        self._thread = threading.Thread(target=follow, name="oar-board-reader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def refresh(self) -> None:
        """Reads everything that has been written since the last time."""
        self._find_files()
        behind = True
        while behind and not self._stopping.is_set():
            behind = False
            for run in list(self.runs.values()):
                for file in sorted(run.files.values(), key=lambda f: f.place):
                    behind |= self._read(run, file)
        with self.lock:
            if self.loading:
                self.loading = False
                self.version += 1

    def _find_files(self) -> None:
        found: dict[str, set[Path]] = {}
        configured: set[str] = set()
        notes: dict[str, str] = {}
        if not self.root.is_dir():
            notes["."] = "the folder does not exist; it is read as soon as it does"
        for folder, names in self._folders():
            run = folder.relative_to(self.root).as_posix()
            logs = {folder / name for name in names if is_log(name)}
            for name in names:
                if reason := unreadable_log(name):
                    notes[(folder / name).relative_to(self.root).as_posix()] = reason
            if CONFIG in names:
                configured.add(run)
            if logs or CONFIG in names:
                found[run] = logs
        with self.lock:
            self._match(found)
            for name in configured:
                if self.runs[name].read_config():
                    self.version += 1
            if notes != self._notes:
                self._notes = notes
                self.version += 1

    def _folders(self) -> Iterator[tuple[Path, list[str]]]:
        """Links are followed, but no folder is visited twice."""
        seen: set[tuple[int, int]] = set()
        for folder, inner, names in os.walk(self.root, followlinks=True):
            try:
                status = os.stat(folder)
            except OSError:
                continue
            if (status.st_dev, status.st_ino) in seen:
                inner[:] = []
                continue
            seen.add((status.st_dev, status.st_ino))
            inner.sort()
            yield Path(folder), names

    def _match(self, found: dict[str, set[Path]]) -> None:
        """Makes the runs those that were found. A run of which a file was removed or replaced is read again."""
        for name in list(self.runs):
            run = self.runs.get(name)
            if run is None or run.parent is not None:
                continue
            if name not in found or not all(path in found[name] and not self._replaced(file) for path, file in run.files.items()):
                self._forget(name)
        for name, paths in found.items():
            run = self._run(name, self.root / name)
            for path in paths - set(run.files):
                run.files[path] = LogFile(path)
                self.version += 1

    @staticmethod
    def _replaced(file: LogFile) -> bool:
        try:
            return file.was_replaced()
        except OSError:
            return True

    def _forget(self, name: str) -> None:
        for other in [n for n, run in self.runs.items() if name in (n, run.parent)]:
            del self.runs[other]
        self.version += 1

    def _run(self, name: str, folder: Path, parent: str | None = None) -> Run:
        if name not in self.runs:
            self.runs[name] = Run(name, folder, self._most_points, parent)
            self.version += 1
        return self.runs[name]

    def _read(self, run: Run, file: LogFile) -> bool:
        """Reads a piece of a file; True if there is more."""
        problem = file.problem
        try:
            batch = list(file.read(_PIECE))
        except OSError as error:
            file.problem, batch = f"cannot be read: {error.strerror}", []
        with self.lock:
            if batch or file.problem != problem:
                self.version += 1
            for at, number, item in batch:
                if isinstance(item, Purge):
                    run.purge(item.step, self.version)
                    continue
                owner = run
                if item.run:
                    owner = self._run(item.run if run.name == "." else f"{run.name}/{item.run}", run.folder, run.name)
                owner.add(file, at, number, item, self.version)
        return file.behind

    def _note(self, where: str, problem: str) -> None:
        with self.lock:
            self._notes[where] = problem
            self.version += 1

    # ---- answers

    def problems(self) -> list[tuple[str, str]]:
        """Files that cannot be read, each with the reason."""
        with self.lock:
            listed = dict(self._notes)
            for run in self.runs.values():
                if run.problem:
                    listed[run.name] = run.problem
                for path, file in run.files.items():
                    if file.problem:
                        listed[path.relative_to(self.root).as_posix()] = file.problem
            return sorted(listed.items())

    def each(self, kind: str, tag: str) -> dict[str, tuple[Points, int]]:
        """The points of each run that has the tag, and how many there were."""
        with self.lock:
            found = {name: run.series[kind][tag] for name, run in self.runs.items() if tag in run.series[kind]}
            return {name: (list(series), series.seen) for name, series in found.items()}

    def point(self, kind: str, run: str, tag: str, index: int) -> Any:
        """The value of a point, read from its file."""
        with self.lock:
            found = self.runs.get(run)
            series = found.series.get(kind, {}).get(tag) if found is not None else None
            points = list(series) if series is not None else []
            if not -len(points) <= index < len(points):
                raise KeyError(f"run {run!r} has no {kind} {tag!r} with the number {index}")
            stored = points[index][2]
        return stored.fetch()
