"""The growth chapter of the report, from the numbers of `growth.run`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.benchmark.paper import growth_figures
from app.benchmark.paper.markdown import table


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; the picture goes into the folder."""
    growth_figures.regions(result["picture"], folder / "growth.svg")
    return "\n".join([*_opening(result), *_table(result["rates"]), *_closing(result)])


def headline(result: dict[str, Any]) -> str:
    methods = result["rates"]["methods"]
    parts = ", ".join(
        f"{name} {_first(methods[name], 'missed')} and {_last(methods[name], 'false_alarms')}"
        for name in ("IForest", "ROCOD", "NS")
    )
    return f"Heights by age, missed among the youngest and false alarms among the oldest: {parts}."


def _opening(result: dict[str, Any]) -> Iterator[str]:
    seeds = result["seeds"]
    yield "## Too tall or too short for her age"
    yield ""
    yield (
        "The paper's Figure 1 with the CDC 2000 heights of girls (the paper takes those of the WHO): "
        f"{result['girls']} girls of 4 + Exp(0.4) years, 0.4 being the rate, up to 19 years, so most are young (the "
        "paper says Exp(0.4); the 4 is ours). The isolation forest and ROCOD flag what exceeds the score that 4.55% "
        "of the trained girls exceed, as many as a normal distribution has beyond 2 standard deviations (a trained "
        "girl counts among her own neighbours there); NS flags |E[NS]| > 2, its own scale, and abstains where i > 2."
    )
    yield ""
    yield f"![What each detector flags, seed {seeds[0]}](paper/growth.svg)"
    yield ""
    yield (
        f"Judged on {result['asked']} girls of every age alike with a true z uniform between -4 and 4: the share of "
        "girls within 2 standard deviations who are flagged, and of girls beyond who are not. Among real girls, few of "
        "whom are so far out, the rates would be others. Means and standard "
        f"errors over {len(seeds)} seeds, in per cent."
    )
    yield ""


def _table(rates: dict[str, Any]) -> Iterator[str]:
    bands = [f"{low:.0f} to {high:.0f} y" for low, high in rates["bands"]]
    heads = [f"{what}, {band}" for what in ("false alarms", "missed") for band in bands] + [f"no answer, {bands[-1]}"]
    yield from table(["", *heads], ([name, *_row(own)] for name, own in rates["methods"].items()))


def _row(own: dict[str, Any]) -> list[str]:
    return [*_cells(own["false_alarms"]), *_cells(own["missed"]), list(_cells(own["unanswered"]))[-1]]


def _cells(share: dict[str, list[float | None]]) -> Iterator[str]:
    for mean, error in zip(share["mean"], share["standard_error"], strict=True):
        if mean is None:
            yield "–"
        elif error is None:
            yield f"{100 * mean:.1f}"
        else:
            yield f"{100 * mean:.1f} ± {100 * error:.1f}"


def _closing(result: dict[str, Any]) -> Iterator[str]:
    rates = result["rates"]
    oldest, ages = rates["bands"][-1][0], result["picture"]["trained_on"]["age_years"]
    few = sum(age >= oldest for age in ages)
    forest, rocod, ns = (rates["methods"][name] for name in ("IForest", "ROCOD", "NS"))
    by_i, by_w2 = (rates["methods"][f"NS, abstaining by {by}"] for by in ("i", "W2"))
    yield (
        f"The isolation forest flags {_last(forest, 'false_alarms')} of the ordinary girls of the oldest band, since "
        f"it saw few ({few} of {len(ages)} at seed {result['seeds'][0]}), and misses {_first(forest, 'missed')} of "
        "the outlying ones of the youngest, since many points lie around. ROCOD "
        f"knows that height depends on age, but has one spread for all ages and a straight line where girls are few: "
        f"{_first(rocod, 'missed')} missed in the youngest band, {_last(rocod, 'false_alarms')} false alarms in the "
        f"oldest. NS flags {_first(ns, 'false_alarms')} of the ordinary girls and misses {_first(ns, 'missed')} of the "
        f"others in the youngest band, {_last(ns, 'false_alarms')} and {_last(ns, 'missed')} in the oldest, where it "
        "may abstain."
    )
    yield ""
    yield (
        f"Abstaining by i > 2, as the paper does, leaves {_last(by_i, 'unanswered')} of the oldest band without an "
        f"answer; of the others {_last(by_i, 'false_alarms')} are falsely flagged and {_last(by_i, 'missed')} missed. "
        f"W2 (the width at a score of 2, which the age alone decides) leaves {_last(by_w2, 'unanswered')} without an "
        f"answer, with {_last(by_w2, 'false_alarms')} and {_last(by_w2, 'missed')}. As i grows with |NS|, it may send "
        "away clear outliers and keep those near the border; with the standard errors above, five seeds do not prove "
        "the difference."
    )
    yield ""


def _first(own: dict[str, Any], what: str) -> str:
    return _percent(own[what]["mean"][0])


def _last(own: dict[str, Any], what: str) -> str:
    return _percent(own[what]["mean"][-1])


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f}%"
