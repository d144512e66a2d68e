"""One request on its way through the service."""

import asyncio
import re
from collections.abc import Collection
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope

from app.errors import InvalidInput
from app.formats import problem as kinds
from app.formats import strict_json
from app.formats.answer import encode
from app.formats.faults import fault
from app.runtime.credentials import ANONYMOUS, Caller, Principal
from app.runtime.runtime import Runtime
from app.schemas.answers import ScoreResponse, StudyResponse
from app.web.problems import Refused

LARGEST_BODY = 16 * 1024  # bytes; the longest acceptable scoring request has about 1 kB
JSON = "application/json"
_JSON_TYPE = re.compile(rb'application/json(?:\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE)


class ClientGone(Exception):
    """The connection closed before the request was complete: nobody is left to answer."""


class Call(Request):
    """What an endpoint is given. Its body is read within a bound, as JSON that has one meaning."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        super().__init__(scope, receive)
        self.principal: Principal = ANONYMOUS
        self.fields: dict[bytes, bytes] = dict(scope["headers"])  # by their lower-case names

    @property
    def runtime(self) -> Runtime:
        runtime: Runtime = self.scope["app"].runtime
        return runtime

    @property
    def request_id(self) -> str:
        request_id: str = self.scope["request_id"]
        return request_id

    @property
    def template(self) -> str:
        """The route as it is written, never as it was asked for."""
        template: str = self.scope["route"].path
        return template

    def parameter(self, name: str) -> str:
        """A part of the path."""
        part: str = self.scope["path_params"][name]
        return part

    def caller(self) -> Caller:
        """For the services. The budget of the record starts here, when the request has arrived as a whole."""
        deadline = asyncio.get_running_loop().time() + self.runtime.settings.audit_budget_seconds
        return Caller(self.principal.name, self.request_id, self.template, deadline)

    async def document(self) -> object:
        """The body as JSON."""
        if not _JSON_TYPE.fullmatch(self.fields.get(b"content-type", b"")) or b"content-encoding" in self.fields:
            raise Refused(kinds.WRONG_MEDIA_TYPE)
        return strict_json.loads(await self.bounded_body())

    async def bounded_body(self, largest: int = LARGEST_BODY) -> bytes:
        """Counted while it arrives, so that nothing larger is ever held."""
        announced = self.fields.get(b"content-length", b"")
        if announced.isdigit() and int(announced) > largest:
            raise Refused(kinds.BODY_TOO_LARGE)
        body, more = b"", True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > largest:
                raise Refused(kinds.BODY_TOO_LARGE)
        return body

    def query(self, known: Collection[str]) -> dict[str, str]:
        """The parameters after the question mark, each known and given at most once."""
        pairs = parse_qsl(self.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(pairs)
        if len(given) < len(pairs) or not given.keys() <= set(known):
            message = f"Known parameters, each at most once: {', '.join(known)}."
            raise InvalidInput([fault("unknown_field", "(query)", message)])
        return given

    def answer(self, told: dict[str, Any] | ScoreResponse | StudyResponse, status: int = 200) -> Response:
        """JSON, with the request id as its first field unless it is there already."""
        content = {"request_id": self.request_id} | told if isinstance(told, dict) else told
        return Response(encode(content), status, media_type=JSON)
