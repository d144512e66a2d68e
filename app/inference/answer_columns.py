"""The answers to N measurements as columns: every number to nine digits, and checked once more.

A number that is not finite, an interval upside down or a probability outside 0..1 is a defect, never an answer.
"""

import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, repeat
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.domain.score import Finding, Tails, position
from app.errors import UnverifiedResult
from app.formats.rounding import significant, significant_columns
from app.inference.advisories import advisories
from app.inference.reliability_rules import Assessment
from app.maths.moments import Array
from app.maths.score.interval_table import MASS
from app.schemas.answers import (
    Advisory,
    Answer,
    Comparators,
    DiameterAtThreshold,
    Exceedance,
    Hdi,
    IntervalMm,
    MeasurementInput,
    NotApplicable,
    Reference,
    Reliability,
    Score,
    ScoreWithMeasurementError,
)

Column = NDArray[Any] | Sequence[Any]

NOT_TRAINED_HERE = "Age, height, weight or body mass index is outside the range of the training cohort."
NO_SPREAD_HERE = "The modelled spread of people like this one is below a quarter of the overall spread."
OUTSIDE = (
    NotApplicable("outside_training_range", "linear_z", NOT_TRAINED_HERE),
    NotApplicable("outside_training_range", "altman_z", NOT_TRAINED_HERE),
)
NOT_CREDIBLE = (NotApplicable("spread_not_credible", "altman_z", NO_SPREAD_HERE),)

# The numbers of an answer in the order of their columns. Of some there is one for each threshold.
INPUT = ("age_years", "height_cm", "weight_kg", "diameter_mm", "bsa_m2", "bmi_kg_m2")
HDI = ("hdi_low", "hdi_high", "hdi_width")
LATENT = ("expected_diameter_mm", "expected_diameter_sd_mm", "aleatoric_sd_mm", "aleatoric_sd_log_se")
INTERVAL = ("interval_low_mm", "interval_high_mm", "percentile")
Z_SCORES = ("linear_z", "altman_z")
INDEXED = ("diameter_per_bsa_mm_m2", "diameter_per_height_cm_m", "area_per_height_cm2_m")
CONTEXT = ("context_hdi_width", "context_hdi_width_percentile")
SINGLE = (*INPUT, "expected_ns", *HDI, *LATENT, *INTERVAL, *Z_SCORES, *INDEXED, *CONTEXT)
GIVEN_ALWAYS = (*INPUT, *CONTEXT)  # even where the score is withheld
EXCEEDANCE = ("probability_above", "probability_below")
AT_THRESHOLD = ("at_threshold_median", "at_threshold_low", "at_threshold_high")
PER_THRESHOLD = (*EXCEEDANCE, *AT_THRESHOLD)
ERROR_FREE_HDI = ("error_free_hdi_low", "error_free_hdi_high", "error_free_hdi_width")
ERROR_FREE_EXCEEDANCE = ("error_free_probability_above", "error_free_probability_below")
MAXIMUM = {
    **dict.fromkeys(("percentile", "context_hdi_width_percentile"), 100.0),
    **dict.fromkeys((*EXCEEDANCE, *ERROR_FREE_EXCEEDANCE), 1.0),
}
ORDERED = (
    ("hdi_low", "hdi_high"),
    ("interval_low_mm", "interval_high_mm"),
    ("at_threshold_low", "at_threshold_median"),
    ("at_threshold_median", "at_threshold_high"),
    ("error_free_hdi_low", "error_free_hdi_high"),
)

SEXES: tuple[Literal["female"], Literal["male"]] = ("female", "male")
FEW_ROWS = 4  # rows that are checked faster one by one than together
LARGEST = sys.float_info.max


class ScoredAnswer(NamedTuple):
    """An answer with what its summary rests on, and the input as the response repeats it."""

    answer: Answer
    tails: Tails
    tails_with_measurement_error: Tails | None
    findings: tuple[Finding, ...]  # that led to the verdict
    input: MeasurementInput


class Judgement(NamedTuple):
    """All that is said about one measurement beside the numbers."""

    male: bool
    states_error: bool
    tails: Tails
    tails_with_error: Tails | None
    altman_applies: bool
    assessment: Assessment
    advisories: tuple[Advisory, ...]
    withheld: bool


