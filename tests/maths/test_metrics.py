import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.stats import kstest
from sklearn import metrics as sklearn_metrics

from app.maths import metrics
from app.maths.moments import Array


def ranked_people(seed: int, decimals: int) -> tuple[NDArray[np.int64], Array]:
    """Few decimals make many ties."""
    rng = np.random.default_rng(seed)
    labels = (rng.uniform(size=300) < 0.15).astype(np.int64)
    scores: Array = rng.normal(size=300) + 1.2 * labels
    return labels, scores.round(decimals)


@pytest.mark.parametrize(("seed", "decimals"), list(itertools.product(range(5), (0, 1, 8))))
def test_areas_and_curves_equal_scikit_learn_with_and_without_ties(seed: int, decimals: int) -> None:
    labels, scores = ranked_people(seed, decimals)
    assert metrics.roc_auc(labels, scores) == pytest.approx(sklearn_metrics.roc_auc_score(labels, scores), rel=1e-12)
    area = sklearn_metrics.average_precision_score(labels, scores)
    assert metrics.average_precision(labels, scores) == pytest.approx(area, rel=1e-12)

    roc = metrics.roc_curve(labels, scores)
    false_rate, true_rate, thresholds = sklearn_metrics.roc_curve(labels, scores, drop_intermediate=False)
    np.testing.assert_allclose((roc.x, roc.y, roc.thresholds), (false_rate, true_rate, thresholds), rtol=1e-12)

    curve = metrics.precision_recall_curve(labels, scores)
    precision, recall, thresholds = sklearn_metrics.precision_recall_curve(labels, scores)
    np.testing.assert_allclose(curve.x, recall[-2::-1], rtol=1e-12)
    np.testing.assert_allclose(curve.y, precision[-2::-1], rtol=1e-12)
    np.testing.assert_allclose(curve.thresholds, thresholds[::-1], rtol=1e-12)


def test_the_area_under_the_roc_curve_is_the_trapezoid_of_its_points() -> None:
    labels, scores = ranked_people(7, 1)
    curve = metrics.roc_curve(labels, scores)
    assert trapezoid(curve.y, curve.x) == pytest.approx(metrics.roc_auc(labels, scores), rel=1e-12)


def test_scores_that_all_tie_say_nothing() -> None:
    labels, scores = np.array([1, 0, 0, 1, 0]), np.full(5, 3.0)
    assert metrics.roc_auc(labels, scores) == 0.5
    assert metrics.average_precision(labels, scores) == pytest.approx(0.4)


@pytest.mark.parametrize("labels", [np.zeros(4, dtype=np.int64), np.ones(4, dtype=np.int64)])
def test_one_kind_of_people_cannot_be_ranked(labels: NDArray[np.int64]) -> None:
    with pytest.raises(ValueError, match="one kind is missing"):
        metrics.roc_auc(labels, np.arange(4.0))


def test_a_score_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        metrics.average_precision(np.array([0, 1]), np.array([0.0, np.nan]))


def test_kolmogorov_distance_is_that_of_the_one_sample_test() -> None:
    pit = np.random.default_rng(3).beta(1.3, 0.9, 400)
    assert metrics.kolmogorov_distance(pit) == pytest.approx(kstest(pit, "uniform").statistic, rel=1e-12)


@pytest.mark.parametrize(("pit", "distance"), [([0.5], 0.5), ([0.0, 0.0], 1.0), ([1.0], 1.0), ([0.25, 0.75], 0.25)])
def test_kolmogorov_distance_of_a_few_points(pit: list[float], distance: float) -> None:
    assert metrics.kolmogorov_distance(np.array(pit)) == pytest.approx(distance)


def test_weighted_tau_counts_a_disagreement_at_the_top_most() -> None:
    values = np.arange(10.0)
    at_the_top, at_the_bottom = values.copy(), values.copy()
    at_the_top[[8, 9]], at_the_bottom[[0, 1]] = values[[9, 8]], values[[1, 0]]
    assert metrics.weighted_kendall_tau(values, values) == pytest.approx(1.0)
    assert metrics.weighted_kendall_tau(values, -values) == pytest.approx(-1.0)
    assert metrics.weighted_kendall_tau(values, at_the_top) < metrics.weighted_kendall_tau(values, at_the_bottom) < 1.0
