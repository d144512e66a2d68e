"""Bearer JWTs of the configured issuers: signature, times, audience, and from claims to a principal.

The library verifies signatures; which key and which algorithm it uses is decided here, from the issuer's own key set.
`jku`, `x5u`, `x5c` and `jwk` in the header of a token are ignored, and no symmetric algorithm is known at all.

A verified token is remembered by its hash until it expires or its issuer's keys change. A token for one use is used
when its request is within its caller's rate, so that a caller that is asked to wait can send it again.
"""

import base64
import hashlib
import math
import re
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError

from app.errors import MalformedJson
from app.formats import strict_json
from app.runtime.credentials import Principal
from app.runtime.issuer_keys import IssuerKeys, Keys, SigningKey
from app.runtime.issuers import ALGORITHMS, Issuer, is_one_word
from app.runtime.used_tokens import UsedTokens

LEEWAY_SECONDS = 60.0  # clocks differ
MAX_ONE_TIME_SECONDS = 300.0  # how long ahead a token for one use may expire: so long its use is remembered
MAX_TOKEN_LENGTH = 8 * 1024  # characters
MAX_SUBJECT_LENGTH, MAX_PERSON_LENGTH = 255, 120  # with the issuer they must fit into a record's principal
MAX_REMEMBERED = 10_000  # verified ones; the rest is verified again
TYPES = {"jwt", "at+jwt", "application/at+jwt"}
TOKEN = re.compile(r"[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}", re.ASCII)

_jws = PyJWS(algorithms=list(ALGORITHMS))


class TokenRefusal(StrEnum):
    """Why a token is not accepted. Counted, never sent: the caller learns only that it is not valid."""

    MALFORMED = "token_malformed"
    ALGORITHM = "token_algorithm"
    UNKNOWN_ISSUER = "token_issuer"
    UNKNOWN_KEY = "token_key"
    SIGNATURE = "token_signature"
    AUDIENCE = "token_audience"
    EXPIRED = "token_expired"
    NOT_YET_VALID = "token_not_yet_valid"
    CLAIMS = "token_claims"
    REPLAYED = "token_replayed"
    MEMORY_FULL = "token_memory_full"  # too many of the issuer's tokens for one use are remembered: 503


class TokenRefused(Exception):
    def __init__(self, reason: TokenRefusal) -> None:
        super().__init__(reason)
        self.reason = reason


class VerifiedToken(NamedTuple):
    principal: Principal
    issuer: IssuerKeys
    keys: Keys  # with which it was verified
    expires: float  # UNIX time, with the leeway
    token_id: str  # `jti`; empty if there is none

    def is_valid(self, now: float) -> bool:
        return now < self.expires and self.keys is self.issuer.keys


class ParsedToken(NamedTuple):
    """A token that nobody has verified yet."""

    text: str
    algorithm: str
    key_id: str
    claims: dict[str, Any]


class TokenVerifier:
    def __init__(self, issuers: Iterable[IssuerKeys] = ()) -> None:
        self._issuers = {keys.issuer.issuer: keys for keys in issuers}
        self._verified: dict[bytes, VerifiedToken] = {}
        self._used = {name: UsedTokens() for name, keys in self._issuers.items() if keys.issuer.one_time}

    @property
    def issuers(self) -> tuple[IssuerKeys, ...]:
        return tuple(self._issuers.values())

    async def find(self, text: str, now: datetime) -> VerifiedToken:
        """As `verify`; a token for one use that was used is refused."""
        found = await self.verify(text, now)
        used = self._used.get(found.issuer.issuer.issuer)
        if used is not None and not found.token_id:
            raise TokenRefused(TokenRefusal.CLAIMS)
        if used is not None and found.token_id in used:
            raise TokenRefused(TokenRefusal.REPLAYED)
        return found

    def use(self, token: VerifiedToken, now: datetime) -> None:
        """Of a token that `find` has just returned: if it is for one use it was used now. Raises TooManyTokens."""
        used = self._used.get(token.issuer.issuer.issuer)
        if used is not None:
            used.add(token.token_id, token.expires, now.timestamp())

    async def verify(self, text: str, now: datetime) -> VerifiedToken:
        """Raises TokenRefused."""
        digest, seconds = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest(), now.timestamp()
        found = self._verified.get(digest)
        if found is None or not found.is_valid(seconds):
            self._verified.pop(digest, None)
            found = await self._verify(parse_token(text), seconds)
            if len(self._verified) >= MAX_REMEMBERED:
                del self._verified[next(iter(self._verified))]  # the one that was verified first
            self._verified[digest] = found
        return found

    async def _verify(self, token: ParsedToken, now: float) -> VerifiedToken:
        claimed = token.claims.get("iss")
        issuer = self._issuers.get(claimed) if isinstance(claimed, str) else None
        if issuer is None:
            raise TokenRefused(TokenRefusal.UNKNOWN_ISSUER)
        if token.algorithm not in issuer.issuer.algorithms:
            raise TokenRefused(TokenRefusal.ALGORITHM)
        key = await issuer.find(token.key_id)
        if key is None:
            raise TokenRefused(TokenRefusal.UNKNOWN_KEY)
        check_signature(token, key)
        expires = check_claims(token.claims, issuer.issuer, now)
        principal = principal_of(token.claims, issuer.issuer)
        token_id = token.claims.get("jti")
        return VerifiedToken(principal, issuer, issuer.keys, expires, token_id if isinstance(token_id, str) else "")


