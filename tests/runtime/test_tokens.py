"""Which tokens are accepted. Each refusal is tested by its reason, so that no other check hides a broken one."""

import base64
import hmac
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from app.errors import TooManyTokens
from app.runtime import used_tokens
from app.runtime.credentials import Principal
from app.runtime.issuer_keys import IssuerKeys, read_key_set
from app.runtime.issuers import Issuer
from app.runtime.tokens import TokenRefusal, TokenRefused, TokenVerifier
from tests.issuers import (
    AUDIENCE,
    KEY_OF,
    NAME,
    OTHER_RSA_KEY,
    RSA_KEY,
    claims,
    encoded,
    forged,
    key_set,
    public_jwk,
    token,
)

pytestmark = pytest.mark.anyio
OTHER_NAME = "https://other.example"
PEM = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def issuer_keys(content: bytes = b"", **entry: Any) -> IssuerKeys:
    defaults = {"scopes": {"system/score.c": ("score",), "admins": ("admin", "audit:read")}}
    keys = IssuerKeys(
        Issuer(**{"issuer": NAME, "audiences": (AUDIENCE, "b"), "jwks_file": "none", **defaults, **entry})
    )
    keys.keys = read_key_set(content or key_set())
    return keys


def verifier(**entry: Any) -> TokenVerifier:
    other = issuer_keys(key_set({"theirs": OTHER_RSA_KEY}), issuer=OTHER_NAME)
    return TokenVerifier([issuer_keys(**entry), other])


def now(**after: float) -> datetime:
    return datetime.now(UTC) + timedelta(**after)


async def use(verifying: TokenVerifier, text: str, at: datetime) -> Principal:
    """As a request that is admitted."""
    found = await verifying.find(text, at)
    verifying.use(found, at)
    return found.principal


async def refusal(text: str, verifying: TokenVerifier | None = None, at: datetime | None = None) -> TokenRefusal:
    with pytest.raises(TokenRefused) as refused:
        await use(verifying or verifier(), text, at or now())
    return refused.value.reason


def hmac_signed(secret: bytes, algorithm: str) -> str:
    signed = f"{encoded({'alg': algorithm, 'kid': 'rsa', 'typ': 'JWT'})}.{encoded(claims())}"
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"


@pytest.mark.parametrize("algorithm", list(KEY_OF))
async def test_a_token_of_each_algorithm_gives_its_principal(algorithm: str) -> None:
    principal = await use(verifier(), token(algorithm), now())
    assert principal.name == f"{NAME} dr-7"
    assert principal.scopes == {"score"}


@pytest.mark.parametrize("secret", [PEM, PEM.strip(), key_set(), json.dumps(public_jwk("rsa", RSA_KEY)).encode(), b""])
@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
async def test_a_public_key_is_no_secret(secret: bytes, algorithm: str) -> None:
    """The classic confusion: a verifier that takes the algorithm from the token accepts what anyone can sign."""
    assert await refusal(hmac_signed(secret, algorithm)) is TokenRefusal.ALGORITHM


@pytest.mark.parametrize(
    "algorithm", ["none", "None", "NONE", "", None, "RS512", "PS256", "ES512", "EdDSA", 1, ["RS256"]]
)
@pytest.mark.req("REQ-097")
async def test_other_algorithms_are_refused(algorithm: object) -> None:
    assert await refusal(forged({"alg": algorithm, "kid": "rsa"}, claims())) is TokenRefusal.ALGORITHM
    unsigned = f"{encoded({'alg': algorithm, 'kid': 'rsa'})}.{encoded(claims())}."
    assert await refusal(unsigned) is TokenRefusal.MALFORMED


async def test_a_key_serves_its_own_algorithm_only() -> None:
    narrow = json.dumps({"keys": [public_jwk("rsa", RSA_KEY, alg="RS384")]}).encode()
    verifying = TokenVerifier([issuer_keys(narrow)])
    assert await refusal(token("RS256"), verifying) is TokenRefusal.ALGORITHM
    assert await use(verifying, token("RS384"), now())
    for algorithm, key in (("ES256", "p384"), ("RS256", "p256"), ("ES384", "rsa")):
        text = token(algorithm, headers={"kid": key})
        assert await refusal(text) is TokenRefusal.ALGORITHM, algorithm


async def test_an_issuer_may_allow_fewer_algorithms() -> None:
    assert await refusal(token("RS256"), verifier(algorithms=("ES384",))) is TokenRefusal.ALGORITHM


@pytest.mark.req("REQ-097")
async def test_a_key_of_another_issuer_opens_nothing() -> None:
    theirs = token("RS256", OTHER_RSA_KEY, {"kid": "theirs"})
    assert await refusal(theirs) is TokenRefusal.UNKNOWN_KEY
    borrowed = token("RS256", OTHER_RSA_KEY, {"kid": "rsa"})
    assert await refusal(borrowed) is TokenRefusal.SIGNATURE
    honest = token("RS256", OTHER_RSA_KEY, {"kid": "theirs"}, iss=OTHER_NAME)
    assert (await use(verifier(), honest, now())).name == f"{OTHER_NAME} dr-7"


