"""Run the golden cases of every loaded model, now."""

import asyncio
from typing import Any

from app.runtime.load_model import ServedModel
from app.runtime.runtime import Runtime


async def selftest(runtime: Runtime) -> dict[str, Any]:
    models = [await asyncio.to_thread(_test, model) for model in runtime.loaded_models.loaded]
    totals = {name: sum(model[name] for model in models) for name in ("passed", "failed", "cases")}
    return {**totals, "models": models}


def _test(model: ServedModel) -> dict[str, Any]:
    result = model.run_golden_cases()
    counts = {"passed": result.passed, "failed": result.failed, "cases": result.cases}
    return {"site": model.ref.site, "version": model.ref.version, "sha256": model.ref.sha256, **counts}