def parse_token(text: str) -> ParsedToken:
    if len(text) > MAX_TOKEN_LENGTH or not TOKEN.fullmatch(text):
        raise TokenRefused(TokenRefusal.MALFORMED)
    header, claims, _ = text.split(".")
    head = _object(header)
    algorithm, key_id, kind = head.get("alg"), head.get("kid"), head.get("typ", "JWT")
    if algorithm not in ALGORITHMS:
        raise TokenRefused(TokenRefusal.ALGORITHM)
    # `crit` names extensions that must be understood; `b64` and `zip` change what the bytes mean.
    if {"crit", "b64", "zip"} & head.keys() or not isinstance(kind, str) or kind.lower() not in TYPES:
        raise TokenRefused(TokenRefusal.MALFORMED)
    if not isinstance(key_id, str):
        raise TokenRefused(TokenRefusal.UNKNOWN_KEY)
    return ParsedToken(text, algorithm, key_id, _object(claims))


def _object(part: str) -> dict[str, Any]:
    try:
        found = strict_json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, MalformedJson):
        raise TokenRefused(TokenRefusal.MALFORMED) from None
    if not isinstance(found, dict):
        raise TokenRefused(TokenRefusal.MALFORMED)
    return found


def check_signature(token: ParsedToken, key: SigningKey) -> None:
    if token.algorithm not in key.algorithms:
        raise TokenRefused(TokenRefusal.ALGORITHM)
    try:
        _jws.decode(token.text, key.public, algorithms=[token.algorithm])
    except (PyJWTError, ValueError, TypeError):
        raise TokenRefused(TokenRefusal.SIGNATURE) from None


def check_claims(claims: dict[str, Any], issuer: Issuer, now: float) -> float:
    """When the token expires, with the leeway, as UNIX time."""
    if not set(issuer.audiences).intersection(_texts(claims.get("aud"))):
        raise TokenRefused(TokenRefusal.AUDIENCE)
    expires = _time(claims, "exp") + LEEWAY_SECONDS
    if now >= expires:
        raise TokenRefused(TokenRefusal.EXPIRED)
    for name in ("nbf", "iat"):
        if name in claims and now < _time(claims, name) - LEEWAY_SECONDS:
            raise TokenRefused(TokenRefusal.NOT_YET_VALID)
    if any(claims.get(name) != value for name, value in issuer.required_claims.items()):
        raise TokenRefused(TokenRefusal.CLAIMS)
    if issuer.one_time and expires - LEEWAY_SECONDS > now + MAX_ONE_TIME_SECONDS + LEEWAY_SECONDS:
        raise TokenRefused(TokenRefusal.CLAIMS)
    return expires


def _texts(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [each for each in values if isinstance(each, str)]


def _time(claims: dict[str, Any], name: str) -> float:
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TokenRefused(TokenRefusal.CLAIMS)
    return float(value)


def principal_of(claims: dict[str, Any], issuer: Issuer) -> Principal:
    """Named `issuer subject person`: the first two contain no spaces, so that the name can be read in one way only."""
    subject = claims.get(issuer.subject_claim)
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_LENGTH or not is_one_word(subject):
        raise TokenRefused(TokenRefusal.CLAIMS)
    words = [issuer.issuer, subject]
    if issuer.person_claim:
        person = claims.get(issuer.person_claim)
        if not isinstance(person, str) or not 0 < len(person) <= MAX_PERSON_LENGTH or not person.isprintable():
            raise TokenRefused(TokenRefusal.CLAIMS)
        words.append(person)
    return Principal(" ".join(words), issuer.scopes_of(claims.get(issuer.scope_claim)))
