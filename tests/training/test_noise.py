import numpy as np
import pytest

from app.training.likelihood import expected_log_density
from app.training.noise import GaussianNoise, StudentNoise
from app.training.stack import tf

pytestmark = pytest.mark.gpflow

FREEDOM = 6.0
M2 = np.linspace(-1.0, 1.0, 30)
SQUARES = np.geomspace(0.01, 100.0, 30)  # T: y - m1 = √T e^{m2}, v1 = v2 = 0


def data_term(noise: GaussianNoise | StudentNoise) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    free, weight = noise.terms(tf.constant(M2))
    return np.asarray(free - 0.5 * weight * SQUARES)


def closed_form(*freedom: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    y = np.sqrt(SQUARES) * np.exp(M2)
    return np.asarray(expected_log_density(y, 0.0, 0.0, M2, np.zeros(30), *freedom))


def test_gaussian_noise_is_the_gaussian_term() -> None:
    np.testing.assert_allclose(data_term(GaussianNoise()), closed_form(), rtol=1e-12)


def test_student_tangents_touch_the_student_term_where_they_are_drawn() -> None:
    np.testing.assert_allclose(data_term(StudentNoise(FREEDOM, SQUARES)), closed_form(FREEDOM), rtol=1e-12)


def test_student_tangents_lie_below_the_student_term_elsewhere() -> None:
    for factor in (0.5, 1.1, 10.0):
        assert (data_term(StudentNoise(FREEDOM, factor * SQUARES)) < closed_form(FREEDOM)).all()
