"""What can be chosen about a fit of NS, as plain values that name themselves."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import skew

from app.maths.moments import Array
from app.training.recipe import Recipe

SKEWED = 1.0  # a third standardised moment above this counts as skewed to the right

FREEDOMS = (4, 6, 10)  # of the Student-t stage: how heavy the tails are is a matter of choice, so the folds decide
RECIPES = {"base": Recipe.base(), "reg1": Recipe()} | {
    f"reg1t{freedom}": replace(Recipe.reg1t6(), robust_freedom=float(freedom)) for freedom in FREEDOMS
}


@dataclass(frozen=True, slots=True)
class Choice:
    recipe: str = "reg1"  # a key of RECIPES
    log: bool = False  # skewed positive contexts enter by their logarithm
    kernel: str = "rational_quadratic"
    inducing_share: float = 0.05
    heteroscedastic: bool = True

    @property
    def name(self) -> str:
        return self.recipe + ("-log" if self.log else "")

    def details(self) -> Recipe:
        return replace(
            RECIPES[self.recipe],
            kernel=self.kernel,
            inducing_share=self.inducing_share,
            heteroscedastic=self.heteroscedastic,
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything that decides a fit, also what a later version of the recipe may change."""
        return asdict(self) | {"details": self.details().as_dict()}


CANDIDATES = tuple(Choice(recipe, log) for recipe in RECIPES for log in (False, True))


@dataclass(frozen=True, slots=True)
class Contexts:
    """Which columns enter by their logarithm: decided by training rows alone."""

    logged: NDArray[np.int64]  # columns
    smallest: Array  # of each of them in training; a test row below it counts as this much

    @classmethod
    def of(cls, X: Array, log: bool) -> "Contexts":
        columns = [column for column in range(X.shape[1]) if log and _straightened_by_log(X[:, column])]
        chosen = np.array(columns, dtype=np.int64)
        return cls(chosen, X[:, chosen].min(axis=0) if columns else np.empty(0))

    def transformed(self, X: Array) -> Array:
        result = X.copy()
        result[:, self.logged] = np.log(np.maximum(X[:, self.logged], self.smallest))
        return result


def effective(choice: Choice, X: Array) -> Choice:
    """The same choice without `log` where no column qualifies: one fit then serves both names."""
    return replace(choice, log=choice.log and bool(Contexts.of(X, True).logged.size))


def _straightened_by_log(column: Array) -> bool:
    """Positive, skewed to the right, and less skewed as a logarithm."""
    if column.min() <= 0.0 or np.ptp(column) == 0.0 or skew(column) <= SKEWED:
        return False
    return bool(abs(skew(np.log(column))) < skew(column))
