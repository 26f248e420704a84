"""Losses between numbers: how far a prediction is from its target."""

from __future__ import annotations

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer
from oar.nn.layer.loss._reduction import check_reduction

__all__ = ["GaussianNLLLoss", "KLDivLoss", "L1Loss", "MSELoss", "PoissonNLLLoss", "SmoothL1Loss"]


class MSELoss(Layer):
    """The square of the difference.

    Args:
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.MSELoss()(oar.to_tensor([1.0, 2.0]), oar.to_tensor([1.0, 5.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               4.50000000)
    """

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = check_reduction("MSELoss", reduction)

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.mse_loss(input, label, self.reduction)


class L1Loss(Layer):
    """The absolute difference.

    Args:
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.L1Loss()(oar.to_tensor([1.0, 2.0]), oar.to_tensor([1.0, 5.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               1.50000000)
    """

    def __init__(self, reduction: str = "mean", name: str | None = None) -> None:
        super().__init__()
        self.reduction = check_reduction("L1Loss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.l1_loss(input, label, self.reduction, name=self.name)


class GaussianNLLLoss(Layer):
    """The negative log-likelihood of labels under normal distributions.

    Args:
        full: whether to add the constant terms.
        epsilon: a small number that avoids division by zero.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.GaussianNLLLoss()(oar.to_tensor([1.0]), oar.to_tensor([1.5]), oar.to_tensor([0.5]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               -0.09657359)
    """

    def __init__(
        self,
        full: bool = False,
        epsilon: float = 1e-6,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        self.full = full
        self.epsilon = epsilon
        self.reduction = check_reduction("GaussianNLLLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor, variance: Tensor) -> Tensor:
        return F.gaussian_nll_loss(input, label, variance, self.full, self.epsilon, self.reduction, name=self.name)


class KLDivLoss(Layer):
    """The Kullback-Leibler divergence; the input holds log-probabilities.

    Args:
        reduction: 'mean', 'sum' or 'none'.
        log_target: whether the labels are logarithms.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.KLDivLoss(reduction='sum')(oar.log(oar.to_tensor([0.25, 0.75])), oar.to_tensor([0.5, 0.5]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.14384103)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__()
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.kl_div(input, label, self.reduction, self.log_target)


class PoissonNLLLoss(Layer):
    """The negative log-likelihood of counts under Poisson distributions.

    Args:
        log_input: whether the input is the logarithm of the mean.
        full: whether to add the constant terms.
        epsilon: a small number that avoids division by zero.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.PoissonNLLLoss()(oar.to_tensor([0.5, 1.0]), oar.to_tensor([2.0, 3.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.18350148)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        epsilon: float = 1e-8,
        reduction: str = "mean",
        name: str | None = None,
    ) -> None:
        super().__init__()
        if epsilon <= 0:
            raise ValueError(f"[PoissonNLLLoss] epsilon is {epsilon}; it must be positive.")
        self.log_input = log_input
        self.full = full
        self.epsilon = epsilon
        self.reduction = check_reduction("PoissonNLLLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        return F.poisson_nll_loss(input, label, self.log_input, self.full, self.epsilon, self.reduction, name=self.name)


class SmoothL1Loss(Layer):
    """The square of small differences, halved; of large ones the size.

    Args:
        reduction: 'mean', 'sum' or 'none'.
        delta: where the square ends and the straight line begins.
        is_huber: False divides the loss by delta, as PyTorch does.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> nn.SmoothL1Loss()(oar.to_tensor([1.0, 2.0]), oar.to_tensor([1.5, 5.0]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               1.31250000)
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0, name: str | None = None, *,
                 is_huber: bool = True) -> None:
        super().__init__()
        self.reduction = check_reduction("SmoothL1Loss", reduction)
        self.delta = delta
        self.is_huber = is_huber
        self.name = name

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        loss = F.smooth_l1_loss(input, label, self.reduction, self.delta, name=self.name)
        return loss if self.is_huber else loss / self.delta
