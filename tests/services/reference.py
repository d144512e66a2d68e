"""The contract's definitions once more, by adaptive quadrature of SciPy, sharing no code with the solver."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.integrate import quad


@dataclass(frozen=True)
class Exactly:
    """One reading y with f1 ~ N(m1, v1) and f2 ~ N(m2, v2)."""

    y: float
    m1: float
    v1: float
    m2: float
    v2: float

    def expectation(self, g: Callable[[float], float]) -> float:
        """E[g(f2)]."""
        s2 = math.sqrt(self.v2)

        def weighted(z: float) -> float:
            return g(self.m2 + s2 * z) * math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

        value, _ = quad(weighted, -9.0, 9.0, epsabs=1e-13, epsrel=1e-12, limit=400)
        return float(value)

    def score(self) -> float:
        return self.expectation(lambda f2: (self.y - self.m1) * math.exp(-f2))

    def below(self, t: float) -> float:
        s1 = math.sqrt(self.v1)
        return self.expectation(lambda f2: _cdf((t * math.exp(f2) - (self.y - self.m1)) / s1))

    def density(self, t: float) -> float:
        s1 = math.sqrt(self.v1)
        return self.expectation(lambda f2: _pdf((t * math.exp(f2) - (self.y - self.m1)) / s1) * math.exp(f2) / s1)

    def reading_below(self, y: float) -> float:
        """Posterior predictive: P(a healthy reading <= y)."""
        return self.expectation(lambda f2: _cdf((y - self.m1) / math.sqrt(self.v1 + math.exp(2 * f2))))

    def threshold_diameter_below(self, t: float, y: float) -> float:
        """P(f1 + t e^{f2} <= y)."""
        return self.expectation(lambda f2: _cdf((y - t * math.exp(f2) - self.m1) / math.sqrt(self.v1)))


def _cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def _pdf(x: float) -> float:
    return math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
