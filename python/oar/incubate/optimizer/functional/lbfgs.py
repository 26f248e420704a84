"""Paddle's path of ``minimize_lbfgs``."""

from oar.science.optimize import minimize_lbfgs

__all__ = ["minimize_lbfgs"]
