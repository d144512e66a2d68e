"""How much of a difference the draw of anomalies makes: the linear Z-score over many injections.

The paper's row is one draw of five injections. A row of ours, however right, can differ from it by that much.
"""

from dataclasses import dataclass

import numpy as np

from app.benchmark.paper.data import Table
from app.benchmark.paper.pooled import Pooled, areas
from app.benchmark.paper.protocol import SEEDS
from app.benchmark.paper.sets import BY_NAME
from app.benchmark.paper.work import Task, perform
from app.maths.moments import Array

INJECTIONS = 200
GROUP = 5  # injections that make a row
CLOSE = 0.02


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
