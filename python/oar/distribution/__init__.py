"""Probability distributions: densities, random numbers, entropies, divergences; and transforms of random variables."""

from oar.distribution import constraint, kl, transform, variable
from oar.distribution.bernoulli import Bernoulli
from oar.distribution.beta import Beta
from oar.distribution.binomial import Binomial
from oar.distribution.categorical import Categorical
from oar.distribution.cauchy import Cauchy
from oar.distribution.chi2 import Chi2
from oar.distribution.continuous_bernoulli import ContinuousBernoulli
from oar.distribution.dirichlet import Dirichlet
from oar.distribution.distribution import Distribution
from oar.distribution.exponential import Exponential
from oar.distribution.exponential_family import ExponentialFamily
from oar.distribution.gamma import Gamma
from oar.distribution.geometric import Geometric
from oar.distribution.gumbel import Gumbel
from oar.distribution.independent import Independent
from oar.distribution.kl import kl_divergence, register_kl
from oar.distribution.laplace import Laplace
from oar.distribution.lkj_cholesky import LKJCholesky
from oar.distribution.lognormal import LogNormal
from oar.distribution.multinomial import Multinomial
from oar.distribution.multivariate_normal import MultivariateNormal
from oar.distribution.normal import Normal
from oar.distribution.poisson import Poisson
from oar.distribution.student_t import StudentT
from oar.distribution.transform import *  # noqa: F403
from oar.distribution.transform import __all__ as _transforms
from oar.distribution.transformed_distribution import TransformedDistribution
from oar.distribution.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "Gamma",
    "Geometric",
    "Gumbel",
    "Independent",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "Multinomial",
    "MultivariateNormal",
    "Normal",
    "Poisson",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "kl_divergence",
    "register_kl",
    *_transforms,
]
