"""The conditions of publication. A version that fails one is not published; the message says which and by how much."""

import math
from collections.abc import Iterator

from app.domain.card import EVERYBODY, Calibration, Gate, TailCheck, tail_gate
from app.maths.statistics import count_limits

IDEAL_TAIL = 0.025

# A model whose tails are ideal is rejected in at most one training in a hundred: the limits of every cell are exact
# binomial ones, and the cells share this error equally (Bonferroni), which holds however they overlap.
FAMILY_ERROR = 0.01

# Below 100 people one person is a percentage point: such groups are on the card but not gated.
MIN_PEOPLE = 100

# Rounding of two float64 ways through the same matrices; a wrong formula is off by more than 1e-3.
MAX_GPFLOW_DIFFERENCE = 1e-9

# A model of mean and spread must describe unseen people about as well as the simplest models do.
# 0.05 is the standard error of a mean log density over some 200 people.
MAX_LOG_DENSITY_LOSS = 0.05
COMPARED = {"altman": "Altman's method", "linear": "the linear Z-score"}


def check_gates(calibration: Calibration, gpflow_difference: float, golden_failures: int) -> tuple[Gate, ...]:
    """`gpflow_difference`: largest difference of a moment from GPflow's, standardised units. NaN passes no gate."""
    return (
        *calibration_gates(calibration),
        Gate("largest difference from GPflow", gpflow_difference, 0.0, MAX_GPFLOW_DIFFERENCE),
        Gate("golden cases not reproduced", float(golden_failures), 0.0, 0.0),
    )


def calibration_gates(calibration: Calibration) -> tuple[Gate, ...]:
    """The gates that can be checked from any card, also from one that was published under other limits."""
    return (
        Gate("calibration figures that are not finite", _not_finite(calibration), 0.0, 0.0),
        *tail_gates(calibration.tails),
        *_density_gates(calibration),
    )


def failures(gates: tuple[Gate, ...]) -> list[str]:
    return [_sentence(gate) for gate in gates if not gate.passed]


def tail_gates(tails: tuple[TailCheck, ...]) -> tuple[Gate, ...]:
    """Either tail of everybody and of each group that is large enough, and both tails of everybody together.

    Both together because, unlike either alone, they are many enough to show a spread that is too wide.
    """
    judged = [one for one in tails if one.group == EVERYBODY or one.people >= MIN_PEOPLE]
    cells = [cell for one in judged for cell in _cells(one)]
    return tuple(_tail_gate(*cell, error=FAMILY_ERROR / len(cells)) for cell in cells)


Cell = tuple[str, str, int, float, float]  # side, group, people, measured share, ideal share


def _cells(tails: TailCheck) -> Iterator[Cell]:
    if tails.group == EVERYBODY:
        yield "outside", tails.group, tails.people, tails.below + tails.above, 2.0 * IDEAL_TAIL
    yield "below", tails.group, tails.people, tails.below, IDEAL_TAIL
    yield "above", tails.group, tails.people, tails.above, IDEAL_TAIL


def _tail_gate(side: str, group: str, people: int, measured: float, ideal: float, error: float) -> Gate:
    """Shares of whole people: what lies on a limit must not fail by a rounding error."""
    low, high = count_limits(people, ideal, error)
    whole = round(measured * people) / people if math.isfinite(measured) else measured
    return Gate(tail_gate(side, group), whole, low / people, high / people)


def _density_gates(calibration: Calibration) -> Iterator[Gate]:
    """0 where nothing is lost. The calibration itself says how much is gained."""
    by_method = {method.method: method.log_density for method in calibration.methods}
    for method, name in COMPARED.items():
        loss = by_method.get(method, math.nan) - by_method["NS"]  # an earlier card may lack one
        measured = loss if not loss <= 0.0 else 0.0  # NaN stays NaN
        yield Gate(f"mean log density lost against {name}", measured, 0.0, MAX_LOG_DENSITY_LOSS)


def _not_finite(calibration: Calibration) -> float:
    methods = ((m.log_density, m.below, m.above, m.pit_deviation) for m in calibration.methods)
    tails = ((t.below, t.above) for t in calibration.tails)
    figures = [*calibration.pit_deciles, *(f for group in (*methods, *tails) for f in group)]
    return float(sum(not math.isfinite(figure) for figure in figures))


def _sentence(gate: Gate) -> str:
    allowed = f"allowed {gate.low:.3g} to {gate.high:.3g}"
    if not math.isfinite(gate.measured):
        return f"Gate '{gate.name}': the measured value is not finite; {allowed}."
    beyond = max(gate.low - gate.measured, gate.measured - gate.high)
    return f"Gate '{gate.name}': measured {gate.measured:.3g}, {allowed}, missed by {beyond:.2g}."
