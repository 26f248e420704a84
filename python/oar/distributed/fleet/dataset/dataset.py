"""Datasets of files with one sample in a line: for each slot the count of its values, then the values."""

from __future__ import annotations

import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

from oar._lazy import np

__all__ = ["DatasetBase", "InMemoryDataset", "QueueDataset"]

# Settings of Paddle that change nothing here.
_ACCEPTED = ("input_type", "fs_name", "fs_ugi", "download_cmd", "data_feed_type", "queue_num", "merge_size", "parse_ins_id",
             "parse_content", "parse_logkey", "fleet_send_batch_size", "fleet_send_sleep_seconds", "fea_eval", "candidate_size")

Sample = list[Any]  # an array for each slot


def _parsed(line: str, variables: list[Any], where: str) -> Sample:
    words, at, sample = line.split(), 0, []
    for variable in variables:
        count = int(words[at]) if at < len(words) and words[at].isdigit() else -1
        values = words[at + 1 : at + 1 + count]
        if count < 1 or len(values) < count:
            raise ValueError(f"[dataset] {where}: the slot '{variable.name}' should be a count of 1 or more and as many values, but the "
                             f"line has {' '.join(words[at : at + 6])!r} there. hint: fleet.MultiSlotDataGenerator writes such lines.")
        try:
            sample.append(np.array(values, variable.dtype.name))
        except ValueError:
            raise ValueError(f"[dataset] {where}: {values[:6]} of the slot '{variable.name}' are not of the dtype "
                             f"{variable.dtype.name}.") from None
        at += 1 + count
    if at != len(words):
        raise ValueError(f"[dataset] {where}: {len(words) - at} values follow after the last slot. hint: name all slots in use_var.")
    return sample


