"""Tables 4 and 5: what another kernel or more inducing points change, on the same folds of one injection."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.benchmark.paper.plan import KERNELS, SENSITIVITY_SEED, SHARES, crossed, folds_for_sensitivity
from app.benchmark.paper.plan import kernel_tasks as with_kernel
from app.benchmark.paper.plan import share_tasks as with_share
from app.benchmark.paper.pooled import areas
from app.benchmark.paper.study import Study
from app.benchmark.paper.work import Task


@dataclass(frozen=True, slots=True)
class Change:
    """Against the chosen recipe as it stands."""

    expected: float  # |difference of the mean |E[NS]||
    width: float  # |difference of the mean i(x, y)|
    expected_by_row: float  # median over rows of |difference of E[NS]|
    width_by_row: float
    roc: float
    pr: float
    cpu_seconds: float  # a fit, mean over folds
    rows: int


def kernels(study: Study) -> dict[str, dict[str, Change]]:
    """kernel -> set -> change; the rational quadratic is what is compared with."""
    plain = {name: _change(study, name, _usual(study, name)) for name in study.tables}
    varied = {
        kernel: {
            name: _change(study, name, with_kernel(table, study.choice, kernel)) for name, table in study.tables.items()
        }
        for kernel in KERNELS
    }
    return {study.choice.kernel: plain} | varied


def shares(study: Study) -> dict[float, dict[str, Change]]:
    """share -> set -> change, sets left out where the share was not tried."""
    plan = {
        share: {name: with_share(table, study.choice, share) for name, table in study.tables.items()}
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
