"""Calibration on people whom the model has not seen, and the conditions of publication that it must meet.

Folds are shuffled, every method gets the same ones. A version that fails a gate is not published; the message says
which one and by how much.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from app.domain.card import EVERYBODY, Calibration, Gate, MethodFit, TailCheck, tail_gate
from app.maths.moments import Array, Moments
from app.maths.score import predictive
from app.maths.statistics import MIN_SD_SHARE, count_limits, fit_linear, kolmogorov_distance
from app.training.table import AGE_BANDS, in_band

IDEAL_TAIL = 0.025  # outside each end of the central 95% interval

# A model whose tails are ideal is rejected in at most one training in a hundred: the limits of every cell are exact
# binomial ones, and the cells share this error equally (Bonferroni), which holds however they overlap.
FAMILY_ERROR = 0.01

# Below 100 people one person is a percentage point: such groups are on the card but not gated.
MIN_PEOPLE = 100

# Rounding of two float64 ways through the same matrices; a wrong formula is off by more than 1e-3.
MAX_GPFLOW_DIFFERENCE = 1e-9

# A model of mean and spread must describe unseen people about as well as the simplest models do.
# 0.05 is the standard error of a mean log density over some 200 people.
MAX_LOG_DENSITY_LOSS = 0.05
COMPARED = {"altman": "Altman's method", "linear": "the linear Z-score"}


class Predictor(Protocol):
    def predict(self, X: Array, /) -> Moments: ...


FitFold = Callable[[Array, Array, int], Predictor]  # (X, y, seed) of the training part


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Each person as seen by the models that were trained without that person."""

    y: Array  # [N] mm
    fold: NDArray[np.int64]  # [N] the fold that held the person out
    moments: Moments  # [N]
    linear_mean: Array  # [N] mm
    linear_sd: Array  # [N] mm, one value in each fold
    altman_sd: Array  # [N] mm, no smaller than a quarter of linear_sd


def cross_validate(X: Array, y: Array, fit_fold: FitFold, folds: int, seed: int, *, male: Array) -> HeldOut:
    """Shuffled folds with equal shares of each sex; each fold's fit gets a seed of its own."""
    rng = np.random.default_rng(seed)
    fold = stratified_folds(male, folds, rng)
    columns = np.empty((7, len(y)))
    for k, fold_seed in enumerate(rng.integers(2**31, size=folds).tolist()):
        held, rest = fold == k, fold != k
        moments = fit_fold(X[rest], y[rest], fold_seed).predict(X[held])
        columns[:4, held] = moments.m1, moments.v1, moments.m2, moments.v2
        columns[4:, held] = _linear_columns(X[rest], y[rest], X[held])
    return HeldOut(y, fold, Moments(*columns[:4]), *columns[4:])


def summarise(held_out: HeldOut, age_years: Array, male: Array) -> Calibration:
    """PIT, tails and log density of the normalcy score's model, beside the linear Z-score and Altman's method."""
    pit, log_density = _predicted(held_out.y, held_out.moments)
    groups = {EVERYBODY: np.ones(len(pit), dtype=bool), "male": male == 1.0, "female": male == 0.0}
    groups |= {label: in_band(age_years, low, high) for label, low, high in AGE_BANDS}
    linear = (held_out.y - held_out.linear_mean) / held_out.linear_sd
    altman = (held_out.y - held_out.linear_mean) / held_out.altman_sd
    return Calibration(
        folds=int(held_out.fold.max()) + 1,
        tails=tuple(_tails(group, pit[rows]) for group, rows in groups.items() if rows.any()),
        methods=(
            _method("NS", pit, log_density),
            _method("linear", ndtr(linear), _normal_log_density(linear, held_out.linear_sd)),
            _method("altman", ndtr(altman), _normal_log_density(altman, held_out.altman_sd)),
        ),
        pit_deciles=tuple(float(share) for share in np.histogram(pit, 10, (0.0, 1.0))[0] / len(pit)),
    )


