"""How the service is: alive, ready, right, and in numbers."""

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from app.formats import problem as kinds
from app.formats.answer import encode
from app.formats.problem import MEDIA_TYPE, Problem, problem_body
from app.schemas.lookups import Alive, Ready, SelfTest
from app.services import check_health
from app.services.check_health import Readiness
from app.web.call import Call
from app.web.door import Door
from app.web.openapi import ANY, LOCKED, responses
from app.web.problems import RETRY_SECONDS


async def live(call: Call) -> Response:
    """The process is alive. Says nothing of the database, so that its absence restarts nobody."""
    return call.answer({"status": "alive"})


async def ready(call: Call) -> Response:
    """Models loaded, the audit writable, not about to stop. Not ready: 503, with the same fields in the problem."""
    state = check_health.check_readiness(call.runtime)
    if state.is_ready:
        return call.answer(state.body)
    body = problem_body(_why_not(state), call.request_id) | state.body
    return Response(encode(body), 503, {"Retry-After": RETRY_SECONDS}, MEDIA_TYPE)


async def run_selftest(call: Call) -> Response:
    """Run the golden cases of every loaded model, now."""
    return call.answer(await check_health.run_selftest(call.runtime))


async def metrics(call: Call) -> Response:
    """Counts and times of this process, for Prometheus."""
    return Response(generate_latest(call.runtime.metrics.registry), media_type=CONTENT_TYPE_LATEST)


def _why_not(state: Readiness) -> Problem:
    checks = state.body["checks"]
    if not checks["models_loaded"]:
        return kinds.NO_MODEL
    return kinds.NOT_AUDITED if not checks["audit_writable"] else kinds.QUEUE_FULL


def _shown(summary: str, model: type, *refusals: Problem) -> dict[str, object]:
    answers = responses(model, *refusals)
    return {"include_in_schema": True, "tags": ["Operation"], "summary": summary, "responses": answers}


NOT_READY = (kinds.NO_MODEL, kinds.NOT_AUDITED, kinds.QUEUE_FULL)

DOORS = (
    Door("GET", "/health/live", live, "open", openapi=_shown("Alive", Alive, *ANY)),
    Door("GET", "/health/ready", ready, "open", openapi=_shown("Ready", Ready, *ANY, *NOT_READY)),
    Door("GET", "/v1/selftest", run_selftest, "model:read", openapi=_shown("Self-test", SelfTest, *LOCKED)),
    Door("GET", "/metrics", metrics, "metrics"),
)
