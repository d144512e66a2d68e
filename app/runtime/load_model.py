"""From disk to ready: the digest, the golden cases on the chosen backend, and one answer to warm up."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.domain.card import ModelCard, ModelRef
from app.domain.golden import GoldenCase
from app.domain.query import ScoreQuery
from app.errors import InvalidArtefact, InvalidSettings
from app.formats.answer import model_provenance
from app.inference import numpy_executor
from app.inference.executor import ReadyModel
from app.inference.golden import GoldenResult, check_golden
from app.inference.scoring import score
from app.settings import Settings
from app.store import StoredModel, load
from app.store.artefact import GOLDEN


@dataclass(frozen=True, slots=True)
class Backend:
    """What computes the posterior in this process."""

    name: str
    device: str
    ready: Callable[[StoredModel], ReadyModel]


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model that may answer, with what is told of it."""

    ready: ReadyModel
    golden: tuple[GoldenCase, ...]
    y_scale: float  # mm
    provenance: dict[str, Any]

    @property
    def ref(self) -> ModelRef:
        return self.ready.ref

    @property
    def card(self) -> ModelCard:
        return self.ready.card

    @property
    def is_simulated(self) -> bool:
        return self.card.cohort.is_simulated

    def run_golden_cases(self) -> GoldenResult:
        return check_golden(self.ready.executor, self.card.age_transform, self.y_scale, self.golden)


def choose_backend(settings: Settings) -> Backend:
    """Refuses a device that is not there: an answer must never come from another than the one that was asked for."""
    if settings.backend == "numpy":
        if settings.device == "GPU":
            raise InvalidSettings(["NORMALCY_DEVICE=GPU needs NORMALCY_BACKEND=tensorflow: numpy computes on the CPU."])
        return Backend("numpy", "CPU", numpy_executor.ready)
    try:
        from app.inference import tensorflow_executor
    except ModuleNotFoundError as error:
        raise InvalidSettings(["NORMALCY_BACKEND=tensorflow needs TensorFlow, which is not installed here."]) from error
    device = tensorflow_executor.choose_device(settings.device)
    return Backend("tensorflow", device, lambda stored: tensorflow_executor.ready(stored, device))


def prepare(models_dir: Path, backend: Backend, site: str, version: str) -> ServedModel:
    stored = load(models_dir, site, version)
    ready = backend.ready(stored)
    provenance = model_provenance(stored.ref, stored.card)
    model = ServedModel(ready, stored.golden, stored.posterior.scaling.y_scale, provenance)
    result = model.run_golden_cases()
    if result.failed:
        what = f"{result.failed} of {result.cases} golden cases are not reproduced"
        raise InvalidArtefact(GOLDEN, f"{what} on {backend.name}, {backend.device}.")
    score(ready, [ScoreQuery(case.patient, case.diameter_mm) for case in stored.golden[:1]])
    return model
