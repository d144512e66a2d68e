"""A task whose fit gives no usable model is done again with fewer inducing points, and its result says so.

Seen with one spread for all contexts on SynMachine, which has next to no noise: the variance of f1's kernel grows until
the matrix of the inducing points cannot be factorised. Points farther apart can.
"""

from dataclasses import replace

import numpy as np

from app.benchmark.paper.work import Done, Task, perform
from app.errors import TrainingFailed
from app.maths.moments import Array

SHARES = (0.8, 0.6, 0.4)  # of the inducing points that were asked for


def attempt(task: Task, X: Array, y: Array) -> Done:
    try:
        return perform(task, X, y)
    except (np.linalg.LinAlgError, TrainingFailed) as error:
        return _again(task, X, y, f"{type(error).__name__}: {error}")


def _again(task: Task, X: Array, y: Array, reason: str) -> Done:
    for share in SHARES:
        if task.choice is None:
            break
        choice = replace(task.choice, inducing_share=share * task.choice.inducing_share)
        try:
            done = perform(replace(task, choice=choice), X, y)
        except (np.linalg.LinAlgError, TrainingFailed):
            continue
        return replace(done, notes=[*done.notes, f"with {share:.0%} of the inducing points, after {reason}"])
    raise TrainingFailed(f"{task.method} on {task.dataset}, injection {task.seed}, fold {task.fold}: {reason}")
