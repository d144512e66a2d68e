"""Golden cases: made once at publication, run against any executor ever after."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields

import numpy as np

from app.domain.golden import GoldenCase, GoldenInput, GoldenMoments, GoldenOutputs
from app.domain.patient import AgeTransform, covariates
from app.inference.executor import Executor, LoadedModel
from app.maths.moments import Array, Moments
from app.maths.score import normalcy, predictive
from app.maths.score.score_numbers import score_numbers
from app.maths.score.thresholds import threshold_diameter

MOMENT_TOLERANCE = 1e-9  # standardised units; NumPy and GPflow were seen to agree to 1e-12, backends to 4e-10
TOLERANCE = 1e-8  # of outputs: what single, batch and every backend promise
# Ends of the HDI, in widths. Where the density is flat an end moves freely: 1e-6 is promised, 1e-9 is usual.
HDI_TOLERANCE = 1e-7
# A number this small is zero: probabilities far out in a tail are not compared digit by digit.
SMALLEST = 1e-12

MASS = 0.95

Reference = Callable[[Array], Moments]


@dataclass(frozen=True, slots=True)
class GoldenFailure:
    case: int  # its index in the file
    quantity: str  # a field of GoldenMoments or GoldenOutputs
    expected: float
    found: float


@dataclass(frozen=True, slots=True)
class GoldenResult:
    cases: int
    failures: tuple[GoldenFailure, ...]

    @property
    def failed(self) -> int:
        """Cases with at least one failure."""
        return len({failure.case for failure in self.failures})

    @property
    def passed(self) -> int:
        return self.cases - self.failed


def golden_cases(inputs: Sequence[GoldenInput], age: AgeTransform, reference: Reference) -> tuple[GoldenCase, ...]:
    """The moments by the trainer's own prediction, the outputs by the slow, safe way."""
    patients = [item.patient for item in inputs]
    moments = reference(covariates(patients, age))
    scores = np.array([item.score for item in inputs])
    diameters = np.maximum(np.round(moments.m1 + scores * np.exp(moments.m2), 1), 3.0)
    rows = zip(patients, diameters.tolist(), _rows(moments), _safe_outputs(diameters, moments), strict=True)
    return tuple(GoldenCase(p, y, GoldenMoments(*m), GoldenOutputs(*o)) for p, y, m, o in rows)


def check_model(model: LoadedModel) -> GoldenResult:
    """The golden cases of a version, on the executor that it was loaded on."""
    stored = model.stored
    return check_golden(model.executor, model.card.age_transform, stored.posterior.scaling.y_scale, stored.golden)


def check_golden(executor: Executor, age: AgeTransform, y_scale: float, cases: Sequence[GoldenCase]) -> GoldenResult:
    """Does the executor find the moments, and do answers' numbers follow from the stored moments?

    `y_scale` (mm) is the unit of the model's standardised diameters: what 1e-9 means for m1 and v1.
    """
    stored = np.array([astuple(case.moments) for case in cases])  # [K, 4]
    predicted = np.array(_rows(executor.predict(covariates([case.patient for case in cases], age))))
    slack = MOMENT_TOLERANCE * np.array([y_scale, y_scale**2, 1.0, 1.0])
    expected = np.array([astuple(case.outputs) for case in cases])  # [K, outputs]
    diameters = np.array([case.diameter_mm for case in cases])
    found = _outputs(diameters, Moments(*stored.T))
    return GoldenResult(
        len(cases),
        (
            *_failures(GoldenMoments, stored, predicted, np.broadcast_to(slack, stored.shape)),
            *_failures(GoldenOutputs, expected, found, _output_slack(expected)),
        ),
    )


def _safe_outputs(diameters: Array, moments: Moments) -> list[list[float]]:
    """One row per case, in the order of GoldenOutputs' fields, by the slow, safe solvers."""
    interval = normalcy.safe_hdi(diameters, moments, MASS)
    at_2 = moments.m1 + 2.0 * np.exp(moments.m2)
    usual = predictive.interval(moments, MASS)
    columns = [
        normalcy.expected_score(diameters, moments),
        interval.low,
        interval.high,
        normalcy.sf(2.0, diameters, moments),
        normalcy.cdf(-2.0, diameters, moments),
        normalcy.safe_hdi(at_2, moments, MASS).width,
        usual.low,
        usual.high,
        100.0 * predictive.cdf(diameters, moments),
        threshold_diameter(0.5, 2.0, moments),
    ]
    rows: list[list[float]] = np.column_stack(columns).tolist()
    return rows


def _outputs(diameters: Array, moments: Moments) -> Array:
    """[K, outputs] the way answers are computed."""
    found = score_numbers(diameters, moments, (2.0, -2.0), MASS)
    columns = [
        found.expected_ns,
        found.locations.hdi.low,
        found.locations.hdi.high,
        found.locations.above_2,
        found.locations.below_minus_2,
        found.context_width,
        found.interval_mm.low,
        found.interval_mm.high,
        found.percentile,
        found.diameter_at_threshold_mm[0, 0],
    ]
    return np.column_stack(columns)


def _output_slack(expected: Array) -> Array:
    slack = np.maximum(TOLERANCE * np.abs(expected), SMALLEST)
    names = [field.name for field in fields(GoldenOutputs)]
    low, high, width = (names.index(name) for name in ("hdi_low", "hdi_high", "context_hdi_width"))
    slack[:, [low, high]] = HDI_TOLERANCE * (expected[:, [high]] - expected[:, [low]])
    slack[:, width] = HDI_TOLERANCE * expected[:, width]
    return slack


def _failures(
    names: type[GoldenMoments | GoldenOutputs], expected: Array, found: Array, slack: Array
) -> list[GoldenFailure]:
    # Written so that a NaN, which compares false, fails.
    wrong = np.argwhere(~(np.abs(found - expected) <= slack)).tolist()
    columns = [field.name for field in fields(names)]
    return [GoldenFailure(k, columns[j], float(expected[k, j]), float(found[k, j])) for k, j in wrong]


def _rows(moments: Moments) -> list[list[float]]:
    rows: list[list[float]] = np.column_stack([moments.m1, moments.v1, moments.m2, moments.v2]).tolist()
    return rows
