"""What every observer is."""

from __future__ import annotations

import abc

from oar.quantization.base_quanter import BaseQuanter

__all__ = ["BaseObserver"]


class BaseObserver(BaseQuanter, metaclass=abc.ABCMeta):
    """A quanter that returns its input as it is, and remembers what its scales are derived from.

    Examples:
        >>> import oar
        >>> from oar.quantization import BaseObserver
        >>> from oar.quantization.observers import AbsmaxObserver
        >>> observer = AbsmaxObserver()._instance(oar.nn.ReLU())
        >>> isinstance(observer, BaseObserver), observer(oar.to_tensor([-3.0, 1.0])).tolist()
        (True, [-3.0, 1.0])
        >>> observer.scales().item()
        3.0
    """

    @abc.abstractmethod
    def cal_thresholds(self) -> None:
        """Derives the scales and zero points from what was seen."""
