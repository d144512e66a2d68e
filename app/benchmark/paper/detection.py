"""Table 2 and the fresh seeds: areas under the curves by method, set and injection, beside the paper's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from app.benchmark.paper.published import TABLE2
from app.benchmark.paper.rendering import (
    EQUAL,
    FALSE_MARKS,
    Prose,
    counted,
    difference,
    lines,
    listed,
    mark,
    page,
    pair,
    paragraphs,
    reaches,
    table_text,
)
from app.benchmark.paper.study import Pooled, Spread, Study, areas, paired, spread
from app.benchmark.paper.tasks import Scope
from app.maths.moments import Array

AREAS = {"roc": "ROC AUC", "pr": "PR AUC"}  # fields of a Cell
INDEX = {"roc": 0, "pr": 1}  # in a published pair
VISIBLE = 0.0005  # in three decimals
OTHER_PROGRAMS = ("QCAD", "ROCOD")
LIBRARY = ("IForest", "LOF", "HBOS")
STANDARDISED = tuple(f"{method}_std" for method in LIBRARY)
CLEAR = 2.0  # standard errors of the mean difference


@dataclass(frozen=True, slots=True)
class Cell:
    roc: Spread
    pr: Spread

    def area(self, name: str) -> Spread:
        return {"roc": self.roc, "pr": self.pr}[name]


Row = dict[str, Cell]  # by set
Rows = dict[str, Row]  # by method


@dataclass(frozen=True, slots=True)
class Gain:
    """NS less NS_hom, by injection."""

    dataset: str
    area: str  # a key of AREAS
    values: Spread

    @property
    def is_clear(self) -> bool:
        return self.values.mean > CLEAR * self.values.standard_error

    @property
    def text(self) -> str:
        return f"{self.dataset} {difference(self.values)}"


def _score(pooled: Pooled) -> Array:
    return pooled.score


def table2(study: Study) -> Rows:
    return {method: row(study, method, study.scope.seeds) for method in study.scope.methods}


def fresh(study: Study) -> Rows:
    """Every method on seeds whose results had not been seen when the recipes were made."""
    return {method: row(study, method, study.scope.fresh) for method in study.scope.methods}


def row(study: Study, method: str, seeds: Sequence[int], scored: Callable[[Pooled], Array] = _score) -> Row:
    return {name: _cell([study.pooled(name, method, seed) for seed in seeds], scored) for name in study.tables}


def predictive_row(study: Study) -> Row:
    """The predictive score of the same fits: next to NS, not instead of it."""
    return row(study, "NS", study.scope.seeds, lambda pooled: pooled.predictive_score)


def _cell(injections: Sequence[Pooled], scored: Callable[[Pooled], Array]) -> Cell:
    both = [areas(one.anomalous, scored(one)) for one in injections]
    return Cell(spread([roc for roc, _ in both]), spread([pr for _, pr in both]))


def published_mean(method: str, name: str, area: str) -> float:
    return TABLE2[method][name][INDEX[area]][0]


def caveat() -> str:
    """Goes wherever cells are counted against the paper's."""
    return Prose("detection")("caveat")


def render_table2(rows: Rows) -> str:
    marks = {
        method: [_mark(one, method, name, area) for name, one in own.items() for area in AREAS]
        for method, own in rows.items()
        if method in TABLE2
    }
    library = [one for method in LIBRARY for one in marks.get(method, ())]
    differ, prose = sum(one != EQUAL for one in library), Prose("detection")
    counts = [f"{method}: {counted(own)}." for method, own in marks.items() if method not in OTHER_PROGRAMS]
    notes = [
        lines([*counts, prose("other_programs")]),
        prose("library", names=", ".join(LIBRARY), differ=differ, cells=len(library)),
        *([_standardised(rows)] if set(STANDARDISED) <= rows.keys() else []),
    ]
    return prose(
        "table2",
        false_marks=f"{FALSE_MARKS:.0%}",
        tables=paragraphs(_area_table(rows, area) for area in AREAS),
        notes="\n".join(notes),
    )


def _standardised(rows: Rows) -> str:
    """What the units of the files cost the detectors that know no context."""
    moved = []
    for plain, scaled in zip(LIBRARY, STANDARDISED, strict=True):
        changes = {name: rows[scaled][name].roc.mean - rows[plain][name].roc.mean for name in rows[plain]}
        largest = max(changes, key=lambda name: abs(changes[name]))
        moved.append(
            f"{plain} by at most {changes[largest]:+.3f} ({largest})"
            if abs(changes[largest]) >= VISIBLE
            else f"{plain} nowhere"
        )
    return Prose("detection")("standardised", names=", ".join(STANDARDISED), moved="; ".join(moved))


