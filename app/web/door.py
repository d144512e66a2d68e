"""A door: a route with its lock. It lets in, calls the endpoint, and turns every refusal into an answer and a record.

FastAPI knows a door for the OpenAPI page only. Its way of calling an endpoint (dependencies, validation, two exit
stacks) would cost as much as the score itself; the parameters of `documented` are read by the page and never run.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from fastapi import Depends, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from app.audit.records import NewRecord
from app.errors import NormalcyError
from app.observability import describe_failure
from app.runtime.credentials import ANONYMOUS, LOOPBACK
from app.web.call import Call, ClientGone
from app.web.pace import hold_back
from app.web.problems import Refused, problem_response, refused
from app.web.security import Lock, admit

BEARER = HTTPBearer(
    scheme_name="API key",
    bearerFormat="nsk_…",
    description="`Authorization: Bearer nsk_…`, made with `normalcy keys create`. Not needed while no key exists.",
    auto_error=False,
)


@dataclass(frozen=True, slots=True)
class Door:
    method: str
    path: str
    endpoint: Callable[[Call], Awaitable[Response]]
    lock: Lock
    documented: Callable[..., None] | None = None  # a function whose parameters the OpenAPI page shows
    openapi: Mapping[str, Any] = field(default_factory=dict)  # further arguments of FastAPI's route


class DoorRoute(APIRoute):
    def __init__(self, door: Door) -> None:
        shown: list[Any] = [Depends(door.documented)] if door.documented else []
        if door.lock not in ("open", "metrics"):
            shown.append(Security(BEARER))
        super().__init__(
            door.path,
            door.endpoint,
            methods=[door.method],
            response_model=None,
            dependencies=shown,
            **{"include_in_schema": False, **door.openapi},
        )
        self.door = door
        self.app = self.enter

    async def enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        call = Call(scope, receive)
        try:
            call.principal = admit(call, self.door.lock)
            response = await self.door.endpoint(call)
        except Refused as refusal:
            response = await self._refuse(call, refusal)
        except NormalcyError as error:
            response = await self._refuse(call, refused(error), error)
        except ClientGone:
            return
        await response(scope, receive, send)

    async def _refuse(self, call: Call, refusal: Refused, error: NormalcyError | None = None) -> Response:
        if error is not None and refusal.problem.status >= 500:
            log = structlog.get_logger("web")
            log.error("refused", request_id=call.request_id, route=self.path, **describe_failure(error))
        if self.door.lock != "open":
            is_known = call.principal not in (ANONYMOUS, LOOPBACK)
            call.runtime.refusals.record(self._draft(call, refusal), is_known)
        if call.principal is ANONYMOUS:
            await hold_back(call.scope)
        return problem_response(refusal, call.request_id)

    def _draft(self, call: Call, refusal: Refused) -> NewRecord:
        """Codes, never values; the path as it is written, never as it was asked for."""
        return NewRecord(
            kind="refusal",
            at=call.runtime.clock(),
            principal=call.principal.name,
            route=self.path,
            status=refusal.problem.status,
            request_id=call.request_id,
            output={"problem": refusal.problem.slug, "errors": refusal.codes},
        )
