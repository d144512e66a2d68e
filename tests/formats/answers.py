"""Answers as the service makes them, small and complete."""

from app.domain.score import Finding, Position, Verdict
from app.schemas.answers import (
    Advisory,
    Answer,
    Comparators,
    DiameterAtThreshold,
    Exceedance,
    Hdi,
    IntervalMm,
    NotApplicable,
    Reason,
    Reference,
    Reliability,
    Score,
    ScoreWithMeasurementError,
)

AGE = Finding(
    "outside_training_range",
    "The patient is older than the oldest person in the training cohort, who was 85 years old.",
    "not_reliable",
    "older",
)
WEIGHT = Finding(
    "outside_training_range",
    "The weight is outside the range of the training cohort for this sex, 17 to 110 kg.",
    "caution",
    "weight",
)
WIDE = Finding(
    "wide_interval",
    "For people of this age, sex and body size a score of 2 would have a 95% interval wider than 1.",
    "caution",
    "width",
)
HDI_95 = Hdi(0.95, 1.58, 2.3, 0.72)
REFERENCE = Reference(
    35.1, 0.31, 3.06, 0.08, IntervalMm(0.95, 29.0, 41.2), 97.1, (DiameterAtThreshold(2.0, 41.2, 40.1, 42.5),)
)
COMPARATORS = Comparators(
    1.71, None, 20.1, 2.33, 7.5, (NotApplicable("spread_not_credible", "altman_z", "Too small."),)
)


def score(position: Position = "uncertain", hdi: Hdi = HDI_95, expected_ns: float = 1.93) -> Score:
    return Score(expected_ns, hdi, (Exceedance(2.0, 0.34, 0.66),), position)


def reliability(verdict: Verdict = "ok", *findings: Finding) -> Reliability:
    reasons = tuple(Reason(finding.code, finding.message) for finding in findings)
    return Reliability(verdict, 0.61, 62.0, reasons)


def answer(given: Score | None, judged: Reliability) -> Answer:
    if given is None:
        return Answer(None, None, None, None, judged, ())
    error_free = ScoreWithMeasurementError(HDI_95, (Exceedance(2.0, 0.4, 0.6),))
    advisories = (Advisory("absolute_diameter", "diameter_mm", "Definitions by absolute size apply."),)
    return Answer(given, error_free, REFERENCE, COMPARATORS, judged, advisories)
