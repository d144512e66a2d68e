"""One answer in mpmath, from the files of a published model: shares no code with app/maths but for a starting point.

Notation as in app/maths: f1 ~ N(m1, v1), f2 ~ N(m2, v2), NS = (y - f1) e^{-f2}. With Z1, Z2 standard normal,
NS = s1 e^{-m2} (rho - Z1) e^{-s2 Z2}, rho = (y - m1)/s1: the distribution that `reference.Integrals` solves.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from app.benchmark.reference import Integrals
from app.maths.moments import Moments
from app.maths.score import normalcy

mp = mpmath.mp.clone()
mp.dps = 20

KNOTS = (-11, -8, -6, -4, -2, 0, 2, 4, 6, 8, 11)  # where the quadrature over a standard normal is split


@dataclass(frozen=True)
class ExactMoments:
    m1: Any
    v1: Any
    m2: Any
    v2: Any

    def with_error(self, sd_mm: float) -> "ExactMoments":
        """Of the score of the error-free diameter: v1 + sd² in place of v1."""
        return ExactMoments(self.m1, self.v1 + mp.mpf(sd_mm) ** 2, self.m2, self.v2)

    @property
    def diameter_at_2(self) -> Any:
        return self.m1 + 2 * mp.exp(self.m2)

    def expected_ns(self, y: Any) -> Any:
        return (y - self.m1) * mp.exp(-self.m2 + self.v2 / 2)

    def hdi(self, y: Any, mass: float) -> tuple[float, float]:
        """The service's interval is where the search in 20 digits starts, nothing more."""
        sign, unit, integrals = self._standardised(y)
        moments = Moments(*(np.array([float(value)]) for value in (self.m1, self.v1, self.m2, self.v2)))
        start = normalcy.hdi(float(y), moments, mass)
        ends = sorted(sign * float(end[0]) / float(unit) for end in (start.low, start.high))
        low, high, _ = integrals.shortest(ends[0], ends[1], mass)
        low, high = sorted((float(sign * low * unit), float(sign * high * unit)))
        return low, high

    def tails(self, y: Any, threshold: float) -> tuple[float, float]:
        """P(NS < t), P(NS > t)."""
        sign, unit, integrals = self._standardised(y)
        below, above = integrals.tails(float(sign * mp.mpf(threshold) / unit))
        return (float(below), float(above)) if sign > 0 else (float(above), float(below))

    def percentile(self, y: Any) -> float:
        return float(100 * self._predictive_cdf(mp.mpf(y)))

    def interval_mm(self) -> tuple[float, float]:
        """m1 ± r with E[Phi(r/sqrt(v1 + e^{2 f2}))] = 0.975."""
        start = 2 * mp.sqrt(self.v1 + mp.exp(2 * self.m2))
        half = mp.findroot(lambda r: self._predictive_cdf(self.m1 + r) - mp.mpf("0.975"), (start, start * 1.01))
        return float(self.m1 - half), float(self.m1 + half)

    def diameter_at_threshold(self, threshold: float, probability: float) -> float:
        """A quantile of f1 + t e^{f2}."""
        t = mp.mpf(threshold)
        s1, s2 = mp.sqrt(self.v1), mp.sqrt(self.v2)
        centre = self.m1 + t * mp.exp(self.m2)
        sd = mp.sqrt(self.v1 + (t * s2 * mp.exp(self.m2)) ** 2)
        normal = mp.sqrt(2) * mp.erfinv(2 * mp.mpf(probability) - 1)

        def missing(y: Any) -> Any:
            return _expect(lambda z: _cdf((y - t * mp.exp(self.m2 + s2 * z) - self.m1) / s1)) - mp.mpf(probability)

        start = centre + normal * sd
        return float(mp.findroot(missing, (start, start + sd / 100)))

    def _predictive_cdf(self, y: Any) -> Any:
        s2 = mp.sqrt(self.v2)
        return _expect(lambda z: _cdf((y - self.m1) / mp.sqrt(self.v1 + mp.exp(2 * (self.m2 + s2 * z)))))

    def _standardised(self, y: Any) -> tuple[int, Any, Integrals]:
        """Sign of y - m1, the unit s1 e^{-m2}, and the integrals of the oriented score."""
        s1 = mp.sqrt(self.v1)
        rho = (mp.mpf(y) - self.m1) / s1
        return (1 if rho >= 0 else -1), s1 * mp.exp(-self.m2), Integrals(abs(rho), mp.sqrt(self.v2))


