"""Paddle's path of ``minimize_bfgs``."""

from oar.science.optimize import minimize_bfgs

__all__ = ["minimize_bfgs"]
