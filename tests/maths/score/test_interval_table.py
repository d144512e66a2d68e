"""The table of intervals against the exact solvers, against mpmath's intervals, and with a coefficient spoilt."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.benchmark.reference import read_reference
from app.errors import UnverifiedResult
from app.maths.moments import Array, Moments
from app.maths.score import interval_table as tables
from app.maths.score.canonical_form import ignore_float_warnings
from app.maths.score.interval_table import (
    COLUMNS,
    HIGH,
    LARGEST_RHO,
    LARGEST_S,
    LOW,
    PROOF,
    RHO_NODES,
    S_NODES,
    SMALLEST_S,
    MeasurementIntervals,
    find_intervals,
    interval_table,
    make_table,
    solve_intervals,
    solved,
)
from app.maths.score.score_numbers import ScoreNumbers
from app.maths.score.score_one import score_one
from tests.maths import scores

REFERENCE = Path(__file__).parent.parent / "reference_hdi.csv"


def inside(n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    rho = np.sinh(rng.uniform(0.0, np.arcsinh(LARGEST_RHO), n))
    return rho, SMALLEST_S * (LARGEST_S / SMALLEST_S) ** rng.random(n)


def columns(found: MeasurementIntervals) -> Array:
    """[K, N]"""
    intervals = [found.hdi, found.interval_mm, *((found.without_error,) if found.without_error else ())]
    ends = [end for interval in intervals for end in (interval.low, interval.high)]
    diameters = found.diameter_at_threshold_mm
    return np.stack([*ends, found.context_width, *diameters.reshape(-1, diameters.shape[-1])])


def test_between_its_nodes_the_table_holds_what_the_solvers_find() -> None:
    rho, s = inside(3000, seed=21)
    error = np.abs(interval_table()(rho[None], s)[0].T - solved(rho, s))
    assert error.max() < PROOF
    assert np.median(error) < 1e-11


def test_at_its_edges_too() -> None:
    rho = np.array([1e-6, 1e-6, LARGEST_RHO, LARGEST_RHO, 1.0, 1.0])
    s = np.array([SMALLEST_S, LARGEST_S, SMALLEST_S, LARGEST_S, SMALLEST_S, LARGEST_S])
    assert np.abs(interval_table()(rho[None], s)[0].T - solved(rho, s)).max() < PROOF


@pytest.mark.req("REQ-020")
def test_it_agrees_with_mpmath() -> None:
    """The committed table of intervals, which shares no code with the solvers."""
    cases = [
        case
        for case in read_reference(REFERENCE)
        if case.mass == tables.MASS and SMALLEST_S <= case.s2 <= LARGEST_S and case.rho <= LARGEST_RHO
    ]
    assert len(cases) >= 40
    for case in cases:
        read = interval_table()(np.array([[case.rho]]), np.array([case.s2]))[0, :, 0]
        ends = case.rho + np.hypot(1.0, case.s2 * case.rho) * read[[LOW, HIGH]]
        expected = sorted((case.sign * case.low, case.sign * case.high))
        assert np.abs(ends - expected).max() < 1e-9 * (case.high - case.low)


@pytest.mark.parametrize("column", range(COLUMNS))
@pytest.mark.parametrize("degree", [(0, 0), (3, 2), (40, 5), (20, 20)])
@pytest.mark.slow
def test_a_spoilt_coefficient_is_noticed_when_the_table_is_made(column: int, degree: tuple[int, int]) -> None:
    spoilt = make_table().coefficients.reshape(S_NODES, RHO_NODES, COLUMNS).copy()
    spoilt[degree[1], degree[0], column] += 3e-9
    with pytest.raises(UnverifiedResult, match="The table of intervals is off by"):
        replace(interval_table(), coefficients=spoilt.reshape(S_NODES, -1)).check()


@pytest.mark.parametrize("mass", [0.95, 0.8])
@pytest.mark.parametrize("thresholds", [(2.0,), (2.0, -2.0, 3.0), (-1.5, 0.0, 10.0)])
@pytest.mark.parametrize("with_error", [False, True])
def test_people_inside_and_beyond_get_what_the_solvers_find(
    mass: float, thresholds: tuple[float, ...], with_error: bool
) -> None:
    y, people = scores.people(200, seed=22)
    v1, v2 = people.v1.copy(), people.v2.copy()
    v1[::17], v2[::13], v2[::19] = 0.0, 1.0, 0.0  # beyond the table on every side
    y[::23] += 80.0 * np.exp(people.m2[::23])
    moments = Moments(people.m1, v1, people.m2, v2)
    variance = np.linspace(0.0, 4.0, 200) if with_error else None
    with ignore_float_warnings():
        found = find_intervals(y, moments, thresholds, mass, variance)
        exact = solve_intervals(y, moments, thresholds, mass, variance)
    np.testing.assert_allclose(columns(found), columns(exact), rtol=1e-9, atol=3e-9)


def test_ordinary_people_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    interval_table()

    def refuse(*_: object) -> None:
        raise AssertionError("a solver was called")

    monkeypatch.setattr(tables, "solve_intervals", refuse)
    monkeypatch.setattr(tables, "hdi", refuse)
    y, moments = scores.people(300, seed=23)
    inside_s = np.clip(moments.v2, 0.021**2, 0.29**2)
    near = np.clip(y, moments.m1 - 6.0, moments.m1 + 6.0)
    noise = np.maximum(moments.v1, (0.03 * np.exp(moments.m2)) ** 2)
    find_intervals(near, Moments(moments.m1, noise, moments.m2, inside_s), (2.0, 3.0), 0.95, np.ones(300))


def as_columns(row: ScoreNumbers) -> list[float]:
    hdi, noisy = row.locations.hdi, row.without_error
    ends = [hdi.low, hdi.high, *((noisy.hdi.low, noisy.hdi.high) if noisy else ())]
    return [
        *ends,
        row.context_width,
        row.interval_mm.low,
        row.interval_mm.high,
        *np.ravel(row.diameter_at_threshold_mm),
    ]


@pytest.mark.parametrize("thresholds", [(2.0,), (3.0, -2.0, 2.0), (0.0, -1.0)])
@pytest.mark.parametrize("variance", [None, 2.25])
def test_one_person_with_floats_gets_what_the_columns_give(
    thresholds: tuple[float, ...], variance: float | None
) -> None:
    y, moments = scores.people(150, seed=24)
    v2 = np.clip(moments.v2, 0.021**2, 0.29**2)
    moments = Moments(moments.m1, moments.v1, moments.m2, v2)
    with ignore_float_warnings():
        found = find_intervals(y, moments, thresholds, 0.95, np.full(150, variance) if variance else None)
        seen = 0
        for k in range(150):
            diameter, m1, v1, m2 = (float(column[k]) for column in (y, moments.m1, moments.v1, moments.m2))
            row = score_one(diameter, m1, v1, m2, float(v2[k]), thresholds, variance)
            if row is None:
                continue
            seen += 1
            noisy = found.without_error
            ends = [found.hdi.low[k], found.hdi.high[k], *((noisy.low[k], noisy.high[k]) if noisy else ())]
            expected = [*ends, found.context_width[k], found.interval_mm.low[k], found.interval_mm.high[k]]
            expected += np.ravel(found.diameter_at_threshold_mm[..., k]).tolist()
            assert as_columns(row) == pytest.approx(expected, rel=1e-10, abs=1e-11)
    assert seen > 100


@pytest.mark.parametrize(("v1", "v2"), [(0.0, 0.01), (0.1, 0.0), (0.1, 0.0003), (0.1, 0.0901), (1e-9, 0.01)], ids=str)
def test_nobody_beyond_the_table_is_read_from_it(v1: float, v2: float) -> None:
    with ignore_float_warnings():
        assert score_one(36.0, 30.0, v1, 1.0, v2, (2.0,), 0.0) is None


@pytest.mark.parametrize(
    "person", [(np.nan, 30.0, 1.0, 1.0, 0.01), (36.0, np.inf, 1.0, 1.0, 0.01), (36.0, 30.0, -1.0, 1.0, 0.01),
               (36.0, 30.0, 1.0, np.nan, 0.01), (36.0, 30.0, 1.0, 1.0, np.nan)],
)  # fmt: skip
def test_impossible_moments_are_refused_for_one_person_too(person: tuple[float, ...]) -> None:
    y, m1, v1, m2, v2 = person
    with pytest.raises(UnverifiedResult):
        score_one(y, m1, v1, m2, v2, (2.0,), 0.0)


def test_a_tail_that_is_left_out_is_empty() -> None:
    """P(NS < -2) of a score far above 0 is below 1e-20, whichever way it is asked for."""
    with ignore_float_warnings():
        asked = score_one(36.0, 30.0, 0.09, 1.0, 0.01, (2.0, -2.0), 0.0)
        left_out = score_one(36.0, 30.0, 0.09, 1.0, 0.01, (2.0,), 0.0)
    assert asked is not None
    assert left_out is not None
    assert 0.0 < asked.locations.below_minus_2 < 1e-20
    assert left_out.locations.below_minus_2 == 0.0
    assert left_out.locations.above_2 == asked.locations.above_2
