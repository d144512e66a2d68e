"""Train a version: from a checked table of healthy people to a candidate, and from a candidate to a published one.

Nothing is written until every gate has passed; then the store publishes the version in one step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from app.domain.card import CARD_FORMAT, Cohort, Comparators, ModelCard, ModelRef, ReliabilityLimits
from app.domain.golden import GoldenCase, choose_golden_inputs
from app.domain.patient import AgeTransform, covariate_names, covariates
from app.domain.query import Convention
from app.errors import GateFailed
from app.formats.card_markdown import card_markdown
from app.inference.executor import NumpyExecutor
from app.inference.golden import check_golden, golden_cases
from app.inference.median_bmi import median_bmi_curves
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array, Moments
from app.maths.score import normalcy
from app.maths.statistics import fit_linear
from app.store import publish as publish_in_store
from app.training.calibration import calibration_gates, check_gates, cross_validate, failures, summarise
from app.training.fit import Fit, fit
from app.training.recipe import Recipe
from app.training.table import Table, training_ranges

Report = Callable[[str, float], None]

# Shares of the time, about: before the fits the libraries are loaded, after them golden cases, gates and card are made.
FITS_BEGIN, CHECKS_BEGIN = 0.05, 0.70

WIDTH_QUANTILES = np.linspace(0.0, 1.0, 201)  # in steps of half a per cent: the 99th is one of them


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    site: str
    version: str
    cohort_name: str
    cohort_description: str
    convention: Convention
    recipe: Recipe
    seed: int
    folds: int = 5
    age: AgeTransform = "log"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A trained model with its card and golden cases, not yet published."""

    card: ModelCard
    posterior: HeteroscedasticPosterior
    golden: tuple[GoldenCase, ...]


def train(table: Table, plan: TrainingPlan, now: datetime, report: Report) -> Candidate:
    """Fit on everybody, measure on held-out folds, and collect everything for the card."""
    x, y = table.covariates(plan.age), table.diameter_mm
    progress = _Progress(report, plan.folds)
    fitted = fit(x, y, plan.recipe, plan.seed, progress.next_fit())

    def fit_fold(x: Array, y: Array, seed: int) -> HeteroscedasticPosterior:
        return fit(x, y, plan.recipe, seed, progress.next_fit()).posterior

    held_out = cross_validate(x, y, fit_fold, plan.folds, plan.seed, male=table.male)
    progress.report("checking the gates", CHECKS_BEGIN)
    calibration = summarise(held_out, table.age_years, table.male)
    inputs = choose_golden_inputs(table.age_years, table.male, table.height_cm, table.weight_kg, plan.seed)
    golden = golden_cases(inputs, plan.age, fitted.reference)
    reproduced = check_golden(NumpyExecutor(fitted.posterior), plan.age, fitted.posterior.scaling.y_scale, golden)
    everywhere = np.vstack([x, covariates([item.patient for item in inputs], plan.age)])  # also outside the cohort
    gates = check_gates(calibration, _difference_from_gpflow(fitted, everywhere), reproduced.failed)
    card = ModelCard(
        format=CARD_FORMAT,
        site=plan.site,
        version=plan.version,
        created_at=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        cohort=_cohort(table, plan),
        convention=plan.convention,
        age_transform=plan.age,
        covariates=covariate_names(plan.age),
        kernel=plan.recipe.kernel,
        ranges=training_ranges(table),
        training=fitted.record,
        calibration=calibration,
        gates=gates,
        width_quantiles=_width_quantiles(fitted.posterior.predict(x)),
        comparators=_comparators(x, y),
        reliability=ReliabilityLimits(),
        median_bmi=median_bmi_curves(table.age_years, table.male == 1.0, table.height_cm, table.weight_kg),
    )
    return Candidate(card, fitted.posterior, golden)


def publish(root: Path, candidate: Candidate) -> ModelRef:
    """Publish to the store; GateFailed unless every gate has passed."""
    failed = failures(candidate.card.gates)
    if failed:
        raise GateFailed(failed)
    card_for_people = card_markdown(candidate.card, calibration_gates(candidate.card.calibration))
    return publish_in_store(root, candidate.card, candidate.posterior, candidate.golden, card_for_people)


class _Progress:
    """The progress of the whole training. It never goes back, even if a stage is tried a second time."""

    def __init__(self, report: Report, folds: int) -> None:
        self._report, self._folds = report, folds
        self._begun, self._behind = 0, 0.0

    def next_fit(self) -> Report:
        """For the fit that begins now: first that of all people, then one for each fold, which takes about as long."""
        fold, fits = self._begun, self._folds + 1
        name = f"fold {fold} of {self._folds}" if fold else "all people"
        self._begun += 1
        return lambda stage, share: self.report(f"{name}, {stage}", _during_fits((fold + share) / fits))

    def report(self, what: str, share: float) -> None:
        self._behind = max(self._behind, share)
        self._report(what, self._behind)


def _during_fits(share: float) -> float:
    return FITS_BEGIN + (CHECKS_BEGIN - FITS_BEGIN) * share


def _difference_from_gpflow(fitted: Fit, x: Array) -> float:
    """The largest difference of any moment of these people, in standardised units."""
    ours, theirs, scale = fitted.posterior.predict(x), fitted.reference(x), fitted.posterior.scaling.y_scale
    return max(
        float(np.max(np.abs(ours.m1 - theirs.m1))) / scale,
        float(np.max(np.abs(ours.v1 - theirs.v1))) / scale**2,
        float(np.max(np.abs(ours.m2 - theirs.m2))),
        float(np.max(np.abs(ours.v2 - theirs.v2))),
    )


def _cohort(table: Table, plan: TrainingPlan) -> Cohort:
    men = int(table.male.sum())
    size = len(table)
    return Cohort(plan.cohort_name, plan.cohort_description, size, men, size - men, table.sha256)


def _width_quantiles(moments: Moments) -> tuple[float, ...]:
    widths = np.quantile(normalcy.context_width(moments), WIDTH_QUANTILES)
    return tuple(float(width) for width in widths)


def _comparators(x: Array, y: Array) -> Comparators:
    linear = fit_linear(x, y)
    return Comparators(
        tuple(linear.coefficients.tolist()), linear.residual_sd, tuple(linear.absolute_residual_coefficients.tolist())
    )
