"""Measurements that train models: how often the 95% HDI holds the true z, and how long training takes.

Coverage is measured over many cohorts, because one cohort's answer varies by points. Each round trains on a fresh
cohort and scores fresh people of the same generator, whose true z (mm) is known. Times are of a hospital's cohort, and
of the staged L-BFGS against the paper's optimiser.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import IsolationForest

from app.clock import utc_now
from app.domain.patient import AgeTransform, bmi_kg_m2
from app.domain.query import Convention
from app.formats.markdown import table
from app.maths.gp.posterior import HeteroscedasticPosterior, Scaling
from app.maths.moments import Array
from app.maths.score import normalcy, predictive
from app.maths.statistics import weighted_kendall_tau
from app.services.train import TrainingPlan, train
from app.training.cohort import ADULT_FROM_YEARS, SITES, SimulatedPeople, measured, simulate_cohort
from app.training.fit import CONSTANT_SPREAD, Stages, fit
from app.training.model import starting_points
from app.training.recipe import Recipe
from app.training.table_checks import accepted_table

TEST_PEOPLE = 2000
TEST_SEED_OFFSET = 1_000_000  # so that no cohort is its own test
SPARSE_SHARE = 0.05  # the training contexts with the widest W2
HEAVY_BMI = (30.0, 40.0)  # training ends at 30
HEAVY = "adults with a BMI of 30 to 40"
AGE_BANDS = ((5, 18), (18, 40), (40, 60), (60, 86))

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class CoverageRound:
    """One cohort: per group of people, how many there were and the share whose true z lies in the HDI."""

    seed: int
    people: dict[str, int]
    covered: dict[str, float]  # NaN where a group is empty
    kendall_tau: float  # W2 against an isolation forest on the training contexts
    below: float  # share of the inner people below, above their predictive interval
    above: float
    bias: float  # mean of E[NS] - true z, inner people


@dataclass(frozen=True, slots=True)
class GroupCoverage:
    group: str
    people: float  # mean over cohorts
    mean: float
    standard_error: float
    lowest: float
    highest: float


def one_round(seed: int, site: str, size: int, recipe: Recipe, age: AgeTransform) -> CoverageRound:
    """Train on cohort `seed` and score people that it has not seen."""
    cohort, fresh = simulate_cohort(size, seed), simulate_cohort(TEST_PEOPLE, TEST_SEED_OFFSET + seed)
    x, x_fresh = cohort.covariates(age), fresh.covariates(age)
    fitted = fit(x, cohort.sites[site].diameter_mm, recipe, seed)
    moments = fitted.posterior.predict(x_fresh)
    y, truth = fresh.sites[site].diameter_mm, fresh.sites[site].true_z_mm
    hit, heavy = _hits(fitted.posterior, fresh, site, age), _heavy_adults(fresh, seed)
    width_trained = normalcy.context_width(fitted.posterior.predict(x))
    groups = dict(_groups(cohort, fresh, normalcy.context_width(moments), width_trained))
    inner, pit = groups["inside 5–95%"], predictive.cdf(y, moments)
    return CoverageRound(
        seed=seed,
        people={name: int(mask.sum()) for name, mask in groups.items()} | {HEAVY: len(heavy.age_years)},
        covered={name: float(hit[mask].mean()) if mask.any() else float("nan") for name, mask in groups.items()}
        | {HEAVY: float(_hits(fitted.posterior, heavy, site, age).mean())},
        kendall_tau=weighted_kendall_tau(width_trained, _isolation(x, seed)),
        below=float((pit[inner] < 0.025).mean()),
        above=float((pit[inner] > 0.975).mean()),
        bias=float((normalcy.expected_score(y, moments) - truth)[inner].mean()),
    )


def measure_coverage(
    seeds: Sequence[int],
    site: str,
    size: int,
    recipe: Recipe,
    age: AgeTransform,
    processes: int,
    report: Callable[[str, float], None],
) -> list[CoverageRound]:
    """All rounds, side by side in processes of their own, in the order of their seeds."""
    # Spawned, because TensorFlow does not survive a fork.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = [pool.submit(one_round, seed, site, size, recipe, age) for seed in seeds]
        for done, _ in enumerate(as_completed(waiting), start=1):
            report(f"{site}: {done} of {len(seeds)} cohorts", done / len(seeds))
        return [round_.result() for round_ in waiting]


def summarise(rounds: Sequence[CoverageRound]) -> list[GroupCoverage]:
    """The mean over cohorts with its standard error: people of one cohort share one fit and are not independent."""
    return [_group(name, rounds) for name in rounds[0].covered]


def _group(name: str, rounds: Sequence[CoverageRound]) -> GroupCoverage:
    covered = np.array([round_.covered[name] for round_ in rounds])
    known = covered[np.isfinite(covered)]
    error = float(known.std(ddof=1) / np.sqrt(len(known)))
    people = float(np.mean([round_.people[name] for round_ in rounds]))
    return GroupCoverage(name, people, float(known.mean()), error, float(known.min()), float(known.max()))


def _hits(posterior: HeteroscedasticPosterior, people: SimulatedPeople, site: str, age: AgeTransform) -> Mask:
    """[N] is the true z within the 95% HDI?"""
    truth = people.sites[site].true_z_mm
    interval = normalcy.hdi(people.sites[site].diameter_mm, posterior.predict(people.covariates(age)))
    return np.asarray((interval.low <= truth) & (truth <= interval.high))


def _heavy_adults(people: SimulatedPeople, seed: int) -> SimulatedPeople:
    """The adults, made heavier than everybody in training, to test extrapolation."""
    adults = people.age_years >= ADULT_FROM_YEARS
    height = people.height_cm[adults]
    bmi = np.random.default_rng(seed).uniform(*HEAVY_BMI, len(height))
    z = np.column_stack([people.sites[name].true_z_log[adults] for name in SITES])
    weight = np.asarray(np.round(bmi * (height / 100.0) ** 2, 1), dtype=np.float64)
    return measured("healthy", people.age_years[adults], people.male[adults], height, weight, z)


def _groups(
    cohort: SimulatedPeople, fresh: SimulatedPeople, width: Array, width_trained: Array
) -> Iterator[tuple[str, Mask]]:
    everybody = np.ones(len(width), dtype=bool)
    inner = _inside(cohort, fresh, (5.0, 95.0))
    yield "inside 5–95%", inner
    yield "everybody", everybody
    for low, high in AGE_BANDS:
        yield f"{low} to {high - 1} years", (fresh.age_years >= low) & (fresh.age_years < high)
    yield "men", fresh.male
    yield "women", ~fresh.male
    yield "sparse (widest 5% of W2)", width > np.quantile(width_trained, 1.0 - SPARSE_SHARE)
    yield "outside 5–95%", ~inner
    yield "just beyond the training range, same generator", ~_inside(cohort, fresh, (0.0, 100.0))


def _inside(cohort: SimulatedPeople, fresh: SimulatedPeople, percentiles: tuple[float, float]) -> Mask:
    """Age, and by sex height, weight and BMI, within these percentiles of the cohort."""
    inside = np.ones(len(fresh.age_years), dtype=bool)
    for sex in (True, False):
        here, there = fresh.male == sex, cohort.male == sex
        for name, column in _sizes(fresh).items():
            low, high = np.percentile(_sizes(cohort)[name][there], percentiles)
            inside[here] &= (column[here] >= low) & (column[here] <= high)
    return inside


def _sizes(people: SimulatedPeople) -> Mapping[str, Array]:
    height, weight = people.height_cm, people.weight_kg
    return {"age": people.age_years, "height": height, "weight": weight, "bmi": bmi_kg_m2(height, weight)}


def _isolation(x: Array, seed: int) -> Array:
    """Isolation forest on the standardised contexts; larger is more isolated, as in the paper."""
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    forest = IsolationForest(random_state=seed).fit(standard)
    return -np.asarray(forest.score_samples(standard), dtype=np.float64)


def render_coverage(rounds: Mapping[str, Sequence[CoverageRound]]) -> list[str]:
    """Markdown, one table a site."""
    lines: list[str] = []
    for site, of_site in rounds.items():
        lines += [f"## {site}, {len(of_site)} cohorts", "", *_coverage_table(of_site), *_coverage_notes(of_site), ""]
    return lines


def _coverage_table(rounds: Sequence[CoverageRound]) -> list[str]:
    head = ("people asked about", "people a cohort", "coverage", "standard error", "lowest, highest cohort")
    rows = (
        (g.group, f"{g.people:.0f}", f"{g.mean:.1%}", f"{g.standard_error:.1%}", f"{g.lowest:.1%}, {g.highest:.1%}")
        for g in summarise(rounds)
    )
    return table(head, rows)


def _coverage_notes(rounds: Sequence[CoverageRound]) -> list[str]:
    def mean(name: str) -> float:
        return float(np.mean([getattr(round_, name) for round_ in rounds]))

    lowest = min(round_.kendall_tau for round_ in rounds)
    return [
        f"Weighted Kendall tau of W2 against an isolation forest on the training contexts: "
        f"mean {mean('kendall_tau'):.2f}, lowest {lowest:.2f}.  ",
        f"Inside 5–95%: {mean('below'):.1%} fall below and {mean('above'):.1%} above their 95% predictive interval "
        f"(2.5% each is ideal); mean of E[NS] minus the true z {mean('bias'):+.3f}.",
    ]


@dataclass(frozen=True, slots=True)
class Timed:
    """Processor time does not count what other work took from the machine. TensorFlow is held to one thread."""

    what: str
    wall_seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class TrainingTime:
    people: int
    fit: Timed
    train: Timed


def measure_training(path: Path, diameter_column: str, seed: int, report: Callable[[str, float], None]) -> TrainingTime:
    """One fit of a cohort, and the whole training with its held-out folds. Loading the libraries does not count."""
    people, _ = accepted_table(path, diameter_column)
    plan = TrainingPlan("SoV", "0.0.0", "measured", "", Convention(), Recipe(), seed)
    once = _timed("one fit", lambda: fit(people.covariates("log"), people.diameter_mm, plan.recipe, seed))
    whole = _timed(f"fit and {plan.folds} folds", lambda: train(people, plan, utc_now(), report))
    return TrainingTime(len(people), once, whole)


def render_training(found: TrainingTime) -> list[str]:
    rows = ((one.what, f"{one.wall_seconds:.1f}", f"{one.processor_seconds:.1f}") for one in (found.fit, found.train))
    return [f"{found.people} people, tracing included.", "", *table(("what", "wall s", "processor s"), rows)]


def _timed(what: str, work: Callable[[], object]) -> Timed:
    wall, processor = perf_counter(), process_time()
    work()
    return Timed(what, perf_counter() - wall, process_time() - processor)


@dataclass(frozen=True, slots=True)
class Reached:
    """An objective and when it was reached. Processor time leaves out what other work took from the machine."""

    objective: float
    wall_seconds: float
    processor_seconds: float


@dataclass(frozen=True, slots=True)
class Race:
    people: int
    covariates: int
    inducing_points: int
    seed: int
    priors: bool  # False: the objective is the plain ELBO
    paper_steps: int
    paper: Reached  # after all its steps
    staged: Reached  # after all stages
    overtaking: Reached | None  # the first iteration at or above the paper's end; None if there was none


def measure_optimisers(x: Array, y: Array, steps: int, seed: int, priors: bool = True) -> Race:
    """How long the staged L-BFGS takes to the objective that the paper's optimiser ends at.

    From raw covariates x [N, D] and targets y [N]. Both maximise the same function of the same model, ELBO plus log
    prior or the plain ELBO as in the paper, from the same inducing points, with the same closed-form data term on one
    thread. Both clocks run from the bare arrays on: building, tracing and compiling count.
    """
    by_paper = Recipe(optimiser="paper", paper_steps=steps, priors=priors, start_log_sd=math.log(0.5))
    by_stages = Recipe(priors=priors)
    people, covariates = x.shape
    points = min(by_paper.inducing_points(people), len(np.unique(x, axis=0)))
    paper = _path(x, y, by_paper, seed)[-1]
    path = _path(x, y, by_stages, seed)
    overtaking = next((reached for reached in path if reached.objective >= paper.objective), None)
    return Race(people, covariates, points, seed, priors, steps, paper, path[-1], overtaking)


def render_optimisers(race: Race) -> list[str]:
    """Markdown lines."""
    rows = [(f"natural gradient and Adam, {race.paper_steps} steps", race.paper), ("staged L-BFGS", race.staged)]
    if race.overtaking:
        rows.append(("staged L-BFGS, at the paper's end", race.overtaking))
    what = "ELBO + log prior" if race.priors else "ELBO"
    head = ("optimiser", what, "wall s", "processor s", "of the paper's, wall", "of the paper's, processor")
    return [
        f"{race.people} rows, {race.covariates} covariates, {race.inducing_points} inducing points; seed {race.seed}",
        "",
        *table(head, (_race_row(name, reached, race.paper) for name, reached in rows)),
    ]


def _race_row(name: str, reached: Reached, paper: Reached) -> list[str]:
    wall = paper.wall_seconds / reached.wall_seconds
    processor = paper.processor_seconds / reached.processor_seconds
    seconds = (f"{reached.wall_seconds:.1f}", f"{reached.processor_seconds:.1f}")
    return [name, f"{reached.objective:.1f}", *seconds, f"1/{wall:.0f}", f"1/{processor:.0f}"]


def _path(x: Array, y: Array, recipe: Recipe, seed: int) -> list[Reached]:
    """Objective against time of the model whose f2 varies; the stage before has that of another model."""
    wall, processor = perf_counter(), process_time()
    path: list[Reached] = []

    def watch(stage: str, fraction: float, objective: float) -> None:
        if stage != CONSTANT_SPREAD:
            path.append(Reached(objective, perf_counter() - wall, process_time() - processor))

    scaling = Scaling.of(x, y)
    contexts = scaling.standardise(x)
    rng = np.random.default_rng(seed)
    Z = starting_points(contexts, recipe.inducing_points(len(x)), rng)
    Stages(recipe, contexts, scaling.standardise_y(y), rng, watch).train(Z)
    return path
