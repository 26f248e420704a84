"""The chi-squared distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oar.distribution._parameters import check_positive, to_tensors
from oar.distribution.gamma import Gamma

if TYPE_CHECKING:
    from oar._C import Tensor
    from oar.distribution._parameters import Parameter

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: sums of squares of standard normal numbers.

    Args:
        df: the degrees of freedom; positive.

    Examples:
        >>> import oar
        >>> from oar.distribution import Chi2
        >>> Chi2(oar.to_tensor([1.0, 4.0])).variance
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [2., 8.])
    """

    df: Tensor

    def __init__(self, df: Parameter) -> None:
        check_positive("Chi2", tensors=True, df=df)
        (self.df,) = to_tensors("Chi2", df=df)
        super().__init__(0.5 * self.df, 0.5)