class JudgementColumns(NamedTuple):
    """The same about N measurements: arrays [N], or sequences where there are only a few.

    Assessments and advisories are keys: most measurements share theirs with others.
    """

    male: Column
    states_error: Column
    above_2: Column
    below_minus_2: Column
    error_free_above_2: Column | None
    error_free_below_minus_2: Column | None
    altman_applies: Column
    assessment: Column
    advisories: Column
    withheld: Column
    assessment_of: Callable[[int], Assessment]

    def rows(self) -> Iterator[Judgement]:
        """One per measurement, in order."""
        return map(
            Judgement,
            _listed(self.male),
            _listed(self.states_error),
            map(Tails, _listed(self.above_2), _listed(self.below_minus_2)),
            self._error_free_tails(),
            _listed(self.altman_applies),
            map(self.assessment_of, _listed(self.assessment)),
            map(advisories, _listed(self.advisories)),
            _listed(self.withheld),
        )

    def _error_free_tails(self) -> Iterable[Tails | None]:
        if self.error_free_above_2 is None or self.error_free_below_minus_2 is None:
            return repeat(None)
        return map(Tails, _listed(self.error_free_above_2), _listed(self.error_free_below_minus_2))


def _listed(column: Column) -> Sequence[Any]:
    listed: Sequence[Any] = column.tolist() if isinstance(column, np.ndarray) else column
    return listed


class _Layout(NamedTuple):
    """Where a row of numbers holds which, and what must hold between them."""

    given: list[int]  # columns of the numbers that are given even where the score is withheld
    low: list[float]  # [K] the least allowed number of each column
    high: list[float]  # [K]
    lower: list[int]  # [P] a column whose number must not be above that ...
    upper: list[int]  # [P] ... of this column


@cache
def column_ranges(thresholds: int, with_error: bool) -> dict[str, range]:
    """Name -> its columns."""
    counts = dict.fromkeys(SINGLE, 1) | dict.fromkeys(PER_THRESHOLD, thresholds)
    if with_error:
        counts |= dict.fromkeys(ERROR_FREE_HDI, 1) | dict.fromkeys(ERROR_FREE_EXCEEDANCE, thresholds)
    ends = [0, *accumulate(counts.values())]
    return {name: range(*ends[k : k + 2]) for k, name in enumerate(counts)}


@cache
def _layout(thresholds: int, with_error: bool) -> _Layout:
    each = column_ranges(thresholds, with_error)
    count = max(indices.stop for indices in each.values())
    shares = {column: largest for name, largest in MAXIMUM.items() for column in each.get(name, ())}
    pairs = [pair for one, other in ORDERED if one in each for pair in zip(each[one], each[other], strict=True)]
    return _Layout(
        [each[name][0] for name in GIVEN_ALWAYS],
        [0.0 if column in shares else -LARGEST for column in range(count)],
        [shares.get(column, LARGEST) for column in range(count)],
        [lower for lower, _ in pairs],
        [upper for _, upper in pairs],
    )


@lru_cache(maxsize=64)
def _rounded_options(thresholds: tuple[float, ...], hdi_probability: float) -> tuple[tuple[float, ...], float]:
    return tuple(significant(threshold) for threshold in thresholds), significant(hdi_probability)


class AnswerColumns:
    """N answers to measurements with the same thresholds and the same probability of the interval."""

    def __init__(
        self, thresholds: tuple[float, ...], hdi_probability: float, numbers: Array, judged: JudgementColumns
    ) -> None:
        """From numbers [N, K] at full precision, in the order of the names above.

        Raises UnverifiedResult for what cannot be true, unless it is withheld.
        """
        self.thresholds, self.hdi_probability = _rounded_options(thresholds, hdi_probability)
        self.judged = judged
        self.numbers = significant_columns(numbers)
        layout = _layout(len(thresholds), self.has_error_free)
        if len(numbers) <= FEW_ROWS or not _is_possible(self.numbers, layout):
            for row, withheld in zip(self.numbers.tolist(), _listed(judged.withheld), strict=True):
                _check(row, layout, withheld)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def has_error_free(self) -> bool:
        """Whether a measurement states its error: then all have the columns of the error-free score."""
        return self.judged.error_free_above_2 is not None

    @property
    def column_ranges(self) -> dict[str, range]:
        """Name -> its columns; of some there is one for each threshold."""
        return column_ranges(len(self.thresholds), self.has_error_free)

    def answers(self) -> list[Answer]:
        """One per measurement, in order."""
        return [scored.answer for scored in self.scored()]

    def scored(self) -> list[ScoredAnswer]:
        """One per measurement, in order."""
        options = self.thresholds, self.hdi_probability
        rows = zip(self.numbers.tolist(), self.judged.rows(), strict=True)
        return [make_answer(*options, row, judged) for row, judged in rows]


