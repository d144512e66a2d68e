"""The results in short: what stands at the top of the report, favourable or not."""

from app.benchmark.paper import report_choice, report_detection, report_sensitivity, report_sparsity, report_spread
from app.benchmark.paper.abstention import BY_FOREST, BY_MEAN, BY_WIDTH, Kept
from app.benchmark.paper.choice import Judged
from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.measured import Cost, Measured
from app.benchmark.paper.plan import Scope
from app.benchmark.paper.report_abstention import at_least_as_good
from app.benchmark.paper.report_ranking import ranking


def in_short(found: Measured, scope: Scope) -> list[str]:
    lines = ["## In short", "", _recipe_line(found.judged)]
    if found.noise:
        lines.append(f"- {report_choice.noise_in_short(found.noise)}")
    counted = {"seeds": (scope.seeds, found.table2), "fresh seeds": (scope.fresh, found.fresh)}
    told = [_against_paper(f"{kind} {seeds[0]}–{seeds[-1]}", rows) for kind, (seeds, rows) in counted.items() if rows]
    if told:  # the count of cells never stands without what it is worth
        lines.append(f"- NS against the paper's row. {' '.join(told)} {report_detection.CAVEAT}.")
    if found.table2 and report_spread.has_both(found.table2):
        fresh = f" On fresh seeds: {ranking(found.fresh)}" if found.fresh else ""
        lines += [f"- {ranking(found.table2)}{fresh}", f"- {report_spread.in_short(found.table2, found.fresh)}"]
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


def _against_paper(seeds: str, rows: dict[str, Rowwise]) -> str:
    hom = f"; of NS_hom's, {_count(rows['NS_hom'])} reach the paper's NS too" if "NS_hom" in rows else ""
    return f"{seeds.capitalize()}: {_reached(rows['NS'])}{hom}."


def _count(row: Rowwise) -> int:
    return sum(there for *_, there in report_detection.reached(row))


def _reached(row: Rowwise) -> str:
    cells = report_detection.reached(row)
    missed = ", ".join(f"{name} {area}" for name, area, there in cells if not there)
    text = f"{_count(row)} of {len(cells)} cells are at least the paper's once rounded to its two decimals"
    return text + (f"; below it: {missed}" if missed else "")


def _cost_line(cost: Cost) -> str:
    fits = ", ".join(f"{name} {seconds:.1f} (slowest {cost.slowest[name]:.1f})" for name, seconds in cost.fit.items())
    return (
        f"CPU seconds of an NS fit: {fits}. All fits of Table 2: {cost.table2 / 60.0:.0f} CPU minutes, so "
        f"{cost.table2 / 120.0:.0f} minutes on two free cores; on the wall their times add up to "
        f"{cost.table2_wall / 60.0:.0f} minutes, {cost.table2_wall / 120.0:.0f} for two at a time. "
        f"{cost.second_attempts} of the fits of Table 2 needed a second attempt, at a stage or with more jitter."
    )
