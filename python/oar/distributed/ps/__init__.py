"""Parameters on servers: tables, a layer whose rows live there, and the steps of training."""

from oar.distributed.ps.embedding import SparseEmbedding
from oar.distributed.ps.tables import Initial, Rule, Score, TableConfig

__all__ = ["Initial", "Rule", "Score", "SparseEmbedding", "TableConfig"]
