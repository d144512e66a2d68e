"""The chapter on held-out log densities."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm

from app.benchmark.paper import density
from app.benchmark.paper.density import STORE, headline, render, shipped_folds
from app.store import load
from app.training.cohort import CAMPENS_2014, simulate_cohort
from tests.training.problems import short

pytestmark = pytest.mark.gpflow

KNOWN: dict[str, Any] = {
    "seeds": [1, 2, 3],
    "size": 1110,
    "tested": 2000,
    "sites": {
        "SoV": {
            "NS": [-2.451, -2.461, -2.449],
            "NS_hom": [-2.470, -2.480, -2.470],
            "Altman": [-2.450, -2.460, -2.450],
            "linear Z": [-2.475, -2.480, -2.475],
            "truth": [-2.440, -2.450, -2.440],
        },
    },
}


@cache
def small_run() -> dict[str, Any]:
    recipe = short(constant_iterations=60, released_iterations=60)
    return density.run(seeds=(1, 2), size=300, tested=500, recipe=recipe)


def test_no_method_is_better_than_the_truth_and_all_are_near_it() -> None:
    for methods in small_run()["sites"].values():
        for name, values in methods.items():
            gap = np.mean(methods["truth"]) - np.mean(values)
            assert gap == 0.0 if name == "truth" else -0.02 < gap < 0.3


def test_the_true_density_is_that_of_the_equations() -> None:
    people = simulate_cohort(40, 3)
    found = density.true_log_density(people, "AA")
    own = CAMPENS_2014["AA"].male if people.male[7] else CAMPENS_2014["AA"].female
    y, z = people.sites["AA"].diameter_mm[7], people.sites["AA"].true_z_log[7]
    median = 10.0 ** (np.log10(y) - own.residual_sd * z)
    log_normal = lognorm(s=own.residual_sd * np.log(10.0), scale=median)
    assert found[7] == pytest.approx(log_normal.logpdf(y), abs=1e-9)
    assert quad(log_normal.pdf, 1.0, 200.0, points=[median])[0] == pytest.approx(1.0, abs=1e-6)


def test_one_cohort_is_too_few() -> None:
    with pytest.raises(ValueError, match="two cohorts"):
        density.run(seeds=(1,))


def test_a_difference_within_its_error_is_no_gain(tmp_path: Path) -> None:
    text = render(KNOWN, tmp_path)
    assert "3 simulated cohorts NS has no better log density than Altman's method: NS less Altman in nats" in text
    assert "nats a person, SoV -0.0003 ± 0.0007 (0.01 is 1% of a density)." in text
    assert "| Altman | -2.4533, -0.0003 ± 0.0007 |" in text
    assert "a spread that depends on the person pays: NS less NS_hom +0.0197" in text
    assert "is 0.0103 above NS" in text


def test_a_clear_gain_and_a_clear_loss_are_called_so() -> None:
    def with_altman(values: list[float]) -> str:
        site = {**KNOWN["sites"]["SoV"], "Altman": values}
        return headline({**KNOWN, "sites": {"SoV": site}})

    assert "NS has a better log density on SoV than Altman's method" in with_altman([-2.47, -2.48, -2.47])
    assert "no better log density than Altman's method, and a worse one on SoV" in with_altman([-2.43, -2.44, -2.43])


def test_the_folds_of_the_shipped_models_stand_beside_the_mean_over_cohorts() -> None:
    """One cohort's folds: there NS was no better, whatever the mean over other cohorts says."""
    folds = shipped_folds()
    assert {"SoV 1.0.0", "AA 1.0.0"} <= folds.keys()
    own = folds["SoV 1.0.0"]
    card = load(STORE, "SoV", "1.0.0").card
    assert own["NS"] == next(one.log_density for one in card.calibration.methods if one.method == "NS")
    assert f"SoV 1.0.0 {own['NS'] - own['altman']:+.4f}" in headline(KNOWN)
    assert "it is no better" in headline(KNOWN)
