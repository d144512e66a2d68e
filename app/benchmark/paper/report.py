"""docs/paper.md: every chapter that was run, beside the paper's numbers, with where they come from."""

import math
from collections.abc import Sequence
from pathlib import Path

from app.benchmark.paper import abstention, choice, detection, noise, sensitivity, sparsity
from app.benchmark.paper.methods import REACH, TREES
from app.benchmark.paper.rendering import Prose, paragraphs
from app.benchmark.paper.run import Chapter, Cost, Measured, headline, rendered
from app.benchmark.paper.tasks import Scope

FIGURES = "paper"  # the folder beside the report


def render(
    found: Measured | None,
    others: Sequence[Chapter],
    origins: Sequence[dict[str, str]],
    header: Sequence[str],
    scope: Scope,
    figures: Path,
) -> str:
    """Markdown; the figures are written into `figures`, the folder FIGURES beside the report."""
    figures.mkdir(parents=True, exist_ok=True)
    prose = Prose("report")
    parts = [prose("title"), "\n".join(header), prose("paper")]
    if found:
        points = [*in_short(found, scope), *map(headline, others)]
        parts += [prose("in_short", points="\n".join(f"- {point}" for point in points)), prose("words")]
        parts += _uci(found, scope, figures)
    parts += [rendered(one, figures) for one in others]
    return paragraphs([*parts, prose("origins", origins="\n".join(map(_origin, origins)))]).rstrip() + "\n"


def in_short(found: Measured, scope: Scope) -> list[str]:
    """The results that stand at the top of the report, favourable or not, as sentences."""
    sentences = [choice.recipe_sentence(found.judged)]
    if found.noise:
        sentences.append(noise.sentence(found.noise))
    if counts := detection.sentence(found.table2, found.fresh, scope):
        sentences.append(counts)
    if found.table2 and detection.has_both(found.table2):
        fresh = f" On fresh seeds: {detection.ranking(found.fresh)}" if found.fresh else ""
        sentences.append(f"{detection.ranking(found.table2)}{fresh}")
        sentences.append(detection.spread_sentence(found.table2, found.fresh))
    if found.abstention:
        sentences.append(abstention.sentence(found.abstention, found.abstention_fresh))
    if found.kendall:
        sentences.append(sparsity.sentence(found.kendall))
    if found.kernels:
        sentences.append(sensitivity.kernels_sentence(found.kernels))
    if found.shares:
        sentences.append(sensitivity.shares_sentence(found.shares))
    if found.cost:
        sentences.append(_cost_sentence(found.cost))
    return sentences


def _uci(found: Measured, scope: Scope, figures: Path) -> list[str]:
    parts = [Prose("report")("protocol")]
    if found.noise:
        parts.append(noise.render(found.noise))
    parts.append(choice.render(found.judged))
    if found.table2 and found.predictive:
        detection.draw(figures / "detection.svg", found.table2["NS"], found.fresh["NS"] if found.fresh else None)
        parts.append(detection.render_table2(found.table2))
        if found.fresh:
            parts.append(detection.render_fresh(found.fresh, scope))
        parts.append(detection.render_ns(found.table2, found.predictive, found.fresh, scope))
        if detection.has_both(found.table2):
            parts.append(detection.render_spread(found.table2, found.fresh))
    if found.abstention and found.width_by_score:
        abstention.draw_gains(figures / "abstention.svg", found.abstention)
        abstention.draw_widths(figures / "width_by_score.svg", found.width_by_score)
        ways = found.abstention, found.abstention_fresh, found.abstention_hom
        parts.append(abstention.render(*ways, found.width_by_score))
    if found.kendall:
        parts.append(sparsity.render(found.kendall))
    if found.kernels:
        parts.append(sensitivity.render_kernels(found.kernels))
    if found.shares:
        parts.append(sensitivity.render_shares(found.shares))
    return [*parts, _differences(found)]


def _differences(found: Measured) -> str:
    """What differs from the paper and why, and what was tried."""
    prose, recipe = Prose("report"), found.judged.winner.details()
    freedom = recipe.robust_freedom
    factor = f"{math.sqrt(freedom / (freedom - 2.0)):.2f}" if recipe.robust else ""
    scale = prose("scale", freedom=f"{freedom:g}", less_two=f"{freedom - 2:g}", factor=factor) if recipe.robust else ""
    robust = ", Student-t noise in the last stage" if recipe.robust else ""
    points = [
        prose("training", robust=robust),
        *([scale] if scale else []),
        prose("comparisons", trees=TREES, reach=REACH),
    ]
    return prose("differences", points="\n".join(points), tried=choice.tried(found.judged))


def _cost_sentence(cost: Cost) -> str:
    fits = ", ".join(f"{name} {seconds:.1f} (slowest {cost.slowest[name]:.1f})" for name, seconds in cost.fit.items())
    return Prose("report")(
        "cost",
        fits=fits,
        cpu=f"{cost.table2 / 60.0:.0f}",
        cpu_on_two=f"{cost.table2 / 120.0:.0f}",
        wall=f"{cost.table2_wall / 60.0:.0f}",
        wall_two_at_a_time=f"{cost.table2_wall / 120.0:.0f}",
        second_attempts=cost.second_attempts,
    )


def _origin(one: dict[str, str]) -> str:
    libraries = ", ".join(f"{name} {one[name]}" for name in sorted(one) if name not in ("commit", "machine"))
    return f"- commit {one['commit']}, on {one['machine']}: {libraries}"
