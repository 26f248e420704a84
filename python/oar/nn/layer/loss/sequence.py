"""Losses of sequences that are not aligned with their labels."""

from __future__ import annotations

from oar._C import Tensor
from oar.nn import functional as F
from oar.nn.layer.layers import Layer
from oar.nn.layer.loss._reduction import check_reduction

__all__ = ["CTCLoss", "RNNTLoss"]


class CTCLoss(Layer):
    """Connectionist temporal classification; see ``oar.nn.functional.ctc_loss``.

    Args:
        blank: the class that means no label.
        reduction: 'mean', 'sum' or 'none'.
        zero_infinity: infinite losses, of labels whose probability is 0, count as 0.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> labels = oar.to_tensor([[1, 2]], dtype='int32')
        >>> nn.CTCLoss()(oar.zeros([4, 1, 3]), labels, oar.to_tensor([4]), oar.to_tensor([2]))
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               0.84319949)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__()
        self.zero_infinity = zero_infinity
        self.blank = blank
        self.reduction = check_reduction("CTCLoss", reduction)

    def forward(
        self, log_probs: Tensor, labels: Tensor, input_lengths: Tensor, label_lengths: Tensor, norm_by_times: bool = False
    ) -> Tensor:
        return F.ctc_loss(log_probs, labels, input_lengths, label_lengths, self.blank, self.reduction, norm_by_times,
                          self.zero_infinity)


class RNNTLoss(Layer):
    """The transducer's loss; see ``oar.nn.functional.rnnt_loss``.

    Args:
        blank: the class that means no label.
        fastemit_lambda: how strongly early labels are favoured.
        reduction: 'mean', 'sum' or 'none'.

    Examples:
        >>> import oar
        >>> from oar import nn
        >>> scores = oar.zeros([1, 3, 3, 4])  # [batch, steps, labels + 1, classes]
        >>> labels, steps, length = (oar.to_tensor(v, dtype='int32') for v in ([[1, 2]], [3], [2]))
        >>> nn.RNNTLoss()(scores, labels, steps, length)
        Tensor(shape=[], dtype=float32, place=Place(cpu), stop_gradient=True,
               -1.79175949)
    """

    def __init__(
        self, blank: int = 0, fastemit_lambda: float = 0.001, reduction: str = "mean", name: str | None = None
    ) -> None:
        super().__init__()
        self.blank = blank
        self.fastemit_lambda = fastemit_lambda
        self.reduction = check_reduction("RNNTLoss", reduction)
        self.name = name

    def forward(self, input: Tensor, label: Tensor, input_lengths: Tensor, label_lengths: Tensor) -> Tensor:
        return F.rnnt_loss(
            input, label, input_lengths, label_lengths, self.blank, self.fastemit_lambda, self.reduction
        )