def render_fresh(rows: Rows, scope: Scope) -> str:
    return Prose("detection")(
        "fresh",
        first=scope.fresh[0],
        last=scope.fresh[-1],
        tables=paragraphs(_area_table(rows, area, beside_paper=False) for area in AREAS),
        ranking=ranking(rows),
    )


def _area_table(rows: Rows, area: str, beside_paper: bool = True) -> str:
    sets = list(rows["NS"])
    body = [
        [method, *(_text(own[name], method if beside_paper else "", name, area) for name in sets)]
        for method, own in rows.items()
    ]
    return table_text([AREAS[area], *sets], body)


def _text(one: Cell, method: str, name: str, area: str) -> str:
    ours = pair(one.area(area))
    if method not in TABLE2:
        return ours
    mean, sd = TABLE2[method][name][INDEX[area]]
    return f"{ours} · {mean:.2f} ± {sd:.2f} · {_mark(one, method, name, area)}"


def _mark(one: Cell, method: str, name: str, area: str) -> str:
    return mark(one.area(area), *TABLE2[method][name][INDEX[area]])


def render_ns(rows: Rows, predictive: Row, fresh: Rows | None, scope: Scope) -> str:
    first, later = (f"seeds {seeds[0]}–{seeds[-1]}" for seeds in (scope.seeds, scope.fresh or scope.seeds))
    ours = {first: rows} | ({later: fresh} if fresh else {})
    named = {
        f"{method}, {seeds}": own[method] for method in ("NS", "NS_hom") for seeds, own in ours.items() if method in own
    }
    named[f"predictive score, {first}"] = predictive
    sets, prose = list(rows["NS"]), Prose("detection")
    paper = [" / ".join(f"{published_mean('NS', name, area):.2f}" for area in AREAS) for name in sets]
    body = [
        ["paper, NS", *paper],
        *([title, *(_reach(own[name], name) for name in sets)] for title, own in named.items()),
    ]
    reached = lines(f"{title}: {_reached(own)}." for title, own in named.items())
    text = prose("ns", table=table_text(["", *sets], body), reached=f"{reached}\n{caveat()}.")
    return paragraphs([text, _over_linear(ours, sets) if "Z-score" in rows else "", prose("figure")])


def _over_linear(ours: dict[str, Rows], sets: list[str]) -> str:
    """The same draws for both methods: what an easy or a hard draw adds to a row falls out of the difference."""
    paper = [
        " / ".join(f"{published_mean('NS', name, area) - published_mean('Z-score', name, area):+.2f}" for area in AREAS)
        for name in sets
    ]
    body = [
        ["paper", *paper],
        *([f"ours, {seeds}", *(_over_linear_cell(rows, name) for name in sets)] for seeds, rows in ours.items()),
    ]
    return Prose("detection")("over_linear", table=table_text(["NS less linear Z", *sets], body))


def _over_linear_cell(rows: Rows, name: str) -> str:
    gains = (paired(rows["NS"][name].area(area), rows["Z-score"][name].area(area)) for area in AREAS)
    return " / ".join(difference(gain, of_mean=False) for gain in gains)


def reached(own: Row) -> tuple[int, int, list[str]]:
    """How many cells are at least the paper's for NS, of how many, and the names of the others."""
    missed = [
        f"{name} {AREAS[area]}"
        for name, one in own.items()
        for area in AREAS
        if not reaches(one.area(area).mean, published_mean("NS", name, area))
    ]
    cells = len(own) * len(AREAS)
    return cells - len(missed), cells, missed


def _reached(own: Row) -> str:
    count, cells, missed = reached(own)
    return f"{count} of {cells} cells reached" + (f"; not {', '.join(missed)}" if missed else "")


def _reach(one: Cell, name: str) -> str:
    means = [(one.area(area).mean, published_mean("NS", name, area)) for area in AREAS]
    return " / ".join(f"**{ours:.3f}**" if reaches(ours, theirs) else f"{ours:.3f}" for ours, theirs in means)


