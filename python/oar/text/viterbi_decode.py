"""The most probable sequence of labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oar import nn
from oar._C import Tensor, ops

if TYPE_CHECKING:
    from oar._ops import viterbi_decode
else:
    viterbi_decode = ops.viterbi_decode

__all__ = ["ViterbiDecoder", "viterbi_decode"]


class ViterbiDecoder(nn.Layer):
    """``viterbi_decode`` with fixed transitions, as a layer.

    Args:
        transitions: what a label after another one adds, [labels, labels].
        include_bos_eos_tag: the last row starts a sequence, the last but one ends it.

    Examples:
        >>> import oar
        >>> decode = oar.text.ViterbiDecoder(oar.zeros([2, 2]), include_bos_eos_tag=False)
        >>> scores, path = decode(oar.to_tensor([[[1.0, 2.0], [4.0, 3.0]]]), oar.to_tensor([2]))
        >>> scores.tolist(), path.tolist()
        ([6.0], [[1, 0]])
    """

    def __init__(self, transitions: Tensor, include_bos_eos_tag: bool = True, name: str | None = None) -> None:
        super().__init__()
        self.transitions = transitions
        self.include_bos_eos_tag = include_bos_eos_tag
        self.name = name

    def forward(self, potentials: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """The largest sum of each sequence, and its labels.

        Args:
            potentials: scores [batch, length, labels].
            lengths: the length of each sequence.
        """
        return ops.viterbi_decode(potentials, self.transitions, lengths, self.include_bos_eos_tag)
