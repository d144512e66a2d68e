"""Intervals and quantiles read from a table instead of solved for, where models of the aorta lie.

In units of b = s1 e^{-m2} the 95% HDI at rho = a/b depends on (rho, s2) alone. So do the quantiles of f1 + t e^{f2},
with rho = |t|/b, and the half-width r of the predictive interval, if it is tabled at rho = 2/b. Six numbers are tabled:

    (low - rho)/d and (high - rho)/d of the HDI          d = hypot(1, s2 rho)
    (w - rho)/d of the quantiles 50%, 2.5% and 97.5%
    r/hypot(1, b) of the predictive interval

They vary where rho is near 1, where s2 rho is near 1 and where s2 is near 1; on the axes asinh(rho) and log(s2) all
three are wide, and a tensor product of Chebyshev polynomials converges geometrically. Outside 0 <= rho <= 300 and
0.02 <= s2 <= 0.3, and for any other probability, the exact solvers answer.

The table is made once in a process, in about a quarter of a second, from solved values; and it is compared with the
solvers between its nodes before it is used.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from app.errors import UnverifiedResult
from app.maths.moments import Array, Intervals, Moments
from app.maths.score import predictive
from app.maths.score.canonical_form import Mask, ignore_float_warnings, oriented
from app.maths.score.hdi import refine, shortest_ends
from app.maths.score.normalcy import context_width, hdi
from app.maths.score.quadrature import Rows
from app.maths.score.thresholds import quantiles, threshold_diameter

MASS = 0.95  # of the HDI and of the predictive interval
PROBABILITIES = (0.5, 0.025, 0.975)  # of the quantiles, in the order of their columns
LARGEST_RHO = 300.0
SMALLEST_S, LARGEST_S = 0.02, 0.3
RHO_NODES, S_NODES = 88, 30
COLUMNS = 6
LOW, HIGH, MEDIAN, LOWER, UPPER, HALF_WIDTH = range(COLUMNS)
MIRRORED = [MEDIAN, UPPER, LOWER]
AT_HALF_WIDTH = 2.0  # r is tabled at rho = 2/b, where W2 and the usual threshold are read too

# Of d (of r for the last column), between the nodes. An end near 0 is compared beside the width, not beside itself.
PROOF = 1e-9
PROOF_CASES = 2000


@dataclass(frozen=True, slots=True)
class Table:
    coefficients: Array  # [S_NODES, RHO_NODES · COLUMNS]

    def covers(self, rho: Array, s: Array) -> Mask:
        """For rho [K, N] and s [N]: who is inside the table with every rho."""
        return np.asarray((s >= SMALLEST_S) & (s <= LARGEST_S) & (rho.max(axis=0) <= LARGEST_RHO))

    def __call__(self, rho: Array, s: Array) -> Array:
        """[K, COLUMNS, N] at rho [K, N] and s [N]; meaningless where the table does not cover them."""
        found = np.empty((len(rho), COLUMNS, s.size))
        for start in range(0, s.size, BLOCK_PEOPLE):
            here = slice(start, start + BLOCK_PEOPLE)
            along_s = self.coefficients.T @ _polynomials(np.log(s[here] / SMALLEST_S) * S_SCALE, S_NODES)
            at_s = along_s.reshape(RHO_NODES, COLUMNS, -1)
            along_rho = _polynomials(np.arcsinh(rho[:, here]) * RHO_SCALE, RHO_NODES)
            for k in range(len(rho)):
                np.einsum("rn,rcn->cn", along_rho[:, k], at_s, out=found[k, :, here])
        return found

    def of_one(self, rho: Sequence[float], s: float) -> list[list[float]] | None:
        """[K][COLUMNS] for one person; None where the table does not cover every rho."""
        if not (SMALLEST_S <= s <= LARGEST_S and max(rho) <= LARGEST_RHO):
            return None
        places = [math.log(s / SMALLEST_S) * S_SCALE, *[math.asinh(each) * RHO_SCALE for each in rho]]
        angles = np.array([[math.acos(_inside(2.0 * place - 1.0))] for place in places])
        polynomials = np.cos(angles * ORDERS)
        along_s = np.dot(polynomials[0, :S_NODES], self.coefficients).reshape(RHO_NODES, COLUMNS)
        read: list[list[float]] = np.dot(polynomials[1:], along_s).tolist()
        return read

    def check(self, cases: int = PROOF_CASES, seed: int = 0) -> float:
        """The largest error at random points. Raises UnverifiedResult where it is above PROOF."""
        rng = np.random.default_rng(seed)
        rho = np.sinh(rng.uniform(0.0, np.arcsinh(LARGEST_RHO), cases))
        s = SMALLEST_S * (LARGEST_S / SMALLEST_S) ** rng.random(cases)
        error = float(np.abs(self(rho[None], s)[0].T - solved(rho, s)).max())
        if not error <= PROOF:
            raise UnverifiedResult(f"The table of intervals is off by {error:.1e}; {PROOF:.0e} is allowed.")
        return error


RHO_SCALE = 1.0 / float(np.arcsinh(LARGEST_RHO))
S_SCALE = 1.0 / float(np.log(LARGEST_S / SMALLEST_S))
BLOCK_PEOPLE = 512  # read at a time: their polynomials and sums, some 3 MB, stay in the cache
ORDERS = np.arange(float(RHO_NODES))  # there are fewer along s


@lru_cache(maxsize=1)
def interval_table() -> Table:
    table = make_table()
    table.check()
    return table


def make_table() -> Table:
    u, v = _nodes(RHO_NODES), _nodes(S_NODES)  # both on 0..1
    rho, s = np.meshgrid(np.sinh(u / RHO_SCALE), SMALLEST_S * np.exp(v / S_SCALE), indexing="ij")
    values = solved(rho.ravel(), s.ravel()).reshape(RHO_NODES, S_NODES, COLUMNS)
    along_rho = np.tensordot(np.linalg.inv(_polynomials(u, RHO_NODES).T), values, axes=1)
    along_s = np.tensordot(np.linalg.inv(_polynomials(v, S_NODES).T), along_rho, axes=(1, 1))
    return Table(along_s.reshape(S_NODES, -1))


def solved(rho: Array, s: Array) -> Array:
    """[N, COLUMNS] by the exact solvers at rho > 0 and s [N]."""
    one = np.ones_like(rho)
    score, spread = oriented(rho, one, s), np.hypot(1.0, s * rho)
    with ignore_float_warnings():
        ends = shortest_ends(score, MASS)
        again, verified = refine(ends, score, MASS, steps=1)  # a table of 2e-9 would show in the ninth digit
        ends = np.where(verified, again, ends)
        at_rho = [quantiles(np.full_like(rho, ndtri(p)), rho, one, s) for p in PROBABILITIES]
        b = AT_HALF_WIDTH / rho
        half_width = predictive.interval(Moments(0.0 * b, b * b, 0.0 * b, s * s), MASS).high / np.hypot(1.0, b)
    return np.column_stack([*((end - rho) / spread for end in (*ends, *at_rho)), half_width])


def _inside(x: float) -> float:
    """Rounding may have left -1..1."""
    return min(max(x, -1.0), 1.0)


def _nodes(count: int) -> Array:
    return np.asarray(0.5 + 0.5 * np.cos(np.pi * (np.arange(count) + 0.5) / count))


def _polynomials(x: Array, count: int) -> Array:
    """[count, ...]: Chebyshev's polynomials of 2x - 1, for x [...] in 0..1; other x are taken to the nearer end.

    T_k = cos(kθ) up to T_8, then eight at a time by T_{i+j} = 2 T_i T_j - T_{i-j}: cosines take most of the time.
    """
    angle = np.arccos(np.clip(2.0 * x - 1.0, -1.0, 1.0))
    found = np.empty((1 + 8 * -(-count // 8), *x.shape))
    np.cos(np.multiply.outer(np.arange(9.0), angle), out=found[:9])
    for i in range(8, count, 8):
        following = found[i + 1 : i + 9]
        np.multiply(2.0 * found[i], found[1:9], out=following)
        following -= found[i - 8 : i][::-1]
    return found[:count]


@dataclass(frozen=True, slots=True)
class MeasurementIntervals:
    """What has to be solved for, of N diameters."""

    hdi: Intervals  # [N] of NS
    without_error: Intervals | None  # [N] of the NS of the error-free diameter; None if no error was stated
    context_width: Array  # [N] W2
    interval_mm: Intervals  # [N] predictive, MASS
    diameter_at_threshold_mm: Array  # [3, T, N] in the order of PROBABILITIES


def solve_intervals(
    y: Array, moments: Moments, thresholds: tuple[float, ...], mass: float, variance: Array | None
) -> MeasurementIntervals:
    """By the exact solvers: any moments, any mass."""
    return MeasurementIntervals(
        hdi(y, moments, mass),
        None if variance is None else hdi(y, moments, mass, variance),
        context_width(moments),
        predictive.interval(moments, MASS),
        threshold_diameter(np.array(PROBABILITIES)[:, None, None], np.array(thresholds)[:, None], moments),
    )


def find_intervals(
    y: Array, moments: Moments, thresholds: tuple[float, ...], mass: float, variance: Array | None
) -> MeasurementIntervals:
    """From the table where it covers a person, else by the exact solvers; the HDI of another mass by them always."""
    spread, s = np.exp(moments.m2), np.sqrt(moments.v2)
    b, centre = np.sqrt(moments.v1) / spread, (y - moments.m1) / spread
    others = [abs(t) for t in thresholds if abs(t) != AT_HALF_WIDTH]
    # Distances of T's centre from 0: of the score, of W2 and a threshold of 2, other thresholds, the error-free score.
    distance = np.empty((2 + len(others) + (variance is not None), y.size))
    noise = np.empty_like(distance)
    np.abs(centre, out=distance[0])
    distance[1] = AT_HALF_WIDTH
    distance[2 : 2 + len(others)] = np.array(others)[:, None]
    noise[:] = b
    if variance is not None:
        distance[-1] = distance[0]
        noise[-1] = np.sqrt(moments.v1 + variance) / spread
    table, rho = interval_table(), distance / noise
    read = table(rho, s)
    read[:, :HALF_WIDTH] *= np.hypot(noise, s * distance)[:, None]
    read[:, :HALF_WIDTH] += distance[:, None]
    half_width = spread * np.hypot(1.0, b) * read[1, HALF_WIDTH]
    found = MeasurementIntervals(
        _signed(read[0], centre) if mass == MASS else hdi(y, moments, mass),
        _without_error(read[-1], y, centre, moments, mass, variance),
        read[1, HIGH] - read[1, LOW],
        Intervals(moments.m1 - half_width, moments.m1 + half_width),
        moments.m1 + spread * _quantiles(read, thresholds),
    )
    covered = table.covers(rho, s)
    if not covered.all():
        _solve_rest(found, np.flatnonzero(~covered), y, moments, thresholds, mass, variance)
    return found


def _without_error(
    read: Array, y: Array, centre: Array, moments: Moments, mass: float, variance: Array | None
) -> Intervals | None:
    if variance is None:
        return None
    return _signed(read, centre) if mass == MASS else hdi(y, moments, mass, variance)


def _signed(read: Array, centre: Array) -> Intervals:
    """NS = ±T."""
    low, high = read[LOW], read[HIGH]
    positive = centre >= 0.0
    return Intervals(np.where(positive, low, -high), np.where(positive, high, -low))


def _quantiles(read: Array, thresholds: tuple[float, ...]) -> Array:
    """[3, T, N] in units of e^{m2} about m1. Those of -t mirror those of t."""
    found, after = np.empty((3, len(thresholds), read.shape[-1])), 2
    for k, t in enumerate(thresholds):
        column = 1 if abs(t) == AT_HALF_WIDTH else after
        after += column == after
        found[:, k] = read[column, MEDIAN:HALF_WIDTH] if t >= 0.0 else -read[column, MIRRORED]
    return found


def _solve_rest(
    found: MeasurementIntervals,
    rows: Rows,
    y: Array,
    moments: Moments,
    thresholds: tuple[float, ...],
    mass: float,
    variance: Array | None,
) -> None:
    """Replace what the table does not cover by solved numbers."""
    theirs = Moments(moments.m1[rows], moments.v1[rows], moments.m2[rows], moments.v2[rows])
    solved = solve_intervals(y[rows], theirs, thresholds, mass, None if variance is None else variance[rows])
    for mine, exact in (
        (found.hdi, solved.hdi),
        (found.without_error, solved.without_error),
        (found.interval_mm, solved.interval_mm),
    ):
        if mine is not None and exact is not None:
            mine.low[rows], mine.high[rows] = exact.low, exact.high
    found.context_width[rows] = solved.context_width
    found.diameter_at_threshold_mm[..., rows] = solved.diameter_at_threshold_mm
