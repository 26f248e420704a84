"""A layer with an observer before or after it."""

from __future__ import annotations

from typing import Any

from oar.nn.layer import Layer

__all__ = ["ObserveWrapper"]


class ObserveWrapper(Layer):
    """Runs an observer and the layer that it observes.

    Args:
        observer: a quanter or an observer.
        observed: the layer.
        observe_input: whether the observer sees the input; else the result.
    """

    def __init__(self, observer: Any, observed: Layer, observe_input: bool = True) -> None:
        super().__init__()
        self._observer = observer
        self._observed = observed
        self._observe_input = observe_input

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if self._observe_input:
            return self._observed(self._observer(*inputs), **kwargs)
        return self._observer(self._observed(*inputs, **kwargs))
