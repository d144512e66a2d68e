"""Score measurements: what every way into the service uses. A single measurement is a batch of one."""

import math
from collections.abc import Sequence

import numpy as np

from app.domain.query import MeasurementColumns, OneMeasurement, ScoreQuery
from app.inference.advisories import advise, advise_one
from app.inference.answer_columns import AnswerColumns, JudgementColumns, ScoredAnswer
from app.inference.executor import LoadedModel
from app.inference.measurement_numbers import MeasurementNumbers, compute_numbers, compute_numbers_of_each
from app.maths.moments import Real
from app.maths.score.canonical_form import SCALAR_MAX_PEOPLE, ignore_float_warnings
from app.maths.score.interval_table import MASS, find_intervals
from app.maths.score.score_numbers import FindIntervals
from app.schemas.answers import Answer

ScoringOptions = tuple[tuple[float, ...], float]  # thresholds, probability of the HDI


def score(model: LoadedModel, queries: Sequence[ScoreQuery]) -> list[Answer]:
    """One answer per query, in order."""
    return [scored.answer for scored in score_with_tails(model, queries)]


def score_with_tails(
    model: LoadedModel, queries: Sequence[ScoreQuery], find: FindIntervals = find_intervals
) -> list[ScoredAnswer]:
    """Queries that share thresholds and probability are computed together; the order of queries is preserved.

    `find` is the way to intervals and quantiles; `solve_intervals` does without the table.
    """
    found: dict[int, ScoredAnswer] = {}
    for indices in _by_options(queries).values():
        alike = [queries[k] for k in indices]
        few = score_few(model, alike) if find is find_intervals else None
        answers = few or score_columns(model, MeasurementColumns.of(alike), find)
        found.update(zip(indices, answers.scored(), strict=True))
    return [found[k] for k in range(len(queries))]


def score_columns(
    model: LoadedModel, measurements: MeasurementColumns, find: FindIntervals = find_intervals
) -> AnswerColumns:
    """Raises UnverifiedResult if one of the answers cannot be true; then none is returned."""
    with ignore_float_warnings():
        found, rules = compute_numbers(model, measurements, find), model.reliability_rules
        score = found.score
        percentile = rules.percentile(score.context_width)
        assessment = rules.assess(measurements, score.context_width, percentile)
        unreliable = rules.are_unreliable(assessment)
        withheld = unreliable & ~measurements.include_unreliable
        judged = JudgementColumns(
            measurements.male,
            measurements.states_error,
            score.locations.above_2,
            score.locations.below_minus_2,
            score.without_error.above_2 if score.without_error else None,
            score.without_error.below_minus_2 if score.without_error else None,
            found.altman_applies,
            assessment,
            advise(measurements, score.expected_ns, unreliable, withheld),
            withheld,
            rules.assessment,
        )
        matrix = np.array(_numbers(measurements, found, percentile)).T
        return AnswerColumns(measurements.thresholds, measurements.hdi_probability, matrix, judged)


def score_few(model: LoadedModel, queries: Sequence[ScoreQuery]) -> AnswerColumns | None:
    """The same with floats, of queries that share thresholds and probability: a few take less time that way.

    None where that is not so: for more, for another probability than that of the table of intervals, and if one is
    beyond it.
    """
    thresholds, probability = queries[0].thresholds, queries[0].hdi_probability
    if len(queries) > SCALAR_MAX_PEOPLE or probability != MASS:
        return None
    measurements = [OneMeasurement.of(query) for query in queries]
    each = compute_numbers_of_each(model, measurements, thresholds)
    if each is None:
        return None
    rules, rows, judged = model.reliability_rules, [], []
    for one, found in zip(measurements, each, strict=True):
        score, without_error = found.score, found.score.without_error
        percentile = rules.percentile(score.context_width)
        assessment = rules.assess_one(one, score.context_width, percentile)
        unreliable = rules.assessment(assessment).verdict == "not_reliable"
        withheld = unreliable and not one.include_unreliable
        rows.append(_numbers(one, found, percentile))
        judged.append(
            (
                one.male,
                one.states_error,
                score.locations.above_2,
                score.locations.below_minus_2,
                without_error.above_2 if without_error else None,
                without_error.below_minus_2 if without_error else None,
                found.altman_applies,
                assessment,
                advise_one(one, score.expected_ns, unreliable=unreliable, withheld=withheld),
                withheld,
            )
        )
    columns = [None if column[0] is None else column for column in zip(*judged, strict=True)]
    return AnswerColumns(thresholds, probability, np.array(rows), JudgementColumns._make([*columns, rules.assessment]))


def _by_options(queries: Sequence[ScoreQuery]) -> dict[ScoringOptions, list[int]]:
    groups: dict[ScoringOptions, list[int]] = {}
    for k, query in enumerate(queries):
        groups.setdefault((query.thresholds, query.hdi_probability), []).append(k)
    return groups


def _numbers(measured: MeasurementColumns | OneMeasurement, found: MeasurementNumbers, percentile: Real) -> list[Real]:
    """Every number of an answer, in the order of `answer_columns`: columns [N], or floats of one measurement."""
    score, diameter = found.score, measured.diameter_mm
    locations, hdi, without_error = score.locations, score.locations.hdi, score.without_error
    height_m, diameter_cm = measured.height_cm / 100.0, diameter / 10.0
    numbers = [
        measured.age_years,
        measured.height_cm,
        measured.weight_kg,
        diameter,
        measured.bsa_m2,
        measured.bmi_kg_m2,
        score.expected_ns,
        hdi.low,
        hdi.high,
        hdi.width,
        found.expected_diameter_mm,
        found.expected_diameter_sd_mm,
        found.aleatoric_sd_mm,
        found.aleatoric_sd_log_se,
        score.interval_mm.low,
        score.interval_mm.high,
        score.percentile,
        found.linear_z,
        found.altman_z,
        diameter / measured.bsa_m2,
        diameter_cm / height_m,
        math.pi * (diameter_cm / 2.0) ** 2 / height_m,
        score.context_width,
        percentile,
        *locations.above,
        *locations.below,
    ]
    for quantile in score.diameter_at_threshold_mm:
        numbers.extend(quantile)
    if without_error is not None:
        ends = without_error.hdi
        numbers += [ends.low, ends.high, ends.width, *without_error.above, *without_error.below]
    return numbers
