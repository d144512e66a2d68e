"""How often the detectors of unusual heights are wrong, by age."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.benchmark.paper.growth_detectors import OUTLYING_Z, Detectors
from app.maths.moments import Array

TOO_WIDE = 2.0  # the width at which NS abstains, as in the paper
BANDS = ((4.0, 8.0), (8.0, 12.0), (12.0, 19.0))

Mask = NDArray[np.bool_]
Rates = dict[str, Array]  # [bands] by what is counted


def rates(detectors: Detectors, age: Array, height: Array, z: Array) -> dict[str, Rates]:
    """Of all girls; then of those about whom NS does not abstain, by i and by W2."""
    outlying, everybody = np.abs(z) > OUTLYING_Z, np.ones(age.size, dtype=bool)
    flagged = {name: margin(age, height) > 0.0 for name, margin in detectors.margins.items()}
    found = {name: _rates(flags, outlying, age, everybody) for name, flags in flagged.items()}
    sure = {"i": detectors.width(age, height) <= TOO_WIDE, "W2": detectors.context_width(age) <= TOO_WIDE}
    kept = {f"NS, abstaining by {by}": _rates(flagged["NS"], outlying, age, rows) for by, rows in sure.items()}
    return found | kept


def mean_rates(rounds: Sequence[dict[str, Rates]]) -> dict[str, Any]:
    """Means over the rounds and their standard errors, by age band."""
    found = {
        name: {what: _mean(np.array([round_[name][what] for round_ in rounds])) for what in rounds[0][name]}
        for name in rounds[0]
    }
    return {"bands": [list(band) for band in BANDS], "methods": found}


def _rates(flagged: Mask, outlying: Mask, age: Array, answered: Mask) -> Rates:
    return {
        "false_alarms": _by_band(flagged, age, answered & ~outlying),
        "missed": _by_band(~flagged, age, answered & outlying),
        "unanswered": _by_band(~answered, age, np.ones(age.size, dtype=bool)),
    }


def _by_band(what: Mask, age: Array, among: Mask) -> Array:
    """[bands] shares; NaN where a band is empty."""
    rows = [among & (age >= low) & (age < high) for low, high in BANDS]
    return np.array([what[here].mean() if here.any() else np.nan for here in rows])


def _mean(values: Array) -> dict[str, list[float | None]]:
    """Of values [rounds, bands], without the rounds in which a band was empty; None where it always was."""
    known = [column[np.isfinite(column)] for column in values.T]
    return {
        "mean": [float(column.mean()) if column.size else None for column in known],
        "standard_error": [
            float(column.std(ddof=1) / column.size**0.5) if column.size > 1 else None for column in known
        ],
    }
