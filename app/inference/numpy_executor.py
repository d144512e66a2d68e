"""The default executor: the posterior's own NumPy, in the calling thread."""

from dataclasses import dataclass

from app.inference.executor import ReadyModel, linear_reference
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array, Moments
from app.store import StoredModel


@dataclass(frozen=True, slots=True)
class NumpyExecutor:
    posterior: HeteroscedasticPosterior

    @property
    def backend(self) -> str:
        return "numpy"

    @property
    def device(self) -> str:
        return "CPU"

    def predict(self, X: Array) -> Moments:
        return self.posterior.predict(X)


def ready(stored: StoredModel) -> ReadyModel:
    executor = NumpyExecutor(stored.posterior)
    return ReadyModel(stored.ref, stored.card, executor, linear_reference(stored.card.comparators))