def make_answer(
    thresholds: tuple[float, ...], hdi_probability: float, row: list[float], judged: Judgement
) -> ScoredAnswer:
    """The answer that holds these rounded numbers."""
    count, assessment = len(thresholds), judged.assessment
    # fmt: off
    (
        age, height, weight, diameter, bsa, bmi, expected_ns, hdi_low, hdi_high, hdi_width, m1, s1, spread, s2,
        low, high, percentile, linear_z, altman_z, per_bsa, per_height, area, width, width_percentile, *numbers,
    ) = row
    # fmt: on
    given = MeasurementInput(age, SEXES[judged.male], height, weight, diameter, bsa, "Haycock", bmi)
    reliability = Reliability(assessment.verdict, width, width_percentile, assessment.reasons)
    tails_with_error = judged.tails_with_error if judged.states_error else None
    if judged.withheld:
        answer = Answer(None, None, None, None, reliability, judged.advisories)
        return ScoredAnswer(answer, judged.tails, tails_with_error, assessment.findings, given)
    above, below, median, lower, upper = [numbers[k * count : (k + 1) * count] for k in range(5)]
    answer = Answer(
        Score(
            expected_ns,
            Hdi(hdi_probability, hdi_low, hdi_high, hdi_width),
            tuple(map(Exceedance, thresholds, above, below)),
            position(judged.tails),
        ),
        _with_error(thresholds, hdi_probability, numbers[5 * count :]) if judged.states_error else None,
        Reference(
            m1,
            s1,
            spread,
            s2,
            IntervalMm(MASS, low, high),
            percentile,
            tuple(map(DiameterAtThreshold, thresholds, median, lower, upper)),
        ),
        _comparators(judged, linear_z, altman_z, per_bsa, per_height, area),
        reliability,
        judged.advisories,
    )
    return ScoredAnswer(answer, judged.tails, tails_with_error, assessment.findings, given)


def _with_error(
    thresholds: tuple[float, ...], hdi_probability: float, numbers: list[float]
) -> ScoreWithMeasurementError:
    low, high, width, *sides = numbers
    above, below = sides[: len(thresholds)], sides[len(thresholds) :]
    hdi = Hdi(hdi_probability, low, high, width)
    return ScoreWithMeasurementError(hdi, tuple(map(Exceedance, thresholds, above, below)))


def _comparators(
    judged: Judgement, linear_z: float, altman_z: float, per_bsa: float, per_height: float, area: float
) -> Comparators:
    if judged.assessment.is_outside_training_range:
        return Comparators(None, None, per_bsa, per_height, area, OUTSIDE)
    if not judged.altman_applies:
        return Comparators(linear_z, None, per_bsa, per_height, area, NOT_CREDIBLE)
    return Comparators(linear_z, altman_z, per_bsa, per_height, area, ())


def _is_possible(rounded: Array, layout: _Layout) -> bool:
    """Whether all numbers [N, K] pass the checks; those of withheld scores need not."""
    inside = (rounded >= layout.low) & (rounded <= layout.high)  # false for NaN
    return bool(inside.all() and (rounded[:, layout.lower] <= rounded[:, layout.upper]).all())


def _check(row: Sequence[float], layout: _Layout, withheld: bool) -> None:
    """Raises UnverifiedResult. Of a withheld score only what is given all the same is checked."""
    if withheld:
        given = [row[column] for column in layout.given]
        if not (all(map(math.isfinite, given)) and 0.0 <= given[-1] <= 100.0):
            raise UnverifiedResult("A number that is given without a score is not finite, or outside its range.")
        return
    if not (all(map(operator.le, layout.low, row)) and all(map(operator.le, row, layout.high))):  # false for NaN
        raise UnverifiedResult("A number of the answer is not finite, or a probability is outside its range.")
    if not all(row[lower] <= row[upper] for lower, upper in zip(layout.lower, layout.upper, strict=True)):
        raise UnverifiedResult("An interval of the answer is upside down.")
