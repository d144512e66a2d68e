import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from scipy.stats import binom, kstest
from sklearn import metrics as sklearn_metrics

from app.maths import statistics as metrics
from app.maths.moments import Array
from app.maths.statistics import compare_areas, count_limits, roc_areas, roc_auc, shares_found


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


def people(seed: int, decimals: int = 8, positives: int = 40, negatives: int = 70) -> tuple[NDArray[np.bool_], Array]:
    """Three correlated scores [3, N]; few decimals make many ties."""
    rng = np.random.default_rng(seed)
    label = rng.permutation(np.arange(positives + negatives) < positives)
    shared = rng.normal(size=label.size)
    lift = np.array([0.4, 0.8, 1.2])[:, None] * label
    scores: Array = (shared + rng.normal(size=(3, label.size)) + lift).round(decimals)
    return label, scores


def by_every_pair(label: NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Areas and their covariance by the definition, one pair of people at a time."""
    above = [np.sign(row[label][:, None] - row[~label][None, :]) / 2.0 + 0.5 for row in scores]
    of_positives = np.array([pairs.mean(axis=1) for pairs in above])
    of_negatives = np.array([pairs.mean(axis=0) for pairs in above])
    size, covariance = len(scores), np.zeros((len(scores), len(scores)))
    for part in (of_positives, of_negatives):
        off = part - part.mean(axis=1, keepdims=True)
        n = part.shape[1]
        covariance += np.array([[off[r] @ off[s] / (n - 1) / n for s in range(size)] for r in range(size)])
    return of_positives.mean(axis=1), covariance


@pytest.mark.parametrize("decimals", [0, 1, 8])
@pytest.mark.parametrize("seed", range(4))
def test_midranks_give_what_every_pair_gives(seed: int, decimals: int) -> None:
    label, scores = people(seed, decimals)
    found = roc_areas(label, scores)
    area, covariance = by_every_pair(label, scores)
    np.testing.assert_allclose(found.area, area, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(found.area, [roc_auc(label, row) for row in scores], rtol=1e-12)


def test_a_case_worked_out_by_hand() -> None:
    label = np.array([1, 1, 1, 0, 0])
    first, second = [5.0, 3.0, 1.0, 2.0, 3.0], [4.0, 5.0, 3.0, 1.0, 2.0]
    found = roc_areas(label, np.array([first, second]))
    # First: V = (1, 3/4, 0), W = (2/3, 1/2). Second: every positive is above every negative.
    np.testing.assert_allclose(found.area, [7 / 12, 1.0], rtol=1e-15)
    # About 7/12: var V = (25 + 4 + 49)/144/2 = 39/144, var W = (1 + 1)/144/1 = 2/144; 39/3 + 2/2 = 14.
    np.testing.assert_allclose(found.covariance, [[14 / 144, 0.0], [0.0, 0.0]], atol=1e-16)
    compared = compare_areas(found, 0, 1)
    assert compared.difference == pytest.approx(-5 / 12)
    assert compared.standard_error == pytest.approx(math.sqrt(14) / 12)
    assert compared.p == pytest.approx(math.erfc(5 / math.sqrt(14) / math.sqrt(2)))


def test_scores_that_rank_alike_do_not_differ() -> None:
    label, scores = people(5)
    found = roc_areas(label, np.vstack([scores[0], np.exp(scores[0]), scores[1]]))
    assert compare_areas(found, 0, 1).p == 1.0
    assert compare_areas(found, 0, 1).standard_error == 0.0
    assert compare_areas(found, 0, 2).difference == -compare_areas(found, 2, 0).difference


def test_equal_areas_are_called_different_in_one_case_of_twenty() -> None:
    p = []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        label = np.arange(160) < 60
        scores = rng.normal(size=160) + rng.normal(size=(2, 160)) + 1.0 * label
        p.append(compare_areas(roc_areas(label, scores), 0, 1).p)
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.027)  # three standard errors


@pytest.mark.parametrize("positives", [0, 1, 4, 5])
def test_a_variance_needs_two_of_each_kind(positives: int) -> None:
    with pytest.raises(ValueError, match="two people"):
        roc_areas(np.arange(5) < positives, np.ones((1, 5)))


def test_an_area_of_a_score_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        roc_areas(np.arange(4) < 2, np.array([[0.0, 1.0, np.nan, 2.0]]))


@pytest.mark.parametrize("people", [1, 40, 100, 1110, 20_000])
@pytest.mark.parametrize("error", [0.04, 0.01 / 15])
def test_counts_outside_the_limits_are_as_rare_as_asked_and_the_next_inside_are_not(people: int, error: float) -> None:
    low, high = count_limits(people, 0.025, error)
    assert binom.cdf(low - 1, people, 0.025) <= error / 2.0 < binom.cdf(low, people, 0.025)
    assert binom.sf(high, people, 0.025) <= error / 2.0 < binom.sf(high - 1, people, 0.025)


def test_the_shares_found_leave_the_limits_with_the_chance_named() -> None:
    least, most = shares_found(1110, 12, 47, 0.9)
    assert least is not None
    assert most is not None
    assert binom.cdf(11, 1110, least) == pytest.approx(0.9)
    assert binom.sf(47, 1110, most) == pytest.approx(0.9)


def test_where_no_count_is_too_small_no_share_is() -> None:
    assert shares_found(147, 0, 12, 0.9)[0] is None
    assert shares_found(10, 0, 10, 0.9) == (None, None)
