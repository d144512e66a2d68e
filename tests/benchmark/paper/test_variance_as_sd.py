"""The chapter on variances taken for standard deviations."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.benchmark.paper import variance_as_sd
from app.benchmark.paper.variance_as_sd import headline, render
from app.maths.moments import Moments
from app.maths.score import normalcy
from tests.training.problems import short

pytestmark = pytest.mark.gpflow

ONE = Moments(np.array([30.0]), np.array([0.36]), np.array([1.0]), np.array([0.04]))


@cache
def small_run() -> dict[str, Any]:
    recipe = short(constant_iterations=60, released_iterations=60)
    return variance_as_sd.run(seeds=(1, 2), size=300, tested=800, recipe=recipe)


def test_the_mistake_is_that_of_draws_with_variances_for_standard_deviations() -> None:
    rng, y, draws = np.random.default_rng(1), 36.0, 400_000
    f1 = rng.normal(ONE.m1[0], ONE.v1[0], draws)  # the mistake: numpy asks for a standard deviation here
    f2 = rng.normal(ONE.m2[0], ONE.v2[0], draws)
    drawn = (y - f1) * np.exp(-f2)
    mistaken = variance_as_sd.with_variances_as_sds(ONE, unit_mm=1.0)
    assert normalcy.expected_score(y, mistaken)[0] == pytest.approx(drawn.mean(), abs=5.0 * drawn.std() / draws**0.5)
    for t in (2.0, 2.2, 2.4):
        share = float(np.mean(drawn > t))
        assert normalcy.sf(t, y, mistaken)[0] == pytest.approx(share, abs=5.0 * (share * (1 - share) / draws) ** 0.5)


def test_in_another_unit_the_mistake_is_another() -> None:
    unit = 4.0
    in_units = Moments(ONE.m1 / unit, ONE.v1 / unit**2, ONE.m2 - np.log(unit), ONE.v2)
    there = variance_as_sd.with_variances_as_sds(in_units, unit_mm=1.0)
    back = Moments(there.m1 * unit, there.v1 * unit**2, there.m2 + np.log(unit), there.v2)
    here = variance_as_sd.with_variances_as_sds(ONE, unit)
    for name in ("m1", "v1", "m2", "v2"):
        np.testing.assert_allclose(getattr(here, name), getattr(back, name), rtol=1e-12)
    assert here.v1[0] < variance_as_sd.with_variances_as_sds(ONE, 1.0).v1[0]


def test_the_formulas_keep_their_promise_and_the_mistake_does_not() -> None:
    ways = small_run()["ways"]
    covered = {way: own["coverage"]["mean"][-1] for way, own in ways.items()}
    assert covered["formulas"] > 0.85
    # So few people leave more doubt, a v1 nearer to 1 mm² and so a smaller error than in the report.
    assert covered["error, standardised"] < covered["error, in mm"] - 0.2 < covered["formulas"] - 0.4
    sure = {way: own["near_called_sure"]["mean"][0] for way, own in ways.items()}
    assert sure["formulas"] < sure["error, in mm"] < sure["error, standardised"]


def test_every_patient_is_in_one_bin_and_near_means_the_same_people() -> None:
    ways = small_run()["ways"]
    for own in ways.values():
        assert sum(own["bin_people"]) == 2 * 800
        assert own["near_people"] == ways["formulas"]["near_people"]
        assert sum(own["bin_truly_above"]) == sum(ways["formulas"]["bin_truly_above"])
        middle = np.array(own["bin_probability"]) / np.maximum(own["bin_people"], 1)
        filled = np.array(own["bin_people"]) > 0
        edges = np.array(small_run()["bins"])
        assert np.all((middle >= edges[:-1] - 1e-12)[filled])
        assert np.all((middle <= edges[1:] + 1e-12)[filled])


def test_one_cohort_has_no_standard_error() -> None:
    with pytest.raises(ValueError, match="two cohorts"):
        variance_as_sd.run(seeds=(1,))


def test_the_chapter_tells_the_numbers_and_links_its_picture(tmp_path: Path) -> None:
    result = json.loads(json.dumps(small_run(), allow_nan=False))
    result["ways"]["error, in mm"]["coverage"]["mean"][-1] = 0.31415
    result["ways"]["formulas"]["bin_truly_above"][0] = 77.0
    text = render(result, tmp_path)
    assert "| error, in mm | 31.4 ± " in text
    assert "| 77 |" in text
    assert re.search(r"31\.4 ± \S+% \(lengths in mm\)", headline(result))
    assert "(paper/variance_as_sd.svg)" in text
    drawn = (tmp_path / "variance_as_sd.svg").read_bytes()
    render(result, tmp_path)
    assert (tmp_path / "variance_as_sd.svg").read_bytes() == drawn
