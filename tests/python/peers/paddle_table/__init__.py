"""What Paddle calls our ops, where that does not follow from the record, and where it differs.

An op with a public name is called by that name, with the arguments of its schema that differ from the defaults.
`PADDLE` has expressions, in the argument names of our schema, for the others (see peers/paddle_words.py).
`CONSTANT` names the arguments by which Paddle takes no derivative. `OURS` lists the ops that Paddle has no public
function for. `DIFFERENT` has the reasons for intended differences; docs/conformance.md tells users about them.
"""

from __future__ import annotations

from peers.paddle_table.different import DIFFERENT, DIFFERENT_AT_EDGES, SINGLE
from peers.paddle_table.expressions import CONSTANT, PADDLE
from peers.paddle_table.ours import OURS

__all__ = ["CONSTANT", "DIFFERENT", "DIFFERENT_AT_EDGES", "OURS", "PADDLE", "SINGLE"]
