"""What a variance taken for a standard deviation does to NS.

GPflow's `predict_f` returns the variances v1 and v2. Code that draws f1 with the standard deviation v1 and f2 with v2,
and puts v2² where E[NS] has v2, describes the distribution of other moments, (m1, v1², m2, v2²), and that distribution
is known exactly. So both ways can be compared without sampling, on simulated people whose true z is known.

As a standard deviation v1 has the wrong dimension, so its size depends on the unit of length. Two units are shown: mm,
and the standard deviation of the training diameters, which is the unit that the model is trained in.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from app.benchmark.paper.rendering import Prose, page, table_text
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array, Moments
from app.maths.score import normalcy
from app.maths.statistics import roc_auc
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
STROKES = {
    "formulas": ("black", "-", "o"),
    "error, in mm": ("0.35", "--", "s"),
    "error, standardised": ("0.55", ":", "^"),
}

Way = Callable[[Moments], Moments]
Figures = dict[str, Array]


def run(
    seeds: Sequence[int] = tuple(range(1, 11)), size: int = 1110, tested: int = 2000, recipe: Recipe = RECIPE
) -> dict[str, Any]:
    """Each seed trains on one cohort and tests on as many fresh healthy people as fresh patients."""
    if len(seeds) < 2:
        raise ValueError("A standard error needs two cohorts.")
    rounds = [_round(seed, size, tested, recipe) for seed in seeds]
    return {
        "site": SITE,
        "seeds": list(seeds),
        "size": size,
        "tested": tested,
        "masses": list(MASSES),
        "near_cut": list(NEAR_CUT),
        "bins": BINS.tolist(),
        "ways": {way: _summary([round_[way] for round_ in rounds]) for way in rounds[0]},
    }


def with_variances_as_sds(moments: Moments, unit_mm: float) -> Moments:
    """The moments whose standard deviations are the variances of these, in this unit of length."""
    return Moments(moments.m1, (moments.v1 / unit_mm) ** 2, moments.m2, moments.v2**2)


def _round(seed: int, size: int, tested: int, recipe: Recipe) -> dict[str, Figures]:
    cohort = simulate_cohort(size, seed)
    posterior = fit(cohort.covariates("log"), cohort.sites[SITE].diameter_mm, recipe, seed).posterior
    healthy = simulate_cohort(tested, HEALTHY_SEED_OFFSET + seed)
    patients = simulate_bicuspid(tested, BICUSPID_SEED_OFFSET + seed)
    ways: dict[str, Way] = {
        "formulas": lambda moments: moments,
        "error, in mm": lambda moments: with_variances_as_sds(moments, 1.0),
        "error, standardised": lambda moments: with_variances_as_sds(moments, posterior.scaling.y_scale),
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
    """Who is near the cut-off is decided by the formulas, whichever way is then judged."""
    y, above = people.sites[SITE].diameter_mm, people.sites[SITE].true_z_mm > CUT
    right = posterior.predict(people.covariates("log"))
    expected, moments = normalcy.expected_score(y, right), way(right)
    p = normalcy.sf(CUT, y, moments)
    near = (expected >= NEAR_CUT[0]) & (expected < NEAR_CUT[1])
    sure = near & (p < CALLED_SURE)
    index = np.clip(np.searchsorted(BINS, p, side="right") - 1, 0, len(BINS) - 2)
    return {
        "near_people": np.array([near.sum()]),
        "near_probability": np.array([p[near].mean()]),
        "near_truly_above": np.array([above[near].mean()]),
        "near_called_sure": np.array([sure.sum() / near.sum()]),
        "bin_people": np.bincount(index, minlength=len(BINS) - 1),
        "bin_probability": np.bincount(index, p, minlength=len(BINS) - 1),
        "bin_truly_above": np.bincount(index, above, minlength=len(BINS) - 1),
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


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; the picture goes into the folder."""
    draw(result, folder / "variance_as_sd.svg")
    low, high = result["near_cut"]
    near = f"patients with E[NS] from {low:g} to {high:g}"
    head = [
        "",
        "healthy: true z in the 95% HDI",
        "healthy: mean width, sds",
        f"P(NS > 2), {near}",
        "true z > 2, the same",
        "P < 0.025, the same",
    ]
    safe_head = ["", "patients", "sum of P(NS > 2)", "true z > 2", "P between 0.025 and 0.975, share of all"]
    ways = result["ways"]
    return Prose("variance_as_sd")(
        "chapter",
        cohorts=len(result["seeds"]),
        size=result["size"],
        site=result["site"],
        tested=result["tested"],
        table=table_text(head, ([way, *_row(own)] for way, own in ways.items())),
        near=f"{ways['formulas']['near_people']['mean'][0]:.0f}",
        patients=f"{sum(ways['formulas']['bin_people']):,}",
        safe_table=table_text(safe_head, ([way, *_safe(own)] for way, own in ways.items())),
        shift=f"{max(own['shift_of_expected']['mean'][0] for own in ways.values()):.2f}",
        areas=", ".join(f"{own['area']['mean'][0]:.4f} ({way})" for way, own in ways.items()),
    )


