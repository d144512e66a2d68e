"""What a score costs: our exact numbers against 30,000 draws, in one run, in rounds that alternate.

Both sides give the expected score, the 95% HDI and the exceedance of 2 and -2 from the same moments. The draws get the
cheapest honest treatment: sorted once, the shortest window of the sorted sample for the HDI, no density estimate.
Times are of the processor, so that other work on the machine does not count; one thread does it all.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import process_time
from typing import Protocol

import numpy as np

from app.benchmark.accuracy import shortest_window
from app.domain.patient import Patient, Sex
from app.domain.query import ScoreQuery
from app.formats.markdown import table
from app.inference.executor import LoadedModel
from app.inference.scoring import score_with_tails
from app.maths.moments import Array, Moments
from app.maths.score import normalcy
from app.maths.score.interval_table import find_intervals, interval_table, solve_intervals
from app.maths.score.score_numbers import FindIntervals

DRAWS = 30_000  # as many as the paper takes
SAMPLED_PATIENTS = 40  # of each round: 10,000 would take half a minute
SINGLE_CALLS = 200
THRESHOLDS = np.array([[2.0], [-2.0]])
BATCH = 64  # measurements that a micro-batch may hold
ANSWER_CALLS = 100
ANSWER_BATCHES = 4  # of each round


class Predictor(Protocol):
    def predict(self, X: Array) -> Moments: ...


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """Medians over the rounds, µs a patient."""

    patients: int
    rounds: int
    table_seconds: float  # to make and check the table of intervals, once in a process
    batch: float  # exact, all patients together
    sampling: float
    single: float  # exact, one patient at a time
    prediction_batch: float | None = None  # what the posterior adds, if it was measured
    prediction_single: float | None = None

    @property
    def ratio(self) -> float:
        """How many times less a patient than sampling, prediction on both sides."""
        added = self.prediction_batch or 0.0
        return (self.sampling + added) / (self.batch + added)


def measure(
    rounds: int = 7, n: int = 10_000, posterior: Predictor | None = None, X: Array | None = None, seed: int = 0
) -> SpeedReport:
    """With a posterior and contexts X [N, D] their moments are scored, and the prediction is timed as well."""
    rng = np.random.default_rng(seed)
    table_seconds = _seconds(interval_table.__wrapped__)
    moments = posterior.predict(X) if posterior is not None and X is not None else simulated_moments(n, rng)
    y = moments.m1 + rng.normal(0.0, 1.2, moments.m1.size) * np.exp(moments.m2)
    work: dict[str, Callable[[], float]] = {
        "batch": lambda: _per_patient(lambda: score(y, moments), y.size),
        "sampling": lambda: _one_by_one(lambda row: sample(y[row], person(moments, row), rng), SAMPLED_PATIENTS),
        "single": lambda: _one_by_one(lambda row: score(y[row], person(moments, row)), SINGLE_CALLS),
    }
    if posterior is not None and X is not None:
        work["prediction_batch"] = lambda: _per_patient(lambda: posterior.predict(X), y.size)
        work["prediction_single"] = lambda: _one_by_one(lambda row: posterior.predict(X[row : row + 1]), SINGLE_CALLS)
    return SpeedReport(y.size, rounds, table_seconds, **_medians(work, rounds))


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """Medians over the rounds, µs a measurement: from queries to answers, prediction and judging included."""

    rounds: int
    load: float  # average load of the machine over the last minute, at the end
    single: float
    together: float  # BATCH at a time
    solved_single: float  # the same without the table of intervals: every interval and quantile solved for
    solved_together: float


def measure_answers(model: LoadedModel, X: Array, rounds: int = 7, seed: int = 0) -> AnswerReport:
    """Both ways take turns, with the same measurements of the people X [N, D], at least ANSWER_BATCHES · BATCH."""
    queries = _queries(model, X, np.random.default_rng(seed))
    together = [queries[k * BATCH : (k + 1) * BATCH] for k in range(ANSWER_BATCHES)]

    def one_by_one(find: FindIntervals) -> float:
        return _one_by_one(lambda row: score_with_tails(model, [queries[row]], find), min(len(queries), ANSWER_CALLS))

    def in_batches(find: FindIntervals) -> float:
        return median(_per_patient(partial(score_with_tails, model, batch, find), len(batch)) for batch in together)

    work: dict[str, Callable[[], float]] = {
        "single": lambda: one_by_one(find_intervals),
        "solved_single": lambda: one_by_one(solve_intervals),
        "together": lambda: in_batches(find_intervals),
        "solved_together": lambda: in_batches(solve_intervals),
    }
    return AnswerReport(rounds, load=os.getloadavg()[0], **_medians(work, rounds))


def _queries(model: LoadedModel, X: Array, rng: np.random.Generator) -> list[ScoreQuery]:
    moments = model.executor.predict(X)
    y = np.maximum(moments.m1 + rng.normal(0.0, 1.2, len(X)) * np.exp(moments.m2), 3.0).round(1)
    ages = np.exp(X[:, 0]) if model.card.age_transform == "log" else X[:, 0]
    people = zip(ages.tolist(), *X[:, 1:].T.tolist(), y.tolist(), strict=True)
    return [
        ScoreQuery(
            Patient(age, Sex.MALE if male else Sex.FEMALE, height, weight),
            diameter,
            convention=model.card.convention,
        )
        for age, male, height, weight, diameter in people
    ]


def _medians(work: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Of alternating rounds; the first one warms up."""
    turns = [{name: run() for name, run in work.items()} for _ in range(rounds + 1)][1:]
    return {name: median(turn[name] for turn in turns) for name in work}


