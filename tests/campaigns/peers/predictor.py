"""The same work for every server: validate one request, score it, and give every number of the answer."""

from pathlib import Path
from typing import Any

from app.formats.response import body
from app.inference.executor import load_on_numpy
from app.inference.scoring import score
from app.schemas.requests import ScoreRequest
from app.schemas.validation import parse
from app.store import load

PATH = "/v1/sites/SoV/score"
MODELS = Path(__file__).parents[3] / "models_store"


class Predictor:
    def __init__(self) -> None:
        self._model = load_on_numpy(load(MODELS, "SoV", "1.0.0"))

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        query = parse(ScoreRequest, request).for_site("SoV").query
        (answer,) = score(self._model, [query])
        return body(answer)
