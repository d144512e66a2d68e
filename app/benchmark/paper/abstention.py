"""Table 3: what is gained when the 5% least certain rows get no answer, by several ideas of uncertainty."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.benchmark.paper.contexts_alone import sparseness
from app.benchmark.paper.pooled import Pooled, areas
from app.benchmark.paper.study import Spread, Study, spread
from app.maths.moments import Array

DROPPED_SHARE = 0.05
ANONYMOUS, BY_WIDTH, BY_FOREST, BY_W2, BY_MEAN = "nobody", "i(x, y)", "IForest", "W2", "sd of f1"
WAYS = (ANONYMOUS, BY_WIDTH, BY_FOREST, BY_W2, BY_MEAN)


@dataclass(frozen=True, slots=True)
class Kept:
    roc: Spread
    pr: Spread
    dropped_anomalous: Spread  # share of anomalies among the rows without an answer
    kept_anomalous: Spread  # and among the others


@dataclass(frozen=True, slots=True)
class WidthByScore:
    """Why i(x, y) drops anomalies: its median among rows by |E[NS]|, in units of its median where |E[NS]| < 1."""

    edges: tuple[float, ...]
    medians: tuple[float, ...]  # NaN where a bin has fewer than five rows


EDGES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
FEWEST = 5


def abstention(study: Study, seeds: Sequence[int], method: str = "NS") -> dict[str, dict[str, Kept]]:
    """set -> way -> what is kept, over the injections."""
    return {name: {way: _kept(study, name, way, seeds, method) for way in WAYS} for name in study.tables}


def width_by_score(study: Study) -> dict[str, WidthByScore]:
    return {name: _by_score([study.pooled(name, "NS", seed) for seed in study.scope.seeds]) for name in study.tables}


def kept_rows(uncertainty: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """All but the 5% with the largest uncertainty."""
    dropped = round(DROPPED_SHARE * len(uncertainty))
    kept = np.ones(len(uncertainty), dtype=bool)
    kept[np.argsort(-uncertainty, kind="stable")[:dropped]] = False
    return kept


def _kept(study: Study, name: str, way: str, seeds: Sequence[int], method: str) -> Kept:
    values = [_one(study, name, way, seed, method) for seed in seeds]
    return Kept(*(spread([value[part] for value in values]) for part in range(4)))


def _one(study: Study, name: str, way: str, seed: int, method: str) -> tuple[float, float, float, float]:
    pooled = study.pooled(name, method, seed)
    anomalous = pooled.anomalous
    if way == ANONYMOUS:
        return *areas(anomalous, pooled.score), 0.0, float(anomalous.mean())
    kept = kept_rows(_uncertainty(study, name, way, seed, pooled))
    shares = float(anomalous[~kept].mean()), float(anomalous[kept].mean())
    return *areas(anomalous[kept], pooled.score[kept]), *shares


def _uncertainty(study: Study, name: str, way: str, seed: int, pooled: Pooled) -> Array:
    if way == BY_FOREST:
        return sparseness(study.tables[name].X, "IForest", seed)[pooled.rows]
    return {BY_WIDTH: pooled.width, BY_W2: pooled.context_width, BY_MEAN: np.sqrt(pooled.moments.v1)}[way]


def _by_score(injections: list[Pooled]) -> WidthByScore:
    score, width = (np.concatenate([getattr(one, part) for one in injections]) for part in ("score", "width"))
    bins = [(low <= score) & (score < high) for low, high in pairwise(EDGES)]
    medians = [float(np.median(width[rows])) if rows.sum() >= FEWEST else float("nan") for rows in bins]
    return WidthByScore(EDGES, tuple(median / medians[0] for median in medians))