def headline(result: dict[str, Any]) -> str:
    held = {way: _percent(own["coverage"], -1) for way, own in result["ways"].items()}
    return Prose("variance_as_sd")(
        "headline", formulas=held["formulas"], in_mm=held["error, in mm"], standardised=held["error, standardised"]
    )


def _row(own: dict[str, Any]) -> list[str]:
    near = (_percent(own[name], 0) for name in ("near_probability", "near_truly_above", "near_called_sure"))
    return [_percent(own["coverage"], -1), f"{own['width']['mean'][0]:.3f}", *near]


def _safe(own: dict[str, Any]) -> list[str]:
    """Of the lowest bin of P(NS > 2); then the share of the bins between the lowest and the highest."""
    people = own["bin_people"]
    between = sum(people[1:-1]) / sum(people)
    return [f"{people[0]:,}", f"{own['bin_probability'][0]:.1f}", f"{own['bin_truly_above'][0]:.0f}", f"{between:.1%}"]


def _percent(found: dict[str, list[float]], index: int) -> str:
    return f"{100 * found['mean'][index]:.1f} ± {100 * found['standard_error'][index]:.1f}%"


def draw(found: dict[str, Any], path: Path) -> None:
    with page(path, 7.0, 3.6) as figure:
        held, probable = figure.subplots(1, 2)
        for way, own in found["ways"].items():
            _draw_coverage(held, found["masses"], own["coverage"], way)
            _draw_probabilities(probable, own, way)
        held.set(xlabel="promised: mass of the HDI, %", ylabel="held: true z inside, % of healthy")
        probable.set(xlabel="patients: mean P(NS > 2), %", ylabel="true z above 2, % of patients")
        for axes in (held, probable):
            axes.plot([0, 100], [0, 100], color="0.85", linewidth=0.8, zorder=0)
            axes.set(xlim=(-2, 102), ylim=(-2, 102), aspect="equal")
        held.legend(frameon=False, loc="upper left", fontsize=8)


def _draw_coverage(axes: Axes, masses: list[float], coverage: dict[str, list[float]], way: str) -> None:
    shade, dash, mark = STROKES[way]
    mean, error = (100.0 * np.array(coverage[name]) for name in ("mean", "standard_error"))
    x = 100.0 * np.array(masses)
    axes.errorbar(x, mean, 1.96 * error, color=shade, linestyle=dash, marker=mark, markersize=4, capsize=2, label=way)


def _draw_probabilities(axes: Axes, own: dict[str, Any], way: str) -> None:
    shade, dash, mark = STROKES[way]
    people = np.array(own["bin_people"])
    some = people > 0
    said, true = (100.0 * np.array(own[name])[some] / people[some] for name in ("bin_probability", "bin_truly_above"))
    error = 100.0 * np.sqrt(true / 100.0 * (1.0 - true / 100.0) / people[some])  # of a share
    axes.errorbar(said, true, 1.96 * error, color=shade, linestyle=dash, marker=mark, markersize=4, capsize=2)
