"""Score measurements: what every way into the service uses. A single measurement is a batch of one."""

import math
from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from app.domain.query import ScoreQuery
from app.domain.reliability import Finding
from app.domain.score import Tails, position
from app.inference.executor import LoadedModel
from app.inference.judging import advise
from app.inference.numbers import REFERENCE_MASS, Numbers, Placed, numbers
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


def score_with_tails(model: LoadedModel, queries: Sequence[ScoreQuery]) -> list[Scored]:
    """Queries that share thresholds and probability are computed together; the order of queries is preserved."""
    found: dict[int, Scored] = {}
    for cut, indices in _by_cut(queries).items():
        group = [queries[k] for k in indices]
        found.update(zip(indices, _score_alike(model, group, cut), strict=True))
    return [found[k] for k in range(len(queries))]


def _by_cut(queries: Sequence[ScoreQuery]) -> dict[Cut, list[int]]:
    groups: dict[Cut, list[int]] = {}
    for k, query in enumerate(queries):
        groups.setdefault((query.thresholds, query.hdi_probability), []).append(k)
    return groups


def _score_alike(model: LoadedModel, queries: Sequence[ScoreQuery], cut: Cut) -> Iterator[Scored]:
    diameters = np.array([query.diameter_mm for query in queries])
    errors = np.array([query.measurement_sd_mm for query in queries])
    found = numbers(model, [query.patient for query in queries], diameters, *cut, errors)
    rows = (
        _scores(found, cut),
        _error_free_scores(found, cut),
        _references(found, cut),
        _z_scores(found),
        found.context_width.tolist(),
        _tails(found.placed),
        _tails(found.without_error) if found.without_error else repeat(None),
    )
    return map(_scored, repeat(model), queries, *rows)


def _scored(
    model: LoadedModel,
    query: ScoreQuery,
    score: Score,
    error_free: ScoreWithMeasurementError | None,
    reference: Reference,
    z_scores: tuple[float, float | None],
    context_width: float,
    tails: Tails,
    tails_with_error: Tails | None,
) -> Scored:
    percentile = model.judge.percentile(context_width)
    ruling = model.judge.rule(query.patient, query.convention, context_width, percentile)
    reliability = Reliability(ruling.verdict, context_width, percentile, ruling.reasons)
    if ruling.verdict == "not_reliable" and not query.include_unreliable:
        answer = Answer(None, None, None, None, reliability, advise(query, None, ruling.verdict))
    else:
        comparators = _comparators(query, z_scores, ruling.is_outside_training_range)
        asked = error_free if query.measurement_sd_mm > 0.0 else None
        advisories = advise(query, score.expected_ns, ruling.verdict)
        answer = Answer(score, asked, reference, comparators, reliability, advisories)
    return Scored(answer, tails, tails_with_error, ruling.findings)


def _scores(found: Numbers, cut: Cut) -> Iterator[Score]:
    positions = map(position, _tails(found.placed))
    rows = zip(found.expected_ns.tolist(), _placed(found.placed, cut), positions, strict=True)
    return (Score(expected, *placed, where) for expected, placed, where in rows)


def _error_free_scores(found: Numbers, cut: Cut) -> Iterator[ScoreWithMeasurementError | None]:
    if found.without_error is None:
        return repeat(None)
    return (ScoreWithMeasurementError(*placed) for placed in _placed(found.without_error, cut))


def _placed(placed: Placed, cut: Cut) -> Iterator[tuple[Hdi, tuple[Exceedance, ...]]]:
    thresholds, probability = cut
    ends = zip(placed.hdi.low.tolist(), placed.hdi.high.tolist(), strict=True)
    for (low, high), above, below in zip(ends, placed.above.T.tolist(), placed.below.T.tolist(), strict=True):
        yield Hdi(probability, low, high, high - low), tuple(map(Exceedance, thresholds, above, below))


def _tails(placed: Placed) -> Iterator[Tails]:
    return map(Tails, placed.above_2.tolist(), placed.below_minus_2.tolist())


def _references(found: Numbers, cut: Cut) -> Iterator[Reference]:
    thresholds, _ = cut
    diameters = found.diameter_at_threshold_mm.T.tolist()  # [N][T][3]
    return map(
        Reference,
        found.moments.m1.tolist(),
        np.sqrt(found.moments.v1).tolist(),
        np.exp(found.moments.m2).tolist(),
        np.sqrt(found.moments.v2).tolist(),
        map(IntervalMm, repeat(REFERENCE_MASS), found.interval_mm.low.tolist(), found.interval_mm.high.tolist()),
        found.percentile.tolist(),
        (tuple(DiameterAtThreshold(t, *at) for t, at in zip(thresholds, row, strict=True)) for row in diameters),
    )


def _z_scores(found: Numbers) -> Iterator[tuple[float, float | None]]:
    """The linear and Altman's Z, the second None where its spread cannot be believed."""
    rows = zip(found.linear_z.tolist(), found.altman_z.tolist(), found.altman_applies.tolist(), strict=True)
    return ((linear, altman if applies else None) for linear, altman, applies in rows)


def _comparators(query: ScoreQuery, z_scores: tuple[float, float | None], outside: bool) -> Comparators:
    linear_z, altman_z = (None, None) if outside else z_scores
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