def stratified_folds(male: Array, folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """[N] fold of each person, 0..folds-1; sizes differ by one at most, within a sex and overall."""
    fold = np.empty(len(male), dtype=np.int64)
    by_sex = np.concatenate([rng.permutation(np.flatnonzero(male == sex)) for sex in (1.0, 0.0)])
    # Dealt out like cards, men first: the women go on where the men have ended.
    fold[by_sex] = np.arange(len(male)) % folds
    return fold


def _linear_columns(X: Array, y: Array, held: Array) -> tuple[Array, Array, Array]:
    """Mean, linear sd and Altman's sd for the held-out people.

    Where Altman's line falls under S/4 the service gives no such Z; a density is needed for everybody, so the limit
    is used instead.
    """
    reference = fit_linear(X, y)
    sd = np.full(len(held), reference.residual_sd)
    return reference.expected(held), sd, np.maximum(reference.altman_sd(held), MIN_SD_SHARE * sd)


def _predicted(y: Array, moments: Moments) -> tuple[Array, Array]:
    """PIT and log density. NaN for a person without usable moments: a gate reports that, not an exception."""
    columns = np.array([moments.m1, moments.v1, moments.m2, moments.v2])
    usable = np.isfinite(columns).all(axis=0) & (columns[1::2] >= 0.0).all(axis=0)
    pit, log_density = np.full(len(y), np.nan), np.full(len(y), np.nan)
    own = Moments(*columns[:, usable])
    pit[usable], log_density[usable] = predictive.cdf(y[usable], own), predictive.log_density(y[usable], own)
    return pit, log_density


def _tails(group: str, pit: Array) -> TailCheck:
    known = np.where(np.isnan(pit), np.nan, 1.0)  # a comparison would count NaN as inside
    return TailCheck(
        group, len(pit), float(np.mean(known * (pit < IDEAL_TAIL))), float(np.mean(known * (pit > 1.0 - IDEAL_TAIL)))
    )


def _method(name: str, pit: Array, log_density: Array) -> MethodFit:
    tails = _tails(name, pit)
    return MethodFit(name, float(np.mean(log_density)), tails.below, tails.above, kolmogorov_distance(pit))


def _normal_log_density(z: Array, sd: Array) -> Array:
    density: Array = -0.5 * z**2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
    return density


def check_gates(calibration: Calibration, gpflow_difference: float, golden_failures: int) -> tuple[Gate, ...]:
    """`gpflow_difference`: largest difference of a moment from GPflow's, standardised units. NaN passes no gate."""
    return (
        *calibration_gates(calibration),
        Gate("largest difference from GPflow", gpflow_difference, 0.0, MAX_GPFLOW_DIFFERENCE),
        Gate("golden cases not reproduced", float(golden_failures), 0.0, 0.0),
    )


def calibration_gates(calibration: Calibration) -> tuple[Gate, ...]:
    """The gates that can be checked from any card, also from one that was published under other limits."""
    return (
        Gate("calibration figures that are not finite", _not_finite(calibration), 0.0, 0.0),
        *tail_gates(calibration.tails),
        *_density_gates(calibration),
    )


def failures(gates: tuple[Gate, ...]) -> list[str]:
    return [_sentence(gate) for gate in gates if not gate.passed]


def tail_gates(tails: tuple[TailCheck, ...]) -> tuple[Gate, ...]:
    """Either tail of everybody and of each group that is large enough, and both tails of everybody together.

    Both together because, unlike either alone, they are many enough to show a spread that is too wide.
    """
    judged = [one for one in tails if one.group == EVERYBODY or one.people >= MIN_PEOPLE]
    cells = [cell for one in judged for cell in _cells(one)]
    return tuple(_tail_gate(*cell, error=FAMILY_ERROR / len(cells)) for cell in cells)


Cell = tuple[str, str, int, float, float]  # side, group, people, measured share, ideal share


def _cells(tails: TailCheck) -> Iterator[Cell]:
    if tails.group == EVERYBODY:
        yield "outside", tails.group, tails.people, tails.below + tails.above, 2.0 * IDEAL_TAIL
    yield "below", tails.group, tails.people, tails.below, IDEAL_TAIL
    yield "above", tails.group, tails.people, tails.above, IDEAL_TAIL


def _tail_gate(side: str, group: str, people: int, measured: float, ideal: float, error: float) -> Gate:
    """Shares of whole people: what lies on a limit must not fail by a rounding error."""
    low, high = count_limits(people, ideal, error)
    whole = round(measured * people) / people if math.isfinite(measured) else measured
    return Gate(tail_gate(side, group), whole, low / people, high / people)


def _density_gates(calibration: Calibration) -> Iterator[Gate]:
    """0 where nothing is lost. The calibration itself says how much is gained."""
    by_method = {method.method: method.log_density for method in calibration.methods}
    for method, name in COMPARED.items():
        loss = by_method.get(method, math.nan) - by_method["NS"]  # an earlier card may lack one
        measured = loss if not loss <= 0.0 else 0.0  # NaN stays NaN
        yield Gate(f"mean log density lost against {name}", measured, 0.0, MAX_LOG_DENSITY_LOSS)


def _not_finite(calibration: Calibration) -> float:
    methods = ((m.log_density, m.below, m.above, m.pit_deviation) for m in calibration.methods)
    tails = ((t.below, t.above) for t in calibration.tails)
    figures = [*calibration.pit_deciles, *(f for group in (*methods, *tails) for f in group)]
    return float(sum(not math.isfinite(figure) for figure in figures))


def _sentence(gate: Gate) -> str:
    allowed = f"allowed {gate.low:.3g} to {gate.high:.3g}"
    if not math.isfinite(gate.measured):
        return f"Gate '{gate.name}': the measured value is not finite; {allowed}."
    beyond = max(gate.low - gate.measured, gate.measured - gate.high)
    return f"Gate '{gate.name}': measured {gate.measured:.3g}, {allowed}, missed by {beyond:.2g}."
