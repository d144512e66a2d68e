"""The model card: what a published version is, what it was made from, and how far to trust it.

Plain frozen values, written to `card.json`. The arrays of numbers are in `posterior.npz`.
"""

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from app.domain.patient import AgeTransform
from app.domain.query import Convention

CARD_FORMAT = 1

NOT_GAUSSIAN = (
    "With Student-t noise (robust), the fitted spread is the scale of a Student-t distribution, but percentiles, "
    "intervals and summaries assume Gaussian noise: about 9% of healthy people instead of 5% would lie outside their "
    "95% interval."
)

EVERYBODY = "all"  # the group of all held-out people


def tail_gate(side: str, group: str) -> str:
    """The name of a gate on held-out people "below", "above" or "outside" their predictive interval."""
    return f"share {side} the 95% interval, {group}"


@dataclass(frozen=True, slots=True)
class ModelRef:
    site: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Range:
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TrainingRanges:
    """Ranges of the training cohort. Heights and weights by sex: a tall woman is not a tall man."""

    age_years: Range
    age_years_middle_98: Range  # 1st to 99th percentile
    height_cm: dict[str, Range]  # by sex
    weight_kg: dict[str, Range]  # by sex
    bmi_kg_m2: Range


@dataclass(frozen=True, slots=True)
class BmiCurve:
    """Median body mass index of groups of people of one sex, by the median age of each group."""

    age_years: tuple[float, ...]  # rising
    bmi_kg_m2: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Cohort:
    name: str  # "simulated" for every model that ships with the project
    description: str
    size: int
    men: int
    women: int
    table_sha256: str  # of the file that was trained on

    @property
    def is_simulated(self) -> bool:
        """Then every answer says that the model is for evaluation, not for care."""
        return self.name.casefold() == "simulated"


@dataclass(frozen=True, slots=True)
class StageRecord:
    name: str
    iterations: int
    evaluations: int
    objective: float  # ELBO plus log prior, standardised units
    elbo: float
    seconds: float
    message: str


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    recipe: dict[str, str | int | float | bool]  # the options of the fit, by name
    seed: int
    inducing_points: int
    stages: tuple[StageRecord, ...]
    libraries: dict[str, str]  # name -> version

    @property
    def has_student_t_noise(self) -> bool:
        """Then exp(f2) is the scale of a Student-t distribution, and nothing that we serve may be computed from it."""
        return bool(self.recipe.get("robust"))


@dataclass(frozen=True, slots=True)
class TailCheck:
    """Held-out people beyond each end of their own central 95% predictive interval; 0.025 is ideal."""

    group: str  # "all", "male", "female", "18 to 39 years", ...
    people: int
    below: float
    above: float


@dataclass(frozen=True, slots=True)
class MethodFit:
    """One method on the same held-out folds."""

    method: str  # "NS", "linear", "altman"
    log_density: float  # mean predictive log density, natural log, of mm
    below: float  # share of held-out people below its 2.5% limit
    above: float
    pit_deviation: float  # largest distance of the PIT's distribution from uniform (Kolmogorov)


@dataclass(frozen=True, slots=True)
class Calibration:
    folds: int
    tails: tuple[TailCheck, ...]
    methods: tuple[MethodFit, ...]
    pit_deciles: tuple[float, ...]  # share of held-out people in each tenth of the predictive distribution


@dataclass(frozen=True, slots=True)
class Comparators:
    """Least squares on (1, *covariates*): the linear Z-score, and Altman's model of the absolute residuals."""

    coefficients: tuple[float, ...]
    residual_sd_mm: float
    absolute_residual_coefficients: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ReliabilityLimits:
    """From where a score needs caution, and from where none is given. Stored with each version."""

    width_caution: float = 1.0
    width_not_reliable: float = 2.0
    width_percentile_caution: float = 99.0
    size_beyond_share: float = 0.10  # height, weight: share beyond the training range
    bmi_beyond_kg_m2: float = 5.0
    convention_differences_not_reliable: int = 2


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition of publication, with what was measured."""

    name: str
    measured: float
    low: float
    high: float

    @property
    def passed(self) -> bool:
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class ModelCard:
    format: int
    site: str
    version: str
    created_at: str  # UTC, ISO 8601
    cohort: Cohort
    convention: Convention
    age_transform: AgeTransform
    covariates: tuple[str, ...]
    kernel: str
    ranges: TrainingRanges
    training: TrainingRecord
    calibration: Calibration
    gates: tuple[Gate, ...]
    width_quantiles: tuple[float, ...]  # W2 of the training contexts at 0, 0.5, ..., 100 %
    comparators: Comparators
    reliability: ReliabilityLimits
    # By sex. Not on the cards of versions that were published without it, whose bytes must stay what they are.
    median_bmi: dict[str, BmiCurve] | UnsetType = UNSET
