"""The issuers file: whose JWTs are accepted, for which audiences, signed by which keys, and what their claims allow.

TOML, named by NORMALCY_JWT_ISSUERS_FILE and read at the start. docs/operators.md describes every entry.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, get_args
from urllib.parse import SplitResult, urlsplit

import msgspec

from app.domain.scopes import Scope
from app.errors import InvalidSettings
from app.settings import is_loopback, readable_certificates

Algorithm = Literal["RS256", "RS384", "ES256", "ES384"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
WITHOUT_A_CLAIM = frozenset({Scope.SCORE, Scope.MODEL_READ})  # nobody becomes an administrator by default
MAX_ISSUER_LENGTH = 128  # with the subject and the person it must fit into a record's principal
SETTING = "NORMALCY_JWT_ISSUERS_FILE"


class Issuer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One entry of the file."""

    issuer: str  # the claim `iss`, exactly
    audiences: tuple[str, ...]  # one of them must be in the claim `aud`
    jwks_url: str = ""
    jwks_ca_file: str = ""  # authorities for that URL, instead of the system's
    jwks_file: str = ""
    algorithms: tuple[Algorithm, ...] = ALGORITHMS
    subject_claim: str = "sub"
    person_claim: str = ""  # the human on whose behalf the token was issued
    scope_claim: str = "scope"  # a text separated by spaces, or a list of texts
    scopes: dict[str, tuple[Scope, ...]] = {}  # a value of that claim -> what it allows here
    default_scopes: tuple[Scope, ...] = ()  # of every token, whatever it claims
    required_claims: dict[str, str] = {}
    one_time: bool = False  # each token may be used once, by its claim `jti`

    def scopes_of(self, claimed: object) -> frozenset[str]:
        values = claimed.split() if isinstance(claimed, str) else claimed if isinstance(claimed, list) else []
        granted = [scope for value in values if isinstance(value, str) for scope in self.scopes.get(value, ())]
        return frozenset([*self.default_scopes, *granted])


class IssuersFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    issuer: tuple[Issuer, ...]


def read_issuers(path: str) -> tuple[Issuer, ...]:
    """Empty if no file is named. Raises InvalidSettings with everything that is wrong."""
    if not path:
        return ()
    try:
        found = msgspec.convert(tomllib.loads(Path(path).read_text(encoding="utf-8")), IssuersFile).issuer
    except (OSError, UnicodeDecodeError):
        raise InvalidSettings([f"{SETTING} names a file that cannot be read as text."]) from None
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InvalidSettings([f"The file of {SETTING} cannot be used: {error}."]) from None
    folder = Path(path).resolve().parent
    issuers = tuple(_with_paths(issuer, folder) for issuer in found)
    problems = [f"The file of {SETTING}: {problem}." for problem in _problems(issuers)]
    if problems:
        raise InvalidSettings(problems)
    return issuers


def _with_paths(issuer: Issuer, folder: Path) -> Issuer:
    """Relative files are looked for beside the issuers file."""
    paths = {
        name: str(folder / getattr(issuer, name)) for name in ("jwks_file", "jwks_ca_file") if getattr(issuer, name)
    }
    return msgspec.structs.replace(issuer, **paths)


def _problems(issuers: tuple[Issuer, ...]) -> Iterator[str]:
    if not issuers:
        yield "there is no [[issuer]]"
    if len({issuer.issuer for issuer in issuers}) < len(issuers):
        yield "two entries have the same issuer"
    for number, issuer in enumerate(issuers, start=1):
        yield from (f"issuer {number} {problem}" for problem in _problems_of(issuer))


def _problems_of(issuer: Issuer) -> Iterator[str]:
    if not 0 < len(issuer.issuer) <= MAX_ISSUER_LENGTH or not is_one_word(issuer.issuer):
        yield f"must have an issuer of 1 to {MAX_ISSUER_LENGTH} printable characters without spaces"
    if not issuer.audiences or not all(issuer.audiences):
        yield "must have audiences, none of them empty"
    if not issuer.algorithms:
        yield f"must have algorithms: {', '.join(ALGORITHMS)}"
    if bool(issuer.jwks_url) == bool(issuer.jwks_file):
        yield "must have either jwks_url or jwks_file"
    if issuer.jwks_url and not _is_acceptable(issuer.jwks_url):
        yield "must have a jwks_url that begins with https://, without user and fragment (http:// only to this machine)"
    if issuer.jwks_ca_file and not issuer.jwks_url.startswith("https://"):
        yield "has a jwks_ca_file, which needs a jwks_url with https://"
    if not _has_certificates(issuer.jwks_ca_file):
        yield "must have a jwks_ca_file that is a readable file of certificates"
    if not issuer.scopes and not issuer.default_scopes:
        yield "must have scopes or default_scopes: without them its tokens allow nothing"
    if not WITHOUT_A_CLAIM.issuperset(issuer.default_scopes):
        yield f"may have only {' and '.join(sorted(WITHOUT_A_CLAIM))} in default_scopes: others need a claim"


def _has_certificates(file: str) -> bool:
    try:
        readable_certificates(file)
    except ValueError:
        return False
    return True


def is_one_word(text: str) -> bool:
    return text.isprintable() and not any(letter.isspace() for letter in text)


def _is_acceptable(url: str) -> bool:
    try:
        parts: SplitResult = urlsplit(url)
        _ = parts.port  # raises ValueError
    except ValueError:
        return False
    is_private = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    return is_private and bool(parts.hostname) and not parts.username and not parts.fragment
