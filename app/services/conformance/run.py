"""Runs all cases against one deployment."""

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from app.clock import timestamp, utc_now
from app.errors import CouldNotCheck, NoResponse
from app.services.conformance.cases import Case, CaseFile, CaseModel, CaseRequest
from app.services.conformance.client import Client, Response
from app.services.conformance.judge import mistakes

Progress = Callable[[str, float], None]
ATTEMPTS = 5  # where the service says that it is busy
LONGEST_PAUSE_SECONDS = 10.0
READY = CaseRequest("GET", "/health/ready")
MODELS = CaseRequest("GET", "/v1/models")
SCORE = CaseRequest("POST", "/v1/sites/SoV/score", json={})
SCOPES = "the scopes of the caller are not those that it needs"
NEEDED = "Conformance is checked with a key that has the scopes score and model:read: --key-file."


@dataclass(frozen=True, slots=True)
class CaseResult:
    name: str
    about: str
    outcome: Literal["passed", "failed", "skipped"]
    mistakes: tuple[str, ...] = ()
    reason: str = ""  # why it was skipped


@dataclass(frozen=True, slots=True)
class Conformance:
    url: str
    checked_at: str
    conforms: bool
    passed: int
    failed: int
    skipped: int
    not_tried: dict[str, str]
    cases: tuple[CaseResult, ...]


def check_conformance(url: str, key: str | None, file: CaseFile, report: Progress) -> Conformance:
    """Raises CouldNotCheck if the deployment cannot be judged."""
    client, results = Client(url, key), []
    published = _published(client, file)
    for index, case in enumerate(file.cases):
        report(case.name, index / len(file.cases))
        results.append(_run(client, case, published))
    count = {
        outcome: sum(result.outcome == outcome for result in results) for outcome in ("passed", "failed", "skipped")
    }
    return Conformance(
        url=url,
        checked_at=timestamp(utc_now()),
        conforms=not count["failed"],
        **count,
        not_tried=file.not_tried,
        cases=tuple(results),
    )


def _published(client: Client, file: CaseFile) -> set[str]:
    """Which models of the cases this deployment has, bit for bit. Also checks what must be right before any case."""
    try:
        ready, models, score = (_send(client, request, None) for request in (READY, MODELS, SCORE))
    except NoResponse as error:
        raise CouldNotCheck(str(error)) from error
    if ready.status != 200:
        raise CouldNotCheck(f"The service is not ready: GET {READY.path} has status {ready.status}.")
    for response, request in ((models, MODELS), (score, SCORE)):
        if response.status in (401, 403):
            raise CouldNotCheck(f"{request.method} {request.path} has status {response.status}. {NEEDED}")
    if models.status != 200:
        raise CouldNotCheck(f"GET {MODELS.path} has status {models.status}.")
    found = _identities(models)
    return {name for name, model in file.models.items() if model in found}


def _identities(response: Response) -> list[CaseModel]:
    try:
        listed: list[dict[str, Any]] = msgspec.json.decode(response.body)["models"]
        return [CaseModel(one["site"], one["version"], one["sha256"]) for one in listed]
    except (msgspec.MsgspecError, TypeError, LookupError):
        raise CouldNotCheck(f"GET {MODELS.path} does not list models.") from None


def _run(client: Client, case: Case, published: set[str]) -> CaseResult:
    missing = [name for name in case.models if name not in published]
    if missing:
        reason = f"{' and '.join(missing)} as shipped is not published here"
        return CaseResult(case.name, case.about, "skipped", reason=reason)
    if case.needs_key and client.key is None:
        return CaseResult(case.name, case.about, "skipped", reason="the check runs without a key")
    request = case.request
    sent_id = f"conformance-{uuid.uuid4()}" if request.request_id is UNSET else request.request_id
    try:
        response = _send(client, request, sent_id)
    except NoResponse as error:
        _require_reachable(client)
        return CaseResult(case.name, case.about, "failed", (str(error),))
    if response.status == case.skip_on_status:
        return CaseResult(case.name, case.about, "skipped", reason=SCOPES)
    found = mistakes(case, response, sent_id)
    return CaseResult(case.name, case.about, "failed" if found else "passed", tuple(found))


def _send(client: Client, request: CaseRequest, request_id: str | None) -> Response:
    """Sends again where the service is busy (429, 503), as it says."""
    for _ in range(ATTEMPTS - 1):
        response = client.send(request, request_id)
        pause = response.headers.get("retry-after", "")
        if response.status not in (429, 503) or not pause.isdigit():
            return response
        time.sleep(min(float(pause), LONGEST_PAUSE_SECONDS))
    return client.send(request, request_id)


def _require_reachable(client: Client) -> None:
    """A service that answers nothing any more cannot be judged."""
    try:
        client.send(READY, None)
    except NoResponse as error:
        raise CouldNotCheck(f"The service stopped responding. {error}") from error
