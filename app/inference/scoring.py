"""Score measurements: what every way into the service uses. A single measurement is a batch of one."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from app.domain.query import ScoreQuery
from app.domain.reliability import Finding
from app.domain.score import Tails, position
from app.inference.executor import LoadedModel
from app.inference.measurement_numbers import FindIntervals, NumberRow, number_rows
from app.inference.reliability_rules import advise
from app.maths.score.interval_table import MASS, find_intervals
from app.maths.score.score_one import Location
from app.schemas.answers import (
    Answer,
    Comparators,
    DiameterAtThreshold,
    Exceedance,
    Hdi,
    IntervalMm,
    NotApplicable,
    Reference,
    Reliability,
    Score,
    ScoreWithMeasurementError,
)

NOT_TRAINED_HERE = "Age, height, weight or body mass index is outside the range of the training cohort."
NO_SPREAD_HERE = "The modelled spread of people like this one is below a quarter of the overall spread."
OUTSIDE_LINEAR = NotApplicable("outside_training_range", "linear_z", NOT_TRAINED_HERE)
OUTSIDE_ALTMAN = NotApplicable("outside_training_range", "altman_z", NOT_TRAINED_HERE)
NOT_CREDIBLE_ALTMAN = NotApplicable("spread_not_credible", "altman_z", NO_SPREAD_HERE)

Cut = tuple[tuple[float, ...], float]  # thresholds, probability of the HDI


class Scored(NamedTuple):
    """An answer with what its summary rests on."""

    answer: Answer
    tails: Tails
    tails_with_measurement_error: Tails | None
    findings: tuple[Finding, ...]  # that led to the verdict


def score(model: LoadedModel, queries: Sequence[ScoreQuery]) -> list[Answer]:
    """One answer per query, in order."""
    return [scored.answer for scored in score_with_tails(model, queries)]


def score_with_tails(
    model: LoadedModel, queries: Sequence[ScoreQuery], find: FindIntervals = find_intervals
) -> list[Scored]:
    """Queries that share thresholds and probability are computed together; the order of queries is preserved.

    `find` is the way to intervals and quantiles; `tables.solve_intervals` does without the table.
    """
    if len(queries) == 1:
        return _score_alike(model, queries, find)
    found: dict[int, Scored] = {}
    for indices in _by_cut(queries).values():
        found.update(zip(indices, _score_alike(model, [queries[k] for k in indices], find), strict=True))
    return [found[k] for k in range(len(queries))]


def _by_cut(queries: Sequence[ScoreQuery]) -> dict[Cut, list[int]]:
    groups: dict[Cut, list[int]] = {}
    for k, query in enumerate(queries):
        groups.setdefault((query.thresholds, query.hdi_probability), []).append(k)
    return groups


def _score_alike(model: LoadedModel, queries: Sequence[ScoreQuery], find: FindIntervals) -> list[Scored]:
    """All with the thresholds and the probability of the first."""
    rows = number_rows(
        model,
        [query.patient for query in queries],
        [query.diameter_mm for query in queries],
        queries[0].thresholds,
        queries[0].hdi_probability,
        [query.measurement_sd_mm for query in queries],
        find,
    )
    return [_scored(model, query, row) for query, row in zip(queries, rows, strict=True)]


def _scored(model: LoadedModel, query: ScoreQuery, row: NumberRow) -> Scored:
    found, patient = row.score, query.patient
    percentile = model.reliability_rules.percentile(found.context_width)
    assessment = model.reliability_rules.rule(patient, query.convention, found.context_width, percentile)
    verdict = assessment.verdict
    reliability = Reliability(verdict, found.context_width, percentile, assessment.reasons)
    tails = Tails(found.location.above_2, found.location.below_minus_2)
    noisy = found.without_error if query.measurement_sd_mm > 0.0 else None
    if verdict == "not_reliable" and not query.include_unreliable:
        answer = Answer(None, None, None, None, reliability, advise(query, None, verdict))
    else:
        answer = Answer(
            Score(found.expected_ns, *_hdi_and_exceedance(found.location, query), position(tails)),
            ScoreWithMeasurementError(*_hdi_and_exceedance(noisy, query)) if noisy else None,
            _reference(row, query.thresholds),
            _comparators(query, row, assessment.is_outside_training_range),
            reliability,
            advise(query, found.expected_ns, verdict),
        )
    with_error = Tails(noisy.above_2, noisy.below_minus_2) if noisy else None
    return Scored(answer, tails, with_error, assessment.findings)


def _hdi_and_exceedance(location: Location, query: ScoreQuery) -> tuple[Hdi, tuple[Exceedance, ...]]:
    hdi = Hdi(query.hdi_probability, location.low, location.high, location.high - location.low)
    return hdi, tuple(map(Exceedance, query.thresholds, location.above, location.below))


def _reference(row: NumberRow, thresholds: tuple[float, ...]) -> Reference:
    found = row.score
    return Reference(
        row.m1,
        math.sqrt(row.v1),
        math.exp(row.m2),
        math.sqrt(row.v2),
        IntervalMm(MASS, found.interval_low_mm, found.interval_high_mm),
        found.percentile,
        tuple([DiameterAtThreshold(t, *at) for t, at in zip(thresholds, found.diameter_at_threshold_mm, strict=True)]),
    )


def _comparators(query: ScoreQuery, row: NumberRow, outside: bool) -> Comparators:
    linear_z, altman_z = (None, None) if outside else (row.linear_z, row.altman_z)
    reasons = (OUTSIDE_LINEAR, OUTSIDE_ALTMAN) if outside else (NOT_CREDIBLE_ALTMAN,) if altman_z is None else ()
    diameter_cm, height_m = query.diameter_mm / 10.0, query.patient.height_cm / 100.0
    return Comparators(
        linear_z=linear_z,
        altman_z=altman_z,
        diameter_per_bsa_mm_m2=query.diameter_mm / query.patient.bsa_m2,
        diameter_per_height_cm_m=diameter_cm / height_m,
        area_per_height_cm2_m=math.pi * (diameter_cm / 2.0) ** 2 / height_m,
        not_applicable=reasons,
    )
