"""How well each method describes healthy people it has not seen: the log density of their diameters.

A ranking does not see a scale, a log density does. The people are simulated, so the best that any method could reach,
the density that they were drawn from, is known too.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import norm

from app.domain.patient import Sex
from app.maths.moments import Array
from app.maths.score import predictive
from app.maths.statistics.linear import SMALLEST_SD_SHARE, fit_linear
from app.training.cohort import CAMPENS_2014, SITES, SimulatedPeople, simulate_cohort
from app.training.fit import fit
from app.training.recipe import Recipe

RECIPE = Recipe()
FRESH_SEED_OFFSET = 4_000_000  # so that no cohort is its own test


def run(
    seeds: Sequence[int] = tuple(range(1, 11)), size: int = 1110, asked: int = 2000, recipe: Recipe = RECIPE
) -> dict[str, Any]:
    """Each seed trains every method on one cohort and asks about fresh people of the same generator."""
    if len(seeds) < 2:
        raise ValueError("A standard error needs two cohorts.")
    sites = {site: [_round(site, seed, size, asked, recipe) for seed in seeds] for site in SITES}
    return {
        "seeds": list(seeds),
        "size": size,
        "asked": asked,
        "sites": {site: {name: [one[name] for one in rounds] for name in rounds[0]} for site, rounds in sites.items()},
    }


def _round(site: str, seed: int, size: int, asked: int, recipe: Recipe) -> dict[str, float]:
    """Method -> mean log density a person, natural logarithm, of mm."""
    people, fresh = simulate_cohort(size, seed), simulate_cohort(asked, FRESH_SEED_OFFSET + seed)
    x, y = people.covariates("log"), people.sites[site].diameter_mm
    x_fresh, y_fresh = fresh.covariates("log"), fresh.sites[site].diameter_mm
    recipes = {"NS": recipe, "NS_hom": replace(recipe, heteroscedastic=False)}
    found = {
        name: predictive.log_density(y_fresh, fit(x, y, own, seed).posterior.predict(x_fresh))
        for name, own in recipes.items()
    }
    line = fit_linear(x, y)
    expected, altman_sd = line.expected(x_fresh), line.altman_sd(x_fresh)
    # scipy's stubs know no array in, array out.
    found["Altman"] = norm.logpdf(  # type: ignore[assignment]
        y_fresh, expected, np.maximum(altman_sd, SMALLEST_SD_SHARE * line.residual_sd)
    )
    found["linear Z"] = norm.logpdf(y_fresh, expected, line.residual_sd)  # type: ignore[assignment]
    found["truth"] = true_log_density(fresh, site)
    return {name: float(np.mean(values)) for name, values in found.items()}


def true_log_density(people: SimulatedPeople, site: str) -> Array:
    """Of the log-normal distribution that each diameter was drawn from, per mm."""
    measured, reference = people.sites[site], CAMPENS_2014[site]
    male, female = (reference.for_sex(sex).residual_sd for sex in (Sex.MALE, Sex.FEMALE))
    sd = np.log(10.0) * np.where(people.male, male, female)
    return np.asarray(norm.logpdf(measured.true_z_log) - np.log(sd * measured.diameter_mm))
