"""The divergence of Kullback and Leibler, by the classes of two distributions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, TypeVar

from oar.distribution.bernoulli import Bernoulli
from oar.distribution.beta import Beta
from oar.distribution.binomial import Binomial
from oar.distribution.categorical import Categorical
from oar.distribution.cauchy import Cauchy
from oar.distribution.continuous_bernoulli import ContinuousBernoulli
from oar.distribution.dirichlet import Dirichlet
from oar.distribution.distribution import Distribution
from oar.distribution.exponential import Exponential
from oar.distribution.exponential_family import ExponentialFamily, tangent
from oar.distribution.gamma import Gamma
from oar.distribution.geometric import Geometric
from oar.distribution.laplace import Laplace
from oar.distribution.lognormal import LogNormal
from oar.distribution.multivariate_normal import MultivariateNormal
from oar.distribution.normal import Normal
from oar.distribution.poisson import Poisson
from oar.distribution.uniform import Uniform

if TYPE_CHECKING:
    from collections.abc import Callable

    from oar._C import Tensor

__all__ = ["kl_divergence", "register_kl"]

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_functions: dict[tuple[type[Distribution], type[Distribution]], Callable[..., Any]] = {}


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The divergence of Kullback and Leibler from one distribution to another, in nats.

    Args:
        p: the distribution over which the mean is taken.
        q: the distribution that it is compared with.

    Returns:
        a tensor of the batch shape.

    Examples:
        >>> import oar
        >>> from oar.distribution import Normal, kl_divergence
        >>> kl_divergence(Normal(oar.to_tensor([0.0, 1.0]), 1.0), Normal(0.0, 1.0))
        Tensor(shape=[2], dtype=float32, place=Place(cpu), stop_gradient=True,
               [0.        , 0.50000000])
    """
    return _dispatch(type(p), type(q))(p, q)


def register_kl(cls_p: type[Distribution], cls_q: type[Distribution]) -> Callable[[_Function], _Function]:
    """Register a function that computes the divergence for two classes and for classes derived from them.

    Args:
        cls_p: the class of the first distribution.
        cls_q: the class of the second distribution.

    Returns:
        a decorator.

    Examples:
        >>> import oar
        >>> from oar.distribution import Normal, kl_divergence, register_kl
        >>> class Half(Normal):
        ...     pass
        >>> @register_kl(Half, Half)
        ... def half(p, q):
        ...     return oar.to_tensor(0.25)
        >>> kl_divergence(Half(0.0, 1.0), Half(0.0, 1.0)).item()
        0.25
    """
    for cls in (cls_p, cls_q):
        if not isinstance(cls, type) or not issubclass(cls, Distribution):
            raise TypeError(f"[register_kl] cls_p and cls_q must be subclasses of Distribution, but got {cls!r}.")

    def register(function: _Function) -> _Function:
        _functions[cls_p, cls_q] = function
        return function

    return register


def _dispatch(cls_p: type, cls_q: type) -> Callable[..., Any]:
    """The function that was registered for the nearest classes."""
    matches = [(p, q) for p, q in _functions if issubclass(cls_p, p) and issubclass(cls_q, q)]
    if not matches:
        raise NotImplementedError(
            f"no divergence of {cls_p.__name__} and {cls_q.__name__} is known. Register a function with register_kl.")

    def distance(pair: tuple[type, type]) -> tuple[int, int]:
        return cls_p.__mro__.index(pair[0]), cls_q.__mro__.index(pair[1])

    left = min(matches, key=lambda pair: distance(pair))
    right = min(matches, key=lambda pair: distance(pair)[::-1])
    if left != right and _functions[left] is not _functions[right]:
        warnings.warn(
            f"the divergence of {cls_p.__name__} and {cls_q.__name__} is ambiguous: {left[0].__name__} and {left[1].__name__} is "
            f"used, not {right[0].__name__} and {right[1].__name__}.", RuntimeWarning, stacklevel=3)  # fmt: skip
    return _functions[left]


def _by_method(p: Any, q: Any) -> Tensor:
    return p.kl_divergence(q)


for _class in (Bernoulli, Binomial, Categorical, Cauchy, ContinuousBernoulli, Exponential, Gamma, Geometric, Laplace, LogNormal,
               MultivariateNormal, Normal, Poisson, Uniform):  # fmt: skip
    register_kl(_class, _class)(_by_method)


@register_kl(Beta, Beta)
def _kl_of_betas(p: Beta, q: Beta) -> Tensor:
    total = p.alpha + p.beta
    return (q._log_beta() - p._log_beta() + (p.alpha - q.alpha) * p.alpha.digamma() + (p.beta - q.beta) * p.beta.digamma()
            + (q.alpha + q.beta - total) * total.digamma())  # fmt: skip


@register_kl(Dirichlet, Dirichlet)
def _kl_of_dirichlets(p: Dirichlet, q: Dirichlet) -> Tensor:
    mine, others = p.concentration, q.concentration
    mean_of_logarithms = mine.digamma() - mine.sum(-1, keepdim=True).digamma()
    return q._log_normalizer(others) - p._log_normalizer(mine) + ((mine - others) * mean_of_logarithms).sum(-1)


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_of_one_family(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """From the log-normalisers alone: their difference, less that of the tangent at p."""
    if type(p) is not type(q):
        raise NotImplementedError(f"no divergence of {type(p).__name__} and {type(q).__name__} is known. "
                                  "Register a function with register_kl.")  # fmt: skip
    others = q._natural_parameters
    normaliser, slope = tangent(p, [other - mine for mine, other in zip(p._natural_parameters, others)])
    return q._log_normalizer(*others) - normaliser - slope
