import numpy as np

from app.maths.gp.posterior import Scaling


def test_standardised_people_have_mean_zero_and_sd_one() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal([170.0, 60.0], [9.0, 12.0], size=(200, 2)), rng.normal(33.0, 3.5, size=200)
    scaling = Scaling.of(X, y)
    standardised = scaling.standardise(X)
    np.testing.assert_allclose(standardised.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(standardised.std(axis=0), 1.0)
    assert np.median(scaling.standardise_y(y)) == 0.0
    np.testing.assert_allclose(scaling.standardise_y(y).std(), 1.0)


def test_a_column_that_never_varies_keeps_its_unit() -> None:
    X = np.column_stack([np.full(50, 0.1), np.arange(50.0)])
    scaling = Scaling.of(X, np.arange(50.0))
    assert scaling.x_sd[0] == 1.0
    assert np.abs(scaling.standardise(X)[:, 0]).max() < 1e-12
