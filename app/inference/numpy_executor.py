"""The default executor: the posterior's own NumPy, in the calling thread."""

from dataclasses import dataclass

from app.inference.executor import LoadedModel
from app.maths.gp.posterior import HeteroscedasticPosterior
from app.maths.moments import Array, Moments
from app.store import StoredModel


@dataclass(frozen=True, slots=True)
class NumpyExecutor:
    posterior: HeteroscedasticPosterior

    def predict(self, X: Array) -> Moments:
        return self.posterior.predict(X)


def load_on_numpy(stored: StoredModel) -> LoadedModel:
    return LoadedModel(stored, NumpyExecutor(stored.posterior))
