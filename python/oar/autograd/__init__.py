"""Derivatives: backward, grad, functions with derivatives of their own."""

from oar.autograd.backward import backward, grad
from oar.autograd.functional import hessian, jacobian
from oar.autograd.py_layer import PyLayer, PyLayerContext

__all__ = ["PyLayer", "PyLayerContext", "backward", "hessian", "jacobian"]
