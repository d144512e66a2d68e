"""What an executor is: anything that turns raw covariates into moments, and says what it runs on."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.domain.card import Comparators, ModelCard, ModelRef
from app.maths.moments import Array, Moments
from app.maths.statistics.linear import LinearReference


class Executor(Protocol):
    @property
    def backend(self) -> str:
        """`numpy` or `tensorflow`, as provenance names it."""

    @property
    def device(self) -> str: ...

    def predict(self, X: Array) -> Moments:
        """Moments of N people from raw covariates X [N, D]."""


@dataclass(frozen=True, slots=True)
class ReadyModel:
    """A stored version with the executor that answers for it."""

    ref: ModelRef
    card: ModelCard
    executor: Executor
    linear: LinearReference  # the comparators of the card


def linear_reference(comparators: Comparators) -> LinearReference:
    return LinearReference(
        np.array(comparators.coefficients),
        comparators.residual_sd_mm,
        np.array(comparators.absolute_residual_coefficients),
    )
