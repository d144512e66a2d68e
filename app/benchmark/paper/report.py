"""docs/paper.md: every chapter that was run, beside the paper's numbers, with where they come from."""

from collections.abc import Sequence
from pathlib import Path

from app.benchmark.paper import (
    chapters,
    drawings,
    report_abstention,
    report_choice,
    report_detection,
    report_sensitivity,
    report_sparsity,
)
from app.benchmark.paper.abstention import BY_FOREST, BY_MEAN, BY_WIDTH, Kept
from app.benchmark.paper.chapters import Chapter
from app.benchmark.paper.choice import Judged
from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.measured import Cost, Measured
from app.benchmark.paper.plan import Scope
from app.benchmark.paper.report_abstention import at_least_as_good
from app.benchmark.paper.report_notes import notes, ranking
from app.benchmark.paper.study import paired

TITLE = "# The experiments of the paper, run again"
FIGURES = "paper"  # the folder beside the report
PAPER = "Bindini, Perini, Nistri, Davis, Frasconi: Dealing with Uncertainty in Contextual Anomaly Detection (TMLR 2026)"


def render(
    found: Measured | None,
    others: Sequence[Chapter],
    origins: Sequence[dict[str, str]],
    stamp: Sequence[str],
    scope: Scope,
    figures: Path,
) -> str:
    """Markdown; the figures are written into `figures`, the folder FIGURES beside the report."""
    figures.mkdir(parents=True, exist_ok=True)
    lines = [TITLE, "", *stamp, "", f"The paper: {PAPER}.", ""]
    if found:
        lines += [*_in_short(found, scope), *(f"- {chapters.headline(one)}" for one in others), ""]
        lines += [*_words(), *_uci(found, scope, figures)]
    lines += [part for one in others for part in (chapters.rendered(one, figures).strip(), "")]
    return "\n".join([*lines, *_made(origins)]).rstrip() + "\n"


def _in_short(found: Measured, scope: Scope) -> list[str]:
    lines = ["## In short", "", _recipe_line(found.judged)]
    if found.noise:
        lines.append(f"- {report_choice.noise_in_short(found.noise)}")
    if found.table2:
        lines.append(f"- NS, seeds {scope.seeds[0]}–{scope.seeds[-1]}: {_reached(found.table2['NS'])}.")
    if found.fresh:
        lines.append(f"- NS, fresh seeds {scope.fresh[0]}–{scope.fresh[-1]}: {_reached(found.fresh)}.")
    if found.table2 and {"NS", "NS_hom"} <= found.table2.keys():
        lines.append(f"- {ranking(found.table2)} {_homoscedastic(found.table2)}")
    if found.abstention:
        lines.append(
            "- Abstention by i(x, y) is at least as good as by an isolation forest on "
            f"{len(_good(found.abstention, BY_WIDTH))} of "
            f"{len(found.abstention)} sets, against all five in the paper; by the sd of f1 on "
            f"{len(_good(found.abstention, BY_MEAN))}"
            + (f" ({len(_good(found.abstention_fresh, BY_MEAN))} on fresh seeds)" if found.abstention_fresh else "")
            + ", though by little: see the errors in the chapter."
        )
    if found.kendall:
        lines.append(f"- {report_sparsity.in_short(found.kendall)}")
    if found.kernels:
        lines.append(f"- {report_sensitivity.kernels_in_short(found.kernels)}")
    if found.shares:
        lines.append(f"- {report_sensitivity.shares_in_short(found.shares)}")
    if found.cost:
        lines.append(f"- {_cost_line(found.cost)}")
    return lines


def _recipe_line(judged: Judged) -> str:
    return (
        f"- Recipe for all sets, chosen by inner folds among {len(judged.candidates)} that earlier trials on these "
        f"sets left: `{judged.winner.name}`."
    )


def _good(found: dict[str, dict[str, Kept]], way: str) -> list[str]:
    return [name for name, ways in found.items() if at_least_as_good(ways[way], ways[BY_FOREST])]


def _homoscedastic(rows: dict[str, Rowwise]) -> str:
    gains = {name: paired(rows["NS"][name].roc, rows["NS_hom"][name].roc) for name in rows["NS"]}
    ahead = [name for name, gain in gains.items() if gain.mean < 0.0]
    sure = [name for name in ahead if (gain := gains[name]).mean < -2.0 * gain.standard_error]
    return (
        f"NS_hom, with one spread for all, has a larger ROC AUC than NS on {len(ahead)} "
        f"({', '.join(ahead) or 'none'}), by more than two standard errors on {len(sure)} "
        f"({', '.join(sure) or 'none'})."
    )