@dataclass(frozen=True)
class ExactModel:
    card: dict[str, Any]
    arrays: dict[str, Any]

    @classmethod
    def read(cls, folder: Path) -> "ExactModel":
        with np.load(folder / "posterior.npz") as stored:
            arrays = {name: stored[name].tolist() for name in stored.files}
        return cls(json.loads((folder / "card.json").read_text("utf-8")), arrays)

    def moments(self, person: dict[str, Any]) -> ExactMoments:
        """The sparse posterior at a person, in mm and log mm; docs/decisions.md has the format of the arrays."""
        x = self._covariates(person)
        standardised = [
            (value - mp.mpf(mean)) / mp.mpf(sd)
            for value, mean, sd in zip(x, self.arrays["x_mean"], self.arrays["x_sd"], strict=True)
        ]
        scale = mp.mpf(self.arrays["y_scale"])
        (mean1, variance1), (mean2, variance2) = (self._latent(name, standardised) for name in ("f1", "f2"))
        m1 = mp.mpf(self.arrays["y_center"]) + scale * mean1
        return ExactMoments(m1, scale**2 * variance1, mp.log(scale) + mean2, variance2)

    def linear_z(self, person: dict[str, Any], y: float) -> float:
        comparators = self.card["comparators"]
        return float((y - self._fitted(person, "coefficients")) / mp.mpf(comparators["residual_sd_mm"]))

    def altman_z(self, person: dict[str, Any], y: float) -> float | None:
        """None where its spread is less than a quarter of the overall one."""
        sd = mp.sqrt(mp.pi / 2) * self._fitted(person, "absolute_residual_coefficients")
        if sd < mp.mpf(self.card["comparators"]["residual_sd_mm"]) / 4:
            return None
        return float((y - self._fitted(person, "coefficients")) / sd)

    def width_percentile(self, width: float) -> float:
        """Among the stored quantiles of the training contexts, evenly spaced, by a straight line between two."""
        quantiles = self.card["width_quantiles"]
        if width < quantiles[0]:
            return 0.0
        for index in range(len(quantiles) - 1):
            if quantiles[index] <= width < quantiles[index + 1]:
                part = (width - quantiles[index]) / (quantiles[index + 1] - quantiles[index])
                return float(100 * (index + part) / (len(quantiles) - 1))
        return 100.0

    def _covariates(self, person: dict[str, Any]) -> list[Any]:
        age = mp.mpf(person["age_years"])
        if self.card["age_transform"] == "log":
            age = mp.log(max(age, mp.mpf(1) / mp.mpf("365.25")))
        return [age, mp.mpf(person["sex"] == "male"), mp.mpf(person["height_cm"]), mp.mpf(person["weight_kg"])]

    def _fitted(self, person: dict[str, Any], name: str) -> Any:
        constant, *slopes = map(mp.mpf, self.card["comparators"][name])
        return constant + sum(b * x for b, x in zip(slopes, self._covariates(person), strict=True))

    def _latent(self, name: str, x: list[Any]) -> tuple[Any, Any]:
        """Mean and variance of one latent function with a rational quadratic kernel, in standardised units."""
        part = {key.removeprefix(f"{name}_"): value for key, value in self.arrays.items() if key.startswith(f"{name}_")}
        alpha, variance = mp.mpf(part["alpha"]), mp.mpf(part["variance"])
        g = []
        for point in part["Z"]:
            scaled = ((a - mp.mpf(b)) / mp.mpf(s) for a, b, s in zip(x, point, part["lengthscales"], strict=True))
            g.append((1 + sum(d * d for d in scaled) / (2 * alpha)) ** (-alpha))
        mean = mp.mpf(part["mean"]) + mp.fdot(g, map(mp.mpf, part["weights"]))
        projected = [mp.fdot(g, map(mp.mpf, column)) for column in zip(*part["projection"], strict=True)]
        reduced = mp.fsum(mp.mpf(d) * p * p for d, p in zip(part["reduction"], projected, strict=True))
        return mean, variance - reduced


def _cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _expect(g: Callable[[Any], Any]) -> Any:
    return mp.quad(lambda z: g(z) * mp.npdf(z), KNOTS, method="gauss-legendre")
