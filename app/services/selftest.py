"""Run the golden cases of every loaded model, now."""

import asyncio
from typing import Any

from app.services.prepare import ServedModel
from app.services.running import RunningService


async def selftest(service: RunningService) -> dict[str, Any]:
    models = [await asyncio.to_thread(_test, model) for model in service.shelf.loaded]
    totals = {name: sum(model[name] for model in models) for name in ("passed", "failed", "cases")}
    return {**totals, "models": models}


def _test(model: ServedModel) -> dict[str, Any]:
    result = model.run_golden_cases()
    counts = {"passed": result.passed, "failed": result.failed, "cases": result.cases}
    return {"site": model.ref.site, "version": model.ref.version, "sha256": model.ref.sha256, **counts}
