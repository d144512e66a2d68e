"""How exact the distribution of NS is: against mpmath, against draws, and by its own proof on random cases."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.benchmark.reference import ReferenceCase, read_reference
from app.errors import UnverifiedResult
from app.formats.markdown import table
from app.maths.moments import Array, Intervals, Moments
from app.maths.score import normalcy
from app.maths.score.canonical_form import ignore_float_warnings, orient
from app.maths.score.hdi_search import proven
from app.maths.score.interval_table import MASS, PROOF, find_intervals, interval_table
from app.maths.score.score_one import score_one

END_POINT_LIMIT = 1e-6  # of the width
EXCEEDANCE_LIMIT = 1e-10
RELATIVE_FLOOR = 1e-20  # below it a tail's digits are not claimed

SELF_CHECK_MASSES = (0.95, 0.5, 0.8, 0.99, 0.01, 0.9999)
DRAWN_CASES = ((0.0, 0.1), (0.0, 2.0), (0.5, 3.0), (2.0, 0.3), (20.0, 0.1), (9.0, 1.0), (1000.0, 0.05))  # (rho, s2)


@dataclass(frozen=True, slots=True)
class ReferenceReport:
    cases: int
    worst_end: float  # largest error of an end point, in widths
    worst_end_case: ReferenceCase
    worst_exceedance: float  # largest error of a probability
    worst_relative: float  # of a probability above RELATIVE_FLOOR, beside itself

    @property
    def passed(self) -> bool:
        return self.worst_end <= END_POINT_LIMIT and self.worst_exceedance <= EXCEEDANCE_LIMIT


@dataclass(frozen=True, slots=True)
class SelfCheckReport:
    cases: int
    failures: int


@dataclass(frozen=True, slots=True)
class DrawnCase:
    """One pair of moments, and what the draws say of it."""

    rho: float
    s2: float
    end_difference: float  # ours against the shortest interval of the sorted draws, in widths
    excess_width: float  # ours over the shortest of the draws, minus 1; the draws can only be flattered
    coverage_error: float  # share of the draws in our interval minus the mass, in standard errors


@dataclass(frozen=True, slots=True)
class DrawsReport:
    draws: int
    cases: tuple[DrawnCase, ...]


def check_reference(path: Path) -> ReferenceReport:
    """The current code against the committed table, one by one and in batches; needs no mpmath."""
    cases = list(read_reference(path))
    batches = [[case for case in cases if case.mass == mass] for mass in {case.mass for case in cases}]
    asked = [*([case] for case in cases), *batches]
    errors = np.hstack([_errors(together) for together in asked])  # [3, 2K]
    worst = int(errors[0].argmax())
    named = [case for together in asked for case in together][worst]
    return ReferenceReport(len(cases), errors[0, worst], named, errors[1].max(), errors[2].max())


def _errors(cases: list[ReferenceCase]) -> Array:
    """[3, K]: of the ends in widths, of the exceedance, and of the exceedance beside itself; all of one mass."""
    low, high, threshold, below, above = np.array([_exact(case) for case in cases]).T
    y = np.array([case.sign * case.rho for case in cases])
    zero = np.zeros_like(y)
    moments = Moments(zero, zero + 1.0, zero, np.square([case.s2 for case in cases]))
    interval = answered_hdi(y, moments, cases[0].mass)
    found = normalcy.exceedance(threshold, y, moments)
    ends = np.maximum(np.abs(interval.low - low), np.abs(interval.high - high)) / (high - low)
    error = np.abs(np.stack((found.below - below, found.above - above)))
    relative = error / np.maximum(np.stack((below, above)), RELATIVE_FLOOR)
    return np.stack((ends, error.max(axis=0), relative.max(axis=0)))


def answered_hdi(y: Array, moments: Moments, mass: float) -> Intervals:
    """As answers have it: one person with floats, many from the table, and from the solver where neither serves."""
    with ignore_float_warnings():
        if y.size == 1 and mass == MASS:
            m1, v1, m2, v2 = (float(column[0]) for column in (moments.m1, moments.v1, moments.m2, moments.v2))
            row = score_one(float(y[0]), m1, v1, m2, v2, (2.0,), None)
            if row is not None:
                return Intervals(np.array([row.locations.hdi.low]), np.array([row.locations.hdi.high]))
        return find_intervals(y, moments, (2.0,), mass, None).hdi


def _exact(case: ReferenceCase) -> tuple[float, float, float, float, float]:
    return case.low, case.high, case.threshold, case.below, case.above


def self_check(n: int = 100_000, seed: int = 0) -> SelfCheckReport:
    """Random moments and diameters, every edge among them; an interval that is not proven to 1e-6 is a failure."""
    rng = np.random.default_rng(seed)
    masses = rng.choice(SELF_CHECK_MASSES, size=n, p=(0.5, 0.1, 0.1, 0.1, 0.1, 0.1))
    y, moments = random_cases(n, rng)
    failures = 0
    for mass in SELF_CHECK_MASSES:
        rows = np.flatnonzero(masses == mass)
        failures += _unproven(y[rows], _rows(moments, rows), mass)
    return SelfCheckReport(n, failures)


def random_cases(n: int, rng: np.random.Generator) -> tuple[Array, Moments]:
    """rho 0.01..1e4 and s2 1e-6..3, both signs; each of s1 = 0, s2 = 0 and y = m1 in one of twenty."""
    m1, m2 = rng.uniform(15, 45, n), rng.normal(1.0, 0.4, n)
    s1 = np.exp(m2) * 10 ** rng.uniform(-2.5, 0.5, n)
    s2 = np.where(rng.random(n) < 0.5, rng.uniform(0, 3, n), 10 ** rng.uniform(-6, np.log10(3), n))
    distance = rng.choice((-1.0, 1.0), n) * s1 * 10 ** rng.uniform(-2, 4, n)
    distance *= rng.random(n) > 0.05
    s1, s2 = np.where(rng.random(n) < 0.05, 0.0, s1), np.where(rng.random(n) < 0.05, 0.0, s2)
    return m1 + distance, Moments(m1, s1 * s1, m2, s2 * s2)


def _unproven(y: Array, moments: Moments, mass: float) -> int:
    try:
        interval = answered_hdi(y, moments, mass)
    except UnverifiedResult:
        return int(y.size)
    with ignore_float_warnings():
        score, sign = orient(y, moments, 0.0, y.shape)
        ends = np.sort(sign * np.stack((interval.low, interval.high)), axis=0)
        point = score.is_point & (ends == score.a).all(axis=0)
        return int(np.count_nonzero(~(point | proven(ends, score, mass, END_POINT_LIMIT))))


def _rows(moments: Moments, rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Moments:
    return Moments(moments.m1[rows], moments.v1[rows], moments.m2[rows], moments.v2[rows])


def compare_with_draws(draws: int = 10_000_000, seed: int = 0, mass: float = 0.95) -> DrawsReport:
    """Straight from the definition: f1 and f2 drawn, NS computed and sorted."""
    rng = np.random.default_rng(seed)
    return DrawsReport(draws, tuple(_drawn(rho, s2, draws, rng, mass) for rho, s2 in DRAWN_CASES))


def _drawn(rho: float, s2: float, draws: int, rng: np.random.Generator, mass: float) -> DrawnCase:
    m1, s1, m2 = 32.0, 0.4, 1.1
    y = m1 + rho * s1
    moments = Moments(*(np.array([value]) for value in (m1, s1**2, m2, s2**2)))
    sample = np.sort((y - rng.normal(m1, s1, draws)) * np.exp(-rng.normal(m2, s2, draws)))
    ours, drawn = normalcy.hdi(y, moments, mass), shortest_window(sample, mass)
    width = float(ours.width[0])
    inside = np.searchsorted(sample, ours.high[0]) - np.searchsorted(sample, ours.low[0])
    return DrawnCase(
        rho,
        s2,
        end_difference=float(max(abs(ours.low[0] - drawn.low[0]), abs(ours.high[0] - drawn.high[0]))) / width,
        excess_width=width / float(drawn.width[0]) - 1.0,
        coverage_error=float((inside / draws - mass) / np.sqrt(mass * (1 - mass) / draws)),
    )


def shortest_window(sample: Array, mass: float) -> Intervals:
    """The shortest interval that holds the share `mass` of a sorted sample."""
    held = int(np.ceil(mass * sample.size))
    widths = sample[held - 1 :] - sample[: sample.size - held + 1]
    start = int(widths.argmin())
    return Intervals(sample[start : start + 1], sample[start + held - 1 : start + held])


def check_table(cases: int = 10_000, seed: int = 0) -> float:
    """The largest error of the table of intervals at random points, relative to d (maths/score/interval_table.py)."""
    return interval_table().check(cases, seed)


def render(reference: ReferenceReport, checked: SelfCheckReport, draws: DrawsReport, table_error: float) -> list[str]:
    worst, cases = reference.worst_end_case, str(reference.cases)
    relative = f"its relative error, where it is above {RELATIVE_FLOOR:.0e}"
    checks = (
        (
            "end points of the HDI against mpmath, in widths",
            cases,
            f"{reference.worst_end:.1e}",
            f"{END_POINT_LIMIT:.0e}",
        ),
        ("exceedance against mpmath", cases, f"{reference.worst_exceedance:.1e}", f"{EXCEEDANCE_LIMIT:.0e}"),
        (relative, cases, f"{reference.worst_relative:.1e}", ""),
        ("intervals that are not proven", str(checked.cases), str(checked.failures), "0"),
        ("table of intervals against the solvers, in spreads", "10000", f"{table_error:.1e}", f"{PROOF:.0e}"),
    )
    drawn = (
        (
            f"{one.rho:g}",
            f"{one.s2:g}",
            f"{one.end_difference:.1e}",
            f"{one.excess_width:+.1e}",
            f"{one.coverage_error:+.1f}",
        )
        for one in draws.cases
    )
    return [
        *table(("what", "cases", "found", "limit"), checks),
        f"The worst end points are those of rho = {worst.rho:g}, s2 = {worst.s2:g}, mass = {worst.mass:g}.",
        "",
        f"Against {draws.draws:,} draws (whose shortest interval is itself uncertain to about 1e-2 of the width):",
        "",
        *table(
            ("rho", "s2", "ends differ by, in widths", "ours is longer by", "coverage off by, in standard errors"),
            drawn,
        ),
    ]
