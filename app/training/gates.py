"""The conditions of publication. A version that fails one is not published; the message says which, and by how much."""

import math

from app.domain.card import Calibration, Gate, TailCheck

IDEAL_TAIL = 0.025

# Allowed around the ideal tail: the model's own misfit, plus the sampling error of n people. On simulated cohorts,
# where the truth is log-normal and the model is not, the tails are 3.2 and 1.5 %: a misfit of one point. Of 4,000
# cohorts of 1110 all tail gates, the age bands' too, let pass 99.9 % with ideal tails, 98.6 % with those, 6.5 % with
# doubled ones.
TAIL_MISFIT, TAIL_Z = 0.01, 2.576

# Age bands are up to eight more gates on fewer people each: twice the misfit, and 3.29 (one in 1,000) instead of
# 2.576 (one in 100). Below 100 people one person is a percentage point: such bands stand on the card and gate nothing.
BAND_MISFIT, BAND_Z, BAND_FEWEST_PEOPLE = 0.02, 3.29, 100

WHOLE_GROUPS = ("all", "male", "female")

# Rounding of two float64 ways through the same matrices; a wrong formula is off by more than 1e-3.
LARGEST_GPFLOW_DIFFERENCE = 1e-9

# A model of mean and spread must describe unseen people about as well as a straight line with one spread does.
# 0.05 is the standard error of a mean log density over some 200 people.
LARGEST_LOG_DENSITY_LOSS = 0.05


def check_gates(calibration: Calibration, gpflow_difference: float, golden_failures: int) -> tuple[Gate, ...]:
    """`gpflow_difference`: largest difference of a moment from GPflow's, standardised units. NaN passes no gate."""
    return (
        Gate("calibration figures that are not finite", _not_finite(calibration), 0.0, 0.0),
        _outside_gate(calibration.tails[0]),
        *(gate for tails in calibration.tails for gate in _tail_gates(tails)),
        Gate("mean log density lost against the linear Z-score", _loss(calibration), 0.0, LARGEST_LOG_DENSITY_LOSS),
        Gate("largest difference from GPflow", gpflow_difference, 0.0, LARGEST_GPFLOW_DIFFERENCE),
        Gate("golden cases not reproduced", float(golden_failures), 0.0, 0.0),
    )


def failures(gates: tuple[Gate, ...]) -> list[str]:
    return [_sentence(gate) for gate in gates if not gate.passed]


def _tail_gates(tails: TailCheck) -> list[Gate]:
    whole = tails.group in WHOLE_GROUPS
    if not whole and tails.people < BAND_FEWEST_PEOPLE:
        return []
    misfit, z = (TAIL_MISFIT, TAIL_Z) if whole else (BAND_MISFIT, BAND_Z)
    margin = misfit + z * math.sqrt(IDEAL_TAIL * (1.0 - IDEAL_TAIL) / tails.people)
    low, high = max(0.0, IDEAL_TAIL - margin), IDEAL_TAIL + margin
    return [
        Gate(f"share below the 95 % interval, {tails.group}", tails.below, low, high),
        Gate(f"share above the 95 % interval, {tails.group}", tails.above, low, high),
    ]


def _outside_gate(everybody: TailCheck) -> Gate:
    """Both tails together: unlike either alone, they are many enough to show a spread that is too wide."""
    share = 2.0 * IDEAL_TAIL
    margin = TAIL_MISFIT + TAIL_Z * math.sqrt(share * (1.0 - share) / everybody.people)
    name = f"share outside the 95 % interval, {everybody.group}"
    return Gate(name, everybody.below + everybody.above, max(0.0, share - margin), share + margin)


def _loss(calibration: Calibration) -> float:
    """0 where nothing is lost. How much is gained stands in the calibration itself."""
    by_method = {method.method: method.log_density for method in calibration.methods}
    loss = by_method["linear"] - by_method["NS"]
    return loss if not loss <= 0.0 else 0.0  # NaN stays NaN


def _not_finite(calibration: Calibration) -> float:
    methods = ((m.log_density, m.below, m.above, m.pit_deviation) for m in calibration.methods)
    tails = ((t.below, t.above) for t in calibration.tails)
    figures = [*calibration.pit_deciles, *(f for group in (*methods, *tails) for f in group)]
    return float(sum(not math.isfinite(figure) for figure in figures))


def _sentence(gate: Gate) -> str:
    allowed = f"allowed is {gate.low:.3g} to {gate.high:.3g}"
    if not math.isfinite(gate.measured):
        return f"Gate '{gate.name}': the figure is not finite; {allowed}."
    beyond = max(gate.low - gate.measured, gate.measured - gate.high)
    return f"Gate '{gate.name}': {gate.measured:.3g} was measured, {allowed}, missed by {beyond:.2g}."