def sentence(rows: Rows | None, fresh: Rows | None, scope: Scope) -> str:
    """The count of cells against the paper's row of NS, never without the caveat. Empty if neither was run."""
    named = {"Seeds": (scope.seeds, rows), "Fresh seeds": (scope.fresh, fresh)}
    parts = [_against_paper(f"{kind} {seeds[0]}–{seeds[-1]}", own) for kind, (seeds, own) in named.items() if own]
    return Prose("detection")("in_short", parts=" ".join(parts), caveat=caveat()) if parts else ""


def _against_paper(seeds: str, rows: Rows) -> str:
    count, cells, missed = reached(rows["NS"])
    return Prose("detection")(
        "against_paper",
        seeds=seeds,
        count=count,
        cells=cells,
        missed=f"; below it: {', '.join(missed)}" if missed else "",
        hom=f"; of NS_hom's, {reached(rows['NS_hom'])[0]} reach the paper's NS too" if "NS_hom" in rows else "",
    )


def ranking(rows: Rows) -> str:
    """Where NS comes first of all methods here."""
    sets = list(rows["NS"])
    first = {area: [name for name in sets if _is_best(rows, name, area)] for area in AREAS}
    return Prose("detection")(
        "ranking",
        roc_count=len(first["roc"]),
        roc_sets=listed(first["roc"]),
        pr_count=len(first["pr"]),
        pr_sets=listed(first["pr"]),
        sets=len(sets),
    )


def _is_best(rows: Rows, name: str, area: str) -> bool:
    means = {method: round(own[name].area(area).mean, 3) for method, own in rows.items()}
    return bool(means["NS"] >= max(means.values()))


def gains(rows: Rows) -> list[Gain]:
    """What a spread that depends on the context adds: NS less NS_hom, which has one spread for all contexts."""
    return [
        Gain(name, area, paired(rows["NS"][name].area(area), rows["NS_hom"][name].area(area)))
        for area in AREAS
        for name in rows["NS"]
    ]


def has_both(rows: Rows | None) -> bool:
    return rows is not None and {"NS", "NS_hom"} <= rows.keys()


def spread_sentence(rows: Rows, fresh: Rows | None) -> str:
    parts = [_clear_gains(rows)] + ([f"On fresh seeds: {_clear_gains(fresh)}"] if fresh and has_both(fresh) else [])
    return Prose("detection")("spread_in_short", parts=" ".join(parts))


def _clear_gains(rows: Rows) -> str:
    found = gains(rows)
    clear = {area: [gain.text for gain in found if gain.area == area and gain.is_clear] for area in AREAS}
    where = "; ".join(f"in {AREAS[area]} on {', '.join(names) or 'no set'}" for area, names in clear.items())
    return Prose("detection")("clear_gains", where=where, others=sum(not gain.is_clear for gain in found))


def render_spread(rows: Rows, fresh: Rows | None) -> str:
    named = {"first seeds": rows} | ({"fresh seeds": fresh} if fresh and has_both(fresh) else {})
    body = [
        [f"{title}, {AREAS[area]}", *(difference(gain.values) for gain in gains(own) if gain.area == area)]
        for title, own in named.items()
        for area in AREAS
    ]
    table = table_text(["", *rows["NS"]], body)
    return Prose("detection")("spread", table=table, in_short=spread_sentence(rows, fresh))


def draw(path: Path, own: Row, fresh: Row | None) -> None:
    """NS by set: ours on the paper's seeds, on fresh ones, and the paper's, with standard deviations."""
    with page(path, 7.0, 3.0) as figure:
        for axes, area in zip(figure.subplots(1, 2), AREAS, strict=True):
            _points(axes, own, area, -0.2, "ours", "o", "black")
            if fresh:
                _points(axes, fresh, area, 0.0, "ours, fresh seeds", "s", "0.5")
            means, sds = zip(*(TABLE2["NS"][name][INDEX[area]] for name in own), strict=True)
            x = np.arange(len(own)) + 0.2
            axes.errorbar(x, means, sds, fmt="D", color="0.3", mfc="white", ms=4, lw=0.9, label="paper")
            axes.set(ylabel=f"{AREAS[area]} (no unit)", xticks=np.arange(len(own)))
            axes.set_xticklabels(list(own), rotation=30, ha="right")
        figure.axes[1].legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _points(axes: Axes, own: Row, area: str, shift: float, label: str, marker: str, shade: str) -> None:
    spreads = [one.area(area) for one in own.values()]
    x, means = np.arange(len(own)) + shift, [one.mean for one in spreads]
    axes.errorbar(x, means, [one.sd for one in spreads], fmt=marker, color=shade, ms=4, lw=0.9, label=label)