class DatasetBase:
    """What the datasets share: files, the command that their lines are piped through, and the inputs that they feed.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.dataset import DatasetBase
        >>> isinstance(oar.distributed.QueueDataset(), DatasetBase)
        True
    """

    def __init__(self) -> None:
        self._batch_size, self._threads = 1, 1
        self._variables: list[Any] = []
        self._command = "cat"
        self._files: list[str] = []

    def init(self, **kwargs: Any) -> None:
        """Sets how files are read.

        Args:
            kwargs: ``batch_size``: samples of a batch, 1 by default; ``thread_num``: files that are read at once; ``use_var``: the
                inputs of the program, in the order of the slots in a line; ``pipe_command``: a command of the shell that each file
                is piped through, ``cat`` by default; it writes a sample in each line. Other settings of Paddle are accepted.
        """
        self._set(kwargs)

    def _set(self, settings: dict[str, Any]) -> None:
        if settings.get("fs_name"):
            raise NotImplementedError(f"[dataset] files of {settings['fs_name']} are not read. hint: read them in pipe_command, or copy "
                                      "them.")
        setters: dict[str, Callable[[Any], None]] = {
            "batch_size": self._set_batch_size, "thread_num": self._set_thread, "use_var": self._set_use_var,
            "pipe_command": self._set_pipe_command}
        for name, value in settings.items():
            if name in setters:
                setters[name](value)
            elif name not in _ACCEPTED:
                raise TypeError(f"[dataset] there is no setting '{name}'. hint: the settings are {', '.join([*setters, *_ACCEPTED])}.")

    def _set_batch_size(self, batch_size: int) -> None:
        if batch_size < 1:
            raise ValueError(f"[dataset] batch_size is {batch_size}; it must be 1 or more.")
        self._batch_size = batch_size

    def _set_thread(self, thread_num: int) -> None:
        if thread_num < 1:
            raise ValueError(f"[dataset] thread_num is {thread_num}; it must be 1 or more.")
        self._threads = thread_num

    def _set_use_var(self, var_list: list[Any]) -> None:
        for variable in var_list:
            if variable.dtype.name not in ("int64", "float32"):
                raise ValueError(f"[dataset] the input '{variable.name}' is {variable.dtype.name}; slots are int64 or float32.")
        self._variables = list(var_list)

    def _set_pipe_command(self, pipe_command: str) -> None:
        self._command = pipe_command

    def set_filelist(self, filelist: list[str]) -> None:
        """Sets the files.

        Args:
            filelist: their paths.
        """
        if isinstance(filelist, str):
            raise TypeError("[set_filelist] filelist must be a list of paths, not a str.")
        self._files = list(filelist)

    def _read(self, path: str) -> Iterator[Sample]:
        if not self._variables:
            raise RuntimeError("[dataset] it is not known what the slots are. hint: pass use_var to init.")
        with open(path, "rb") as file:
            process = subprocess.Popen(self._command, shell=True, stdin=file, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            try:
                for number, line in enumerate(process.stdout, 1):
                    yield _parsed(line, self._variables, f"line {number} of what {self._command!r} makes of {path}")
            except BaseException:
                process.kill()
                raise
            finally:
                process.stdout.close()
                code = process.wait()
        if code != 0:
            raise RuntimeError(f"[dataset] the pipe_command {self._command!r} ended with the code {code} for {path}.")

    def _samples(self) -> Iterator[Sample]:
        raise NotImplementedError("[dataset] use InMemoryDataset or QueueDataset.")

    def _batches(self) -> Iterator[dict[str, Any]]:
        batch: list[Sample] = []
        for sample in self._samples():
            batch.append(sample)
            if len(batch) == self._batch_size:
                yield self._feed(batch)
                batch = []
        if batch:
            yield self._feed(batch)

    def _feed(self, batch: list[Sample]) -> dict[str, Any]:
        """Arrays for the inputs. Slots of samples must be equally long; an input of one axis takes single values."""
        feed = {}
        for i, variable in enumerate(self._variables):
            columns = [sample[i] for sample in batch]
            longest = max(len(column) for column in columns)
            if any(len(column) != longest for column in columns):
                raise ValueError(f"[dataset] samples of a batch have {min(map(len, columns))} to {longest} values for '{variable.name}'. "
                                 "hint: pad them in pipe_command.")
            shape = [len(batch), *(size if isinstance(size, int) and size > 0 else -1 for size in variable.shape[1:])]
            feed[variable.name] = np.stack(columns).reshape(shape)
        return feed


class QueueDataset(DatasetBase):
    """A dataset that is read while it is used.

    Examples:
        >>> import oar
        >>> dataset = oar.distributed.QueueDataset()
        >>> dataset.init(batch_size=32, thread_num=1, pipe_command='cat', use_var=[])
        >>> dataset.set_filelist(['a.txt', 'b.txt'])
    """

    def _samples(self) -> Iterator[Sample]:
        for path in self._files:
            yield from self._read(path)


class InMemoryDataset(DatasetBase):
    """A dataset that is read into memory, where it can be shuffled.

    Examples:
        >>> import pathlib, tempfile
        >>> import oar
        >>> oar.enable_static()
        >>> file = pathlib.Path(tempfile.mkdtemp(), 'part-0')
        >>> _ = file.write_text('2 7 8 1 0.5\\n2 1 4 1 1.5\\n')
        >>> main = oar.static.Program()
        >>> with oar.static.program_guard(main):
        ...     slots = [oar.static.data('words', [None, 2], 'int64'), oar.static.data('score', [None, 1])]
        ...
        >>> dataset = oar.distributed.InMemoryDataset()
        >>> dataset.init(batch_size=2, thread_num=1, pipe_command='cat', use_var=slots)
        >>> dataset.set_filelist([str(file)])
        >>> dataset.load_into_memory()
        >>> dataset.local_shuffle()
        >>> dataset.get_memory_data_size()
        2
        >>> oar.disable_static()
    """

    def __init__(self) -> None:
        super().__init__()
        self._loaded: list[Sample] | None = None
        self._loading: threading.Thread | None = None
        self._failure: BaseException | None = None
        self._seed = 0

    def update_settings(self, **kwargs: Any) -> None:
        """Changes some of the settings of ``init``.

        Args:
            kwargs: as for ``init``.
        """
        self._set(kwargs)

    def load_into_memory(self, is_shuffle: bool = False) -> None:
        """Reads all files.

        Args:
            is_shuffle: whether to shuffle what was read.
        """
        self.preload_into_memory()
        self.wait_preload_done()
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Begins to read all files; ``wait_preload_done`` waits for the end.

        Args:
            thread_num: files that are read at once; None takes the number of ``init``.
        """
        from concurrent.futures import ThreadPoolExecutor

        def load() -> None:
            try:
                with ThreadPoolExecutor(thread_num or self._threads) as pool:
                    parts = pool.map(lambda path: list(self._read(path)), self._files)
                    self._loaded = [sample for part in parts for sample in part]
            except BaseException as error:
                self._failure = error

        self._loading = threading.Thread(target=load)
        self._loading.start()

    def wait_preload_done(self) -> None:
        """Waits until all files have been read."""
        if self._loading is None:
            raise RuntimeError("[wait_preload_done] nothing is being read. hint: call preload_into_memory() first.")
        self._loading.join()
        self._loading = None
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _samples(self) -> Iterator[Sample]:
        return iter(self._content("train_from_dataset"))

    def _content(self, function: str) -> list[Sample]:
        if self._loaded is None:
            raise RuntimeError(f"[{function}] nothing has been read. hint: call load_into_memory() first.")
        return self._loaded

    def local_shuffle(self) -> None:
        """Shuffles what this process has read."""
        self._seed += 1
        random.Random(self._seed).shuffle(self._content("local_shuffle"))

    def global_shuffle(self, fleet: Any = None, thread_num: int = 12) -> None:
        """Shuffles what all workers have read: each sample goes to a random one. Workers exchange them by the default group of
        ``init_parallel_env``. With one worker it is ``local_shuffle``.

        Args:
            fleet: ``oar.distributed.fleet``; None shuffles here only.
            thread_num: accepted for compatibility.
        """
        from oar import distributed

        samples = self._content("global_shuffle")
        workers = fleet.worker_num() if fleet is not None else 1
        if workers > 1:
            if not distributed.is_initialized():
                raise RuntimeError(f"[global_shuffle] there are {workers} workers, which have no group to exchange samples by. hint: call "
                                   "oar.distributed.init_parallel_env() in all workers first, or use local_shuffle.")
            rank = distributed.get_rank()
            draw = random.Random(f"{self._seed} {rank}")
            target = [draw.randrange(workers) for _ in samples]
            every: list[Any] = []
            distributed.all_gather_object(every, [[s for s, t in zip(samples, target) if t == w] for w in range(workers)])
            self._loaded = [sample for parts in every for sample in parts[rank]]
        self.local_shuffle()

    def slots_shuffle(self, slots: list[str]) -> None:
        """Gives each sample the values of a random other one in these slots, to see how much they matter.

        Args:
            slots: names of inputs.
        """
        samples = self._content("slots_shuffle")
        names = [variable.name for variable in self._variables]
        for name in slots:
            if name not in names:
                raise ValueError(f"[slots_shuffle] there is no slot {name!r}. hint: there are {', '.join(names)}.")
            place, self._seed = names.index(name), self._seed + 1
            column = [sample[place] for sample in samples]
            random.Random(self._seed).shuffle(column)
            for sample, values in zip(samples, column):
                sample[place] = values

    def release_memory(self) -> None:
        """Forgets what was read."""
        self._loaded = None

    def get_memory_data_size(self, fleet: Any = None) -> int:
        """How many samples were read: by this process or, with ``fleet``, by all workers.

        Args:
            fleet: ``oar.distributed.fleet``.
        """
        own = len(self._loaded or ())
        return own if fleet is None else int(np.sum(fleet.util.all_reduce(np.array(own))))

    def get_shuffle_data_size(self, fleet: Any = None) -> int:
        """How many samples there are after a shuffle.

        Args:
            fleet: ``oar.distributed.fleet``.
        """
        return self.get_memory_data_size(fleet)
