"""Table 3: what is gained when the 5% least certain rows get no answer, by several measures of uncertainty."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from app.benchmark.paper.methods import sparseness
from app.benchmark.paper.published import ABSTENTION
from app.benchmark.paper.rendering import (
    FALSE_MARKS_ALONE,
    Prose,
    difference,
    lines,
    listed,
    mark,
    page,
    paragraphs,
    table_text,
)
from app.benchmark.paper.study import Pooled, Spread, Study, areas, paired, spread
from app.maths.moments import Array

DROPPED_SHARE = 0.05
NOTHING, BY_WIDTH, BY_FOREST, BY_W2, BY_MEAN = "none", "i(x, y)", "IForest", "W2", "sd of f1"
WAYS = (NOTHING, BY_WIDTH, BY_FOREST, BY_W2, BY_MEAN)
BY_MODEL = (BY_WIDTH, BY_W2, BY_MEAN)
EQUAL_AREAS = 0.0005  # areas that print the same in three decimals
EDGES = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
MIN_ROWS = 5
MARKERS = ("o", "s", "^", "D", "v")
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))


@dataclass(frozen=True, slots=True)
class Answered:
    """The rows with an answer, over the injections."""

    roc: Spread
    pr: Spread
    dropped_anomalous: Spread  # share of anomalies among the rows without an answer
    answered_anomalous: Spread  # and among the others


@dataclass(frozen=True, slots=True)
class WidthByScore:
    """Why i(x, y) drops anomalies: its median among rows by |E[NS]|, in units of its median where |E[NS]| < 1."""

    edges: tuple[float, ...]
    medians: tuple[float, ...]  # NaN where a bin has fewer than five rows


Found = dict[str, dict[str, Answered]]  # set -> way


def abstention(study: Study, seeds: Sequence[int], method: str = "NS") -> Found:
    return {name: {way: _answered(study, name, way, seeds, method) for way in WAYS} for name in study.tables}


def width_by_score(study: Study) -> dict[str, WidthByScore]:
    return {name: _by_score([study.pooled(name, "NS", seed) for seed in study.scope.seeds]) for name in study.tables}


def answered_rows(uncertainty: Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """All but the 5% with the largest uncertainty."""
    dropped = round(DROPPED_SHARE * len(uncertainty))
    answered = np.ones(len(uncertainty), dtype=bool)
    answered[np.argsort(-uncertainty, kind="stable")[:dropped]] = False
    return answered


def _answered(study: Study, name: str, way: str, seeds: Sequence[int], method: str) -> Answered:
    values = [_one(study, name, way, seed, method) for seed in seeds]
    return Answered(*(spread([value[part] for value in values]) for part in range(4)))


def _one(study: Study, name: str, way: str, seed: int, method: str) -> tuple[float, float, float, float]:
    pooled = study.pooled(name, method, seed)
    anomalous = pooled.anomalous
    if way == NOTHING:
        return *areas(anomalous, pooled.score), 0.0, float(anomalous.mean())
    answered = answered_rows(_uncertainty(study, name, way, seed, pooled))
    shares = float(anomalous[~answered].mean()), float(anomalous[answered].mean())
    return *areas(anomalous[answered], pooled.score[answered]), *shares


def _uncertainty(study: Study, name: str, way: str, seed: int, pooled: Pooled) -> Array:
    if way == BY_FOREST:
        return sparseness(study.tables[name].X, "IForest", seed)[pooled.rows]
    return {BY_WIDTH: pooled.width, BY_W2: pooled.context_width, BY_MEAN: np.sqrt(pooled.moments.v1)}[way]


def _by_score(injections: list[Pooled]) -> WidthByScore:
    score, width = (np.concatenate([getattr(one, part) for one in injections]) for part in ("score", "width"))
    bins = [(low <= score) & (score < high) for low, high in pairwise(EDGES)]
    medians = [float(np.median(width[rows])) if rows.sum() >= MIN_ROWS else float("nan") for rows in bins]
    return WidthByScore(EDGES, tuple(median / medians[0] for median in medians))


def at_least_as_good(found: Found, way: str) -> list[str]:
    """The sets on which dropping that way is at least as good as by the isolation forest, in both areas."""
    return [
        name
        for name, ways in found.items()
        if all(
            getattr(ways[way], area).mean >= getattr(ways[BY_FOREST], area).mean - EQUAL_AREAS for area in ("roc", "pr")
        )
    ]


def render(found: Found, fresh: Found | None, hom: Found | None, widths: dict[str, WidthByScore]) -> str:
    prose, head = Prose("abstention"), ["set", *(f"drop {way}" for way in WAYS)]
    table = table_text(head, [[name, *(_cell(ways[way], name, way) for way in WAYS)] for name, ways in found.items()])
    parts = [
        prose("chapter", false_marks=f"{FALSE_MARKS_ALONE:.0%}", table=table),
        _against_forest(found),
        _reason(found, widths),
    ]
    if hom:
        parts.append(_without_f2(hom))
    if fresh:
        body = [[name, *(_plain_cell(ways[way], way) for way in WAYS)] for name, ways in fresh.items()]
        parts += [prose("fresh", table=table_text(head, body)), _against_forest(fresh)]
    return paragraphs(parts)


def sentence(found: Found, fresh: Found | None) -> str:
    on_fresh = f" ({len(at_least_as_good(fresh, BY_MEAN))} on fresh seeds)" if fresh else ""
    return Prose("abstention")(
        "in_short",
        by_width=len(at_least_as_good(found, BY_WIDTH)),
        sets=len(found),
        by_mean=f"{len(at_least_as_good(found, BY_MEAN))}{on_fresh}",
    )


def _without_f2(hom: Found) -> str:
    ways = (NOTHING, BY_WIDTH, BY_FOREST)
    head = ["NS_hom", *(f"drop {way}" for way in ways), f"{BY_WIDTH} less {BY_FOREST}"]
    body = [
        [name, *(_plain_cell(own[way], way) for way in ways), _difference(own[BY_WIDTH], own[BY_FOREST])]
        for name, own in hom.items()
    ]
    return Prose("abstention")(
        "without_f2",
        prevalence=", ".join(f"{name} {ways[NOTHING].answered_anomalous.mean:.1%}" for name, ways in hom.items()),
        table=table_text(head, body),
        comparison=lines([_comparison(hom, BY_WIDTH)]),
    )


def _against_forest(found: Found) -> str:
    body = [
        [f"{way} less {BY_FOREST}", *(_difference(ways[way], ways[BY_FOREST]) for ways in found.values())]
        for way in BY_MODEL
    ]
    return Prose("abstention")(
        "against_forest",
        table=table_text(["", *found], body),
        comparisons=lines(_comparison(found, way) for way in BY_MODEL),
    )


def _comparison(found: Found, way: str) -> str:
    good = at_least_as_good(found, way)
    return Prose("abstention")("comparison", way=way, count=len(good), sets=len(found), names=listed(good))


def _reason(found: Found, widths: dict[str, WidthByScore]) -> str:
    edges = next(iter(widths.values())).edges
    head = ["set", *(f"{low:g}–{high:g}" for low, high in pairwise(edges))]
    body = [
        [name, *(f"{value:.2f}" if value == value else "" for value in one.medians)] for name, one in widths.items()
    ]
    left = ", ".join(
        f"{name} {ways[BY_WIDTH].answered_anomalous.mean:.1%} instead of {ways[NOTHING].answered_anomalous.mean:.1%}"
        for name, ways in found.items()
    )
    return Prose("abstention")(
        "reason",
        dropped=", ".join(f"{name} {ways[BY_WIDTH].dropped_anomalous.mean:.0%}" for name, ways in found.items()),
        left=left,
        fewest=MIN_ROWS,
        table=table_text(head, body),
    )


def _plain_cell(answered: Answered, way: str) -> str:
    return f"{answered.roc.mean:.3f} / {answered.pr.mean:.3f}{_dropped(answered, way)}"


def _cell(answered: Answered, name: str, way: str) -> str:
    published = ABSTENTION[name].get(way)
    roc, pr = f"{answered.roc.mean:.3f}", f"{answered.pr.mean:.3f}"
    if published:
        roc += f" ({published[0]:.2f} {mark(answered.roc, published[0])})"
        pr += f" ({published[1]:.2f} {mark(answered.pr, published[1])})"
    return f"{roc} / {pr}{_dropped(answered, way)}"


def _dropped(answered: Answered, way: str) -> str:
    return "" if way == NOTHING else f"; {answered.dropped_anomalous.mean:.0%}"


def _difference(one: Answered, other: Answered) -> str:
    return " / ".join(difference(paired(getattr(one, area), getattr(other, area))) for area in ("roc", "pr"))


def draw_gains(path: Path, found: Found) -> None:
    """What abstaining does to the PR AUC, by way and set."""
    with page(path, 6.0, 2.8) as figure:
        axes = figure.subplots()
        for index, (way, marker) in enumerate(zip((BY_WIDTH, BY_FOREST, BY_W2, BY_MEAN), MARKERS, strict=False)):
            gain = [ways[way].pr.mean - ways[NOTHING].pr.mean for ways in found.values()]
            shade = ("black", "0.6", "0.35", "black")[index]
            filled = "white" if way == BY_MEAN else shade
            axes.plot(
                np.arange(len(found)) + 0.18 * (index - 1.5), gain, marker, color=shade, mfc=filled, label=f"by {way}"
            )
        axes.axhline(0.0, color="0.7", linewidth=0.8)
        axes.set(xticks=np.arange(len(found)), ylabel="change of PR AUC (no unit)")
        axes.set_xticklabels(list(found))
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), title="5% dropped")


def draw_widths(path: Path, found: dict[str, WidthByScore]) -> None:
    """i(x, y) grows with |E[NS]|."""
    with page(path, 5.4, 3.2) as figure:
        axes = figure.subplots()
        for (name, one), marker, dash in zip(found.items(), MARKERS, DASHES, strict=False):
            middles = [0.5 * (low + high) for low, high in pairwise(one.edges)]
            axes.plot(middles, one.medians, marker=marker, linestyle=dash, color="0.2", ms=4, lw=1.0, label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        axes.set(xlabel="|E[NS]| (units of exp(f2), middle of a bin)", ylabel="median i(x, y) (1 where |E[NS]| < 1)")
        axes.legend(handlelength=4.0, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
