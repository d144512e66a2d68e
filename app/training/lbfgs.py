"""Full-batch L-BFGS over all parameters at once: inducing points, kernels, means and what is left of q."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from app.maths.moments import Array
from app.training.outcome import Outcome, Step
from app.training.stack import gpflow, tf

CORRECTIONS = 20
TOLERANCE = 1e-8  # relative gain of an iteration; the ELBO of a cohort is then settled to about 1e-5
Evaluate = Callable[[Array], tuple[Array, Array]]


def minimise(loss: Callable[[], Any], variables: Any, iterations: int, step: Step) -> Outcome:
    optimiser = _Guarded()
    done = evaluations = 0

    # SciPy looks at the parameter's name to decide what to pass.
    def callback(intermediate_result: OptimizeResult) -> None:
        nonlocal done
        done += 1
        step(done / iterations, -float(intermediate_result.fun))

    while True:
        before, optimiser.refused = done, 0
        result = optimiser.minimize(
            loss,
            variables,
            method="L-BFGS-B",
            callback=callback,
            tf_fun_args={"autograph": False},  # there is no Python control flow to convert; a fifth of the tracing time
            options={"maxiter": iterations - done, "maxcor": CORRECTIONS, "ftol": TOLERANCE},
        )
        evaluations += int(result.nfev)
        # A refused step can leave a line search so short that it looks like convergence: go on with a fresh memory.
        if not optimiser.refused or done in (before, iterations):
            return Outcome(done, evaluations, str(result.message))


class _Guarded(gpflow.optimizers.Scipy):  # type: ignore[misc]
    """A trial step that leaves the numbers' range is a very bad step, from which the line search comes back."""

    refused = 0

    def eval_func(self, *args: Any, **kwargs: Any) -> Evaluate:
        evaluate: Evaluate = super().eval_func(*args, **kwargs)
        worst: float | None = None

        def guarded(x: Array) -> tuple[Array, Array]:
            nonlocal worst
            value, gradient = _or_nan(evaluate, x)
            if np.isfinite(value) and np.isfinite(gradient).all():
                worst = float(value) if worst is None else max(worst, float(value))
                return value, gradient
            if worst is None:
                raise FloatingPointError("no finite objective at the start")
            self.refused += 1
            return np.array(worst + 1e3 + 10.0 * abs(worst)), np.zeros_like(x)

        return guarded


def _or_nan(evaluate: Evaluate, x: Array) -> tuple[Array, Array]:
    try:
        return evaluate(x)
    except tf.errors.InvalidArgumentError:  # a matrix without a Cholesky factor
        return np.array(np.nan), np.zeros_like(x)
