"""Evaluate a version on labelled people: discrimination, calibration, and the share of each verdict and position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.domain.card import ModelRef
from app.domain.patient import Patient, Sex
from app.domain.query import ScoreQuery
from app.formats import figures
from app.formats.figures import Curve
from app.inference.executor import LoadedModel
from app.inference.measurement_numbers import numbers
from app.inference.scoring import score
from app.maths.moments import Array
from app.maths.statistics.metrics import (
    average_precision,
    kolmogorov_distance,
    precision_recall_curve,
    roc_auc,
    roc_curve,
)
from app.schemas.answers import Answer
from app.training.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Discrimination:
    """How well a score ranks the people labelled 1 above the people labelled 0."""

    method: str
    roc_auc: float
    pr_auc: float


@dataclass(frozen=True, slots=True)
class HeldOutCalibration:
    """Of the people labelled 0."""

    people: int
    below: float  # share under the central 95% predictive interval; 0.025 is ideal for healthy people
    above: float
    pit_deviation: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    model: ModelRef
    cohort: str
    people: int
    labelled_1: int
    discrimination: tuple[Discrimination, ...]  # empty unless both labels occur
    calibration: HeldOutCalibration | None  # None where nobody is labelled 0
    true_z_covered: float | None  # share of true z in the 95% HDI; None without a column of true z
    verdicts: dict[str, float]
    positions: dict[str, float]


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The figures, and what the plots are drawn from."""

    evaluation: Evaluation
    scores: dict[str, Array]  # [N] by method
    label: NDArray[np.int64]  # [N] 1 or 0
    pit: Array  # [N']
    expected_ns: Array  # [N]
    low: Array  # [N]
    high: Array  # [N]
    diameter_mm: Array  # [N]


def evaluate(model: LoadedModel, table: Table, label: NDArray[np.int64], true_z: Array | None) -> Evaluated:
    """`label` [N] is 1 for people who should score high, 0 for the others."""
    patients = _patients(table)
    found = numbers(model, patients, table.diameter_mm)
    scores = {
        "E[NS]": found.score.expected_ns,
        "P(NS > 2)": found.score.locations.above_2,
        "linear Z": found.linear_z,
        "Altman Z (else linear)": np.where(found.altman_applies, found.altman_z, found.linear_z),
    }
    hdi, healthy = found.score.locations.hdi, label == 0
    pit = found.score.percentile[healthy] / 100.0
    evaluation = Evaluation(
        model=model.ref,
        cohort=model.card.cohort.name,
        people=len(table),
        labelled_1=int(label.sum()),
        discrimination=_discriminate(scores, label),
        calibration=_calibration(pit) if healthy.any() else None,
        true_z_covered=None if true_z is None else float(np.mean((hdi.low <= true_z) & (true_z <= hdi.high))),
        **_shares(score(model, [ScoreQuery(p, y) for p, y in zip(patients, table.diameter_mm.tolist(), strict=True)])),
    )
    return Evaluated(evaluation, scores, label, pit, found.score.expected_ns, hdi.low, hdi.high, table.diameter_mm)


def plots(evaluated: Evaluated) -> dict[str, Figure]:
    """Every plot that these people allow, by name."""
    drawn = {
        "scores": figures.score_intervals(evaluated.expected_ns, evaluated.low, evaluated.high, evaluated.diameter_mm),
        "shares": figures.share_bars(
            {"verdict": evaluated.evaluation.verdicts, "position": evaluated.evaluation.positions}
        ),
    }
    if evaluated.evaluation.discrimination:
        roc, precision = _curves(evaluated)
        drawn["roc"] = figures.curves(roc, "false positive rate", "true positive rate", diagonal=True)
        drawn["precision_recall"] = figures.curves(precision, "recall", "precision")
    if len(evaluated.pit):
        drawn["calibration"] = figures.pit_histogram(evaluated.pit)
    return drawn


def _patients(table: Table) -> list[Patient]:
    columns = (table.age_years, table.male, table.height_cm, table.weight_kg)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Patient(age, Sex.MALE if male else Sex.FEMALE, height, weight) for age, male, height, weight in rows]


def _discriminate(scores: dict[str, Array], label: NDArray[np.int64]) -> tuple[Discrimination, ...]:
    if len(np.unique(label)) < 2:
        return ()
    return tuple(
        Discrimination(method, roc_auc(label, values), average_precision(label, values))
        for method, values in scores.items()
    )


def _calibration(pit: Array) -> HeldOutCalibration:
    below, above = float(np.mean(pit < TAIL)), float(np.mean(pit > 1.0 - TAIL))
    return HeldOutCalibration(len(pit), below, above, kolmogorov_distance(pit))


def _shares(answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    verdicts = Counter(answer.reliability.verdict for answer in answers)
    positions = Counter(answer.position for answer in answers)
    return {
        "verdicts": {name: count / len(answers) for name, count in verdicts.most_common()},
        "positions": {name: count / len(answers) for name, count in positions.most_common()},
    }


def _curves(evaluated: Evaluated) -> tuple[list[Curve], list[Curve]]:
    roc, precision = [], []
    for found in evaluated.evaluation.discrimination:
        values = evaluated.scores[found.method]
        ranked, recalled = roc_curve(evaluated.label, values), precision_recall_curve(evaluated.label, values)
        roc.append(Curve(f"{found.method}, {found.roc_auc:.3f}", ranked.x, ranked.y))
        precision.append(Curve(f"{found.method}, {found.pr_auc:.3f}", recalled.x, recalled.y))
    return roc, precision
