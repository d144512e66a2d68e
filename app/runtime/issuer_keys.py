"""The public keys of an issuer: a JSON Web Key Set from a URL or a file.

A set is read again every ten minutes, and when a token names a key that is not in it: by one task at a time, and at
most every ten seconds. If there is no set to read, the last one stays in use. One without a usable key ends the keys
before it, because an issuer may withdraw a stolen key before it has another one. Keys come from the configured place
only, never from a token.

A read has a thread of its own. Neither the look-up of a host name nor an answer that arrives a letter at a time can be
stopped, so it may hang: then this issuer's keys are not read again until it ends, and nothing else waits for it.

A key has its algorithm: the one that its set names, or those of its type. So a token cannot choose another one.
"""

import asyncio
import http.client
import math
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import structlog
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from app.errors import InvalidSettings, MalformedJson
from app.formats import strict_json
from app.observability import describe_failure
from app.runtime.issuers import ALGORITHMS, Issuer

REFRESH_SECONDS = 600.0
MIN_SECONDS_BETWEEN = 10.0
FETCH_SECONDS = 2.0  # a request that waits for it is answered within 2.5 s
MAX_SET_BYTES = 256 * 1024
MIN_RSA_BITS = 2048
PRIVATE_MEMBERS = {"d", "p", "q", "dp", "dq", "qi", "oth", "k"}
CURVES = {"secp256r1": "ES256", "secp384r1": "ES384"}
OK = 200


class SigningKey(NamedTuple):
    public: RSAPublicKey | EllipticCurvePublicKey
    algorithms: frozenset[str]


Keys = Mapping[str, SigningKey]  # by `kid`


class UnusableKeySet(Exception):
    """Why a key set cannot be used, in words."""


class NoUsableKey(UnusableKeySet):
    """It is a key set; what the issuer published before it no longer counts."""


class IssuerKeys:
    def __init__(self, issuer: Issuer, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer, self._clock = issuer, clock
        self.keys: Keys = {}
        self.has_failed = False  # the last attempt
        self._content = b""
        self._read_at = self._tried_at = -math.inf
        self._reading: asyncio.Task[None] | None = None
        self._thread: Future[bytes] | None = None  # of the last read, which may go on after its time is over
        self._log = structlog.get_logger("issuers")

    @property
    def age_seconds(self) -> float:
        """Since the keys were last confirmed."""
        return self._clock() - self._read_at

    async def start(self) -> None:
        """A file must be usable now; an issuer that cannot be reached may be back later."""
        await self.refresh()
        if self.has_failed and self.issuer.jwks_file:
            raise InvalidSettings([f"The jwks_file of the issuer {self.issuer.issuer} is not a usable key set."])

    async def run(self) -> None:
        while True:
            await asyncio.sleep(MIN_SECONDS_BETWEEN if self.has_failed else REFRESH_SECONDS)
            await self.refresh()

    async def find(self, key_id: str) -> SigningKey | None:
        if key_id not in self.keys:
            await self.refresh()
        return self.keys.get(key_id)

    async def refresh(self) -> None:
        """Does nothing within ten seconds of the last attempt; waits for the attempt that is in flight."""
        if self._reading is None:
            if self._clock() - self._tried_at < MIN_SECONDS_BETWEEN:
                return
            self._tried_at = self._clock()
            self._reading = asyncio.create_task(self._read())
        await asyncio.shield(self._reading)  # a caller that leaves does not stop it for the others

    async def _read(self) -> None:
        try:
            content = await self._read_content()
            if content != self._content:  # otherwise the same object, so that verified tokens stay verified
                self.keys = read_key_set(content)
                self._content = content
        except Exception as error:  # noqa: BLE001 - whatever else fails, the last keys stay in use
            if isinstance(error, NoUsableKey):
                self.keys, self._content = {}, b""
            reason = str(error) if isinstance(error, UnusableKeySet) else "it cannot be read"
            self._log.error("issuer keys not read", issuer=self.issuer.issuer, reason=reason, **describe_failure(error))
            self.has_failed = True
        else:
            self._read_at, self.has_failed = self._clock(), False
        finally:
            self._reading = None

    async def _read_content(self) -> bytes:
        if self._thread is not None and not self._thread.done():
            raise UnusableKeySet("the attempt before is still waiting for the issuer")
        self._thread = _start_thread(partial(_content, self.issuer))
        async with asyncio.timeout(FETCH_SECONDS):
            return await asyncio.wrap_future(self._thread)


def read_key_set(content: bytes) -> Keys:
    """The keys that verify signatures by one of our algorithms; others in the set are left out."""
    try:
        found = strict_json.loads(content)
    except MalformedJson as error:
        raise UnusableKeySet(str(error)) from None
    entries = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise UnusableKeySet("it is not an object with a list `keys`")
    usable = [entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("kid"), str)]
    ids = [entry["kid"] for entry in usable]
    if len(set(ids)) < len(ids):
        raise NoUsableKey("two keys have the same `kid`")
    if any(PRIVATE_MEMBERS & entry.keys() for entry in entries if isinstance(entry, dict)):
        raise NoUsableKey("it contains a private or symmetric key; publish public keys only")
    keys = {entry["kid"]: key for entry in usable if (key := _read_key(entry)) is not None}
    if not keys:
        raise NoUsableKey(f"it has no public key with a `kid` for {', '.join(ALGORITHMS)}")
    return keys


