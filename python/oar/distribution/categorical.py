"""The categorical distribution."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar._C import Tensor, ops
from oar.distribution._parameters import sample_shape, to_tensors
from oar.distribution.distribution import Distribution, of_class

if TYPE_CHECKING:
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["Categorical"]


class Categorical(Distribution):
    """A distribution over the integers from 0 to the size of the last axis of ``logits``, less 1.

    As in Paddle, ``sample``, ``entropy`` and ``kl_divergence`` take the probabilities from a softmax of ``logits``, while
    ``probs``, ``prob`` and ``log_prob`` take ``logits`` for weights and divide them by their sum. The two agree if ``logits``
    are logarithms for the former and probabilities for the latter.

    Args:
        logits: weights or their logarithms, along the last axis.
        name: a name for the distribution.

    Examples:
        >>> import oar
        >>> from oar.distribution import Categorical
        >>> categorical = Categorical(oar.to_tensor([1.0, 3.0]))
        >>> categorical.probs(oar.to_tensor([0, 1]))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.25000000, 0.75000000])
        >>> categorical.entropy()
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.36533922)
    """

    logits: Tensor

    def __init__(self, logits: Parameter, name: str | None = None) -> None:
        self.name = name if name is not None else "Categorical"
        (self.logits,) = to_tensors("Categorical", keep_arrays=True, logits=logits)
        if self.logits.ndim == 0:
            raise ValueError("[Categorical] logits are 0-d; they need an axis of categories.")
        self.dtype = self.logits.dtype
        super().__init__(self.logits.shape[:-1])

    def sample(self, shape: SampleShape | int = ()) -> Tensor:
        """Draw integers of dtype int64.

        Args:
            shape: how many to draw, a shape or a number. The result has this shape, then the batch shape.

        Returns:
            a tensor.
        """
        size = sample_shape([shape] if isinstance(shape, int) else shape)
        count = math.prod(size)
        result = [*size, *self._batch_shape]
        if 0 in result:
            return oar.zeros(result, "int64")
        with oar.no_grad():
            weights = oar.nn.functional.softmax(self.logits, -1).reshape([-1, self.logits.shape[-1]])
            drawn = ops.multinomial(weights, count, True)
            return drawn.transpose([1, 0]).reshape(result)

    def kl_divergence(self, other: Distribution) -> Tensor:
        """The divergence of Kullback and Leibler from this distribution to another categorical one, in nats.

        Args:
            other: the other distribution.

        Returns:
            a tensor of the batch shape, with an axis of one element in place of the categories.
        """
        other = of_class(Categorical, other)
        mine, others = self._log_softmax(), other._log_softmax()
        return (mine.exp() * (mine - others)).sum(-1, keepdim=True)

    def entropy(self) -> Tensor:
        log_probs = self._log_softmax()
        probs = log_probs.exp()
        return -oar.where(probs > 0, probs * log_probs, oar.zeros_like(probs)).sum(-1)

    def _log_softmax(self) -> Tensor:
        return oar.nn.functional.log_softmax(self.logits, -1)

    def probs(self, value: Tensor) -> Tensor:
        """The probabilities of categories: their shares of the sum of ``logits``.

        Args:
            value: integers; the last axis holds the categories of one distribution, the axes before it are the batch shape.
                With one distribution, any shape.

        Returns:
            a tensor of the shape of ``value``.
        """
        value = value if isinstance(value, Tensor) else oar.to_tensor(value)
        if value.dtype.name not in ("int32", "int64"):
            raise ValueError(f"[Categorical] value has dtype {value.dtype.name}; categories are int32 or int64.")
        shares = self.logits / self.logits.sum(-1, keepdim=True)
        if shares.ndim == 1:
            return oar.gather(shares, value.reshape([-1])).reshape(value.shape)
        if value.ndim == 1:
            value = oar.broadcast_to(value, [*self._batch_shape, value.shape[0]])
        if value.ndim != shares.ndim:
            raise ValueError(f"[Categorical] value has {value.ndim} axes; it must have 1, or {shares.ndim} as logits do.")
        return oar.take_along_axis(shares, value, -1)

    def prob(self, value: Tensor) -> Tensor:
        return self.probs(value)

    def log_prob(self, value: Tensor) -> Tensor:
        return self.probs(value).log()
