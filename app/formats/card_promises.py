"""The part of a model's card that says what so many people can show, and what they cannot."""

import math
from collections.abc import Sequence

from app import __version__
from app.domain.card import Gate, ModelCard, TailCheck, tail_gate
from app.formats.markdown import percent, table
from app.maths.statistics.metrics import shares_found

CHANCE = 0.9
ROUNDING = 1e-9  # of a count of people that was stored as a share

# Everybody, lowest and highest of 40 cohorts of 1110 people: docs/coverage.md.
COVERAGE_OF_SINGLE_MODELS = (0.808, 1.000)


def promises(card: ModelCard, limits_today: Sequence[Gate]) -> list[str]:
    gates = {gate.name: gate for gate in limits_today}
    rows = [_row(tails, gates.get(tail_gate("above", tails.group))) for tails in card.calibration.tails]
    lowest, highest = map(percent, COVERAGE_OF_SINGLE_MODELS)
    nine_times = f"{10 * CHANCE:.0f} times in 10"
    return [
        "## What a model of this size can and cannot promise",
        "",
        "The gates look at the people of the table, so the fewer there are, the more can hide. For either tail of each "
        f"group: the shares that pass by the limits of Normalcy {__version__}, and how far the true share must be from "
        f"2.5% to be refused {nine_times}. Anything between may pass. A model with ideal tails is refused for its "
        "tails in at most one training of a hundred.",
        "",
        *table(("group", "people", "passes", f"would be refused {nine_times}"), rows),
        _verdict(limits_today),
        "",
        "No gate sees the 95% interval of the score itself, because nobody's true z is known. Over simulated cohorts "
        f"of 1110 people it held the true z of about 95% of people on average, and of {lowest} to {highest} with a "
        "single model: a card cannot tell where in that range its model lies.",
        "",
    ]


def _verdict(limits_today: Sequence[Gate]) -> str:
    failed = "; ".join(gate.name for gate in limits_today if not gate.passed)
    if failed:
        return f"By the limits of Normalcy {__version__} this model would be refused: {failed}."
    return f"By the limits of Normalcy {__version__} this model passes the gates on tails and log density."


def _row(tails: TailCheck, gate: Gate | None) -> tuple[str, str, str, str]:
    if gate is None:
        return tails.group, str(tails.people), "not judged", "none"
    low, high = math.ceil(gate.low * tails.people - ROUNDING), math.floor(gate.high * tails.people + ROUNDING)
    least, most = shares_found(tails.people, low, high, CHANCE)
    found = [f"{100.0 * least:.2g}% or less"] if least is not None else []
    found += [f"{100.0 * most:.2g}% or more"] if most is not None else []
    return (
        tails.group,
        str(tails.people),
        f"{percent(gate.low)} to {percent(gate.high)}",
        ", ".join(found) or "none",
    )
