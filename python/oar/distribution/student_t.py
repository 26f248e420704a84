"""The distribution of Student."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import oar
from oar.distribution._parameters import broadcast, check_nonnegative, check_positive, to_tensors, to_value
from oar.distribution._sums import gamma_sample
from oar.distribution.distribution import Distribution

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter, SampleShape

__all__ = ["StudentT"]


class StudentT(Distribution):
    """The t distribution of Student.

    Args:
        df: the degrees of freedom; positive.
        loc: the centre.
        scale: the width; not negative.
        name: a name for the distribution.

    Examples:
        >>> import oar
        >>> from oar.distribution import StudentT
        >>> student = StudentT(oar.to_tensor([1.5, 5.0]), 0.0, 1.0)
        >>> student.variance
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [inf       , 1.66666663])
    """

    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(self, df: Parameter, loc: Parameter, scale: Parameter, name: str | None = None) -> None:
        check_positive("StudentT", tensors=True, df=df)
        check_nonnegative("StudentT", tensors=True, scale=scale)
        self.name = name if name is not None else "StudentT"
        self.df, self.loc, self.scale = broadcast("StudentT", *to_tensors("StudentT", df=df, loc=loc, scale=scale))
        super().__init__(self.df.shape)

    @property
    def mean(self) -> Tensor:
        """The mean; NaN for df up to 1."""
        return oar.where(self.df > 1, self.loc, float("nan"))

    @property
    def variance(self) -> Tensor:
        """The variance; infinite for df up to 2, NaN for df up to 1."""
        finite = self.df > 2
        variance = self.scale.square() * self.df / oar.where(finite, self.df - 2, 1.0)
        return oar.where(finite, variance, oar.where(self.df > 1, float("inf") * oar.ones_like(self.df), float("nan")))

    def rsample(self, shape: SampleShape = ()) -> Tensor:
        size = self._extend_shape(shape)
        half = self.df / 2
        spread = (gamma_sample(oar.broadcast_to(half, size)) / half).rsqrt()
        return self.loc + self.scale * spread * oar.standard_normal(size, self.loc.dtype)

    def entropy(self) -> Tensor:
        upper, half = (self.df + 1) / 2, self.df / 2
        return (self.scale.log() + upper * (upper.digamma() - half.digamma()) + 0.5 * (self.df * math.pi).log()
                + half.lgamma() - upper.lgamma())  # fmt: skip

    def log_prob(self, value: Tensor) -> Tensor:
        away = (to_value(value, self.loc) - self.loc) / self.scale
        upper, half = (self.df + 1) / 2, self.df / 2
        return (upper.lgamma() - half.lgamma() - 0.5 * (self.df * math.pi).log() - self.scale.log()
                - upper * (away.square() / self.df).log1p())  # fmt: skip
