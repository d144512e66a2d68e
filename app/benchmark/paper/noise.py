"""How much of a difference the draw of anomalies makes: the linear Z-score over many injections.

The paper's row is one draw of five injections. A row of ours, however right, can differ from it by that much.
"""

from dataclasses import dataclass

import numpy as np

from app.benchmark.paper.data import BY_NAME, Table
from app.benchmark.paper.protocol import SEEDS, Task, perform
from app.benchmark.paper.published import TABLE2
from app.benchmark.paper.rendering import Prose, listed, table_text
from app.benchmark.paper.study import Pooled, areas
from app.maths.moments import Array

INJECTIONS = 200
GROUP = 5  # injections that make a row
CLOSE = 0.02
EVERY_ROW_THE_SAME = 0.001


@dataclass(frozen=True, slots=True)
class Noise:
    roc_mean: float
    pr_mean: float
    roc_sd: float  # of rows, each the mean of five injections
    pr_sd: float
    close: tuple[bool, ...]  # for each row: within 0.02 of the published one in both areas?


def linear_noise(table: Table, published: tuple[float, float], injections: int = INJECTIONS) -> Noise:
    found = np.array([_areas(table, SEEDS[0] + step) for step in range(injections)])  # [injections, 2]
    rows = found.reshape(-1, GROUP, 2).mean(axis=1)
    close = (np.abs(rows - np.array(published)) <= CLOSE).all(axis=1)
    mean, sd = rows.mean(axis=0), rows.std(axis=0, ddof=1)
    return Noise(float(mean[0]), float(mean[1]), float(sd[0]), float(sd[1]), tuple(close.tolist()))


def _areas(table: Table, seed: int) -> Array:
    tasks = [Task(table.name, BY_NAME[table.name].anomalies, seed, fold, "Z-score") for fold in range(GROUP)]
    pooled = Pooled.of([perform(task, table.X, table.y) for task in tasks])
    return np.array(areas(pooled.anomalous, pooled.score))


def render(found: dict[str, Noise]) -> str:
    head = ["set", "paper", f"{INJECTIONS} injections", f"sd of a row of {GROUP}", f"rows within {CLOSE}"]
    close = [name for name, one in found.items() if _is_close(name, one)]
    return Prose("noise")(
        "chapter",
        group=GROUP,
        injections=INJECTIONS,
        rows=INJECTIONS // GROUP,
        close=CLOSE,
        table=table_text(head, [_row(name, one) for name, one in found.items()]),
        close_count=len(close),
        close_sets=listed(close),
        sets=len(found),
        distances=", ".join(f"{name} {roc:+.1f} / {pr:+.1f}" for name, (roc, pr) in _distances(found).items()),
        first_count=sum(one.close[0] for one in found.values()),
        all_at_once=sum(map(all, zip(*(one.close for one in found.values()), strict=True))),
    )


def sentence(found: dict[str, Noise]) -> str:
    near = [name for name, one in found.items() if one.close[0]]
    farthest = max([abs(far) for both in _distances(found).values() for far in both], default=0.0)
    return Prose("noise")(
        "in_short",
        close=CLOSE,
        near_count=len(near),
        near_sets=listed(near),
        sets=len(found),
        injections=INJECTIONS,
        farthest=f"{farthest:.1f}",
    )


def _is_close(name: str, one: Noise) -> bool:
    (roc, _), (pr, _) = TABLE2["Z-score"][name]
    return abs(one.roc_mean - roc) <= CLOSE and abs(one.pr_mean - pr) <= CLOSE


def _distances(found: dict[str, Noise]) -> dict[str, tuple[float, float]]:
    """Of the paper's row, in standard deviations of a row, on all sets whose rows differ."""
    distances = {}
    for name, one in found.items():
        (roc, _), (pr, _) = TABLE2["Z-score"][name]
        if one.roc_sd > EVERY_ROW_THE_SAME:
            distances[name] = ((roc - one.roc_mean) / one.roc_sd, (pr - one.pr_mean) / one.pr_sd)
    return distances


def _row(name: str, one: Noise) -> list[str]:
    (roc, _), (pr, _) = TABLE2["Z-score"][name]
    return [
        name,
        f"{roc:.2f} / {pr:.2f}",
        f"{one.roc_mean:.3f} / {one.pr_mean:.3f}",
        f"{one.roc_sd:.3f} / {one.pr_sd:.3f}",
        f"{sum(one.close)} of {len(one.close)}",
    ]
