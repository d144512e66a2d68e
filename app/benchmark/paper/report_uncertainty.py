"""The chapters on abstention and on sparse contexts."""

from itertools import pairwise

from app.benchmark.paper.abstention import BY_FOREST, BY_MEAN, BY_W2, BY_WIDTH, NOBODY, WAYS, Kept, WidthByScore
from app.benchmark.paper.markdown import counted, mark, pair, table
from app.benchmark.paper.published import ABSTENTION, KENDALL
from app.benchmark.paper.study import Spread

EQUAL_AREAS = 0.0005  # areas that print the same in three decimals


def abstention(
    found: dict[str, dict[str, Kept]], fresh: dict[str, dict[str, Kept]] | None, widths: dict[str, WidthByScore]
) -> list[str]:
    head = ["set", *(f"drop {way}" if way != NOBODY else "drop nobody" for way in WAYS)]
    return [
        "## Abstention: dropping the 5 % least certain rows",
        "",
        "ROC AUC / PR AUC of the rows kept (in brackets the paper's and the mark, against the larger standard "
        "deviation; the paper gives none), then the share of anomalies among the rows dropped. IForest sees the "
        "contexts alone. W2 is the width of the 95 % HDI at m1 + 2 exp(m2), which does not depend on y. The sd of f1 "
        "is sqrt(v1), how uncertain the expected value is in the unit of y.",
        "",
        *table(head, [[name, *(_cell(ways[way], name, way) for way in WAYS)] for name, ways in found.items()]),
        "![Change of the PR AUC by abstaining](paper/abstention.svg)",
        "",
        _comparison(found, BY_WIDTH, BY_FOREST),
        _comparison(found, BY_W2, BY_FOREST),
        _comparison(found, BY_MEAN, BY_FOREST),
        "",
        *_reason(found, widths),
        *(_once_more(head, fresh) if fresh else ()),
    ]


def _once_more(head: list[str], fresh: dict[str, dict[str, Kept]]) -> list[str]:
    body = [[name, *(_plain_cell(ways[way], way) for way in WAYS)] for name, ways in fresh.items()]
    return [
        "The sd of f1 was taken up after a look at the areas above, so the fresh seeds judge it:",
        "",
        *table(head, body),
        *(_comparison(fresh, way, BY_FOREST) for way in (BY_WIDTH, BY_W2, BY_MEAN)),
        "",
    ]


def _plain_cell(kept: Kept, way: str) -> str:
    share = "" if way == NOBODY else f"; {kept.dropped_anomalous.mean:.0%}"
    return f"{kept.roc.mean:.3f} / {kept.pr.mean:.3f}{share}"


def _cell(kept: Kept, name: str, way: str) -> str:
    published = ABSTENTION[name].get(way)
    roc, pr = f"{kept.roc.mean:.3f}", f"{kept.pr.mean:.3f}"
    if published:
        roc += f" ({published[0]:.2f} {mark(kept.roc, published[0])})"
        pr += f" ({published[1]:.2f} {mark(kept.pr, published[1])})"
    return f"{roc} / {pr}" + ("" if way == NOBODY else f"; {kept.dropped_anomalous.mean:.0%}")


def at_least_as_good(one: Kept, other: Kept) -> bool:
    return all(getattr(one, area).mean >= getattr(other, area).mean - EQUAL_AREAS for area in ("roc", "pr"))


def _comparison(found: dict[str, dict[str, Kept]], one: str, other: str) -> str:
    good = [name for name, ways in found.items() if at_least_as_good(ways[one], ways[other])]
    return (
        f"By {one} at least as good as by {other} in both areas on {len(good)} of {len(found)} sets"
        f" ({', '.join(good) or 'none'}).  "
    )


def _reason(found: dict[str, dict[str, Kept]], widths: dict[str, WidthByScore]) -> list[str]:
    edges = next(iter(widths.values())).edges
    head = ["set", *(f"{low:g}–{high:g}" for low, high in pairwise(edges))]
    body = [
        [name, *(f"{value:.2f}" if value == value else "" for value in one.medians)] for name, one in widths.items()
    ]
    shares = ", ".join(f"{name} {ways[BY_WIDTH].dropped_anomalous.mean:.0%}" for name, ways in found.items())
    return [
        "Why: i(x, y) is the width of the distribution of (y - f1) exp(-f2), and the uncertainty of f2 multiplies "
        "y - m1. The farther y lies from m1, the wider the HDI, so the widest 5 % hold many rows with a large score, "
        f"anomalies among them ({shares} of the rows dropped). Those are the rows that a ranking gets right, and "
        "without them both areas fall. With v2 = 0 the factor would be gone and i(x, y) would not depend on y; the "
        "paper gives its heteroscedastic prior a variance of 0.00001 and does not report v2. Median of i(x, y) by "
        "|E[NS]|, in units of its median below 1:",
        "",
        *table(head, body),
        "![Width of the HDI by score](paper/width_by_score.svg)",
        "",
    ]


def kendall(found: dict[str, dict[str, dict[str, Spread]]]) -> list[str]:
    detectors = list(next(iter(KENDALL.values())))
    width, w2 = found["i(x, y)"], found["W2"]
    body = [
        [name, *(_tau(taus[one], KENDALL[name][one], w2[name][one]) for one in detectors)]
        for name, taus in width.items()
    ]
    closer = sum(w2[name][one].mean > taus[one].mean for name, taus in width.items() for one in detectors)
    marks = [mark(taus[one], KENDALL[name][one]) for name, taus in width.items() for one in detectors]
    return [
        "## Does i(x, y) find sparse contexts? Weighted Kendall tau",
        "",
        "i(x, y) of the test rows against three detectors (PyOD, default settings) that see the contexts alone. Ours ± "
        "standard deviation over injections · the paper's · the mark · [W2 in the place of i(x, y)]. Weights are "
        "hyperbolic and additive, largest for the top ranks (`scipy.stats.weightedtau`); the paper does not say which "
        "weights it took.",
        "",
        *table(["set", *detectors], body),
        f"i(x, y): {counted(marks)}. i(x, y) follows |y - m1| as well as the context; W2, which knows the context "
        f"alone, has the larger tau in {closer} of {len(marks)} cells.",
        "",
    ]


def _tau(ours: Spread, published: float, w2: Spread) -> str:
    return f"{pair(ours)} · {published:.2f} · {mark(ours, published)} · [{w2.mean:.3f}]"
