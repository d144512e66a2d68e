from pathlib import Path

import pytest

from app.errors import InvalidSettings
from app.runtime.issuers import ALGORITHMS, read_issuers
from tests.issuers import AUTHORITY, issuers_file

ENTRY = """
[[issuer]]
issuer = "https://login.example"
audiences = ["https://normalcy.example"]
jwks_url = "https://login.example/keys"
default_scopes = ["score"]
"""


def written(folder: Path, text: str) -> str:
    path = folder / "issuers.toml"
    path.write_text(text)
    return str(path)


def test_without_a_file_there_is_no_issuer() -> None:
    assert read_issuers("") == ()


def test_an_entry_has_safe_defaults(tmp_path: Path) -> None:
    [issuer] = read_issuers(written(tmp_path, ENTRY))
    assert issuer.algorithms == ALGORITHMS == ("RS256", "RS384", "ES256", "ES384")
    assert (issuer.subject_claim, issuer.scope_claim, issuer.one_time) == ("sub", "scope", False)


def test_files_are_looked_for_beside_the_issuers_file(tmp_path: Path) -> None:
    [issuer] = read_issuers(issuers_file(tmp_path, 'jwks_file = "keys.json"'))
    assert issuer.jwks_file == str(tmp_path / "keys.json")


@pytest.mark.parametrize(
    ("change", "to", "message"),
    [
        ("audiences", "audience", "unknown field `audience`"),
        ('audiences = ["https://normalcy.example"]\n', "", "missing required field `audiences`"),
        ('["https://normalcy.example"]', "[]", "must have audiences"),
        ('["https://normalcy.example"]', '[""]', "must have audiences"),
        ("https://login.example/keys", "http://login.example/keys", "begins with https://"),
        ("https://login.example/keys", "https://user@login.example/keys", "begins with https://"),
        ("https://login.example/keys", "https://login.example:port/keys", "begins with https://"),
        ("https://login.example/keys", "file:///keys", "begins with https://"),
        ("jwks_url", 'jwks_file = "keys.json"\njwks_url', "either jwks_url or jwks_file"),
        ('jwks_url = "https://login.example/keys"\n', "", "either jwks_url or jwks_file"),
        ('"https://login.example"', '"https://login.example x"', "without spaces"),
        ('"https://login.example"', '""', "without spaces"),
        ('["score"]', "[]", "must have scopes or default_scopes"),
        ('["score"]', '["score", "admin"]', "may have only model:read and score"),
        ('["score"]', '["everything"]', "everything"),
        ('["score"]', '["score"]\nalgorithms = []', "must have algorithms"),
        ('["score"]', '["score"]\nalgorithms = ["HS256"]', "HS256"),
        ('["score"]', '["score"]\nalgorithms = ["none"]', "none"),
        ('["score"]', '["score"]\none_time = "yes"', "Expected `bool`"),
        ("[[issuer]]", "issuer = [", "cannot be used"),
        (ENTRY, "issuer = []", "there is no"),
        (ENTRY, ENTRY + ENTRY, "two entries have the same issuer"),
    ],
)
def test_a_file_that_is_not_right_refuses_the_start(tmp_path: Path, change: str, to: str, message: str) -> None:
    assert change in ENTRY
    with pytest.raises(InvalidSettings, match=message):
        read_issuers(written(tmp_path, ENTRY.replace(change, to, 1)))


def test_everything_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings) as refused:
        read_issuers(written(tmp_path, '[[issuer]]\nissuer = ""\naudiences = []\n'))
    assert len(refused.value.problems) == 4


def test_a_file_that_cannot_be_read_is_named_by_its_setting(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="NORMALCY_JWT_ISSUERS_FILE names a file"):
        read_issuers(str(tmp_path / "missing.toml"))


def test_keys_may_come_over_http_from_this_machine_only(tmp_path: Path) -> None:
    for host in ("127.0.0.1:81", "localhost", "[::1]:81"):
        assert read_issuers(written(tmp_path, ENTRY.replace("https://login.example/keys", f"http://{host}/keys")))


def test_the_example_for_operators_is_accepted(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "operators.md").read_text(encoding="utf-8")
    example = text.split("```toml\n")[1].split("```")[0]
    smart, hooks = read_issuers(written(tmp_path, example))
    assert smart.scopes_of("user/Observation.c openid") == {"score", "model:read"}
    assert hooks.one_time
    assert hooks.scopes_of(None) == {"score"}


@pytest.mark.parametrize("content", [None, "", "no certificate\n"])
def test_authorities_that_cannot_be_read_refuse_the_start(tmp_path: Path, content: str | None) -> None:
    """Otherwise the keys could never be read, which looks like an issuer that is down."""
    if content is not None:
        (tmp_path / "authority.pem").write_text(content)
    with pytest.raises(InvalidSettings, match="issuer 1 must have a jwks_ca_file that is a readable file"):
        read_issuers(written(tmp_path, ENTRY + 'jwks_ca_file = "authority.pem"\n'))


def test_authorities_are_looked_for_beside_the_issuers_file(tmp_path: Path) -> None:
    (tmp_path / "authority.pem").write_text(AUTHORITY)
    [issuer] = read_issuers(written(tmp_path, ENTRY + 'jwks_ca_file = "authority.pem"\n'))
    assert issuer.jwks_ca_file == str(tmp_path / "authority.pem")
