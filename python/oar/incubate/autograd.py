"""Function transforms under Paddle's incubating path."""

from oar.autograd.functional import hessian as Hessian  # noqa: N812
from oar.autograd.functional import jacobian as Jacobian  # noqa: N812
from oar.func import jvp, vjp, vmap

__all__ = ["Hessian", "Jacobian", "jvp", "vjp", "vmap"]
