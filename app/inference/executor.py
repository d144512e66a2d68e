"""A model in memory (`LoadedModel`), and what an executor is: anything that turns covariates into moments."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from app.domain.card import Comparators, ModelCard, ModelRef
from app.formats.response import model_provenance
from app.inference.reliability_rules import ReliabilityRules
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array, Moments
from app.maths.statistics import LinearReference
from app.schemas.answers import ModelProvenance
from app.store import StoredModel


class Executor(Protocol):
    def predict(self, X: Array) -> Moments:
        """Moments of N people from raw covariates X [N, D]."""


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A published version, read from disk, with the executor that predicts for it."""

    stored: StoredModel
    executor: Executor
    linear: LinearReference = field(init=False)  # the comparators of the card
    provenance: ModelProvenance = field(init=False)  # how responses name the model
    reliability_rules: ReliabilityRules = field(init=False, repr=False, compare=False)  # by the card

    def __post_init__(self) -> None:
        object.__setattr__(self, "linear", _linear_reference(self.card.comparators))
        object.__setattr__(self, "reliability_rules", ReliabilityRules(self.card))
        object.__setattr__(self, "provenance", model_provenance(self.ref, self.card))

    @property
    def ref(self) -> ModelRef:
        return self.stored.ref

    @property
    def card(self) -> ModelCard:
        return self.stored.card

    @property
    def is_simulated(self) -> bool:
        return self.card.cohort.is_simulated


def _linear_reference(comparators: Comparators) -> LinearReference:
    return LinearReference(
        np.array(comparators.coefficients),
        comparators.residual_sd_mm,
        np.array(comparators.absolute_residual_coefficients),
    )


@dataclass(frozen=True, slots=True)
class NumpyExecutor:
    """The default: the posterior's own NumPy, in the calling thread."""

    posterior: HeteroscedasticPosterior

    def predict(self, X: Array) -> Moments:
        return self.posterior.predict(X)


def load_on_numpy(stored: StoredModel) -> LoadedModel:
    return LoadedModel(stored, NumpyExecutor(stored.posterior))
