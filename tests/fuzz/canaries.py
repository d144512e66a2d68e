"""Markers in what is sent. They stand for a patient's name or value, so none may come back or reach a log."""

import random
from dataclasses import dataclass
from typing import Any

NAME = "zqxj"  # in no word of the service
DIGITS = "27182845"  # in no number of the service


@dataclass(frozen=True, slots=True)
class Canary:
    """One for each request, so that an echo names its cause."""

    number: int

    @property
    def name(self) -> str:
        return f"{NAME}{self.number:06d}"

    @property
    def value(self) -> float:
        """Out of every range."""
        return float(f"{DIGITS}{self.number}.5")


def a_reading(rng: random.Random, canary: Canary) -> dict[str, Any]:
    """A request that is acceptable; the name is in the one field that takes free text."""
    reading: dict[str, Any] = {
        "age_years": rng.choice((0, 4.5, 17, 30, 55.25, 81, 120)),
        "sex": rng.choice(("male", "female")),
        "height_cm": rng.choice((104, 158, 171.5, 176, 190)),
        "weight_kg": rng.choice((17.5, 52, 70, 84.25, 110)),
        "diameter_mm": rng.choice((12, 25.5, 34, 41, 60)),
        "subject": canary.name,
    }
    more = {
        "thresholds": rng.choice(([2.0], [-2, 0, 2.5], [10])),
        "hdi_probability": rng.choice((0.5, 0.9, 0.99)),
        "measurement_sd_mm": rng.choice((0, 0.7, 5)),
        "convention": {"edge": "leading", "phase": "end-diastole"},
        "model_version": rng.choice(("current", "1.0.0")),
        "include_unreliable": rng.choice((True, False)),
    }
    return reading | {name: more[name] for name in rng.sample(sorted(more), rng.randint(0, len(more)))}


def a_study(rng: random.Random, canary: Canary) -> dict[str, Any]:
    reading = a_reading(rng, canary)
    own = {name: reading.pop(name) for name in ("diameter_mm", "measurement_sd_mm", "convention") if name in reading}
    reading.pop("model_version", None)
    return reading | {"measurements": [{"site": site, **own} for site in rng.sample(("SoV", "AA"), rng.randint(1, 2))]}