def _words() -> list[str]:
    return [
        "## Words",
        "",
        "Two Gaussian processes: f1(x), the value of y to expect in the context x, and f2(x), the logarithm of the "
        "spread around it; m1, v1 and m2, v2 are their posterior means and variances at x. NS = (y - f1) exp(-f2) is "
        "uncertain as f1 and f2 are; E[NS] is its mean, the HDI its shortest interval of 95 %, i(x, y) the width of "
        "that. All of these count spreads exp(f2) and have no unit of their own. SoV is the sinus of Valsalva, AA the "
        "ascending aorta.",
        "",
    ]


def _reached(row: Rowwise) -> str:
    cells = report_detection.reached(row)
    missed = ", ".join(f"{name} {area}" for name, area, there in cells if not there)
    reached = sum(there for *_, there in cells)
    text = f"{reached} of {len(cells)} cells are at least the paper's once rounded to its two decimals"
    return text + (f"; below it: {missed}" if missed else "")


def _cost_line(cost: Cost) -> str:
    fits = ", ".join(f"{name} {seconds:.1f} (slowest {cost.slowest[name]:.1f})" for name, seconds in cost.fit.items())
    return (
        f"CPU seconds of an NS fit: {fits}. All fits of Table 2: {cost.table2 / 60.0:.0f} CPU minutes, so "
        f"{cost.table2 / 120.0:.0f} minutes on two free cores; on the wall their times add up to "
        f"{cost.table2_wall / 60.0:.0f} minutes, {cost.table2_wall / 120.0:.0f} for two at a time. "
        f"{cost.second_attempts} of the fits of Table 2 needed a second attempt, at a stage or with more jitter."
    )


def _uci(found: Measured, scope: Scope, figures: Path) -> list[str]:
    lines = [*_protocol()]
    if found.noise:
        lines += report_choice.noise(found.noise)
    lines += report_choice.choice(found.judged)
    if found.table2 and found.predictive:
        drawings.detection(figures / "detection.svg", found.table2["NS"], found.fresh)
        lines += report_detection.table2(found.table2)
        lines += report_detection.ns_rows(found.table2, found.predictive, found.fresh, scope)
        lines += ["![NS by set, ours and the paper's](paper/detection.svg)", ""]
        lines += ["Bars: one standard deviation over injections on either side.", ""]
    if found.abstention and found.width_by_score:
        drawings.abstention(figures / "abstention.svg", found.abstention)
        drawings.width_by_score(figures / "width_by_score.svg", found.width_by_score)
        lines += report_abstention.abstention(
            found.abstention, found.abstention_fresh, found.abstention_hom, found.width_by_score
        )
    if found.kendall:
        lines += report_sparsity.kendall(found.kendall)
    if found.kernels:
        lines += report_sensitivity.kernels(found.kernels)
    if found.shares:
        lines += report_sensitivity.shares(found.shares)
    return lines + notes(found)


def _protocol() -> list[str]:
    return [
        "## Protocol",
        "",
        "The paper: y is scaled to [0, 1]; at random rows of the whole set a number with a size uniform in [0.1, 0.5] "
        "and a random sign is added to y; contexts stay. Five folds; a method learns from four, anomalies included and "
        "unlabelled, and scores the fifth. NS is scored by |E[NS]|. Five such injections.",
        "",
        "What it leaves open, and how it is done here: it prints the share of anomalies, we take 100 on Abalone, 30 on "
        "Yacht, 50 else. Folds are shuffled. The scores of the five folds are pooled; ROC AUC and PR AUC (average "
        "precision) are taken over all rows of an injection. NS and NS_hom see contexts standardised on the training "
        "rows of each fold, the other methods as published.",
        "",
    ]


def _made(origins: Sequence[dict[str, str]]) -> list[str]:
    lines = [
        "## Where the numbers come from",
        "",
        "Seeds are fixed and every fit runs on one thread: the same code and libraries on the same kind of processor "
        "give these numbers again, except the times. Elsewhere rounding may lead a fit to another optimum; the "
        "standard deviations over injections are what to compare with. Finished tasks are kept by a digest of task, "
        "recipe, data and code, so the commits below are those at which each was run.",
        "",
    ]
    for one in origins:
        libraries = ", ".join(f"{name} {one[name]}" for name in sorted(one) if name not in ("commit", "machine"))
        lines.append(f"- commit {one['commit']}, on {one['machine']}: {libraries}")
    return [*lines, ""]
