"""What a score costs: our exact numbers against 30,000 draws, in one run, in rounds that alternate.

Both sides give the expected score, the 95% HDI and the exceedance of 2 and -2 from the same moments. The draws get the
cheapest honest treatment: sorted once, the shortest window of the sorted sample for the HDI, no density estimate.
Times are of the processor, so that other work on the machine does not count; one thread does it all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import process_time
from typing import Protocol

import numpy as np

from app.benchmark.accuracy import shortest_window
from app.maths.moments import Array, Moments
from app.maths.score import normalcy
from app.maths.score.hdi import starting_table

DRAWS = 30_000  # as many as the paper takes
SAMPLED_PATIENTS = 40  # of each round: 10,000 would take half a minute
SINGLE_CALLS = 200
THRESHOLDS = np.array([[2.0], [-2.0]])


class Predictor(Protocol):
    def predict(self, X: Array) -> Moments: ...


@dataclass(frozen=True, slots=True)
class SpeedReport:
    """Medians over the rounds, µs a patient."""

    patients: int
    rounds: int
    table_seconds: float  # to make the starting table, once in a process
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
    table_seconds = _seconds(starting_table.__wrapped__)
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
    turns = [{name: run() for name, run in work.items()} for _ in range(rounds + 1)][1:]  # the first one warms up
    middle = {name: median(turn[name] for turn in turns) for name in work}
    return SpeedReport(y.size, rounds, table_seconds, **middle)


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
    exact = f"| {report.batch:.2f} | {report.single:.0f} "
    lines = [
        f"Medians of {report.rounds} alternating rounds, {report.patients:,} patients, µs a patient.",
        "",
        "| | together | one at a time | 30,000 draws |",
        "|---|---|---|---|",
        f"| expected score, HDI, exceedance of 2 and -2 {exact}| {report.sampling:.0f} |",
    ]
    if report.prediction_batch is not None and report.prediction_single is not None:
        batch, single = report.batch + report.prediction_batch, report.single + report.prediction_single
        drawn = report.sampling + report.prediction_batch
        lines += [
            f"| prediction | {report.prediction_batch:.2f} | {report.prediction_single:.0f} | |",
            f"| both | {batch:.2f} | {single:.0f} | {drawn:.0f} |",
        ]
    closing = f"The exact way takes {report.ratio:.0f} times less a patient than the draws. "
    return [*lines, "", closing + f"Its starting table is made once in a process, in {report.table_seconds:.3f} s."]


def _per_patient(run: Callable[[], object], patients: int) -> float:
    return _seconds(run) / patients * 1e6


def _one_by_one(run: Callable[[int], object], patients: int) -> float:
    """The median over patients, µs."""
    return median(_seconds(partial(run, row)) for row in range(patients)) * 1e6


def _seconds(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start
