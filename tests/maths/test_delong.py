import math

import numpy as np
import pytest
from numpy.typing import NDArray

from app.maths import delong
from app.maths.metrics import roc_auc
from app.maths.moments import Array


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
    found = delong.areas(label, scores)
    area, covariance = by_every_pair(label, scores)
    np.testing.assert_allclose(found.area, area, rtol=1e-12)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(found.area, [roc_auc(label, row) for row in scores], rtol=1e-12)


def test_a_case_worked_out_by_hand() -> None:
    label = np.array([1, 1, 1, 0, 0])
    first, second = [5.0, 3.0, 1.0, 2.0, 3.0], [4.0, 5.0, 3.0, 1.0, 2.0]
    found = delong.areas(label, np.array([first, second]))
    # First: V = (1, 3/4, 0), W = (2/3, 1/2). Second: every positive is above every negative.
    np.testing.assert_allclose(found.area, [7 / 12, 1.0], rtol=1e-15)
    # About 7/12: var V = (25 + 4 + 49)/144/2 = 39/144, var W = (1 + 1)/144/1 = 2/144; 39/3 + 2/2 = 14.
    np.testing.assert_allclose(found.covariance, [[14 / 144, 0.0], [0.0, 0.0]], atol=1e-16)
    compared = delong.compare(found, 0, 1)
    assert compared.difference == pytest.approx(-5 / 12)
    assert compared.standard_error == pytest.approx(math.sqrt(14) / 12)
    assert compared.p == pytest.approx(math.erfc(5 / math.sqrt(14) / math.sqrt(2)))


def test_scores_that_rank_alike_do_not_differ() -> None:
    label, scores = people(5)
    found = delong.areas(label, np.vstack([scores[0], np.exp(scores[0]), scores[1]]))
    assert delong.compare(found, 0, 1).p == 1.0
    assert delong.compare(found, 0, 1).standard_error == 0.0
    assert delong.compare(found, 0, 2).difference == -delong.compare(found, 2, 0).difference


def test_equal_areas_are_told_apart_in_one_case_of_twenty() -> None:
    p = []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        label = np.arange(160) < 60
        scores = rng.normal(size=160) + rng.normal(size=(2, 160)) + 1.0 * label
        p.append(delong.compare(delong.areas(label, scores), 0, 1).p)
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.027)  # three standard errors


@pytest.mark.parametrize("positives", [0, 1, 4, 5])
def test_a_variance_needs_two_of_each_kind(positives: int) -> None:
    with pytest.raises(ValueError, match="two people"):
        delong.areas(np.arange(5) < positives, np.ones((1, 5)))


def test_a_score_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        delong.areas(np.arange(4) < 2, np.array([[0.0, 1.0, np.nan, 2.0]]))
