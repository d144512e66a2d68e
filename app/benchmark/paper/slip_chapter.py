"""The chapter on variances taken for standard deviations, from the numbers of `slip.run`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.benchmark.paper import slip_figures
from app.benchmark.paper.markdown import table


def render(result: dict[str, Any], folder: Path) -> str:
    """Markdown; the picture goes into the folder."""
    slip_figures.promises(result, folder / "slip.svg")
    return "\n".join([*_opening(result), *_table(result), *_closing(result)])


def headline(result: dict[str, Any]) -> str:
    held = {way: _percent(own["coverage"], -1) for way, own in result["ways"].items()}
    return (
        f"The 95% HDI holds the true z of healthy people in {held['formulas']} by the paper's formulas; with a "
        f"variance taken for a standard deviation in {held['slip, in mm']} (lengths in mm) or "
        f"{held['slip, standardised']} (standardised)."
    )


def _opening(result: dict[str, Any]) -> Iterator[str]:
    yield "## A variance is not a standard deviation"
    yield ""
    yield (
        "The paper's formulas take the posterior variances of f1 and f2. The authors' public code, as we read it, "
        "uses the variance that GPflow returns as a standard deviation, in E[NS] and in the samples of the interval. "
        f"What that does can be computed without sampling NS: {len(result['seeds'])} cohorts of {result['size']} "
        f"simulated healthy people each train a model of the {result['site']}, which is asked about {result['asked']} "
        f"fresh healthy people and {result['asked']} fresh patients, all of known true z. Since the variance of f1 has "
        "the dimension mm², the slip depends on the unit of length; it is shown in mm and in the standard deviation "
        "of the training diameters."
    )
    yield ""


def _table(result: dict[str, Any]) -> Iterator[str]:
    low, high = result["near_cut"]
    near = f"patients with E[NS] from {low:g} to {high:g}"
    head = [
        "",
        "healthy: true z in the 95% HDI",
        "healthy: mean width, sds",
        f"P(NS > 2), {near}",
        "true z > 2, the same",
        "P < 0.025, the same",
    ]
    yield from table(head, ([way, *_row(own)] for way, own in result["ways"].items()))
    people = result["ways"]["formulas"]["near_people"]["mean"][0]
    yield f"Means over the cohorts ± standard errors; {people:.0f} patients of a cohort lie near the cut-off."
    yield ""


def _row(own: dict[str, Any]) -> list[str]:
    near = (_percent(own[name], 0) for name in ("near_probability", "near_truly_above", "near_called_sure"))
    return [_percent(own["coverage"], -1), f"{own['width']['mean'][0]:.3f}", *near]


def _closing(result: dict[str, Any]) -> Iterator[str]:
    ways = result["ways"]
    areas = ", ".join(f"{own['area']['mean'][0]:.4f} ({way})" for way, own in ways.items())
    shift = max(own["shift_of_expected"]["mean"][0] for own in ways.values())
    yield "![What is promised and what is held](paper/slip.svg)"
    yield ""
    yield "Bars are 95% intervals: left over the cohorts, right of a share among the patients of a bin."
    yield ""
    everybody = sum(ways["formulas"]["bin_people"])
    yield (
        f"Of {everybody:,} patients those called practically safe, P(NS > 2) < 0.025, and how many of them truly have "
        "a z above 2:"
    )
    yield ""
    head = ["", "patients", "sum of P(NS > 2)", "true z > 2", "P between 0.025 and 0.975, share of all"]
    yield from table(head, ([way, *_safe(own)] for way, own in ways.items()))
    yield (
        f"The largest shift of E[NS] in a cohort is {shift:.2f} on average, and the area under the ROC curve of E[NS] "
        f"for a true z above 2 is {areas}: rankings hardly tell. What breaks is what the method adds to a Z-score: the "
        "interval and the probability."
    )
    yield ""


def _safe(own: dict[str, Any]) -> list[str]:
    """Of the lowest bin of P(NS > 2); then the share of the bins between the lowest and the highest."""
    people = own["bin_people"]
    between = sum(people[1:-1]) / sum(people)
    return [f"{people[0]:,}", f"{own['bin_probability'][0]:.1f}", f"{own['bin_truly_above'][0]:.0f}", f"{between:.1%}"]


def _percent(found: dict[str, list[float]], place: int) -> str:
    return f"{100 * found['mean'][place]:.1f} ± {100 * found['standard_error'][place]:.1f}%"
