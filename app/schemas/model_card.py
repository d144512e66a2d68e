"""The model card as the service returns it: what a version is, how it was trained, and how reliable it is."""

from typing import Annotated, Literal

from pydantic import Field

from app.schemas.answers import ModelConvention
from app.schemas.base import SHA256, ResponseBody, Schema

Share = Annotated[float, Field(ge=0, le=1)]


class Range(Schema):
    """From `low` to `high`, both included."""

    low: float = Field(description="Smallest value.")
    high: float = Field(description="Largest value.")


class RangeBySex(Schema):
    """A range for each sex."""

    male: Range = Field(description="Of the men.")
    female: Range = Field(description="Of the women.")


class Cohort(Schema):
    """The training cohort."""

    name: str = Field(description="`simulated` for every model that ships with the project.")
    description: str = Field(description="Who was measured, in one sentence.")
    size: int = Field(description="Number of people.", ge=1)
    men: int = Field(description="Number of men.", ge=0)
    women: int = Field(description="Number of women.", ge=0)
    table_sha256: str = Field(description="SHA-256 of the training table.", pattern=SHA256)


class TrainingRanges(Schema):
    """Ranges of the training cohort; height and weight by sex."""

    age_years: Range = Field(description="Age in years.")
    age_years_middle_98: Range = Field(description="Age in years, 1st to 99th percentile.")
    height_cm: RangeBySex = Field(description="Height in cm.")
    weight_kg: RangeBySex = Field(description="Weight in kg.")
    bmi_kg_m2: Range = Field(description="Body mass index in kg/m².")


class BmiCurve(Schema):
    """Median body mass index of groups of people of one sex, in the order of age."""

    age_years: list[float] = Field(description="Median age of each group in years, rising.")
    bmi_kg_m2: list[float] = Field(description="Median body mass index of each group in kg/m².")


class TrainingStage(Schema):
    """One stage of the optimisation."""

    name: str = Field(description="Name of the stage.")
    iterations: int = Field(description="Iterations of the optimiser.", ge=0)
    evaluations: int = Field(description="Evaluations of the objective.", ge=0)
    objective: float = Field(description="Evidence lower bound plus log prior, in standardised units.")
    elbo: float = Field(description="Evidence lower bound, in standardised units.")
    seconds: float = Field(description="Duration in seconds.", ge=0)
    message: str = Field(description="Why the optimiser stopped.")


class Training(Schema):
    """How the model was fitted."""

    recipe: dict[str, str | int | float | bool] = Field(description="The options of the fit, by name.")
    seed: int = Field(description="Seed of the random numbers.")
    inducing_points: int = Field(description="Number of inducing points.", ge=1)
    stages: list[TrainingStage] = Field(description="The stages, in order.")
    libraries: dict[str, str] = Field(description="Versions of the libraries that fitted the model, by name.")


class TailCheck(Schema):
    """Held-out people beyond each end of their own central 95% predictive interval; 0.025 is ideal."""

    group: str = Field(description="The group of people.", examples=["all", "male", "18 to 39 years"])
    people: int = Field(description="Number of people in the group.", ge=0)
    below: Share = Field(description="Share below the interval.")
    above: Share = Field(description="Share above the interval.")


class MethodFit(Schema):
    """One method on the same held-out folds."""

    method: str = Field(description="The method.", examples=["NS", "linear", "altman"])
    log_density: float = Field(description="Mean predictive log density (natural logarithm, per mm).")
    below: Share = Field(description="Share of held-out people below the 2.5% limit.")
    above: Share = Field(description="Share of held-out people above the 97.5% limit.")
    pit_deviation: Share = Field(
        description="Largest distance of the probability integral transform from the uniform distribution."
    )


class Calibration(Schema):
    """Cross-validation on people that the model was not trained on."""

    folds: int = Field(description="Number of folds.", ge=2)
    tails: list[TailCheck] = Field(description="Coverage of the predictive interval, by group.")
    methods: list[MethodFit] = Field(description="The normalcy score and older methods on the same people.")
    pit_deciles: list[Share] = Field(
        description="Share of held-out people in each tenth of the predictive distribution.",
        min_length=10,
        max_length=10,
    )


class Gate(Schema):
    """One condition for publication: `low <= measured <= high`."""

    name: str = Field(description="What was measured.")
    measured: float = Field(description="The measured value.")
    low: float = Field(description="Smallest accepted value.")
    high: float = Field(description="Largest accepted value.")


class LeastSquares(Schema):
    """Coefficients of the comparators, for a constant and the covariates in order."""

    coefficients: list[float] = Field(description="Least squares of the diameter in mm.")
    residual_sd_mm: float = Field(description="Root mean squared residual in mm.", gt=0)
    absolute_residual_coefficients: list[float] = Field(description="Least squares of the absolute residuals in mm.")


class ReliabilityLimits(Schema):
    """From where a score needs caution, and from where it is withheld."""

    width_caution: float = Field(description="Interval width W2 above which caution is advised.")
    width_not_reliable: float = Field(description="Interval width W2 above which the score is withheld.")
    width_percentile_caution: float = Field(description="Percentile of W2 above which caution is advised.")
    size_beyond_share: float = Field(
        description="Share by which height or weight may exceed the training range before the score is withheld."
    )
    bmi_beyond_kg_m2: float = Field(
        description="kg/m² by which the BMI may exceed the training range before the score is withheld."
    )
    convention_differences_not_reliable: int = Field(
        description="Number of differences in the measurement convention at which the score is withheld."
    )


class ModelCard(ResponseBody):
    """The model card: what a version is, how it was trained, and how reliable it is."""

    format: Literal[1] = Field(description="Version of the card format.")
    site: str = Field(description="The site.")
    version: str = Field(description="The version.")
    sha256: str = Field(description="SHA-256 of the model's files.", pattern=SHA256)
    created_at: str = Field(description="When the model was trained; UTC, RFC 3339.")
    cohort: Cohort
    convention: ModelConvention
    age_transform: Literal["log", "identity"] = Field(description="How age enters the model.")
    covariates: list[str] = Field(description="The covariates, in order.")
    kernel: str = Field(description="The covariance function of the Gaussian processes.")
    ranges: TrainingRanges
    training: Training
    calibration: Calibration
    gates: list[Gate] = Field(description="The conditions for publication, with the measured values.")
    width_quantiles: list[float] = Field(description="Quantiles of W2 among the training people, from 0% to 100%.")
    comparators: LeastSquares
    reliability: ReliabilityLimits
    median_bmi: dict[Literal["male", "female"], BmiCurve] | None = Field(
        None, description="By sex, at which the reliability map is drawn; null: the version was published without it."
    )
