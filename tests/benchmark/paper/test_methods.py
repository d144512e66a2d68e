import numpy as np
import pytest

from app.benchmark.paper.methods import Rocod, percentile_score
from app.benchmark.paper.protocol import FITTED, METHODS, make
from app.benchmark.paper.recipes import Choice
from app.maths.moments import Array
from app.maths.statistics import roc_auc
from tests.benchmark.paper.problems import line

CONDITIONAL = ("Z-score", "Altman", "QCAD", "ROCOD")
JOINT = ("IForest", "LOF", "HBOS")
STANDARDISED = tuple(f"{method}_std" for method in JOINT)


@pytest.mark.parametrize("method", [*CONDITIONAL, *JOINT, *STANDARDISED])
def test_a_gross_anomaly_is_among_the_highest_scores(method: str) -> None:
    X, y = line(300)
    made = make(method, None, seed=1)
    made.fit(X[:240], y[:240])
    asked = y[240:].copy()
    asked[7] += 3.0
    score = made.answer(X[240:], asked)["score"]
    assert score.shape == (60,)
    # A detector without contexts may find a few rare contexts just as odd.
    assert (score > score[7]).sum() <= (0 if method in CONDITIONAL else 6)


@pytest.mark.parametrize("method", CONDITIONAL)
def test_a_contextual_anomaly_inside_the_range_of_y_is_found(method: str) -> None:
    X, y = line(300)
    made = make(method, None, seed=1)
    made.fit(X[:240], y[:240])
    asked = y[240:].copy()
    anomalous = np.zeros(60, dtype=bool)
    anomalous[:10] = True
    asked[:10] += np.where(asked[:10] > 0.5, -0.4, 0.4)
    assert roc_auc(anomalous, made.answer(X[240:], asked)["score"]) > 0.95


@pytest.mark.parametrize("method", JOINT)
def test_on_standardised_columns_the_units_of_a_file_do_not_matter(method: str) -> None:
    X, y = line(300)
    units = np.geomspace(1.0, 1000.0, X.shape[1])

    def scores(name: str, X: Array) -> Array:
        made = make(name, None, seed=1)
        made.fit(X[:240], y[:240])
        return made.answer(X[240:], y[240:])["score"]

    np.testing.assert_allclose(scores(f"{method}_std", 5.0 + units * X), scores(f"{method}_std", X), rtol=1e-6)
    if method != "IForest":  # a forest cuts a column at random between its ends, whatever its unit
        assert np.abs(scores(method, X) - scores(method, units * X)).max() > 0.01


@pytest.mark.gpflow
def test_ns_answers_with_moments_and_ns_hom_with_one_spread() -> None:
    X, y = line()
    for method, choice in (("NS", Choice("reg1")), ("NS_hom", Choice("reg1", heteroscedastic=False))):
        made = make(method, choice, seed=1)
        made.fit(X[:50], y[:50])
        answer = made.answer(X[50:], y[50:])
        assert set(answer) == {"m1", "v1", "m2", "v2"}
        assert np.abs(answer["m1"] - y[50:]).max() < 0.1
        assert (np.ptp(answer["m2"]) == 0.0) == (method == "NS_hom")


def test_between_percentiles_the_score_is_the_width_and_outside_it_grows_with_the_distance() -> None:
    q = np.repeat(np.linspace(0.0, 1.0, 101)[None, :], 4, axis=0)
    q[:, 51:] += 0.5  # a gap of 0.51 between the 50th and the 51st percentile
    score = percentile_score(q, np.array([0.105, 0.7, -1.0, 2.5]))
    assert score[0] == pytest.approx(0.01)
    assert score[1] == pytest.approx(0.51)
    assert score[2] == pytest.approx((1.0 + 1.0 / 1.0) * 0.51)
    assert score[3] == pytest.approx((1.0 + 1.0 / 1.0) * 0.51)


def test_a_row_far_from_all_others_is_judged_by_the_line() -> None:
    X = np.append(np.linspace(0.0, 1.0, 50), 10.0)[:, None]
    y = 2.0 * X[:, 0]
    made = Rocod(0)
    made.fit(X, y)
    assert made.answer(np.array([[8.0]]), np.array([16.0]))["score"][0] == pytest.approx(0.0, abs=1e-18)


@pytest.mark.gpflow
def test_every_method_of_table_2_can_be_made() -> None:
    for method in METHODS:
        assert hasattr(make(method, Choice() if method in FITTED else None, 0), "answer")
