"""Where a ``DataLoader`` is in its data, so that training can go on after a restart with the batch that would have come next.

A position is the state of the random numbers at the beginning of a pass, from which the sampler draws its order again, and the
number of batches that have been given out since. Batches that were fetched ahead and not given out do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from oar.framework.random_state import get_random_states, set_random_states

if TYPE_CHECKING:
    from oar.io.reader import DataLoader

__all__ = ["Position"]

_KEYS = {"passes", "batches", "random", "samplers", "dataset"}


class Position:
    """The position of one loader.

    Args:
        loader: the loader.
    """

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self.begun = 0  # passes so far
        self._batches: int | None = None  # given out in the pass that is under way; None between passes
        self._random: dict[str, Any] | None = None  # at its beginning
        self._samplers: list[Any] = []
        self._dataset: Any = None  # its own state, if it has one
        self._to_skip = 0
        self._skip: int | None = None  # how many batches of the next pass come before the position that was loaded
        self._outside: dict[str, Any] | None = None  # random numbers outside, while a loaded pass begins
        self._number = 0  # of the iterator that counts

    # state -------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Numbers, text and arrays."""
        state = {"passes": self.begun, "batches": None, "random": None, "samplers": self._sampler_states(), "dataset": self._dataset_state()}
        if self._skip is not None:  # loaded, and not used yet
            state.update(batches=self._skip, random=self._random, samplers=self._samplers, dataset=self._dataset)
        elif self._batches is not None:
            state.update(passes=self.begun - 1, batches=self._batches, random=self._random, samplers=self._samplers)
        return state

    def load_state_dict(self, state: Any) -> None:
        """The next pass goes on there."""
        if not isinstance(state, dict) or set(state) != _KEYS:
            what = sorted(map(str, state)) if isinstance(state, dict) else type(state).__name__
            raise ValueError(f"[DataLoader.load_state_dict] the state has {what}, expected {sorted(_KEYS)}. Pass what "
                             "DataLoader.state_dict() returned.")
        self._number += 1
        self.begun, self._batches = int(state["passes"]), None
        self._random, self._samplers, self._dataset = state["random"], list(state["samplers"]), state["dataset"]
        self._skip = None if state["batches"] is None else int(state["batches"])
        if self._skip is None:
            self._set_samplers(self._samplers)

    def _sampler_states(self) -> list[Any]:
        return [_state_of(sampler) for sampler in self._sources()]

    def _set_samplers(self, states: list[Any]) -> None:
        for sampler, state in zip(self._sources(), states):
            _set_state(sampler, state)

    def _sources(self) -> list[Any]:
        batches = self._loader.batch_sampler
        listed = [batches, getattr(batches, "sampler", None), getattr(self._loader, "_singly", None)]
        return [source for source in listed if source is not None]

    def _dataset_state(self) -> Any:
        """Where a dataset is that is read in order, here, and can say it."""
        loader = self._loader
        return _state_of(loader.dataset) if loader._iterable and loader.num_workers == 0 and _has_state(loader.dataset) else None

    # passes ------------------------------------------------------------------------------------

    def counted(self, start: Callable[[], Any]) -> Generator[Any, None, None]:
        """The batches of a pass. What ``start`` returns gives them, from the position that was loaded if there is one."""
        skip, self._skip = self._skip, None
        self._number += 1
        self.begun += 1
        number = self._number
        if skip is None:
            self._random, self._samplers = get_random_states(), self._sampler_states()
        else:
            self._outside = get_random_states()
            assert self._random is not None
            set_random_states(self._random)
            self._set_samplers(self._samplers)
            _set_state(self._loader.dataset, self._dataset)
        self._batches = skip or 0
        self._to_skip = 0 if skip is None or self._dataset is not None else skip
        self._dataset = None
        batches = start()
        try:
            if self._loader._iterable:
                for _ in range(self._to_skip):
                    next(batches, None)
                self._go_on()
            for batch in batches:
                if number == self._number:
                    self._batches += 1
                yield batch
        finally:
            self._go_on()
            batches.close()
        if number == self._number:
            self._batches = None

    def remaining(self, jobs: Iterator[Any]) -> Iterator[Any]:
        """The jobs after the position that was loaded; the sampler has drawn its order when the first is returned."""
        for _ in range(self._to_skip):
            if next(jobs, None) is None:
                break
        for job in jobs:
            self._go_on()
            yield job

    def _go_on(self) -> None:
        """The random numbers outside are again what they were."""
        if self._outside is not None:
            set_random_states(self._outside)
            self._outside = None


def _has_state(source: Any) -> bool:
    return hasattr(source, "state_dict") and hasattr(source, "load_state_dict")


def _state_of(source: Any) -> Any:
    if _has_state(source):
        return source.state_dict()
    return {"epoch": source.epoch} if isinstance(getattr(source, "epoch", None), int) else None


def _set_state(source: Any, state: Any) -> None:
    if state is None:
        return
    if _has_state(source):
        source.load_state_dict(state)
    elif hasattr(source, "epoch"):
        source.epoch = int(state["epoch"])
