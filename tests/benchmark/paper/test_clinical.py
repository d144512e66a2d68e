"""The clinical chapter on a small cohort, with a fit that takes a second."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from app.benchmark.paper import clinical
from app.benchmark.paper.clinical import (
    Models,
    SiteScores,
    borderline,
    counts,
    learn,
    ranked,
    score_patients,
    scores,
    weight_of,
)
from app.domain.patient import haycock_bsa_m2
from app.maths.moments import Intervals, Moments
from app.maths.score import normalcy
from app.maths.statistics import roc_auc
from app.training.cohort import simulate_bicuspid, simulate_cohort
from tests.training.problems import SHORT

pytestmark = pytest.mark.gpflow

HEALTHY, BICUSPID = 200, 150


@cache
def small_run() -> dict[str, Any]:
    return clinical.run(healthy=HEALTHY, bicuspid=BICUSPID, recipe=SHORT)


@cache
def models(site: str) -> Models:
    return learn(simulate_cohort(HEALTHY, 1), site, SHORT, 1)


def site_scores(expected: list[float], above: list[float], z: list[float], truth: list[float]) -> SiteScores:
    n = len(expected)
    centre = np.array(expected)
    moments = Moments(np.full(n, 30.0), np.full(n, 0.1), np.ones(n), np.full(n, 0.01))
    hdi = Intervals(centre - 0.3, centre + 0.3)
    return SiteScores(np.full(n, 35.0), moments, centre, hdi, np.array(above), np.array(z), np.array(truth))


def test_the_result_survives_json() -> None:
    assert json.loads(json.dumps(small_run(), allow_nan=False)) == small_run()


@pytest.mark.parametrize("site", ["SoV", "AA"])
def test_areas_are_those_of_the_scores_by_both_labels(site: str) -> None:
    patients = simulate_bicuspid(BICUSPID, 2)
    measured, found = patients.sites[site], small_run()["roc"][site]
    x, y = patients.covariates("log"), measured.diameter_mm
    ns = normalcy.expected_score(y, models(site).ns.predict(x))
    z = models(site).linear.linear_z(x, y)
    for label, positive in (("40 mm", y >= 40.0), ("true z", measured.true_z_mm > 2.0)):
        methods = found[label]["methods"]
        assert methods["NS"]["area"] == pytest.approx(roc_auc(positive, ns), abs=1e-9)
        assert methods["linear Z"]["area"] == pytest.approx(roc_auc(positive, z), abs=1e-9)
        difference = roc_auc(positive, ns) - roc_auc(positive, z)
        assert methods["linear Z"]["versus_ns"]["difference"] == pytest.approx(difference, abs=1e-9)
        assert found[label]["positive"] == positive.sum()
    assert found["40 mm"]["methods"]["diameter"]["area"] == 1.0
    assert found["true z"]["methods"]["true z"]["area"] == 1.0
    assert found["40 mm"]["methods"]["true z"]["area"] < 1.0
    assert found["large_yet_normal"] == ((y >= 40.0) & (measured.true_z_mm <= 2.0)).sum()
    assert found["small_yet_wide"] == ((y < 40.0) & (measured.true_z_mm > 2.0)).sum()


def test_the_corners_of_a_curve_enclose_its_area() -> None:
    patients = simulate_bicuspid(BICUSPID, 2)
    found = ranked(patients.sites["AA"].dilated, scores(models("AA"), patients, "AA"))
    for name, own in found["methods"].items():
        x, y = np.array(own["curve"]["x"]), np.array(own["curve"]["y"])
        assert (x[0], y[0], x[-1], y[-1]) == (0.0, 0.0, 1.0, 1.0)
        trapezoids = float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / 2.0)
        assert trapezoids == pytest.approx(own["area"], abs=2e-6), name
    assert len(found["methods"]["diameter"]["curve"]["x"]) == 3  # straight up, then straight on


def test_the_homoscedastic_model_has_one_spread() -> None:
    x = simulate_bicuspid(20, 3).covariates("log")
    assert np.ptp(models("SoV").homoscedastic.predict(x).m2) == 0.0
    assert np.ptp(models("SoV").ns.predict(x).m2) > 0.0


def test_counts_are_those_of_the_definitions() -> None:
    scored = site_scores(
        expected=[0.0, 1.2, 1.6, 1.8, 1.9, 2.4],
        above=[1e-9, 4e-5, 0.024, 0.3, 0.025, 0.9],
        z=[0.1, 1.1, 1.7, 1.9, 2.1, 1.9],
        truth=[0.0, 1.0, 1.7, 2.05, 2.3, 2.5],
    )
    found = counts(scored)
    assert (found["expected_below"], found["seen_by_sampling"], found["in_the_tail"]) == (5, 4, 2)
    assert found["expected_to_exceed"] == pytest.approx(1e-9 + 4e-5 + 0.024 + 0.3 + 0.025)
    assert found["truly_exceed"] == 2
    assert found["normal_by_z_yet_crossing"] == 1  # 1.8; at 1.9 the linear Z is above 2, at 2.4 the HDI is
    assert found["true_z_covered"] == pytest.approx(5 / 6)  # 2.3 lies beyond 1.9 + 0.3


def test_the_four_patients_spread_over_all_in_doubt() -> None:
    patients = simulate_bicuspid(20, 2)
    above = np.linspace(0.05, 0.95, 20)[::-1].tolist()
    in_doubt = site_scores([1.9] * 16 + [1.0] * 4, above, [1.5] * 20, [1.9] * 20)
    found = borderline(patients, {"SoV": in_doubt, "AA": site_scores([0.0] * 20, [0.0] * 20, [0.0] * 20, [0.0] * 20)})
    # The first 16 are in doubt, the last of them the least: places 2, 6, 10 and 14 counted from the 16th back.
    assert [one["number"] for one in found] == [14, 10, 6, 2]


@pytest.mark.parametrize("site", ["SoV", "AA"])
def test_every_patient_drawn_is_normal_by_z_and_in_doubt_by_ns(site: str) -> None:
    for patient in small_run()["patients"]:
        sites = patient["sites"].values()
        assert any(own["linear_z"] < 2.0 and own["low"] < 2.0 < own["high"] for own in sites)
        own, row = patient["sites"][site], patient["number"] - 1
        scored = score_patients(models(site), simulate_bicuspid(BICUSPID, 2), site)
        assert own["above"] == pytest.approx(float(scored.above[row]), abs=1e-9)
        t, density = np.array(own["t"]), np.array(own["density"])
        assert np.sum(np.diff(t) * (density[1:] + density[:-1]) / 2.0) == pytest.approx(1.0, abs=0.01)


def test_a_weight_has_the_area_that_was_asked_for() -> None:
    height, area = np.array([110.0, 160.0, 190.0]), np.array([0.8, 1.7, 2.3])
    np.testing.assert_allclose(haycock_bsa_m2(height, weight_of(height, area)), area, rtol=1e-12)


@pytest.mark.parametrize("site", ["SoV", "AA"])
def test_the_map_says_of_people_what_the_model_says_of_them(site: str) -> None:
    found, people = small_run()["heatmaps"][site], simulate_cohort(HEALTHY, 1)
    own = normalcy.hdi(found["diameter_mm"], models(site).ns.predict(people.covariates("log"))).width
    bsa = haycock_bsa_m2(people.height_cm, people.weight_kg)
    row = np.abs(np.array(found["age_years"])[:, None] - people.age_years).argmin(axis=0)
    column = np.abs(np.array(found["bsa_m2"])[:, None] - bsa).argmin(axis=0)
    maps = {sex: np.array(found[sex]["width"]) for sex in ("male", "female")}
    mapped = np.where(people.male, maps["male"][row, column], maps["female"][row, column])
    # The map knows the mean height of a surface area, the model each person's own.
    assert np.corrcoef(np.log(own), np.log(mapped))[0, 1] > 0.9
    assert np.median(mapped / own) == pytest.approx(1.0, abs=0.1)
    for sex, width in maps.items():
        assert width.max() > 2.0 * np.quantile(own, 0.9), sex  # wide where nobody is
