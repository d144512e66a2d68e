"""Tables 4 and 5: what another kernel or more inducing points change, on the same folds of one injection."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.benchmark.paper import published
from app.benchmark.paper.protocol import Task
from app.benchmark.paper.rendering import Prose, lines, paragraphs, smaller_mark, table_text
from app.benchmark.paper.study import Study, areas
from app.benchmark.paper.tasks import (
    KERNELS,
    SENSITIVITY_SEED,
    SHARES,
    crossed,
    folds_for_sensitivity,
    kernel_tasks,
    share_tasks,
)

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


@dataclass(frozen=True, slots=True)
class Change:
    """Against the chosen recipe unchanged."""

    expected: float  # |difference of the mean |E[NS]||
    width: float  # |difference of the mean i(x, y)|
    expected_by_row: float  # median over rows of |difference of E[NS]|
    width_by_row: float
    roc: float
    pr: float
    cpu_seconds: float  # a fit, mean over folds
    rows: int


Changes = Mapping[str, Change]  # by set


def kernels(study: Study) -> dict[str, dict[str, Change]]:
    """kernel -> set -> change; the rational quadratic is what is compared with."""
    plain = {name: _change(study, name, _usual(study, name)) for name in study.tables}
    varied = {
        kernel: {
            name: _change(study, name, kernel_tasks(table, study.choice, kernel))
            for name, table in study.tables.items()
        }
        for kernel in KERNELS
    }
    return {study.choice.kernel: plain} | varied


def shares(study: Study) -> dict[float, dict[str, Change]]:
    """share -> set -> change, sets left out where the share was not tried."""
    plan = {
        share: {name: share_tasks(table, study.choice, share) for name, table in study.tables.items()}
        for share in SHARES
    }
    plain = {name: _change(study, name, _usual(study, name)) for name in study.tables}
    return {study.choice.inducing_share: plain} | {
        share: {name: _change(study, name, tasks) for name, tasks in of_sets.items() if tasks}
        for share, of_sets in plan.items()
    }


def _usual(study: Study, name: str) -> list[Task]:
    return crossed(study.tables[name], "NS", study.choice, (SENSITIVITY_SEED,), folds_for_sensitivity(name))


def _change(study: Study, name: str, tasks: Sequence[Task]) -> Change:
    usual, varied = study.pool(_usual(study, name)), study.pool(tasks)
    signs = [np.sign(one.y - one.moments.m1) for one in (usual, varied)]
    roc, pr = areas(varied.anomalous, varied.score)
    return Change(
        expected=abs(float(varied.score.mean() - usual.score.mean())),
        width=abs(float(varied.width.mean() - usual.width.mean())),
        expected_by_row=float(np.median(np.abs(signs[1] * varied.score - signs[0] * usual.score))),
        width_by_row=float(np.median(np.abs(varied.width - usual.width))),
        roc=roc,
        pr=pr,
        cpu_seconds=float(np.mean([study.results[task].cpu_seconds for task in tasks])),
        rows=len(usual.rows),
    )


def render_kernels(found: Mapping[str, Changes]) -> str:
    prose, usual = Prose("sensitivity"), TITLES["rational_quadratic"]
    parts = [
        prose(
            "kernel",
            kernel=TITLES[kernel],
            usual=usual,
            table=table_text(HEAD, [_row(name, one) for name, one in found[kernel].items()]),
            against_paper=lines(against_paper(found[kernel], *numbers)),
        )
        for kernel, numbers in published.KERNELS.items()
    ]
    areas = ", ".join(f"{name} {one.roc:.3f} / {one.pr:.3f}" for name, one in found["rational_quadratic"].items())
    how = prose("how", varied="another kernel", seed=SENSITIVITY_SEED)
    return prose("kernels", how=how, parts=paragraphs(parts), usual=usual, areas=areas)


def kernels_sentence(found: Mapping[str, Changes]) -> str:
    """The typical row, since SynMachine dominates every mean."""
    medians = ", ".join(
        f"{TITLES[kernel]} {np.median([one.expected_by_row for one in found[kernel].values()]):.3f} and "
        f"{np.median([one.width_by_row for one in found[kernel].values()]):.3f}"
        for kernel in published.KERNELS
    )
    means = ", ".join(
        f"{TITLES[kernel]} {np.mean([one.expected for one in found[kernel].values()]):.2f} and "
        f"{np.mean([one.width for one in found[kernel].values()]):.2f} (paper {expected:.2f} and {width:.2f})"
        for kernel, (expected, width) in published.KERNELS.items()
    )
    return Prose("sensitivity")("kernels_in_short", medians=medians, means=means)


def render_shares(found: Mapping[float, Changes]) -> str:
    prose, usual, parts = Prose("sensitivity"), min(found), []
    for share, changes in found.items():
        expected, minutes = published.SHARES[share]
        if expected is None:
            continue
        body = [[*_row(name, one), f"{one.cpu_seconds:.1f}"] for name, one in changes.items()]
        part = prose(
            "share",
            share=f"{share:.0%}",
            usual=f"{usual:.0%}",
            table=table_text([*HEAD, "CPU s a fit"], body),
            against_paper=lines([*against_paper(changes, expected, None), _time(found, share, minutes)]),
        )
        parts.append(part)
    areas = ", ".join(
        f"{name} {one.roc:.3f} / {one.pr:.3f}, {one.cpu_seconds:.1f}" for name, one in found[usual].items()
    )
    how = prose("how", varied="another number of inducing points", seed=SENSITIVITY_SEED)
    return prose("shares", how=how, parts=paragraphs(parts), usual=f"{usual:.0%}", areas=areas)


def shares_sentence(found: Mapping[float, Changes]) -> str:
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
    return Prose("sensitivity")("shares_in_short", parts=", ".join(parts))


def _row(name: str, one: Change) -> list[str]:
    changes = (one.expected, one.width, one.expected_by_row, one.width_by_row)
    return [name, str(one.rows), *(f"{value:.3f}" for value in changes), f"{one.roc:.3f} / {one.pr:.3f}"]


def against_paper(changes: Changes, expected: float, width: float | None) -> list[str]:
    """By the mean over sets, then without SynMachine, whose scores are in the hundreds and dominate every mean."""
    others = {name: one for name, one in changes.items() if name != "SynMachine"}
    found = [_mean_change("abs E[NS]", [one.expected for one in changes.values()], expected)]
    if width is not None:
        found.append(_mean_change("i(x, y)", [one.width for one in changes.values()], width))
    if others and len(others) < len(changes):
        without = [f"abs E[NS] {np.mean([one.expected for one in others.values()]):.3f}"]
        without += [f"i(x, y) {np.mean([one.width for one in others.values()]):.3f}"] if width is not None else []
        found.append(f"Without SynMachine, whose anomalies score in the hundreds: {', '.join(without)}.")
    return found


def _mean_change(what: str, ours: list[float], paper: float) -> str:
    mean = float(np.mean(ours))
    return f"Mean over sets of Δ mean {what}: {mean:.3f} (paper {paper:.2f}, {smaller_mark(mean, paper)})."


def _time(found: Mapping[float, Changes], share: float, minutes: float) -> str:
    usual = found[min(found)]
    ratios = {name: one.cpu_seconds / usual[name].cpu_seconds for name, one in found[share].items()}
    listed = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
    paper = published.SHARES[min(found)][1]
    return f"Time of a fit in units of the one at {min(found):.0%}: {listed} (paper {minutes / paper:.1f})."
