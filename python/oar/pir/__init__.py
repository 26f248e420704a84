"""Programs under the names of Paddle's newer representation. Oar has one kind of program; see ``oar.static``."""

from oar._C import Tensor as Value
from oar.pir import core
from oar.static.program import Block, Operator as Operation, Program

__all__ = ["Block", "Operation", "Program", "Value", "core"]
