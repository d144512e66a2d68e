"""The results in short: what stands at the top of the report, favourable or not."""

from app.benchmark.paper import report_choice, report_detection, report_sensitivity, report_sparsity
from app.benchmark.paper.abstention import BY_FOREST, BY_MEAN, BY_WIDTH, Kept
from app.benchmark.paper.choice import Judged
from app.benchmark.paper.detection import Rowwise
from app.benchmark.paper.measured import Cost, Measured
from app.benchmark.paper.plan import Scope
from app.benchmark.paper.report_abstention import at_least_as_good
from app.benchmark.paper.report_notes import ranking
from app.benchmark.paper.study import paired


def in_short(found: Measured, scope: Scope) -> list[str]:
    lines = ["## In short", "", _recipe_line(found.judged)]
    if found.noise:
        lines.append(f"- {report_choice.noise_in_short(found.noise)}")
    if found.table2:
        lines.append(f"- NS, seeds {scope.seeds[0]}–{scope.seeds[-1]}: {_reached(found.table2['NS'])}.")
    if found.fresh:
        lines.append(f"- NS, fresh seeds {scope.fresh[0]}–{scope.fresh[-1]}: {_reached(found.fresh['NS'])}.")
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
