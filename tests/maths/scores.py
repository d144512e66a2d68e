"""Scores to test with: moments in units that make rho and s2 plain."""

import numpy as np
from hypothesis import strategies as st

from app.maths.moments import Array, Moments

rho = st.one_of(st.just(0.0), st.floats(-2, 4).map(lambda power: float(10**power)))
s2 = st.one_of(st.just(0.0), st.floats(1e-6, 1.0), st.floats(1.0, 3.0))
mass = st.sampled_from((0.95, 0.5, 0.8, 0.99, 0.01, 0.9999))
sign = st.sampled_from((-1.0, 1.0))


def person(m1: float, v1: float, m2: float, v2: float) -> Moments:
    return Moments(*(np.array([value]) for value in (m1, v1, m2, v2)))


def plain(s2: float) -> Moments:
    """With m1 = 0, s1 = 1 and m2 = 0 the diameter y is rho."""
    return person(0.0, 1.0, 0.0, s2 * s2)


def people(n: int, seed: int) -> tuple[Array, Moments]:
    """Diameters and moments of the size that models of the aorta give."""
    rng = np.random.default_rng(seed)
    m2 = rng.normal(1.0, 0.15, n)
    v1, v2 = (np.exp(m2) * rng.gamma(6, 0.02, n)) ** 2, rng.gamma(6, 0.015, n) ** 2
    moments = Moments(rng.uniform(24, 38, n), v1, m2, v2)
    return moments.m1 + rng.normal(0.0, 1.5, n) * np.exp(m2), moments


def draws(y: float, moments: Moments, n: int, seed: int) -> Array:
    """NS from its definition. Generator.normal takes standard deviations: the moments hold variances."""
    rng = np.random.default_rng(seed)
    f1 = rng.normal(moments.m1[0], np.sqrt(moments.v1[0]), n)
    f2 = rng.normal(moments.m2[0], np.sqrt(moments.v2[0]), n)
    return np.asarray((y - f1) / np.exp(f2))
