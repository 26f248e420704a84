"""Distributions with parameters, points of interest, and the same distribution in SciPy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import integrate, stats

import oar
from oar import distribution as D


class Reference:
    """A density on [0, 1] that SciPy lacks, by numerical integration over each of a few parameters."""

    def __init__(self, probs):
        self.probs = np.asarray(probs, "float64")

    def _each(self, function):
        return np.vectorize(function)(self.probs)

    @staticmethod
    def _raw(p, x):
        return p**x * (1 - p) ** (1 - x)

    def _total(self, p):
        return integrate.quad(lambda x: self._raw(p, x), 0, 1)[0]

    def _expected(self, p, function):
        return integrate.quad(lambda x: self._raw(p, x) * function(x), 0, 1)[0] / self._total(p)

    def mean(self):
        return self._each(lambda p: self._expected(p, lambda x: x))

    def var(self):
        return self._each(lambda p: self._expected(p, lambda x: x * x) - self._expected(p, lambda x: x) ** 2)

    def entropy(self):
        return self._each(lambda p: self._expected(p, lambda x: -np.log(self._raw(p, x) / self._total(p))))

    def logpdf(self, x):
        inside = np.log(self._raw(self.probs, x)) - np.log(self._each(self._total))
        return np.where((x >= 0) & (x <= 1), inside, -np.inf)

    def cdf(self, x):
        one = np.vectorize(lambda p, x: integrate.quad(lambda y: self._raw(p, y), 0, x)[0] / self._total(p))
        return one(self.probs, np.clip(x, 0, 1))

    def ppf(self, u):
        grid = np.linspace(0, 1, 4001)
        one = np.vectorize(lambda p, u: np.interp(u, Reference(p).cdf(grid), grid))
        return one(self.probs, u)


@dataclass
class Case:
    make: Callable[..., D.Distribution]
    parameters: tuple[Any, ...]
    reference: Any
    points: Any
    discrete: bool = False
    reparametrised: bool = True

    def tensors(self, dtype="float64"):
        return [oar.to_tensor(np.asarray(p), dtype=dtype) for p in self.parameters]

    def distribution(self, dtype="float64"):
        return self.make(*self.tensors(dtype))

    def column(self):
        """The points along a first axis before those of the batch."""
        rank = len(np.broadcast_shapes(*(np.shape(p) for p in self.parameters)))
        return np.asarray(self.points, "float64").reshape([-1] + [1] * rank)

    def log_density(self, x):
        return self.reference.logpmf(x) if self.discrete else self.reference.logpdf(x)


A, B = np.array([0.4, 2.0, 7.5]), np.array([[1.5], [0.6]])
LOC, SCALE = np.array([0.5, -2.0, 0.0]), np.array([[1.0], [3.0]])
PROBS = np.array([[0.1, 0.5], [0.75, 0.999]])
REAL = [-7.0, -0.3, 0.0, 0.2, 1.0, 4.0, 12.0]
POSITIVE = [-1.0, 1e-3, 0.2, 1.0, 4.0, 30.0]
UNIT = [-0.5, 1e-3, 0.2, 0.5, 0.9, 1.5]
COUNTS = [-1.0, 0.0, 1.0, 2.0, 5.0, 9.0]

CASES = {
    "Bernoulli": Case(D.Bernoulli, (PROBS,), stats.bernoulli(PROBS), [0.0, 1.0], discrete=True, reparametrised=False),
    "Beta": Case(D.Beta, (A, B), stats.beta(A, B), UNIT),
    "Beta of 1": Case(D.Beta, (1.0, 1.0), stats.beta(1, 1), [0.0, 0.5, 1.0]),
    "Binomial": Case(D.Binomial, (np.array([[4.0], [9.0]]), [0.2, 0.7]), stats.binom(np.array([[4], [9]]), [0.2, 0.7]), COUNTS,
                     discrete=True, reparametrised=False),
    "Cauchy": Case(D.Cauchy, (LOC, SCALE), stats.cauchy(LOC, SCALE), REAL),
    "Chi2": Case(D.Chi2, (A,), stats.chi2(A), POSITIVE),
    "ContinuousBernoulli": Case(D.ContinuousBernoulli, (np.array([0.2, 0.4995, 0.5, 0.97]),),
                                Reference([0.2, 0.4995, 0.5, 0.97]), UNIT),
    "Exponential": Case(D.Exponential, (A,), stats.expon(scale=1 / A), POSITIVE),
    "Gamma": Case(D.Gamma, (A, B), stats.gamma(A, scale=1 / B), POSITIVE),
    "Gamma of 1": Case(D.Gamma, (1.0, 2.0), stats.gamma(1, scale=0.5), [0.0, 1.0]),
    "Geometric": Case(D.Geometric, (PROBS,), stats.geom(PROBS, loc=-1), COUNTS, discrete=True, reparametrised=False),
    "Gumbel": Case(D.Gumbel, (LOC, SCALE), stats.gumbel_r(LOC, SCALE), REAL),
    "Laplace": Case(D.Laplace, (LOC, SCALE), stats.laplace(LOC, SCALE), REAL),
    "LogNormal": Case(D.LogNormal, (LOC / 4, SCALE / 4), stats.lognorm(SCALE / 4, scale=np.exp(LOC / 4)), POSITIVE[1:]),
    "Normal": Case(D.Normal, (LOC, SCALE), stats.norm(LOC, SCALE), REAL),
    "Normal 0-d": Case(D.Normal, (1.0, 2.0), stats.norm(1, 2), REAL),
    "Poisson": Case(D.Poisson, (np.array([0.0, 0.3, 4.0, 63.0, 65.0, 900.0]),), stats.poisson([0.0, 0.3, 4.0, 63.0, 65.0, 900.0]), COUNTS,
                    discrete=True, reparametrised=False),
    "StudentT": Case(D.StudentT, (np.array([0.7, 1.5, 6.0]), LOC, SCALE), stats.t([0.7, 1.5, 6.0], LOC, SCALE), REAL),
    "Uniform": Case(D.Uniform, (LOC, LOC + SCALE), stats.uniform(LOC, SCALE + 0 * LOC), REAL[:2] + [0.21, 1.1]),
}  # fmt: skip
