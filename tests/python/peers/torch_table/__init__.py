"""What PyTorch calls our ops: one expression per op, in the argument names of our schema (see peers/torch_words.py).

`CONSTANT` names the arguments by which PyTorch, or Oar as Paddle, takes no derivative. `DIFFERENT` says which results differ by
definition, and why: "values" are not compared, or only "gradients" are not.
`OURS` lists the ops that PyTorch has no public function for.
"""

from __future__ import annotations

from peers.torch_table import layers, losses, matrices, ours, pointwise, reducing, shaping, sparse

TABLES = (pointwise, shaping, reducing, matrices, layers, losses, sparse)
TORCH: dict[str, str] = {name: expression for table in TABLES for name, expression in table.TORCH.items()}
# op -> (what is not compared: "values" or "gradients"; for which arguments, an expression; why)
DIFFERENT: dict[str, tuple[str, str, str]] = {name: d for table in TABLES for name, d in table.DIFFERENT.items()}
CONSTANT: dict[str, tuple[str, ...]] = {name: c for table in TABLES for name, c in table.CONSTANT.items()}
OURS: frozenset[str] = ours.OURS
