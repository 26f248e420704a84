"""Recurrent layers: cells, loops over cells, and stacks of them.

Where a cell is one of this package, a whole sequence is one call of the op ``recurrent``; other cells are called step
by step.
"""

from oar.nn.layer.rnn import cells, loops, networks
from oar.nn.layer.rnn.cells import *  # noqa: F403
from oar.nn.layer.rnn.loops import *  # noqa: F403
from oar.nn.layer.rnn.networks import *  # noqa: F403
from oar.nn.layer.rnn.networks import RNNBase  # noqa: F401

__all__ = [*cells.__all__, *loops.__all__, *networks.__all__]
