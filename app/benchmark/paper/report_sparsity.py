"""The chapter on sparse contexts."""

from app.benchmark.paper.markdown import WORSE, counted, mark, pair, table
from app.benchmark.paper.published import KENDALL
from app.benchmark.paper.study import Spread


def kendall(found: dict[str, dict[str, dict[str, Spread]]]) -> list[str]:
    detectors = list(next(iter(KENDALL.values())))
    width, w2 = found["i(x, y)"], found["W2"]
    body = [
        [name, *(_tau(taus[one], KENDALL[name][one], w2[name][one]) for one in detectors)]
        for name, taus in width.items()
    ]
    below = sum(mark(w2[name][one], KENDALL[name][one]) == WORSE for name in width for one in detectors)
    closer = sum(w2[name][one].mean > taus[one].mean for name, taus in width.items() for one in detectors)
    marks = [mark(taus[one], KENDALL[name][one]) for name, taus in width.items() for one in detectors]
    return [
        "## Does i(x, y) find sparse contexts? Weighted Kendall tau",
        "",
        "i(x, y) of the test rows against three detectors (PyOD, default settings) that see the contexts alone, all "
        "of them, in the units of the file (the GP sees them standardised, and LOF depends on units). Ours ± standard "
        "deviation over injections · the paper's · the mark (as in the chapter before) · [W2 in the place of i(x, "
        "y)]. Weights are hyperbolic and additive, largest for the top ranks (`scipy.stats.weightedtau`); the paper "
        "does not say which weights it took.",
        "",
        *table(["set", *detectors], body),
        f"i(x, y): {counted(marks)}. i(x, y) follows |y - m1| besides the context; W2, which knows the context alone, "
        f"has the larger tau in {closer} of {len(marks)} cells. That is not all of the reason: W2 too is worse than "
        f"the paper's i(x, y) in {below} cells.",
        "",
    ]


def in_short(found: dict[str, dict[str, dict[str, Spread]]]) -> str:
    marks = [mark(tau, KENDALL[name][one]) for name, taus in found["i(x, y)"].items() for one, tau in taus.items()]
    return f"Weighted Kendall tau of i(x, y) with detectors of sparse contexts, against the paper's: {counted(marks)}."


def _tau(ours: Spread, published: float, w2: Spread) -> str:
    return f"{pair(ours)} · {published:.2f} · {mark(ours, published)} · [{w2.mean:.3f}]"
