"""Calibration on people whom the model has not seen: shuffled folds, every method on the same ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from app.domain.card import EVERYBODY, Calibration, MethodFit, TailCheck
from app.maths.moments import Array, Moments
from app.maths.score import predictive
from app.maths.statistics import MIN_SD_SHARE, fit_linear, kolmogorov_distance
from app.training.table import AGE_BANDS, in_band

TAIL = 0.025  # outside each end of the central 95% interval


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
    return TailCheck(group, len(pit), float(np.mean(known * (pit < TAIL))), float(np.mean(known * (pit > 1.0 - TAIL))))


def _method(name: str, pit: Array, log_density: Array) -> MethodFit:
    tails = _tails(name, pit)
    return MethodFit(name, float(np.mean(log_density)), tails.below, tails.above, kolmogorov_distance(pit))


def _normal_log_density(z: Array, sd: Array) -> Array:
    density: Array = -0.5 * z**2 - np.log(sd) - 0.5 * np.log(2.0 * np.pi)
    return density
