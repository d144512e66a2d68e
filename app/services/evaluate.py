"""Evaluate a version on labelled people: discrimination, calibration, and the share of each verdict and position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from app.domain.card import ModelRef
from app.domain.query import MeasurementColumns
from app.formats import figures
from app.formats.figures import Curve, Title, counted_people
from app.inference.executor import LoadedModel
from app.inference.measurement_numbers import compute_numbers
from app.inference.scoring import score_columns
from app.maths.moments import Array
from app.maths.statistics import (
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
class EvaluationDetails:
    """The figures, and what the plots are drawn from."""

    evaluation: Evaluation
    scores: dict[str, Array]  # [N] by method
    label: NDArray[np.int64]  # [N] 1 or 0
    pit: Array  # [N']
    expected_ns: Array  # [N]
    low: Array  # [N]
    high: Array  # [N]
    diameter_mm: Array  # [N]
    withheld: NDArray[np.bool_]  # [N] for whom the service gives no score


def evaluate(model: LoadedModel, table: Table, label: NDArray[np.int64], true_z: Array | None) -> EvaluationDetails:
    """`label` [N] is 1 for people who should score high, 0 for the others."""
    people = MeasurementColumns.of_people(
        table.age_years, table.male, table.height_cm, table.weight_kg, table.diameter_mm
    )
    found = compute_numbers(model, people)
    scores = {
        "E[NS]": found.score.expected_ns,
        "P(NS > 2)": found.score.locations.above_2,
        "linear Z": found.linear_z,
        "Altman Z (else linear)": np.where(found.altman_applies, found.altman_z, found.linear_z),
    }
    hdi, healthy = found.score.locations.hdi, label == 0
    answers = score_columns(model, people).answers()
    pit = found.score.percentile[healthy] / 100.0
    evaluation = Evaluation(
        model=model.ref,
        cohort=model.card.cohort.name,
        people=len(table),
        labelled_1=int(label.sum()),
        discrimination=_discriminate(scores, label),
        calibration=_calibration(pit) if healthy.any() else None,
        true_z_covered=None if true_z is None else float(np.mean((hdi.low <= true_z) & (true_z <= hdi.high))),
        **_shares(answers),
    )
    return EvaluationDetails(
        evaluation,
        scores,
        label,
        pit,
        found.score.expected_ns,
        hdi.low,
        hdi.high,
        table.diameter_mm,
        np.array([answer.score is None for answer in answers]),
    )


def plots(evaluated: EvaluationDetails) -> dict[str, Figure]:
    """Every plot that these people allow, by name."""
    found = evaluated.evaluation
    model = f"{found.model.site} {found.model.version} ({found.cohort})"
    title = Title(model, f"{counted_people(found.people)}, {found.labelled_1} labelled 1")
    withheld, label = evaluated.withheld, evaluated.label
    groups = {
        figures.LABELLED_0: (label == 0) & ~withheld,
        figures.LABELLED_1: (label == 1) & ~withheld,
        figures.WITHHELD: withheld,
    }
    drawn = {
        "scores": figures.score_intervals(
            evaluated.expected_ns, evaluated.low, evaluated.high, evaluated.diameter_mm, groups, title.of("Scores")
        ),
        "shares": figures.share_bars(
            {"verdict": found.verdicts, "position": found.positions}, title.of("Verdicts and positions")
        ),
    }
    if found.discrimination:
        roc, precision = _curves(evaluated)
        share = found.labelled_1 / found.people
        drawn["roc"] = figures.curves(
            roc, title.of("ROC"), "false positive rate", "true positive rate", (0.0, 1.0), "ROC AUC"
        )
        drawn["precision_recall"] = figures.curves(
            precision, title.of("Precision and recall"), "recall", "precision", (share, share), "PR AUC"
        )
    if len(evaluated.pit):
        healthy = Title(model, f"{counted_people(len(evaluated.pit))} labelled 0, of {found.people}")
        drawn["calibration"] = figures.pit_histogram(evaluated.pit, healthy.of("Calibration (PIT)"))
    return drawn


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


def _curves(evaluated: EvaluationDetails) -> tuple[list[Curve], list[Curve]]:
    roc, precision = [], []
    for found in evaluated.evaluation.discrimination:
        values = evaluated.scores[found.method]
        ranked, recalled = roc_curve(evaluated.label, values), precision_recall_curve(evaluated.label, values)
        roc.append(Curve(f"{found.method}, {found.roc_auc:.3f}", ranked.x, ranked.y))
        precision.append(Curve(f"{found.method}, {found.pr_auc:.3f}", recalled.x, recalled.y))
    return roc, precision
