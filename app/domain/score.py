"""The answer to one reading, from `score` to `advisories`: field names and order are those of the wire.

Fields marked NOT_SENT are for the sentences alone.

Numbers carry full precision here; `app.formats.digits` rounds them as they leave.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Position = Literal["above_2", "below_minus_2", "within", "uncertain", "not_assessed"]
Verdict = Literal["ok", "caution", "not_reliable"]

# How sure a position must be: the 2.5% on either side of a 95% interval.
SURE = 0.975
UNLIKELY = 0.025

NOT_SENT = {"sent": False}


@dataclass(frozen=True, slots=True)
class HDI:
    """The shortest interval of NS that holds the probability."""

    probability: float
    low: float
    high: float
    width: float


@dataclass(frozen=True, slots=True)
class Exceedance:
    threshold: float
    probability: float  # P(NS > threshold)
    probability_below: float  # P(NS < threshold)


@dataclass(frozen=True, slots=True)
class Score:
    expected_ns: float
    hdi: HDI
    exceedance: tuple[Exceedance, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class ScoreWithMeasurementError:
    """The score of the error-free diameter under a flat prior."""

    hdi: HDI
    exceedance: tuple[Exceedance, ...]


@dataclass(frozen=True, slots=True)
class Interval:
    probability: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ThresholdDiameter:
    """Quantiles of the diameter whose score is the threshold, f1 + threshold · exp(f2), in mm."""

    threshold: float
    median: float
    low: float  # 2.5%
    high: float  # 97.5%


@dataclass(frozen=True, slots=True)
class Reference:
    """What is expected of healthy people like this one. The first four numbers rebuild every result."""

    expected_diameter_mm: float  # m1
    expected_diameter_sd_mm: float  # sqrt(v1)
    aleatoric_sd_mm: float  # exp(m2)
    aleatoric_sd_log_se: float  # sqrt(v2)
    interval_mm: Interval
    percentile: float
    diameter_at_threshold_mm: tuple[ThresholdDiameter, ...]


@dataclass(frozen=True, slots=True)
class Advisory:
    code: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class ComparatorScores:
    """Older ways to the same question. None where one does not apply, with an entry that says why."""

    linear_z: float | None
    altman_z: float | None
    diameter_per_bsa_mm_m2: float
    diameter_per_height_cm_m: float
    area_per_height_cm2_m: float
    not_applicable: tuple[Advisory, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    code: str
    message: str
    verdict: Verdict = field(metadata=NOT_SENT)  # that it leads to by itself
    about: str = field(metadata=NOT_SENT)  # what it looks at, as "height"


@dataclass(frozen=True, slots=True)
class Reliability:
    verdict: Verdict
    context_hdi_width: float  # W2
    context_hdi_width_percentile: float  # among the training contexts
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    score: Score | None  # None: withheld, as are the three below
    score_with_measurement_error: ScoreWithMeasurementError | None
    reference: Reference | None
    comparators: ComparatorScores | None
    reliability: Reliability
    advisories: tuple[Advisory, ...]

    @property
    def position(self) -> Position:
        return self.score.position if self.score else "not_assessed"


class Tails(NamedTuple):
    """What a position rests on, whatever thresholds were asked for."""

    above_2: float  # P(NS > 2)
    below_minus_2: float  # P(NS < -2)


def position(tails: Tails) -> Position:
    if tails.above_2 >= SURE:
        return "above_2"
    if tails.below_minus_2 >= SURE:
        return "below_minus_2"
    return "within" if max(tails) <= UNLIKELY else "uncertain"
