"""The chapter on abstention."""

from itertools import pairwise

from app.benchmark.paper.abstention import (
    ANONYMOUS,
    BY_FOREST,
    BY_MEAN,
    BY_W2,
    BY_WIDTH,
    FEWEST,
    WAYS,
    Kept,
    WidthByScore,
)
from app.benchmark.paper.markdown import FALSE_MARKS_ALONE, difference, mark, table
from app.benchmark.paper.published import ABSTENTION
from app.benchmark.paper.study import Spread, paired

BY_MODEL = (BY_WIDTH, BY_W2, BY_MEAN)
EQUAL_AREAS = 0.0005  # areas that print the same in three decimals


Found = dict[str, dict[str, Kept]]  # set -> way


def abstention(found: Found, fresh: Found | None, hom: Found | None, widths: dict[str, WidthByScore]) -> list[str]:
    head = ["set", *(f"drop {way}" if way != ANONYMOUS else "drop nobody" for way in WAYS)]
    return [
        "## Abstention: dropping the 5% least certain rows",
        "",
        "ROC AUC / PR AUC of the rows kept (in brackets the paper's and the mark by our standard deviation alone, as "
        f"the paper gives none: equal methods would be marked apart in {FALSE_MARKS_ALONE:.0%} of the cells), then the "
        "share of anomalies among the rows dropped. IForest is fitted on all contexts of the set, as published, and "
        "sees nothing else. W2 is the width of the 95% HDI at m1 + 2 exp(m2), which does not depend on y. The sd of "
        "f1 is sqrt(v1), how uncertain the expected value is in the unit of y.",
        "",
        *table(head, [[name, *(_cell(ways[way], name, way) for way in WAYS)] for name, ways in found.items()]),
        "![Change of the PR AUC by abstaining](paper/abstention.svg)",
        "",
        *_against_forest(found),
        *_reason(found, widths),
        *(_without_f2(hom) if hom else ()),
        *(_once_more(head, fresh) if fresh else ()),
    ]


def _without_f2(hom: Found) -> list[str]:
    ways = (ANONYMOUS, BY_WIDTH, BY_FOREST)
    head = [
        "NS_hom",
        *("drop nobody" if way == ANONYMOUS else f"drop {way}" for way in ways),
        f"{BY_WIDTH} less {BY_FOREST}",
    ]
    body = [
        [name, *(_plain_cell(own[way], way) for way in ways), _difference(own[BY_WIDTH], own[BY_FOREST])]
        for name, own in hom.items()
    ]
    return [
        "NS_hom takes the uncertainty of f2 away: its spread is one number, v2 = 0, and its i(x, y) depends on the "
        "context alone. If the reason is right, the rows dropped by it hold no more anomalies than the set "
        f"({_prevalence(hom)}):",
        "",
        *table(head, body),
        _comparison(hom, BY_WIDTH),
        "",
    ]


def _prevalence(found: Found) -> str:
    return ", ".join(f"{name} {ways[ANONYMOUS].kept_anomalous.mean:.1%}" for name, ways in found.items())


def _once_more(head: list[str], fresh: Found) -> list[str]:
    body = [[name, *(_plain_cell(ways[way], way) for way in WAYS)] for name, ways in fresh.items()]
    return [
        "The sd of f1 was taken up after a look at the areas above, so the fresh seeds judge it:",
        "",
        *table(head, body),
        *_against_forest(fresh),
    ]


def _plain_cell(kept: Kept, way: str) -> str:
    share = "" if way == ANONYMOUS else f"; {kept.dropped_anomalous.mean:.0%}"
    return f"{kept.roc.mean:.3f} / {kept.pr.mean:.3f}{share}"


def _cell(kept: Kept, name: str, way: str) -> str:
    published = ABSTENTION[name].get(way)
    roc, pr = f"{kept.roc.mean:.3f}", f"{kept.pr.mean:.3f}"
    if published:
        roc += f" ({published[0]:.2f} {mark(kept.roc, published[0])})"
        pr += f" ({published[1]:.2f} {mark(kept.pr, published[1])})"
    return f"{roc} / {pr}" + ("" if way == ANONYMOUS else f"; {kept.dropped_anomalous.mean:.0%}")


def at_least_as_good(one: Kept, other: Kept) -> bool:
    return all(getattr(one, area).mean >= getattr(other, area).mean - EQUAL_AREAS for area in ("roc", "pr"))


def _against_forest(found: Found) -> list[str]:
    body = [
        [f"{way} less {BY_FOREST}", *(_difference(ways[way], ways[BY_FOREST]) for ways in found.values())]
        for way in BY_MODEL
    ]
    return [
        "Differences by injection, mean ± standard error, ROC AUC / PR AUC:",
        "",
        *table(["", *found], body),
        *(_comparison(found, way) for way in BY_MODEL),
        "",
    ]


def _difference(one: Kept, other: Kept) -> str:
    return " / ".join(_paired(getattr(one, area), getattr(other, area)) for area in ("roc", "pr"))


def _paired(one: Spread, other: Spread) -> str:
    return difference(paired(one, other))


def _comparison(found: Found, way: str) -> str:
    good = [name for name, ways in found.items() if at_least_as_good(ways[way], ways[BY_FOREST])]
    return (
        f"By {way} at least as good as by {BY_FOREST} in both areas on {len(good)} of {len(found)} sets"
        f" ({', '.join(good) or 'none'}).  "
    )


def _reason(found: Found, widths: dict[str, WidthByScore]) -> list[str]:
    edges = next(iter(widths.values())).edges
    head = ["set", *(f"{low:g}–{high:g}" for low, high in pairwise(edges))]
    body = [
        [name, *(f"{value:.2f}" if value == value else "" for value in one.medians)] for name, one in widths.items()
    ]
    shares = ", ".join(f"{name} {ways[BY_WIDTH].dropped_anomalous.mean:.0%}" for name, ways in found.items())
    left = ", ".join(
        f"{name} {ways[BY_WIDTH].kept_anomalous.mean:.1%} instead of {ways[ANONYMOUS].kept_anomalous.mean:.1%}"
        for name, ways in found.items()
    )
    return [
        "Why: i(x, y) is the width of the distribution of (y - f1) exp(-f2), and the uncertainty of f2 multiplies y - "
        "m1. The farther y lies from m1, the wider the HDI, so the widest 5% hold many rows with a large score, "
        f"anomalies among them ({shares} of the rows dropped). Those are the rows that a ranking gets right. And fewer "
        f"anomalies are left among the rows kept ({left}), which lowers a PR AUC by itself. With v2 = 0 the factor "
        "would be gone and i(x, y) would not depend on y; the paper gives its heteroscedastic prior a variance of "
        "0.00001 and does not report v2. Why the paper saw the opposite is not known. Median of i(x, y) by |E[NS]|, "
        f"in units of its median below 1; no number where a bin has fewer than {FEWEST} rows, and SynMachine has "
        "scores beyond the last bin:",
        "",
        *table(head, body),
        "![Width of the HDI by score](paper/width_by_score.svg)",
        "",
    ]
