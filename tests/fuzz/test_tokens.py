"""Whatever stands behind `Bearer`, a token is accepted only if its issuer signed it, and never ends in a defect."""

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.runtime.issuer_keys import IssuerKeys, read_key_set
from app.runtime.issuers import Issuer
from app.runtime.tokens import TokenRefused, TokenVerifier
from tests.issuers import AUDIENCE, NAME, claims, encoded, key_set, token

EXAMPLES = 1500
GOOD = token(exp=4102444800)
NOW = datetime.now(UTC)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from([NAME, AUDIENCE]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
header_names = st.sampled_from(["alg", "kid", "typ", "crit", "jku", "x5u", "jwk", "b64", "zip", "epk", "enc"])
claim_names = st.sampled_from(["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope"])
algorithms = st.sampled_from(["RS256", "RS384", "ES256", "ES384", "HS256", "none"])


def verifier() -> TokenVerifier:
    keys = IssuerKeys(Issuer(issuer=NAME, audiences=(AUDIENCE,), jwks_file="none"), lambda: 0.0)
    keys.keys, keys._tried_at = read_key_set(key_set()), 0.0  # so recently that nothing is read again
    return TokenVerifier([keys])


VERIFIER = verifier()


def is_accepted(text: str) -> bool:
    try:
        asyncio.run(VERIFIER.find(text, NOW))
    except TokenRefused:
        return False
    return True


def test_the_token_that_is_mutated_is_good() -> None:
    assert is_accepted(GOOD)


@hypothesis_settings(max_examples=EXAMPLES)
@given(
    st.dictionaries(header_names, json_values),
    st.dictionaries(claim_names, json_values),
    algorithms,
    st.sampled_from(["rsa", "p256", "p384"]),
    st.binary(min_size=2, max_size=300),
)
@pytest.mark.req("REQ-097")
def test_a_forged_token_is_never_accepted(
    header: dict[str, object], changes: dict[str, object], algorithm: str, key_id: str, signature: bytes
) -> None:
    head = encoded({"alg": algorithm, "kid": key_id, **header})
    assert not is_accepted(f"{head}.{encoded(claims() | changes)}.{encoded(signature)}")


@hypothesis_settings(max_examples=EXAMPLES)
@given(st.data())
def test_a_token_with_one_letter_changed_is_never_accepted(data: st.DataObject) -> None:
    """Except in the last letter, of which some bits mean nothing."""
    index = data.draw(st.integers(0, len(GOOD) - 2))
    letter = data.draw(st.characters(codec="ascii").filter(lambda drawn: drawn != GOOD[index]))
    assert not is_accepted(GOOD[:index] + letter + GOOD[index + 1 :])


@hypothesis_settings(max_examples=EXAMPLES)
@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda drawn: drawn.decode("latin-1")))
def test_any_text_is_refused_without_a_defect(text: str) -> None:
    assert not is_accepted(text)
