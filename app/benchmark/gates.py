"""How often the gates on the tails refuse a model: a good one by mistake, a wrong one as they should.

No model is trained: a model is given by its true tails, and held-out people are drawn from them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from app.domain.card import EVERYBODY, ModelCard, TailCheck, tail_gate
from app.formats.markdown import table
from app.training.calibration import FAMILY_ERROR, calibration_gates, failures, tail_gates
from app.training.table import AGE_BANDS

SEXES = ("male", "female")
BAND_SHARES = (0.15, 0.31, 0.41, 0.13)  # of the age bands in the simulated cohort
SIZES = (300, 1110, 5000)
Z_OF_INTERVAL = 1.959964

Counts = NDArray[np.int64]  # [draws, sexes, bands]
Tails = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Model:
    """The true share of people below and above their interval; in one group it may differ from the rest."""

    name: str
    tails: Tails
    group: str | None = None
    tails_in_group: Tails = (0.025, 0.025)


def models() -> tuple[Model, ...]:
    student = float(ndtr(-Z_OF_INTERVAL * student_t_scale(6.0)))
    wide = float(ndtr(-1.25 * Z_OF_INTERVAL))
    return (
        Model("ideal", (0.025, 0.025)),
        Model("the simulated cohort's own: log-normal people, Gaussian model", (0.017, 0.033)),
        Model("Student-t scale read as a standard deviation (6 degrees)", (student, student)),
        Model("both tails doubled", (0.05, 0.05)),
        Model("spread a quarter too wide", (wide, wide)),
        Model("upper tail of women doubled", (0.025, 0.025), "female", (0.025, 0.05)),
        Model("upper tail 10% from 60 years on", (0.025, 0.025), AGE_BANDS[-1][0], (0.025, 0.10)),
    )


def student_t_scale(freedom: float, grid: int = 100_000) -> float:
    """The scale that maximum likelihood gives a Student-t on Gaussian data of standard deviation 1."""
    z = ndtri((np.arange(grid) + 0.5) / grid)
    return float(brentq(lambda s: np.mean((freedom + 1.0) * z**2 / (freedom * s**2 + z**2)) - 1.0, 0.2, 1.5))


def rejected_share(model: Model, people: int, draws: int, rng: np.random.Generator) -> float:
    """The share of draws that the gates on the tails refuse."""
    sizes = _sizes(people)
    below, above = _drawn(model, sizes, draws, rng)
    by_group = dict(_groups(sizes))
    gates = {gate.name: gate for gate in tail_gates(tuple(_ideal(group, by_group[group]) for group in by_group))}
    bad = np.zeros(draws, dtype=bool)
    for group, members in by_group.items():
        n = int(members.sum())
        sides = {"below": below, "above": above, "outside": below + above}
        for side, counts in sides.items():
            if gate := gates.get(tail_gate(side, group)):
                share = (counts * (members > 0)).sum(axis=(1, 2)) / n
                bad |= (share < gate.low) | (share > gate.high)
    return float(bad.mean())


def measure(draws: int, seed: int) -> dict[str, list[float]]:
    """Model -> refused share at each of SIZES."""
    rng = np.random.default_rng(seed)
    return {model.name: [rejected_share(model, people, draws, rng) for people in SIZES] for model in models()}


def render(found: Mapping[str, Sequence[float]], draws: int, shipped: Sequence[ModelCard]) -> list[str]:
    head = ["true tails", *(f"{people} people" for people in SIZES)]
    rows = ([name, *(f"{share:.1%}" for share in shares)] for name, shares in found.items())
    return [
        "Held-out people are drawn for models with known tails and judged by the gates of `normalcy train`: exact "
        f"binomial limits, {FAMILY_ERROR:.0%} for all of them together. Half are women; age bands as in the simulated "
        f"cohort. Groups of fewer than 100 people are not judged. {draws} draws a cell.",
        "",
        "## How often a model is refused for its tails",
        "",
        *table(head, rows),
        "The second row: simulated people are log-normal around their mean, the model's noise is Gaussian in mm, so "
        "its true tails are 1.7 and 3.3% (`docs/coverage.md`). No allowance is made for that: the more people a table "
        "has, the surer such a misfit is refused.",
        "",
        f"The Student-t row: fitted to Gaussian people, a t with 6 degrees of freedom gets the scale "
        f"{student_t_scale(6.0):.3f} of their standard deviation, and "
        f"{2.0 * ndtr(-Z_OF_INTERVAL * student_t_scale(6.0)):.1%} lie outside an interval that takes it for one. "
        "Some such models would pass, so `train --robust` is refused whatever its tails are.",
        "",
        "## The shipped models by these gates",
        "",
        *(_shipped(card) for card in shipped),
    ]


def _shipped(card: ModelCard) -> str:
    gates = calibration_gates(card.calibration)
    everybody = [gate for gate in gates if gate.name.endswith(f", {EVERYBODY}")]
    shares = "; ".join(
        f"{gate.name}: {gate.measured:.2%}, allowed {gate.low:.2%} to {gate.high:.2%}" for gate in everybody
    )
    density = {method.method: method.log_density for method in card.calibration.methods}
    verdict = " ".join(failures(gates)) or "passes every gate on tails and log density"
    return (
        f"- {card.site} {card.version}: {verdict}. {shares}. Mean held-out log density: NS {density['NS']:.4f}, "
        f"Altman {density['altman']:.4f}, linear {density['linear']:.4f}."
    )


def _sizes(people: int) -> Counts:
    """[sexes, bands] people, alike in both sexes."""
    shares = np.outer(np.full(len(SEXES), 1.0 / len(SEXES)), BAND_SHARES)
    return np.asarray(np.round(shares * people), dtype=np.int64)


def _groups(sizes: Counts) -> Iterator[tuple[str, Counts]]:
    """Each group with the sizes of its own members, zero elsewhere."""
    yield EVERYBODY, sizes
    for index, sex in enumerate(SEXES):
        yield sex, np.where(np.arange(len(SEXES))[:, None] == index, sizes, 0)
    for index, (label, _, _) in enumerate(AGE_BANDS):
        yield label, np.where(np.arange(len(AGE_BANDS))[None, :] == index, sizes, 0)


def _drawn(model: Model, sizes: Counts, draws: int, rng: np.random.Generator) -> tuple[Counts, Counts]:
    """People below and above, [draws, sexes, bands]."""
    members = dict(_groups(sizes)).get(model.group or "", np.zeros_like(sizes)) > 0
    low, high = (
        np.where(members, inside, rest) for inside, rest in zip(model.tails_in_group, model.tails, strict=True)
    )
    below = rng.binomial(sizes, low, (draws, *sizes.shape))
    return below, rng.binomial(sizes - below, high / (1.0 - low))


def _ideal(group: str, members: Counts) -> TailCheck:
    return TailCheck(group, int(members.sum()), 0.025, 0.025)
