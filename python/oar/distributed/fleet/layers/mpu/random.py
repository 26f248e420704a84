"""Streams of random numbers with a name each: parts of a network that several processes share draw from one of their own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from oar._lazy import np

import oar
from oar._C import Tensor
from oar.distributed.communication import broadcast
from oar.nn import functional as F

__all__ = ["RNGStatesTracker", "dropout", "get_rng_state_tracker", "model_parallel_random_seed"]

MODEL_PARALLEL_RNG = "model_parallel_rng"


class RNGStatesTracker:
    """Streams of random numbers with a name each.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.meta_parallel import RNGStatesTracker
        >>> tracker = RNGStatesTracker()
        >>> tracker.add("layers", 7)
        >>> with tracker.rng_state("layers"):
        ...     first = oar.rand([2])
    """

    def __init__(self) -> None:
        self.states_: dict[str, Any] = {}
        self.seeds_: set[int] = set()

    def reset(self) -> None:
        """Forgets all streams."""
        self.states_, self.seeds_ = {}, set()

    def add(self, name: str, seed: int) -> None:
        """Starts a stream.

        Args:
            name: its name.
            seed: its seed; each stream needs another.
        """
        if seed in self.seeds_:
            raise ValueError(f"[RNGStatesTracker.add] seed {seed} is used already. hint: pass another one.")
        if name in self.states_:
            raise ValueError(f"[RNGStatesTracker.add] there is a stream '{name}' already. hint: pass another name.")
        before = oar.get_rng_state()
        oar.seed(seed)
        self.seeds_.add(seed)
        self.states_[name] = oar.get_rng_state()
        oar.set_rng_state(before)

    def get_states_tracker(self) -> dict[str, Any]:
        """The states of all streams, by name."""
        return dict(self.states_)

    def set_states_tracker(self, states: dict[str, Any]) -> None:
        """Sets the states of streams.

        Args:
            states: what ``get_states_tracker`` returned.
        """
        for name in states:
            self._check(name)
        self.states_.update(states)

    def _check(self, name: str) -> None:
        if name not in self.states_:
            raise ValueError(f"[RNGStatesTracker] there is no stream '{name}', only {sorted(self.states_)}. hint: add it first.")

    @contextlib.contextmanager
    def rng_state(self, name: str = MODEL_PARALLEL_RNG) -> Iterator[None]:
        """Random numbers of the block come from a stream.

        Args:
            name: the name of the stream.
        """
        self._check(name)
        before = oar.get_rng_state()
        oar.set_rng_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = oar.get_rng_state()
            oar.set_rng_state(before)


_tracker = RNGStatesTracker()


def get_rng_state_tracker() -> RNGStatesTracker:
    """The streams of this program.

    Returns:
        an ``RNGStatesTracker``.

    Examples:
        >>> from oar.distributed.fleet.meta_parallel import get_rng_state_tracker
        >>> get_rng_state_tracker() is get_rng_state_tracker()
        True
    """
    return _tracker


def model_parallel_random_seed(seed: int | None = None) -> None:
    """Seeds the random numbers of this process, the same in all processes, and those of the stream ``model_parallel_rng``, which
    differ along the axis of tensors and along the pipeline.

    Args:
        seed: the seed. If it is None, all processes call this: the first one draws a seed with NumPy.

    Examples:
        >>> from oar.distributed import fleet
        >>> _ = fleet.init(is_collective=True)
        >>> fleet.meta_parallel.model_parallel_random_seed(7)
    """
    from oar.distributed.fleet._process import fleet

    groups = fleet.get_hybrid_communicate_group()
    place = groups.get_model_parallel_rank() * groups.get_pipe_parallel_world_size() + groups.get_stage_id()
    whole = seed if seed else _drawn_together()
    _tracker.reset()
    _tracker.add(MODEL_PARALLEL_RNG, whole + 1 + place)
    oar.seed(whole)


def _drawn_together() -> int:
    drawn = oar.to_tensor([int(np.random.randint(0, 10000))])
    broadcast(drawn, 0)
    return int(drawn.item())


def dropout(
    x: Tensor, p: Any = 0.5, axis: Any = None, rng_name: str | None = None, training: bool = True, mode: str = "upscale_in_train",
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """``nn.functional.dropout`` with the random numbers of a stream.

    Args:
        x: the input.
        p: the probability of a zero.
        axis: the axes along which elements are dropped one by one.
        rng_name: the name of the stream; None draws as ``nn.functional.dropout`` does.
        training: whether anything is dropped.
        mode: ``'upscale_in_train'`` or ``'downscale_in_infer'``.
        name: accepted for compatibility.

    Returns:
        a tensor.

    Examples:
        >>> import oar
        >>> from oar.distributed.fleet.layers.mpu import random
        >>> tracker = random.get_rng_state_tracker()
        >>> tracker.reset()
        >>> tracker.add("layers", 7)
        >>> random.dropout(oar.ones([4]), 0.5, rng_name="layers").shape
        [4]
    """
    if rng_name is None:
        return F.dropout(x, p, axis, training, mode, name)
    with _tracker.rng_state(rng_name):
        return F.dropout(x, p, axis, training, mode, name)
