"""How well each method describes healthy people it has not seen: the log density of their diameters.

A ranking does not see a scale, a log density does. The people are simulated, so the best that any method could reach,
the density that they were drawn from, is known too.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import norm

import app
from app.benchmark.paper.rendering import Prose, table_text
from app.benchmark.paper.study import Spread, paired, spread
from app.domain.patient import Sex
from app.maths.moments import Array
from app.maths.score import predictive
from app.maths.statistics import MIN_SD_SHARE, fit_linear
from app.store import load, versions
from app.training.cohort import CAMPENS_2014, SITES, SimulatedPeople, simulate_cohort
from app.training.fit import fit
from app.training.recipe import Recipe

RECIPE = Recipe()
FRESH_SEED_OFFSET = 4_000_000  # so that no cohort is its own test
STORE = Path(app.__file__).parent.parent / "models_store"
VISIBLE = 0.002  # nats a person: about the standard error of the means over cohorts
TITLES = {"truth": "the density they were drawn from"}
CLEAR = 2.0  # standard errors


def run(
    seeds: Sequence[int] = tuple(range(1, 11)), size: int = 1110, tested: int = 2000, recipe: Recipe = RECIPE
) -> dict[str, Any]:
    """Each seed trains every method on one cohort and tests it on fresh people of the same generator."""
    if len(seeds) < 2:
        raise ValueError("A standard error needs two cohorts.")
    sites = {site: [_round(site, seed, size, tested, recipe) for seed in seeds] for site in SITES}
    return {
        "seeds": list(seeds),
        "size": size,
        "tested": tested,
        "sites": {site: {name: [one[name] for one in rounds] for name in rounds[0]} for site, rounds in sites.items()},
    }


def _round(site: str, seed: int, size: int, tested: int, recipe: Recipe) -> dict[str, float]:
    """Method -> mean log density a person, natural logarithm, of mm."""
    people, fresh = simulate_cohort(size, seed), simulate_cohort(tested, FRESH_SEED_OFFSET + seed)
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
        y_fresh, expected, np.maximum(altman_sd, MIN_SD_SHARE * line.residual_sd)
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


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; there is no picture."""
    sites = result["sites"]
    names = list(next(iter(sites.values())))
    body = [[TITLES.get(name, name), *(_cell(sites[site], name) for site in sites)] for name in names]
    return Prose("density")(
        "chapter",
        cohorts=len(result["seeds"]),
        size=result["size"],
        tested=result["tested"],
        table=table_text(["", *(f"{site}: log density, NS less it" for site in sites)], body),
        headline=headline(result),
        spreads="\n".join(_spread_point(site, methods) for site, methods in sites.items()),
    )


def headline(result: dict[str, Any]) -> str:
    sites = result["sites"]
    better = [site for site, methods in sites.items() if _gain(methods, "Altman") > 0]
    worse = [site for site, methods in sites.items() if _gain(methods, "Altman") < 0]
    verdict = f"a better log density on {' and '.join(better)}" if better else "no better log density"
    return Prose("density")(
        "headline",
        cohorts=len(result["seeds"]),
        verdict=verdict,
        loss=f", and a worse one on {' and '.join(worse)}" if worse else "",
        differences=", ".join(f"{site} {_difference(methods, 'Altman')}" for site, methods in sites.items()),
        shipped=_shipped(shipped_folds()),
    ).strip()


def shipped_folds(store: Path = STORE) -> dict[str, dict[str, float]]:
    """Site and version of each shipped model -> method -> mean log density on its own held-out folds."""
    cards = [load(store, site, version).card for site, known in versions(store).items() for version in known]
    return {
        f"{card.site} {card.version}": {one.method: one.log_density for one in card.calibration.methods}
        for card in cards
    }


def _shipped(folds: dict[str, dict[str, float]]) -> str:
    """One cohort is one draw: what its own folds say can differ from the mean over cohorts."""
    if not folds:
        return ""
    gains = {name: own["NS"] - own["altman"] for name, own in folds.items()}
    is_ahead = any(gain >= VISIBLE for gain in gains.values())
    verdict = "it shows too" if is_ahead else f"it is no better (all under {VISIBLE:g})"
    listed = ", ".join(f"{name} {gain:+.4f}" for name, gain in gains.items())
    return Prose("density")("shipped", verdict=verdict, gains=listed)


def _spread_point(site: str, methods: dict[str, list[float]]) -> str:
    """What a spread that depends on the person adds, and what is left to gain."""
    return Prose("density")(
        "spread",
        site=site,
        pays={1: "pays", 0: "makes no clear difference", -1: "costs"}[_gain(methods, "NS_hom")],
        difference=_difference(methods, "NS_hom"),
        left=f"{-_mean_difference(methods, 'truth').mean:.4f}",
    )


def _gain(methods: dict[str, list[float]], other: str) -> int:
    """1, 0 or -1: NS is ahead, neither, behind by more than two standard errors."""
    found = _mean_difference(methods, other)
    clear = abs(found.mean) > CLEAR * found.standard_error
    return (1 if found.mean > 0.0 else -1) if clear else 0


def _cell(methods: dict[str, list[float]], name: str) -> str:
    own = f"{spread(methods[name]).mean:.4f}"
    return own if name == "NS" else f"{own}, {_difference(methods, name)}"


def _difference(methods: dict[str, list[float]], other: str) -> str:
    found = _mean_difference(methods, other)
    return f"{found.mean:+.4f} ± {found.standard_error:.4f}"


def _mean_difference(methods: dict[str, list[float]], other: str) -> Spread:
    return paired(spread(methods["NS"]), spread(methods[other]))
