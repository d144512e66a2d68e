"""The chapters on Table 2, on NS with fresh seeds and on the predictive score."""

from app.benchmark.paper.detection import Cell, Rowwise
from app.benchmark.paper.markdown import (
    EQUAL,
    FALSE_MARKS,
    counted,
    difference,
    mark,
    pair,
    published_pair,
    reaches,
    table,
)
from app.benchmark.paper.plan import Scope
from app.benchmark.paper.published import TABLE2
from app.benchmark.paper.study import Spread, paired

NAMES = ("ROC AUC", "PR AUC")
OTHER_PROGRAMS = ("QCAD", "ROCOD")
LIBRARY = ("IForest", "LOF", "HBOS")


def table2(rows: dict[str, Rowwise]) -> list[str]:
    marks = {
        method: [_mark(one, method, name, area) for name, one in row.items() for area in (0, 1)]
        for method, row in rows.items()
    }
    return [
        "## Table 2: nine methods",
        "",
        "Mean ± standard deviation over injections, the folds of an injection pooled. Each cell: ours · the paper's · "
        "the mark. **Equal** means within one standard deviation, the larger of the two (never under half of the last "
        "printed digit); **better** and **worse** are outside it. Of two methods that are the same, five injections on "
        f"either side would be marked apart in {FALSE_MARKS:.0%} of the cells.",
        "",
        *_one_area(rows, 0),
        *_one_area(rows, 1),
        *(f"{method}: {counted(found)}.  " for method, found in marks.items() if method not in OTHER_PROGRAMS),
        *_untouched(marks),
        "",
    ]


def _untouched(marks: dict[str, list[str]]) -> list[str]:
    """Detectors of a library, where only the protocol is ours."""
    found = [one for method in LIBRARY for one in marks.get(method, ())]
    differ = sum(one != EQUAL for one in found)
    return [
        "QCAD and ROCOD are not counted: the paper ran its authors' programs, these are written from descriptions (see "
        "below).  ",
        f"{', '.join(LIBRARY)} have no choice of ours in them but the protocol: {differ} of {len(found)} cells differ.",
    ]


def _one_area(rows: dict[str, Rowwise], area: int) -> list[str]:
    sets = list(rows["NS"])
    body = [[method, *(_cell(row[name], method, name, area) for name in sets)] for method, row in rows.items()]
    return table([NAMES[area], *sets], body)


def _cell(one: Cell, method: str, name: str, area: int) -> str:
    return (
        f"{pair(_part(one, area))} · {published_pair(*TABLE2[method][name][area])} · {_mark(one, method, name, area)}"
    )


def _mark(one: Cell, method: str, name: str, area: int) -> str:
    return mark(_part(one, area), *TABLE2[method][name][area])


def _part(one: Cell, area: int) -> Spread:
    return (one.roc, one.pr)[area]


def ns_rows(rows: dict[str, Rowwise], predictive: Rowwise, fresh: Rowwise | None, scope: Scope) -> list[str]:
    named = {f"NS, seeds {scope.seeds[0]}–{scope.seeds[-1]}": rows["NS"]}
    if fresh:
        named[f"NS, seeds {scope.fresh[0]}–{scope.fresh[-1]}"] = fresh
    named[f"predictive score, seeds {scope.seeds[0]}–{scope.seeds[-1]}"] = predictive
    sets = list(rows["NS"])
    body = [["paper, NS", *(_both(TABLE2["NS"][name][0][0], TABLE2["NS"][name][1][0], 2) for name in sets)]]
    body += [[title, *(_reach(row[name], name) for name in sets)] for title, row in named.items()]
    return [
        "## NS against the paper's row",
        "",
        "ROC AUC / PR AUC; bold where at least the paper's number at its two decimals.",
        "",
        *table(["", *sets], body),
        *(f"{title}: {_reached(row)}." + "  " for title, row in named.items()),
        "",
        "The predictive score |y - m1| / sqrt(v1 + exp(2 m2 + 2 v2)) uses the same fits. It is not the paper's score "
        "and stands beside NS, not in its place.",
        "",
        *(_over_linear(rows) if "Z-score" in rows else ()),
    ]


def _over_linear(rows: dict[str, Rowwise]) -> list[str]:
    """The same draws for both methods: what an easy or a hard draw adds to a row falls out of the difference."""
    sets = list(rows["NS"])
    body = [
        ["paper", *(" / ".join(f"{_published_gain(name, area):+.2f}" for area in (0, 1)) for name in sets)],
        ["ours", *(" / ".join(_gain(rows, name, area) for area in (0, 1)) for name in sets)],
    ]
    return [
        "How much NS gains over the linear Z-score, ROC AUC / PR AUC. Both see the same draw, so an easy or a hard one "
        "counts less than in the rows above. The paper's gain is the difference of its printed means; ours the mean "
        "and standard deviation of the differences by injection.",
        "",
        *table(["NS less linear Z", *sets], body),
    ]


def _published_gain(name: str, area: int) -> float:
    return TABLE2["NS"][name][area][0] - TABLE2["Z-score"][name][area][0]


def _gain(rows: dict[str, Rowwise], name: str, area: int) -> str:
    ns, linear = (_part(rows[method][name], area) for method in ("NS", "Z-score"))
    return difference(paired(ns, linear), of_mean=False)


def reached(row: Rowwise) -> list[tuple[str, str, bool]]:
    """(set, area, reached?) for every cell of NS."""
    return [
        (name, NAMES[area], reaches(_part(one, area).mean, TABLE2["NS"][name][area][0]))
        for name, one in row.items()
        for area in (0, 1)
    ]


def _reached(row: Rowwise) -> str:
    cells = reached(row)
    missed = [f"{name} {area}" for name, area, there in cells if not there]
    return f"{sum(there for *_, there in cells)} of {len(cells)} cells reached" + (
        f"; not {', '.join(missed)}" if missed else ""
    )


def _reach(one: Cell, name: str) -> str:
    published = TABLE2["NS"][name]
    parts = [(one.roc.mean, published[0][0]), (one.pr.mean, published[1][0])]
    return " / ".join(f"**{ours:.3f}**" if reaches(ours, theirs) else f"{ours:.3f}" for ours, theirs in parts)


def _both(roc: float, pr: float, digits: int) -> str:
    return f"{roc:.{digits}f} / {pr:.{digits}f}"
