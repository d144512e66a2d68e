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
    report_spread,
)
from app.benchmark.paper.chapters import Chapter
from app.benchmark.paper.measured import Measured
from app.benchmark.paper.plan import Scope
from app.benchmark.paper.report_in_short import in_short
from app.benchmark.paper.report_notes import notes

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
        lines += [*in_short(found, scope), *(f"- {chapters.headline(one)}" for one in others), ""]
        lines += [*_words(), *_uci(found, scope, figures)]
    lines += [part for one in others for part in (chapters.rendered(one, figures).strip(), "")]
    return "\n".join([*lines, *_made(origins)]).rstrip() + "\n"


def _words() -> list[str]:
    return [
        "## Words",
        "",
        "Two Gaussian processes: f1(x), the value of y to expect in the context x, and f2(x), the logarithm of the "
        "spread around it; m1, v1 and m2, v2 are their posterior means and variances at x. NS = (y - f1) exp(-f2) is "
        "uncertain as f1 and f2 are; E[NS] is its mean, the HDI its shortest interval of 95%, i(x, y) the width of "
        "that. All of these count spreads exp(f2) and have no unit of their own. SoV is the sinus of Valsalva, AA the "
        "ascending aorta.",
        "",
    ]


def _uci(found: Measured, scope: Scope, figures: Path) -> list[str]:
    lines = [*_protocol()]
    if found.noise:
        lines += report_choice.noise(found.noise)
    lines += report_choice.choice(found.judged)
    if found.table2 and found.predictive:
        drawings.detection(figures / "detection.svg", found.table2["NS"], found.fresh["NS"] if found.fresh else None)
        lines += report_detection.table2(found.table2)
        lines += report_detection.fresh_table(found.fresh, scope) if found.fresh else []
        lines += report_detection.ns_rows(found.table2, found.predictive, found.fresh, scope)
        lines += ["![NS by set, ours and the paper's](paper/detection.svg)", ""]
        lines += ["Bars: one standard deviation over injections on either side.", ""]
        lines += report_spread.chapter(found.table2, found.fresh) if report_spread.has_both(found.table2) else []
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
        "rows of each fold, the other methods as published, those with `_std` in their name standardised.",
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