def _read_key(entry: dict[str, Any]) -> SigningKey | None:
    try:
        return _signing_key(entry)
    except Exception:  # noqa: BLE001 - whatever is odd about one key, the others of the set stay usable
        return None


def _signing_key(entry: dict[str, Any]) -> SigningKey | None:
    if entry.get("use", "sig") != "sig" or "verify" not in entry.get("key_ops", ["verify"]):
        return None
    public = RSAAlgorithm.from_jwk(entry) if entry.get("kty") == "RSA" else ECAlgorithm.from_jwk(entry)
    if isinstance(public, RSAPublicKey) and public.key_size >= MIN_RSA_BITS:
        possible = {"RS256", "RS384"}
    elif isinstance(public, EllipticCurvePublicKey) and public.curve.name in CURVES:
        possible = {CURVES[public.curve.name]}
    else:
        return None
    algorithms = possible & {entry["alg"]} if "alg" in entry else possible
    return SigningKey(public, frozenset(algorithms)) if algorithms else None


def _start_thread(work: Callable[[], bytes]) -> Future[bytes]:
    """In a daemon thread: a process that ends does not wait for it, as it would for the threads of an executor."""
    future: Future[bytes] = Future()
    future.set_running_or_notify_cancel()  # so that it cannot be cancelled, and always ends with the thread
    threading.Thread(target=_run, args=(work, future), name="issuer keys", daemon=True).start()
    return future


def _run(work: Callable[[], bytes], future: Future[bytes]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - for the one who waits for it
        future.set_exception(error)
    finally:
        del future  # otherwise it holds an exception that holds this frame, which holds it


def _content(issuer: Issuer) -> bytes:
    content = Path(issuer.jwks_file).read_bytes() if issuer.jwks_file else _fetch(issuer)
    if len(content) > MAX_SET_BYTES:
        raise UnusableKeySet("it is too large")
    return content


def _fetch(issuer: Issuer) -> bytes:
    """Redirects are not followed: the keys must come from the address that the operator wrote down."""
    url = urlsplit(issuer.jwks_url)
    host, deadline = url.hostname or "", time.monotonic() + FETCH_SECONDS
    connection = http.client.HTTPConnection(host, url.port, timeout=FETCH_SECONDS)
    if url.scheme == "https":
        tls = ssl.create_default_context(cafile=issuer.jwks_ca_file or None)
        connection = http.client.HTTPSConnection(host, url.port, timeout=FETCH_SECONDS, context=tls)
    try:
        connection.request(
            "GET", url._replace(scheme="", netloc="").geturl() or "/", headers={"Accept": "application/json"}
        )
        with connection.getresponse() as response:
            if response.status != OK:
                raise UnusableKeySet(f"the issuer answered {response.status}")
            content = b""
            while part := response.read1(MAX_SET_BYTES):
                content += part
                if len(content) > MAX_SET_BYTES or time.monotonic() > deadline:
                    raise UnusableKeySet("it is too large or arrives too slowly")
            return content
    finally:
        connection.close()
