"""The growth chapter: detectors, their rates and its words."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from app.benchmark.paper import growth
from app.benchmark.paper.growth import Detectors, headline, mean_rates, rates, render
from app.maths.moments import Array
from tests.training.problems import short

pytestmark = pytest.mark.gpflow

RECIPE = short(inducing_minimum=12, constant_iterations=60, released_iterations=60)


@cache
def small_run() -> dict[str, Any]:
    return growth.run(seeds=(1, 2), girls=250, tested=1500, recipe=RECIPE)


class Fixed:
    """Flags everybody above 100 cm; is unsure above 10 years, and by i also above 150 cm."""

    margins = {"NS": lambda age, height: height - 100.0, "IForest": lambda age, height: -np.ones(len(age))}  # noqa: RUF012

    def width(self, age: Array, height: Array) -> Array:
        return np.where((age > 10.0) | (height > 150.0), 3.0, 1.0)

    def context_width(self, age: Array) -> Array:
        return np.where(age > 10.0, 3.0, 1.0)


def test_rates_count_ordinary_girls_flagged_and_outlying_girls_missed() -> None:
    age = np.array([5.0, 5.0, 5.0, 5.0, 9.0, 9.0, 15.0])
    height = np.array([90.0, 110.0, 90.0, 160.0, 90.0, 110.0, 110.0])
    z = np.array([0.0, 1.0, 3.0, 2.5, -2.5, 0.0, 0.0])
    found = rates(cast(Detectors, Fixed()), age, height, z)
    nan = np.nan
    np.testing.assert_array_equal(found["NS"]["false_alarms"], [1 / 2, 1.0, 1.0])
    np.testing.assert_array_equal(found["NS"]["missed"], [1 / 2, 1.0, nan])
    np.testing.assert_array_equal(found["IForest"]["false_alarms"], [0.0, 0.0, 0.0])
    by_i, by_w2 = found["NS, abstaining by i"], found["NS, abstaining by W2"]
    np.testing.assert_array_equal(by_i["unanswered"], [1 / 4, 0.0, 1.0])
    np.testing.assert_array_equal(by_i["missed"], [1.0, 1.0, nan])
    np.testing.assert_array_equal(by_w2["unanswered"], [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(by_w2["false_alarms"], [1 / 2, 1.0, nan])


def test_means_leave_out_what_is_not_known() -> None:
    rounds = [{"NS": {"missed": np.array(values)}} for values in ([0.1, np.nan, np.nan], [0.3, 0.5, np.nan])]
    found = mean_rates(rounds)["methods"]["NS"]["missed"]
    assert found["mean"] == [pytest.approx(0.2), 0.5, None]
    assert found["standard_error"] == [pytest.approx(0.1), None, None]


def test_most_girls_are_young_and_none_is_beyond_the_tables() -> None:
    ages = np.array(small_run()["picture"]["trained_on"]["age_years"])
    assert ages.min() >= 4.0
    assert ages.max() <= 19.0
    assert ages.mean() == pytest.approx(4.0 + 1.0 / 0.4, abs=3.0 * 2.5 / np.sqrt(ages.size))


def test_the_others_flag_as_many_trained_girls_as_lie_beyond_two_sds() -> None:
    rng = np.random.default_rng(0)
    age = 4.0 + rng.exponential(2.5, 400)
    middle = 80.0 + 6.0 * age
    height = middle + rng.normal(0.0, 4.0, 400)
    detectors = Detectors(age, height, RECIPE, 1)
    for name in ("IForest", "ROCOD"):
        assert np.mean(detectors.margins[name](age, height) > 0.0) == pytest.approx(0.0455, abs=1 / 400), name
    common = age < 12.0
    for sds, flagged in ((0.0, 0.0), (1.5, 0.0), (2.6, 1.0), (-2.6, 1.0)):
        margin = detectors.margins["NS"](age[common], middle[common] + 4.0 * sds)
        assert np.mean(margin > 0.0) == pytest.approx(flagged, abs=0.1), sds


def test_only_ns_is_right_about_young_and_old_girls() -> None:
    found = small_run()["rates"]["methods"]

    def wrong(name: str, band: int) -> float:
        return float(found[name]["false_alarms"]["mean"][band] + found[name]["missed"]["mean"][band])

    for band in (0, 2):
        assert wrong("NS", band) < min(wrong("IForest", band), wrong("ROCOD", band))
    assert found["IForest"]["false_alarms"]["mean"][2] > 0.5  # few old girls in training: all of them look odd
    assert found["IForest"]["missed"]["mean"][0] > 0.5


def test_the_interval_is_widest_where_few_girls_are() -> None:
    picture = small_run()["picture"]
    width = np.array(picture["width"])
    at = {age: int(np.argmin(np.abs(np.array(picture["age_years"]) - age))) for age in (6.0, 18.0)}
    assert width[at[18.0]].min() > 2.0 * width[at[6.0]].min()


def test_the_chapter_links_its_picture_and_repeats_itself(tmp_path: Path) -> None:
    result = json.loads(json.dumps(small_run(), allow_nan=False))
    text = render(result, tmp_path)
    drawn = (tmp_path / "growth.svg").read_bytes()
    assert "(paper/growth.svg)" in text
    result["rates"]["methods"]["ROCOD"]["missed"]["mean"][0] = 0.4321
    changed = render(result, tmp_path)
    assert "43.2% missed in the youngest band" in changed
    assert "ROCOD 43.2% and " in headline(result)
    assert re.search(r"\| ROCOD \|[^\n]*\| 43.2 ± ", changed)
    assert (tmp_path / "growth.svg").read_bytes() == drawn
