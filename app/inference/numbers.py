"""Every number about N readings, as columns: prediction, score, reference, context and comparators in one go."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.domain.context import covariates
from app.domain.patient import Patient
from app.inference.executor import LoadedModel
from app.maths.moments import Array, Intervals, Moments
from app.maths.score import normalcy, predictive
from app.maths.score.thresholds import threshold_diameter
from app.maths.statistics.linear import LinearReference

REFERENCE_MASS = 0.95  # of the predictive interval, of a threshold's diameters and of W2, whatever was asked
POSITION_LIMITS = (2.0, -2.0)
QUANTILES = np.array([0.5, 0.025, 0.975])[:, None, None]  # [3, 1, 1] median, low, high, against [T, N]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where NS lies: an interval, both sides of every threshold, and the two tails that decide the position."""

    hdi: Intervals  # [N]
    above: Array  # [T, N] P(NS > t)
    below: Array  # [T, N] P(NS < t)
    above_2: Array  # [N] P(NS > 2)
    below_minus_2: Array  # [N] P(NS < -2)


@dataclass(frozen=True, slots=True)
class Numbers:
    moments: Moments
    expected_ns: Array  # [N]
    placed: Placed
    without_error: Placed | None  # of the error-free diameter; None if no reading states its error
    context_width: Array  # [N] W2
    interval_mm: Intervals  # [N]
    percentile: Array  # [N]
    diameter_at_threshold_mm: Array  # [3, T, N] in the order of QUANTILES
    linear_z: Array  # [N]
    altman_z: Array  # [N]
    altman_applies: NDArray[np.bool_]  # [N]


def numbers(
    model: LoadedModel,
    patients: Sequence[Patient],
    diameters: Array,
    thresholds: tuple[float, ...] = (2.0,),
    mass: float = 0.95,
    measurement_sd_mm: Array | float = 0.0,
) -> Numbers:
    x = covariates(patients, model.card.age_transform)
    moments = model.executor.predict(x)
    interval, context_width = normalcy.hdi_and_context_width(diameters, moments, mass)
    interval_mm, below = predictive.interval_and_cdf(diameters, moments, REFERENCE_MASS)
    variance = np.square(measurement_sd_mm)
    return Numbers(
        moments=moments,
        expected_ns=normalcy.expected_score(diameters, moments),
        placed=_placed(interval, thresholds, diameters, moments, 0.0),
        without_error=_without_error(thresholds, diameters, moments, mass, variance) if np.any(variance) else None,
        context_width=context_width,
        interval_mm=interval_mm,
        # Quadrature may end 4e-16 beyond certainty.
        percentile=100.0 * np.minimum(below, 1.0),
        diameter_at_threshold_mm=threshold_diameter(QUANTILES, np.array(thresholds)[:, None], moments),
        linear_z=model.linear.linear_z(x, diameters),
        altman_z=_altman_z(model.linear, x, diameters),
        altman_applies=model.linear.altman_applies(x),
    )


def _without_error(
    thresholds: tuple[float, ...], diameters: Array, moments: Moments, mass: float, variance: Array | float
) -> Placed:
    return _placed(normalcy.hdi(diameters, moments, mass, variance), thresholds, diameters, moments, variance)


def _placed(
    hdi: Intervals, thresholds: tuple[float, ...], diameters: Array, moments: Moments, variance: Array | float
) -> Placed:
    """The two limits of position are asked for with the thresholds: one call costs a third of three."""
    asked = tuple(dict.fromkeys((*thresholds, *POSITION_LIMITS)))
    sides = normalcy.exceedance(np.array(asked)[:, None], diameters, moments, variance)  # [A, N]
    given = [asked.index(each) for each in thresholds]
    above_2, below_minus_2 = [asked.index(limit) for limit in POSITION_LIMITS]
    return Placed(hdi, sides.above[given], sides.below[given], sides.above[above_2], sides.below[below_minus_2])


def _altman_z(linear: LinearReference, x: Array, diameters: Array) -> Array:
    """Not finite where the modelled spread is 0; `altman_applies` is false there."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return linear.altman_z(x, diameters)
