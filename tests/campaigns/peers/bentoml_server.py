"""BentoML in one process: its ASGI application on uvicorn."""

import sys
from typing import Any

import bentoml
import uvicorn

from tests.campaigns.peers.predictor import PATH, Predictor


@bentoml.service
class Normalcy:
    def __init__(self) -> None:
        self.predictor = Predictor()

    @bentoml.api(route=PATH)  # type: ignore[untyped-decorator]
    def score(
        self,
        age_years: float,
        sex: str,
        height_cm: float,
        weight_kg: float,
        diameter_mm: float,
        convention: dict[str, str],
    ) -> dict[str, Any]:
        measured = {"height_cm": height_cm, "weight_kg": weight_kg, "diameter_mm": diameter_mm}
        return self.predictor({"age_years": age_years, "sex": sex, **measured, "convention": convention})


if __name__ == "__main__":
    port = int(sys.argv[1])
    application = Normalcy.to_asgi()  # type: ignore[attr-defined]
    uvicorn.run(application, host="127.0.0.1", port=port, log_level="error", access_log=False)
