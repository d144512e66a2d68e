"""docs/paper.md: every chapter that was run, beside the paper's numbers, with where they come from."""

from collections.abc import Sequence
from pathlib import Path

from app.benchmark.paper import (
    chapters,
    drawings,
    report_choice,
    report_detection,
    report_sensitivity,
    report_uncertainty,
)
from app.benchmark.paper.abstention import BY_FOREST, BY_WIDTH
from app.benchmark.paper.chapters import Chapter
from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.measured import Cost, Measured
from app.benchmark.paper.plan import Scope
from app.benchmark.paper.report_notes import notes
from app.benchmark.paper.report_uncertainty import at_least_as_good

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
        lines += [*_in_short(found, scope), *_uci(found, scope, figures)]
    lines += [part for one in others for part in (chapters.rendered(one, figures).strip(), "")]
    return "\n".join([*lines, *_made(origins)]).rstrip() + "\n"


def _in_short(found: Measured, scope: Scope) -> list[str]:
    lines = ["## In short", "", f"- Recipe for all sets, chosen by inner folds: `{found.judged.winner.name}`."]
    if found.table2:
        lines.append(f"- NS, seeds {scope.seeds[0]}–{scope.seeds[-1]}: {_reached(found.table2['NS'])}.")
    if found.fresh:
        lines.append(f"- NS, fresh seeds {scope.fresh[0]}–{scope.fresh[-1]}: {_reached(found.fresh)}.")
    if found.abstention:
        good = [n for n, ways in found.abstention.items() if at_least_as_good(ways[BY_WIDTH], ways[BY_FOREST])]
        lines.append(
            f"- Abstention by i(x, y) is at least as good as by an isolation forest on {len(good)} of "
            f"{len(found.abstention)} sets, against all five in the paper; the reason stands in its chapter."
        )
    if found.cost:
        lines.append(f"- {_cost_line(found.cost)}")
    return [*lines, ""]


def _reached(row: Rowwise) -> str:
    cells = report_detection.reached(row)
    missed = ", ".join(f"{name} {area}" for name, area, there in cells if not there)
    reached = sum(there for *_, there in cells)
    text = f"{reached} of {len(cells)} cells are at least the paper's at its two decimals"
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
    if found.abstention and found.width_by_score:
        drawings.abstention(figures / "abstention.svg", found.abstention)
        drawings.width_by_score(figures / "width_by_score.svg", found.width_by_score)
        lines += report_uncertainty.abstention(found.abstention, found.abstention_fresh, found.width_by_score)
    if found.kendall:
        lines += report_uncertainty.kendall(found.kendall)
    if found.kernels:
        lines += report_sensitivity.kernels(found.kernels)
    if found.shares:
        lines += report_sensitivity.shares(found.shares)
    return lines + notes(found)


def _protocol() -> list[str]:
    return [
        "## Protocol",
        "",
        "As the paper describes it: y scaled to [0, 1]; at n random rows of the whole set (100 Abalone, 30 Yacht, 50 "
        "else) a number with a size uniform in [0.1, 0.5] and a random sign is added to y; contexts stay. Then five "
        "shuffled folds; a method learns from four, anomalies included and unlabelled, and scores the fifth. The "
        "scores of the five folds are pooled; ROC AUC and PR AUC (average precision) are taken over all rows of an "
        "injection. NS is scored by |E[NS]|. Contexts are standardised on the training rows of each fold.",
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
