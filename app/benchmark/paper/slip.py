"""What a variance taken for a standard deviation does to NS.

GPflow's `predict_f` returns the variances v1 and v2. Code that draws f1 with the standard deviation v1 and f2 with v2,
and puts v2² where E[NS] has v2, describes the distribution of other moments, (m1, v1², m2, v2²), and that distribution
is known exactly. So both ways can be compared without sampling, on simulated people whose true z is known.

As a standard deviation v1 has the wrong dimension, so its size depends on the unit of length. Two units are shown: mm,
and the standard deviation of the training diameters, which is the unit that the model is trained in.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array, Moments
from app.maths.score import normalcy
from app.maths.statistics.metrics import roc_auc
from app.training.cohort import SimulatedPeople, simulate_bicuspid, simulate_cohort
from app.training.fit import fit
from app.training.recipe import Recipe

RECIPE = Recipe()
SITE = "SoV"
HEALTHY_SEED_OFFSET = 2_000_000  # so that no cohort is its own test
BICUSPID_SEED_OFFSET = 3_000_000
MASSES = (0.5, 0.8, 0.9, 0.95)
CUT = 2.0
NEAR_CUT = (1.7, 2.0)  # of E[NS]: below the cut-off, but not far
CALLED_SURE = 0.025  # P(NS > 2) under which the 95% HDI leaves the cut-off out, or nearly so
BINS = np.array([0.0, 0.025, 0.2, 0.4, 0.6, 0.8, 0.975, 1.0])  # of P(NS > 2)

Way = Callable[[Moments], Moments]
Figures = dict[str, Array]


def run(
    seeds: Sequence[int] = tuple(range(1, 11)), size: int = 1110, asked: int = 2000, recipe: Recipe = RECIPE
) -> dict[str, Any]:
    """Each seed trains on one cohort and asks about as many fresh healthy people as fresh patients."""
    if len(seeds) < 2:
        raise ValueError("A standard error needs two cohorts.")
    rounds = [_round(seed, size, asked, recipe) for seed in seeds]
    return {
        "site": SITE,
        "seeds": list(seeds),
        "size": size,
        "asked": asked,
        "masses": list(MASSES),
        "near_cut": list(NEAR_CUT),
        "bins": BINS.tolist(),
        "ways": {way: _summary([round_[way] for round_ in rounds]) for way in rounds[0]},
    }


def slipped(moments: Moments, unit_mm: float) -> Moments:
    """The moments whose standard deviations are the variances of these, in this unit of length."""
    return Moments(moments.m1, (moments.v1 / unit_mm) ** 2, moments.m2, moments.v2**2)


def _round(seed: int, size: int, asked: int, recipe: Recipe) -> dict[str, Figures]:
    cohort = simulate_cohort(size, seed)
    posterior = fit(cohort.covariates("log"), cohort.sites[SITE].diameter_mm, recipe, seed).posterior
    healthy = simulate_cohort(asked, HEALTHY_SEED_OFFSET + seed)
    patients = simulate_bicuspid(asked, BICUSPID_SEED_OFFSET + seed)
    ways: dict[str, Way] = {
        "formulas": lambda moments: moments,
        "slip, in mm": lambda moments: slipped(moments, 1.0),
        "slip, standardised": lambda moments: slipped(moments, posterior.scaling.y_scale),
    }
    return {
        name: _coverage(way, posterior, healthy) | _near_the_cut(way, posterior, patients) for name, way in ways.items()
    }


def _coverage(way: Way, posterior: HeteroscedasticPosterior, people: SimulatedPeople) -> Figures:
    y, truth = people.sites[SITE].diameter_mm, people.sites[SITE].true_z_mm
    moments = way(posterior.predict(people.covariates("log")))
    intervals = [normalcy.hdi(y, moments, mass) for mass in MASSES]
    held = [np.mean((found.low <= truth) & (truth <= found.high)) for found in intervals]
    return {"coverage": np.array(held), "width": np.array([intervals[-1].width.mean()])}


def _near_the_cut(way: Way, posterior: HeteroscedasticPosterior, people: SimulatedPeople) -> Figures:
    """Whom to ask about is decided by the formulas, whichever way is then judged."""
    y, above = people.sites[SITE].diameter_mm, people.sites[SITE].true_z_mm > CUT
    right = posterior.predict(people.covariates("log"))
    expected, moments = normalcy.expected_score(y, right), way(right)
    p = normalcy.sf(CUT, y, moments)
    near = (expected >= NEAR_CUT[0]) & (expected < NEAR_CUT[1])
    sure = near & (p < CALLED_SURE)
    place = np.clip(np.searchsorted(BINS, p, side="right") - 1, 0, len(BINS) - 2)
    return {
        "near_people": np.array([near.sum()]),
        "near_probability": np.array([p[near].mean()]),
        "near_truly_above": np.array([above[near].mean()]),
        "near_called_sure": np.array([sure.sum() / near.sum()]),
        "bin_people": np.bincount(place, minlength=len(BINS) - 1),
        "bin_probability": np.bincount(place, p, minlength=len(BINS) - 1),
        "bin_truly_above": np.bincount(place, above, minlength=len(BINS) - 1),
        "area": np.array([roc_auc(above, normalcy.expected_score(y, moments))]),
        "shift_of_expected": np.array([np.abs(normalcy.expected_score(y, moments) - expected).max()]),
    }


def _summary(rounds: Sequence[Figures]) -> dict[str, Any]:
    """Means over cohorts with their standard errors; counts and sums of the bins over all cohorts together."""
    stacked = {name: np.array([round_[name] for round_ in rounds]) for name in rounds[0]}  # [cohorts, ...]
    sums = {name: values.sum(axis=0).tolist() for name, values in stacked.items() if name.startswith("bin_")}
    means = {name: _mean(values) for name, values in stacked.items() if not name.startswith("bin_")}
    return means | sums


def _mean(values: Array) -> dict[str, list[float]]:
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return {"mean": values.mean(axis=0).tolist(), "standard_error": error.tolist()}
