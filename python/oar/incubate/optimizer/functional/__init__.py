"""Minimisation of functions, under Paddle's path."""

from oar.incubate.optimizer.functional.bfgs import minimize_bfgs
from oar.incubate.optimizer.functional.lbfgs import minimize_lbfgs

__all__ = ["minimize_bfgs", "minimize_lbfgs"]
