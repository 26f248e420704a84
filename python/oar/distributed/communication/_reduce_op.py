"""How a reduction combines what the processes have."""

__all__ = ["NAMES", "ReduceOp", "check_op"]

# Of the members of ReduceOp, in the schemas of ops.
NAMES = ("sum", "max", "min", "prod", "avg")


class ReduceOp:
    """How a reduction combines what the processes have.

    Examples:
        >>> import oar
        >>> oar.distributed.ReduceOp.SUM, oar.distributed.ReduceOp.AVG
        (0, 4)
    """

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3
    AVG = 4


def check_op(function: str, op: int) -> int:
    """``op`` if it is one of ``ReduceOp``; an error otherwise."""
    if op not in (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PROD, ReduceOp.AVG):
        raise ValueError(f"[{function}] op must be one of ReduceOp (SUM, MAX, MIN, PROD, AVG), not {op!r}.")
    return op
