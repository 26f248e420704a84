"""Random numbers of Python and NumPy: a program would give the same ones at every run."""

from __future__ import annotations

import pickle
import random
import sys
from typing import Any

__all__ = ["RandomStates"]


class RandomStates:
    """The places in the random streams when it was made."""

    def __init__(self) -> None:
        self._python = random.getstate()
        self._generators: dict[int, tuple[Any, Any, bytes]] = {}
        if "numpy.random" in sys.modules:
            self.meet(sys.modules["numpy.random"].mtrand._rand)

    def meet(self, generator: Any) -> None:
        """Watches a generator of Python's or NumPy's."""
        known = isinstance(generator, random.Random) or type(generator).__module__.startswith("numpy.random")
        if known and id(generator) not in self._generators:
            state = _state_of(generator)
            if state is not None:
                self._generators[id(generator)] = (generator, state, pickle.dumps(state))

    def drawn(self) -> str | None:
        """Who drew, in words."""
        if random.getstate() != self._python:
            return "it draws from Python's random"
        for generator, _, then in self._generators.values():
            if pickle.dumps(_state_of(generator)) != then:
                whose = "Python" if isinstance(generator, random.Random) else "NumPy"
                return f"it draws from {whose}'s random numbers"
        return None

    def restore(self) -> None:
        """Back to the places."""
        random.setstate(self._python)
        for generator, state, _ in self._generators.values():
            if isinstance(generator, random.Random):
                generator.setstate(state)
            elif hasattr(generator, "set_state"):
                generator.set_state(state)
            else:
                generator.bit_generator.state = state


def _state_of(generator: Any) -> Any:
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "get_state"):
        return generator.get_state(legacy=False)
    return generator.bit_generator.state if hasattr(generator, "bit_generator") else None
