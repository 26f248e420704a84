"""Scientific computing: differential equations, linear systems, roots, integrals, interpolation, high derivatives.

Everything is differentiable. See docs/science.md.
"""

from oar._lazy import LazyNames as _LazyNames

_lazy_names = _LazyNames(
    "oar.science",
    ("interpolate", "linear", "ode", "optimize", "quadrature", "roots"),
    {"oar.science.interpolate": ("CubicSpline", "PchipInterpolator", "interp"),
     "oar.science.linear": ("LinearSolution", "cg", "gmres"),
     "oar.science.ode": ("OdeSolution", "odeint", "solve_ivp"),
     "oar.science.optimize": ("minimize_bfgs", "minimize_lbfgs"),
     "oar.science.quadrature": ("fixed_quad", "quad"),
     "oar.science.roots": ("RootSolution", "bisect", "brentq", "fixed_point", "newton", "newton_krylov"),
     "oar.science.jets": ("jet", "taylor")})

__all__ = ["CubicSpline", "LinearSolution", "OdeSolution", "PchipInterpolator", "RootSolution", "bisect", "brentq", "cg",
           "fixed_point", "fixed_quad", "gmres", "interp", "jet", "minimize_bfgs", "minimize_lbfgs", "newton",
           "newton_krylov", "odeint", "quad", "solve_ivp", "taylor"]


def __getattr__(name: str):
    if name in _lazy_names:
        return _lazy_names.load(name)
    raise AttributeError(f"module 'oar.science' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_lazy_names})
