"""Control flow on the values of tensors."""

from oar.static.nn.control_flow import case, cond, switch_case, while_loop

__all__ = ["case", "cond", "switch_case", "while_loop"]
