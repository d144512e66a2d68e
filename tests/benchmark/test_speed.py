from typing import Any

import numpy as np
import pytest

from app.benchmark import speed
from app.benchmark.speed import (
    AnswerReport,
    SpeedReport,
    measure,
    measure_answers,
    render,
    render_answers,
    simulated_moments,
)
from app.maths.moments import Array, Moments
from app.maths.score.interval_table import MeasurementIntervals, solve_intervals
from tests.samples import a_loaded_model


class Everyone:
    """A posterior that knows as little of everyone."""

    def predict(self, X: Array) -> Moments:
        n = len(X)
        return Moments(np.full(n, 32.0), np.full(n, 0.1), np.full(n, 1.0), np.full(n, 0.01))


def test_a_run_measures_every_part() -> None:
    report = measure(rounds=1, n=200)
    assert report.patients == 200
    assert min(report.batch, report.single, report.sampling, report.table_seconds) > 0
    assert report.prediction_batch is None
    assert report.ratio == report.sampling / report.batch


def test_with_a_posterior_its_prediction_counts_on_both_sides() -> None:
    report = measure(rounds=1, posterior=Everyone(), X=np.zeros((300, 4)))
    assert report.patients == 300
    assert report.prediction_batch is not None
    assert report.prediction_single is not None
    assert report.prediction_batch > 0


def test_the_ratio_and_the_table_are_rendered() -> None:
    report = SpeedReport(
        10_000, 7, 0.02, batch=4.0, sampling=1998.0, single=90.0, prediction_batch=2.0, prediction_single=40.0
    )
    assert round(report.ratio) == 333
    text = "\n".join(render(report))
    assert "| both | 6.00 | 130 | 2000 |" in text
    assert "333 times less" in text


def test_simulated_moments_are_those_of_an_aorta() -> None:
    moments = simulated_moments(2000, np.random.default_rng(0))
    assert 0.05 < np.sqrt(moments.v2).mean() < 0.15
    assert 0.05 < (np.sqrt(moments.v1) * np.exp(-moments.m2)).mean() < 0.2


def test_answers_are_timed_with_and_without_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    solved: list[int] = []

    def solve(y: Array, *arguments: Any) -> MeasurementIntervals:
        solved.append(len(y))
        return solve_intervals(y, *arguments)

    monkeypatch.setattr(speed, "solve_intervals", solve)
    x = np.tile([np.log(45.0), 1.0, 175.0, 75.0], (300, 1))
    report = measure_answers(a_loaded_model(), x, rounds=1)
    assert min(report.single, report.together, report.solved_single, report.solved_together) > 0
    assert {1, speed.BATCH} == set(solved)


def test_the_ratios_of_answers_are_rendered() -> None:
    report = AnswerReport(7, 0.5, single=100.0, together=20.0, solved_single=650.0, solved_together=50.0)
    text = "\n".join(render_answers(report))
    assert "| ratio | 6.5 | 2.5 |" in text
    assert "load average 0.5" in text
