"""The chapters on kernels and on inducing points."""

from collections.abc import Mapping

import numpy as np

from app.benchmark.paper.markdown import smaller_mark, table
from app.benchmark.paper.plan import SENSITIVITY_SEED
from app.benchmark.paper.published import KERNELS, SHARES
from app.benchmark.paper.sensitivity import Change

TITLES = {"rational_quadratic": "RQ", "matern52": "Matérn 5/2", "rbf": "RBF"}
HEAD = [
    "set",
    "rows",
    "Δ mean abs E[NS]",
    "Δ mean i(x, y)",
    "median Δ E[NS] by row",
    "median Δ i(x, y) by row",
    "ROC / PR AUC",
]


def kernels(found: Mapping[str, Mapping[str, Change]]) -> list[str]:
    lines = ["## Kernels", "", _how("another kernel"), ""]
    for kernel, published in KERNELS.items():
        changes = found[kernel]
        lines += [f"### {TITLES[kernel]} in the place of {TITLES['rational_quadratic']}", ""]
        lines += table(HEAD, [_row(name, one) for name, one in changes.items()])
        lines += [*against_paper(changes, *published), ""]
    usual = ", ".join(f"{name} {one.roc:.3f} / {one.pr:.3f}" for name, one in found["rational_quadratic"].items())
    return [*lines, f"ROC / PR AUC with {TITLES['rational_quadratic']} on the same rows: {usual}.", ""]


def kernels_in_short(found: Mapping[str, Mapping[str, Change]]) -> str:
    """The typical row, since SynMachine rules every mean."""
    moved = ", ".join(
        f"{TITLES[kernel]} {np.median([one.expected_by_row for one in found[kernel].values()]):.3f} and "
        f"{np.median([one.width_by_row for one in found[kernel].values()]):.3f}"
        for kernel in KERNELS
    )
    means = ", ".join(
        f"{TITLES[kernel]} {np.mean([one.expected for one in found[kernel].values()]):.2f} and "
        f"{np.mean([one.width for one in found[kernel].values()]):.2f} (paper {expected:.2f} and {width:.2f})"
        for kernel, (expected, width) in KERNELS.items()
    )
    return (
        f"Another kernel moves E[NS] and i(x, y) of a typical row (median over rows, then sets) by: {moved}; the means "
        f"over rows, as in the paper, by {means}, nearly all of it SynMachine's."
    )


def shares(found: Mapping[float, Mapping[str, Change]]) -> list[str]:
    head = [*HEAD, "CPU s a fit"]
    how = _how("another number of inducing points") + " 20% were not tried on Abalone, for the time of a fit."
    lines = ["## Inducing points", "", how, ""]
    usual = min(found)
    for share, changes in found.items():
        expected, minutes = SHARES[share]
        if expected is None:
            continue
        body = [[*_row(name, one), f"{one.cpu_seconds:.1f}"] for name, one in changes.items()]
        lines += [f"### {share:.0%} of the training rows in the place of {usual:.0%}", "", *table(head, body)]
        lines += [*against_paper(changes, expected, None), _time(found, share, minutes), ""]
    known = ", ".join(
        f"{name} {one.roc:.3f} / {one.pr:.3f}, {one.cpu_seconds:.1f}" for name, one in found[usual].items()
    )
    lines += [f"ROC / PR AUC with {usual:.0%} on the same rows, and CPU seconds a fit: {known}.", ""]
    return lines


def shares_in_short(found: Mapping[float, Mapping[str, Change]]) -> str:
    """The typical row, and where more points did most harm to the ranking."""
    usual = found[min(found)]
    parts = []
    for share, changes in found.items():
        if share != min(found):
            moved = np.median([one.expected_by_row for one in changes.values()])
            worst = min(changes, key=lambda name: changes[name].pr - usual[name].pr)
            fall = f"{worst} {usual[worst].pr:.3f} to {changes[worst].pr:.3f}"
            left_out = [name for name in usual if name not in changes]
            sets = f" (without {', '.join(left_out)})" if left_out else ""
            parts.append(f"with {share:.0%}{sets} by {moved:.3f} (largest fall of a PR AUC: {fall})")
    return f"More inducing points move E[NS] of a typical row: {', '.join(parts)}."


def _how(what: str) -> str:
    return (
        f"The same folds with {what}, everything else as chosen; injection {SENSITIVITY_SEED}, all five folds, on "
        "Abalone the first fold alone (its fits take longest). The paper gives one change of the average E[NS] for "
        "all sets; here Δ mean is the absolute difference of the means over rows of abs E[NS] = |E[NS]| and of i(x, "
        "y), and the median by row is how far a typical row moves. Less is better: the method then depends less on "
        "the choice. Marks compare at two decimals, for no standard deviation is known."
    )


def _row(name: str, one: Change) -> list[str]:
    changes = (one.expected, one.width, one.expected_by_row, one.width_by_row)
    return [name, str(one.rows), *(f"{value:.3f}" for value in changes), f"{one.roc:.3f} / {one.pr:.3f}"]


def against_paper(changes: Mapping[str, Change], expected: float, width: float | None) -> list[str]:
    """By the mean over sets, then without SynMachine, whose scores are in the hundreds and rule every mean."""
    others = {name: one for name, one in changes.items() if name != "SynMachine"}
    lines = [_mean_change("abs E[NS]", [one.expected for one in changes.values()], expected)]
    if width is not None:
        lines.append(_mean_change("i(x, y)", [one.width for one in changes.values()], width))
    if others and len(others) < len(changes):
        without = [f"abs E[NS] {np.mean([one.expected for one in others.values()]):.3f}"]
        without += [f"i(x, y) {np.mean([one.width for one in others.values()]):.3f}"] if width is not None else []
        lines.append(f"Without SynMachine, whose anomalies score in the hundreds: {', '.join(without)}.  ")
    return lines


def _mean_change(what: str, ours: list[float], published: float) -> str:
    mean = float(np.mean(ours))
    return f"Mean over sets of Δ mean {what}: {mean:.3f} (paper {published:.2f}, {smaller_mark(mean, published)}).  "


def _time(found: Mapping[float, Mapping[str, Change]], share: float, minutes: float) -> str:
    usual = found[min(found)]
    ratios = {name: one.cpu_seconds / usual[name].cpu_seconds for name, one in found[share].items()}
    listed = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
    paper = SHARES[min(found)][1]
    return f"Time of a fit in units of the one at {min(found):.0%}: {listed} (paper {minutes / paper:.1f}).  "
