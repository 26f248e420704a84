"""Function transforms under Paddle's incubating path."""

from oar.func import vmap
from oar.incubate.autograd.functional import Hessian, Jacobian, jvp, vjp
from oar.incubate.autograd.primapi import forward_grad, grad
from oar.incubate.autograd.utils import disable_prim, enable_prim

__all__ = ["Hessian", "Jacobian", "disable_prim", "enable_prim", "forward_grad", "grad", "jvp", "vjp", "vmap"]