@pytest.mark.parametrize("member", ["jku", "x5u", "jwk", "x5c"])
@pytest.mark.req("REQ-097")
async def test_keys_that_a_token_brings_along_are_never_used(member: str) -> None:
    own = {
        "jku": "http://127.0.0.1:1/keys",
        "x5u": "http://127.0.0.1:1/certificate",
        "jwk": public_jwk("rsa", OTHER_RSA_KEY),
        "x5c": ["AA=="],
    }
    text = token("RS256", OTHER_RSA_KEY, {member: own[member]})
    assert await refusal(text) is TokenRefusal.SIGNATURE


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": "https://elsewhere.example"}, TokenRefusal.AUDIENCE),
        ({"aud": AUDIENCE + "/"}, TokenRefusal.AUDIENCE),
        ({"aud": None}, TokenRefusal.AUDIENCE),
        ({"aud": []}, TokenRefusal.AUDIENCE),
        ({"aud": {"b": 1}}, TokenRefusal.AUDIENCE),
        ({"iss": "https://unknown.example"}, TokenRefusal.UNKNOWN_ISSUER),
        ({"iss": None}, TokenRefusal.UNKNOWN_ISSUER),
        ({"iss": [NAME]}, TokenRefusal.UNKNOWN_ISSUER),
        ({"exp": None}, TokenRefusal.CLAIMS),
        ({"exp": "tomorrow"}, TokenRefusal.CLAIMS),
        ({"exp": True}, TokenRefusal.CLAIMS),
        ({"exp": time.time() - 61}, TokenRefusal.EXPIRED),
        ({"nbf": time.time() + 3600}, TokenRefusal.NOT_YET_VALID),
        ({"iat": time.time() + 3600}, TokenRefusal.NOT_YET_VALID),
        ({"nbf": "now"}, TokenRefusal.CLAIMS),
        ({"sub": None}, TokenRefusal.CLAIMS),
        ({"sub": ""}, TokenRefusal.CLAIMS),
        ({"sub": "dr 7"}, TokenRefusal.CLAIMS),
        ({"sub": "dr\n7"}, TokenRefusal.CLAIMS),
        ({"sub": "x" * 256}, TokenRefusal.CLAIMS),
    ],
)
async def test_claims_that_are_not_right_are_refused(changes: dict[str, Any], reason: TokenRefusal) -> None:
    parts = f"{encoded({'alg': 'RS256', 'kid': 'rsa'})}.{encoded(claims(**changes))}"
    assert await refusal(signed(parts)) is reason


