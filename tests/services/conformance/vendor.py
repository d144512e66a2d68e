"""A small HTTP server of another vendor that answers every case as the case itself expects, with one chosen mistake."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import uuid_utils

from app.services.conformance.cases import Case, CaseFile
from app.services.conformance.run import ACCEPT, body_of

OF_A_CASE = ("Accept", "Content-Encoding", "X-Padding")  # headers that tell cases apart
VALID_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


@dataclass
class Reply:
    """What the server is about to send; a mistake changes it."""

    status: int
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes | None = None  # in place of the body


Mistake = Callable[[Case, Reply], None]


@dataclass(frozen=True)
class Vendor:
    url: str
    seen: list[str] = field(default_factory=list)  # the value of Authorization of every request


def reply_to(case: Case, request_id: str) -> Reply:
    expected = case.expect
    body: dict[str, Any] = {"request_id": request_id}
    for path, value in expected.equals.items():
        _put(body, path, value)
    for number in expected.numbers:
        _put(body, number.path, float(f"{number.value:.9g}"))
    kind = "application/json"
    if expected.status >= 400:
        kind = "application/problem+json"
        body |= {"type": f"/x#problem-{expected.problem}", "title": "No", "status": expected.status, "detail": "No."}
        if expected.errors is not None:
            body["errors"] = [{"code": e.code, "field": e.field, "message": "Wrong."} for e in expected.errors]
    return Reply(expected.status, {"Content-Type": kind, "X-Request-ID": request_id, **expected.headers}, body)


@contextmanager
def vendor(
    file: CaseFile, mistake: Mistake = lambda case, reply: None, *, is_ready: bool = True, keys: bool = True
) -> Iterator[Vendor]:
    """Ready, with the shipped models. With `keys` it expects them as the cases do."""
    cases = {_identity(case, keys): case for case in file.cases if keys or not case.needs_key}
    models = [{"site": m.site, "version": m.version, "sha256": m.sha256} for m in file.models.values()]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            running.seen.append(self.headers.get("Authorization", ""))
            sent = self.headers.get("X-Request-ID")
            new = str(uuid_utils.uuid7())
            reply = Reply(200, {"Content-Type": "application/json", "X-Request-ID": new}, {"models": models})
            if self.path == "/health/ready" and not is_ready:
                reply.status = 503
            case = cases.get(self.identity(body))
            if (case is not None and sent is not None) or (case is not None and case.request.request_id is None):
                reply = reply_to(case, sent if sent and VALID_ID.fullmatch(sent) else new)
                mistake(case, reply)
            self.reply(reply)

        do_GET = do_POST = do_DELETE = answer

        def identity(self, body: bytes) -> tuple[object, ...]:
            key = self.headers.get("Authorization", "")
            credential = "none" if not key else "wrong" if "not-exist" in key else "given"
            more = self.headers.get("Content-Type") if body else None
            request_id = self.headers.get("X-Request-ID", "")
            is_own = request_id.startswith("conformance-") and _is_uuid(request_id.removeprefix("conformance-"))
            extra = tuple(self.headers.get(name) for name in OF_A_CASE)
            return (self.command, self.path, body, credential, more, *extra, "" if is_own else request_id)

        def reply(self, reply: Reply) -> None:
            content = json.dumps(reply.body).encode() if reply.raw is None else reply.raw
            self.send_response_only(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    running = Vendor(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, name="vendor")
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _identity(case: Case, keys: bool) -> tuple[object, ...]:
    """What a request of this case looks like to the server."""
    request, body = case.request, body_of(case.request) or b""
    headers = {header.name: header.value * header.repeat for header in request.headers}
    request_id = request.request_id
    return (
        request.method,
        request.path,
        body,
        request.credential if keys else "none",
        headers.get("Content-Type", "application/json") if body else None,
        *(headers.get(name, ACCEPT if name == "Accept" else None) for name in OF_A_CASE),
        request_id if isinstance(request_id, str) else "",
    )


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _put(body: dict[str, Any], path: str, value: Any) -> None:
    """Build the objects and arrays on the way; `a[].b` takes a list of values."""
    if "[]" in path:
        before, _, after = path.partition("[].")
        for index, one in enumerate(value):
            _put(body, f"{before}[{index}].{after}", one)
        if not value:
            _put(body, before, [])
        return
    here: Any = body
    steps = re.findall(r"[^.\[\]]+|\[\d+\]", path)
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        new: Any = value if following is None else [] if following.startswith("[") else {}
        if step.startswith("["):
            index = int(step[1:-1])
            here.extend(new for _ in range(index + 1 - len(here)))
            if following is None:
                here[index] = value
            here = here[index]
        else:
            here[step] = value if following is None else here.get(step, new)
            here = here[step]
