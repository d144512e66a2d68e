"""Sends the request of a case exactly as it is written, and reads the response. Only the standard library.

Each request has a connection of its own, because a service may close one after a refusal. Redirects are not followed,
so that the key goes to the given address only.
"""

import base64
import http.client
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET

from app.errors import InvalidUrl, NoResponse
from app.services.conformance.cases import CaseRequest

SECONDS = 30.0
LARGEST_RESPONSE = 64 * 1024 * 1024  # bytes
JSON = "application/json"
ACCEPT = f"{JSON}, */*;q=0.1"  # unless a case gives another
WRONG_KEY = "nsk_conformance_this-key-does-not-exist"


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]  # by name in lower case
    body: bytes

    @property
    def media_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class Client:
    def __init__(self, url: str, key: str | None) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "", parts.port
        except ValueError:
            raise InvalidUrl from None
        if parts.scheme not in ("http", "https") or not self._host or parts.query or parts.fragment or parts.username:
            raise InvalidUrl
        self._prefix, self.key = parts.path.rstrip("/"), key
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None

    def send(self, request: CaseRequest, request_id: str | None) -> Response:
        connection = self._connection()
        try:
            connection.putrequest(request.method, self._prefix + request.path, skip_accept_encoding=True)
            body = body_of(request)
            for name, value in self._headers(request, request_id, body):
                connection.putheader(name, value)
            with suppress(BrokenPipeError, ConnectionResetError):  # refused before the whole body was sent
                connection.endheaders(body)
            return _read(connection.getresponse())
        except (OSError, http.client.HTTPException) as error:
            raise NoResponse(_reason(error)) from error
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=SECONDS)
        return http.client.HTTPSConnection(self._host, self._port, timeout=SECONDS, context=self._tls)

    def _headers(self, request: CaseRequest, request_id: str | None, body: bytes | None) -> list[tuple[str, str]]:
        own = [(header.name, header.value * header.repeat) for header in request.headers]
        headers = [("Accept", ACCEPT), ("User-Agent", "normalcy-conformance")]
        if body is not None:
            headers += [("Content-Length", str(len(body))), ("Content-Type", JSON)]
        if request_id is not None:
            headers.append(("X-Request-ID", request_id))
        key = {"given": self.key, "none": None, "wrong": WRONG_KEY}[request.credential]
        if key is not None:
            headers.append(("Authorization", f"Bearer {key}"))
        replaced = {name.lower() for name, _ in own}
        return [*((name, value) for name, value in headers if name.lower() not in replaced), *own]


def body_of(request: CaseRequest) -> bytes | None:
    if request.json is not UNSET:
        body = msgspec.json.encode(request.json)
    elif isinstance(request.text, str):
        body = request.text.encode()
    elif isinstance(request.base64, str):
        body = base64.b64decode(request.base64, validate=True)
    else:
        return None
    return body * request.repeat


def _read(response: http.client.HTTPResponse) -> Response:
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Response(response.status, headers, response.read(LARGEST_RESPONSE))


def _reason(error: OSError | http.client.HTTPException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted ({error.verify_message}); SSL_CERT_FILE names further authorities"
    if isinstance(error, TimeoutError):
        return f"it took longer than {SECONDS:g} s"
    return str(getattr(error, "strerror", None) or type(error).__name__)
