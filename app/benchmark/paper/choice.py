"""The recipe, chosen by inner folds: no label of the experiment is used.

In the training part of some outer folds, each candidate is fitted on inner training rows and judged on inner
validation rows that got known anomalies of their own. Areas under both curves are averaged by set; candidates are
ranked in each column (set, measure), ties sharing their mean rank; the lowest mean rank wins, and the earlier of two
equal ones, which is the simpler.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from app.benchmark.paper.data import Table
from app.benchmark.paper.protocol import INNER_FOLDS, Done
from app.benchmark.paper.recipes import Choice
from app.benchmark.paper.rendering import Prose, table_text
from app.benchmark.paper.runner import Report, Runner
from app.benchmark.paper.tasks import ROWS_OF_THE_CHOICE, Scope, choosing
from app.maths.moments import Array, Moments
from app.maths.score.normalcy import expected_score
from app.maths.statistics import average_precision, roc_auc


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of the inner folds."""

    candidates: tuple[Choice, ...]
    sets: tuple[str, ...]
    outer: tuple[int, ...]  # folds whose training rows were used
    roc: Array  # [candidates, sets]
    pr: Array  # [candidates, sets]
    mean_rank: Array  # [candidates]
    fits: int
    cpu_seconds: float

    @property
    def winner(self) -> Choice:
        return self.candidates[int(np.argmin(self.mean_rank))]


def choose(tables: Mapping[str, Table], scope: Scope, runner: Runner, report: Report) -> Judged:
    plan = {(one, name): choosing(table, scope, one) for one in scope.candidates for name, table in tables.items()}
    results = runner.results([task for tasks in plan.values() for task in tasks], report, "choosing the recipe")
    areas = {key: np.mean([_areas(results[task]) for task in tasks], axis=0) for key, tasks in plan.items()}
    table = np.array([[areas[one, name] for name in tables] for one in scope.candidates])  # [candidates, sets, 2]
    seconds = sum(result.cpu_seconds for result in results.values())
    named = scope.candidates, tuple(tables), scope.outer
    return Judged(*named, table[..., 0], table[..., 1], mean_ranks(table), len(results), seconds)


def mean_ranks(areas: Array) -> Array:
    """[candidates] from areas [candidates, sets, 2]; rank 1 is the largest area. Areas equal to 1e-9 are ties."""
    columns = -np.round(areas.reshape(len(areas), -1), 9)
    return np.asarray(rankdata(columns, axis=0).mean(axis=1))


def _areas(result: Done) -> Sequence[float]:
    moments = Moments(**{name: np.array(values) for name, values in result.answer.items()})
    score, anomalous = np.abs(expected_score(np.array(result.y), moments)), np.array(result.anomalous)
    return roc_auc(anomalous, score), average_precision(anomalous, score)


def render(judged: Judged) -> str:
    return Prose("choice")(
        "chapter",
        outer_folds=" and ".join(str(fold + 1) for fold in judged.outer),
        inner_folds=INNER_FOLDS,
        most_rows=ROWS_OF_THE_CHOICE,
        table=table_text(["candidate", *judged.sets, "mean rank"], _rows(judged)),
        winner=judged.winner.name,
        fits=judged.fits,
        minutes=f"{judged.cpu_seconds / 60.0:.0f}",
    )


def _rows(judged: Judged) -> Iterator[list[str]]:
    for index, one in enumerate(judged.candidates):
        cells = [f"{roc:.3f} / {pr:.3f}" for roc, pr in zip(judged.roc[index], judged.pr[index], strict=True)]
        name = f"**{one.name}**" if one == judged.winner else one.name
        yield [name, *cells, f"{judged.mean_rank[index]:.2f}"]


def recipe_sentence(judged: Judged) -> str:
    return Prose("choice")("in_short", candidates=len(judged.candidates), winner=judged.winner.name)


def tried(judged: Judged) -> str:
    """What the candidates that were not chosen showed, as points of a list."""
    ranks = sorted(zip(judged.mean_rank, (one.name for one in judged.candidates), strict=True))
    (best, winner), (second, runner_up) = ranks[0], ranks[1] if len(ranks) > 1 else ranks[0]
    gap = f"{second - best:.2f} behind." if second > best else "a tie, decided for the simpler."
    prose, logarithms = Prose("choice"), _changes_by_logarithms(judged)
    points = [
        prose(
            "recipes",
            candidates=len(ranks),
            winner=winner,
            best=f"{best:.2f}",
            runner_up=runner_up,
            second=f"{second:.2f}",
            gap=gap,
        ),
        *([prose("logarithms", changes=logarithms)] if logarithms else []),
        prose("draws"),
    ]
    return "\n".join(points)


def _changes_by_logarithms(judged: Judged) -> str:
    names = [one.name for one in judged.candidates]
    pairs = [(names.index(name), names.index(f"{name}-log")) for name in names if f"{name}-log" in names]
    changed = [
        f"{names[plain]} on {judged.sets[column]} {judged.roc[log, column] - judged.roc[plain, column]:+.3f} / "
        f"{judged.pr[log, column] - judged.pr[plain, column]:+.3f}"
        for plain, log in pairs
        for column in range(len(judged.sets))
        if judged.roc[log, column] != judged.roc[plain, column]
    ]
    return (", ".join(changed) or "none") if pairs else ""
