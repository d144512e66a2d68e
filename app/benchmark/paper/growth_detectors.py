"""Three detectors of unusual heights, each as a margin that is positive where it flags a girl."""

from collections.abc import Callable

import numpy as np

from app.benchmark.paper.methods import Method
from app.benchmark.paper.methods.joint import IsolationForest
from app.benchmark.paper.methods.rocod import Rocod
from app.maths.moments import Array, Moments
from app.maths.score import normalcy
from app.training.fit import fit
from app.training.recipe import Recipe

OUTLYING_Z = 2.0
OUTLYING_SHARE = 0.0455  # of a normal distribution, beyond 2 standard deviations on either side

Margin = Callable[[Array, Array], Array]  # ages [N], heights [N]


class Detectors:
    """Trained on ages [N] and heights [N]."""

    def __init__(self, age: Array, height: Array, recipe: Recipe, seed: int) -> None:
        self._posterior = fit(age[:, None], height, recipe, seed).posterior
        others: dict[str, Method] = {"IForest": IsolationForest(seed), "ROCOD": Rocod(seed)}
        learnt: dict[str, Margin] = {name: _margin(method, age, height) for name, method in others.items()}
        self.margins = learnt | {"NS": self._ns}

    def width(self, age: Array, height: Array) -> Array:
        """i, the width of the 95% HDI."""
        return normalcy.hdi(height, self._moments(age)).width

    def context_width(self, age: Array) -> Array:
        """W2, the same at a score of 2: the context alone decides it."""
        return normalcy.context_width(self._moments(age))

    def _ns(self, age: Array, height: Array) -> Array:
        """NS has a scale of its own: beyond 2 is outlying."""
        return np.abs(normalcy.expected_score(height, self._moments(age))) - OUTLYING_Z

    def _moments(self, age: Array) -> Moments:
        return self._posterior.predict(age[:, None])


def _margin(method: Method, age: Array, height: Array) -> Margin:
    """Beyond the score that as many trained girls exceed as a normal distribution has beyond 2 sds."""
    method.fit(age[:, None], height)
    limit = np.quantile(method.answer(age[:, None], height)["score"], 1.0 - OUTLYING_SHARE)
    return lambda ages, heights: method.answer(ages[:, None], heights)["score"] - limit