def render_answers(report: AnswerReport) -> list[str]:
    single, together = report.solved_single / report.single, report.solved_together / report.together
    rows = (
        ("intervals from the table", f"{report.single:.0f}", f"{report.together:.1f}"),
        ("every interval solved for", f"{report.solved_single:.0f}", f"{report.solved_together:.1f}"),
        ("ratio", f"{single:.1f}", f"{together:.1f}"),
    )
    return [
        f"From query to answer, all numbers, judging and advisories included; µs of processor time a measurement, "
        f"medians of {report.rounds} alternating rounds, load average {report.load:.1f}.",
        "",
        *table(("", "one measurement", f"{BATCH} together"), rows),
    ]


def score(y: Array | float, moments: Moments) -> None:
    """The exact way."""
    normalcy.expected_score(y, moments)
    normalcy.hdi(y, moments)
    normalcy.exceedance(THRESHOLDS, y, moments)


def sample(y: float, moments: Moments, rng: np.random.Generator) -> None:
    """The same numbers from draws, for one patient."""
    f1 = rng.normal(moments.m1[0], np.sqrt(moments.v1[0]), DRAWS)
    f2 = rng.normal(moments.m2[0], np.sqrt(moments.v2[0]), DRAWS)
    drawn = np.sort((y - f1) * np.exp(-f2))
    drawn.mean()
    shortest_window(drawn, 0.95)
    np.searchsorted(drawn, THRESHOLDS[:, 0])


def simulated_moments(n: int, rng: np.random.Generator) -> Moments:
    """Of the size that the models of the aorta give: s1 about a tenth of the spread, s2 about 0.1."""
    m2 = rng.normal(1.0, 0.15, n)
    return Moments(
        rng.uniform(24, 38, n), (np.exp(m2) * rng.gamma(6, 0.12 / 6, n)) ** 2, m2, rng.gamma(6, 0.09 / 6, n) ** 2
    )


def person(moments: Moments, row: int) -> Moments:
    one = slice(row, row + 1)
    return Moments(moments.m1[one], moments.v1[one], moments.m2[one], moments.v2[one])


def render(report: SpeedReport) -> list[str]:
    """Markdown; times in µs a patient."""
    exact = (f"{report.batch:.2f}", f"{report.single:.0f}", f"{report.sampling:.0f}")
    rows = [("expected score, HDI, exceedance of 2 and -2", *exact)]
    if report.prediction_batch is not None and report.prediction_single is not None:
        batch, single = report.batch + report.prediction_batch, report.single + report.prediction_single
        drawn = report.sampling + report.prediction_batch
        rows += [
            ("prediction", f"{report.prediction_batch:.2f}", f"{report.prediction_single:.0f}", ""),
            ("both", f"{batch:.2f}", f"{single:.0f}", f"{drawn:.0f}"),
        ]
    return [
        f"Medians of {report.rounds} alternating rounds, {report.patients:,} patients, µs a patient.",
        "",
        *table(("", "together", "one at a time", f"{DRAWS:,} draws"), rows),
        f"The exact way takes {report.ratio:.0f} times less a patient than the draws. The table of intervals is made "
        f"and checked once in a process, in {report.table_seconds:.2f} s.",
    ]


def _per_patient(run: Callable[[], object], patients: int) -> float:
    return _seconds(run) / patients * 1e6


def _one_by_one(run: Callable[[int], object], patients: int) -> float:
    """The median over patients, µs."""
    return median(_seconds(partial(run, row)) for row in range(patients)) * 1e6


def _seconds(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start