def signed(parts: str) -> str:
    """By the right key, whatever the parts say; the library would refuse to sign some of them."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA256

    return f"{parts}.{encoded(RSA_KEY.sign(parts.encode(), PKCS1v15(), SHA256()))}"


@pytest.mark.parametrize("header", [{"crit": ["exp"]}, {"b64": False}, {"zip": "DEF"}, {"typ": "JWE"}, {"typ": 1}])
async def test_headers_that_change_the_meaning_are_refused(header: dict[str, Any]) -> None:
    parts = f"{encoded({'alg': 'RS256', 'kid': 'rsa', **header})}.{encoded(claims())}"
    assert await refusal(signed(parts)) is TokenRefusal.MALFORMED


async def test_a_key_named_twice_has_no_meaning() -> None:
    content = json.dumps(claims())[:-1] + ', "aud": "https://elsewhere.example"}'
    parts = f"{encoded({'alg': 'RS256', 'kid': 'rsa'})}.{encoded(content.encode())}"
    assert await refusal(signed(parts)) is TokenRefusal.MALFORMED


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a.b", "a.b.c.d", "e30.e30.", "e30.e30.AA==", "é.é.é", "AA.AA.AA", "x" * 9000]
)
async def test_what_is_not_a_token_is_refused(text: str) -> None:
    assert await refusal(text) in (TokenRefusal.MALFORMED, TokenRefusal.ALGORITHM)


async def test_times_have_a_minute_of_leeway() -> None:
    text = token(nbf=time.time() + 50, exp=time.time() + 100)
    verifying = verifier()
    assert await use(verifying, text, now())
    assert await use(verifying, text, now(seconds=150))
    assert await refusal(text, verifying, now(seconds=161)) is TokenRefusal.EXPIRED  # although it is remembered


async def test_a_changed_token_is_not_the_one_that_was_verified() -> None:
    verifying, text = verifier(), token()
    await use(verifying, text, now())
    header, content, signature = text.split(".")
    wider = json.loads(base64.urlsafe_b64decode(content + "==")) | {"scope": "system/score.c admins"}
    assert await refusal(f"{header}.{encoded(wider)}.{signature}", verifying) is TokenRefusal.SIGNATURE


async def test_a_remembered_token_is_verified_again_when_the_keys_change() -> None:
    keys, text = issuer_keys(), token()
    verifying = TokenVerifier([keys])
    await use(verifying, text, now())
    keys.keys = read_key_set(key_set({"rsa": OTHER_RSA_KEY}))
    assert await refusal(text, verifying) is TokenRefusal.SIGNATURE


async def test_claims_become_the_scopes_that_the_issuer_may_give() -> None:
    granted = {
        "system/score.c": {"score"},
        "admins system/score.c": {"score", "admin", "audit:read"},
        "openid admin score": set(),
        "": set(),
    }
    for claim, scopes in granted.items():
        for value in (claim, claim.split()):
            assert (await use(verifier(), token(scope=value), now())).scopes == scopes
    for nonsense in (None, 7, {"admins": True}, [["admins"]]):
        assert (await use(verifier(), token(scope=nonsense), now())).scopes == set()
    assert (await use(verifier(default_scopes=("model:read",)), token(scope=None), now())).scopes == {"model:read"}
    assert (await use(verifier(scope_claim="roles"), token(roles=["admins"]), now())).scopes == {"admin", "audit:read"}


async def test_the_person_behind_a_token_is_part_of_the_name() -> None:
    verifying = verifier(person_claim="fhirUser")
    principal = await use(verifying, token(fhirUser="Practitioner/123"), now())
    assert principal.name == f"{NAME} dr-7 Practitioner/123"
    assert await refusal(token(), verifying) is TokenRefusal.CLAIMS
    assert await refusal(token(fhirUser="x\0y"), verifying) is TokenRefusal.CLAIMS


async def test_required_claims_tell_tenants_apart() -> None:
    verifying = verifier(required_claims={"tenant": "north"})
    assert await use(verifying, token(tenant="north"), now())
    assert await refusal(token(tenant="south"), verifying) is TokenRefusal.CLAIMS
    assert await refusal(token(), verifying) is TokenRefusal.CLAIMS


async def test_a_cds_hooks_token_is_named_by_its_issuer_and_used_once() -> None:
    verifying = verifier(subject_claim="iss", one_time=True, default_scopes=("score",))
    text = token("ES384", sub=None, scope=None, jti="call-1", tenant="north")
    assert (await use(verifying, text, now())).name == f"{NAME} {NAME}"
    assert await refusal(text, verifying) is TokenRefusal.REPLAYED
    again = token("ES384", sub=None, jti="call-1")  # another signature of the same token
    assert await refusal(again, verifying) is TokenRefusal.REPLAYED
    assert await use(verifying, token("ES384", sub=None, jti="call-2"), now())
    assert await refusal(token("ES384", sub=None), verifying) is TokenRefusal.CLAIMS
    too_long = token("ES384", sub=None, jti="call-3", exp=time.time() + 3600)
    assert await refusal(too_long, verifying) is TokenRefusal.CLAIMS


async def test_an_ordinary_token_may_be_used_again() -> None:
    verifying, text = verifier(), token(jti="one")
    assert await use(verifying, text, now()) == await use(verifying, text, now())


async def test_to_look_at_a_token_does_not_use_it() -> None:
    verifying, text = verifier(one_time=True), token(jti="one")
    await verifying.verify(text, now())
    assert await use(verifying, text, now())


async def test_a_caller_that_is_refused_for_another_reason_may_send_its_token_again() -> None:
    verifying, text = verifier(one_time=True), token(jti="one")
    await verifying.find(text, now())  # the rate is checked between the two
    assert await use(verifying, text, now())


@pytest.mark.req("REQ-103")
async def test_an_issuer_with_too_many_tokens_is_refused_as_busy_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(used_tokens, "MAX_USED", 2)
    busy = issuer_keys(one_time=True)
    other = issuer_keys(key_set({"theirs": OTHER_RSA_KEY}), issuer=OTHER_NAME, one_time=True)
    verifying = TokenVerifier([busy, other])
    for jti in ("1", "2"):
        await use(verifying, token(jti=jti), now())
    with pytest.raises(TooManyTokens):
        await use(verifying, token(jti="3"), now())
    assert await refusal(token(jti="1"), verifying) is TokenRefusal.REPLAYED
    theirs = token("RS256", OTHER_RSA_KEY, {"kid": "theirs"}, iss=OTHER_NAME, jti="1")
    assert await use(verifying, theirs, now())
    late = token(jti="3", exp=time.time() + 500)
    assert await use(verifying, late, now(seconds=400))  # the first ones have expired


def test_no_symmetric_algorithm_is_known_to_the_library_as_we_use_it() -> None:
    from app.runtime.tokens import _jws

    assert set(_jws.get_algorithms()) == {"RS256", "RS384", "ES256", "ES384"}
