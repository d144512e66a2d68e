"""What somebody wrote into the database is printed on its line, and controls no terminal."""

import json

import pytest

from app.settings import Settings
from tests.cli.running import READING, Done, Normalcy, tamper

pytestmark = pytest.mark.slow
HOSTILE = "\x1b[2J\x9b1m\u202e\x7f\nIntact: 999 records in 9 chains"
ESCAPED = r"\u001b[2J\u009b1m\u202e\u007f\nIntact: 999 records in 9 chains"


def is_clean(done: Done) -> bool:
    return all(line.isprintable() for line in (done.out + done.err).split("\n"))


def test_a_checkpoint_of_a_key_with_a_hostile_name(normalcy: Normalcy, settings: Settings) -> None:
    assert normalcy("score", "--site", "SoV", *READING).code == 0
    before = normalcy("audit", "verify").out
    body = {"v": 1, "kind": "written", "key_id": HOSTILE, "number": 1, "previous": "0" * 64, "database": "", "ends": []}
    writer = "0199a0b0-0000-7000-8000-000000000000"
    body |= {"writer": writer, "at": "2026-11-15T10:30:00.123Z", "public_key": None}
    body["root"] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of no chains
    stored = writer if settings.database_url else writer.replace("-", "")
    tamper(
        settings,
        "INSERT INTO audit_checkpoints VALUES (:writer, 1, 'written', :body, :signature)",
        writer=stored,
        body=json.dumps(body).encode(),
        signature=bytes(64),
    )
    found = normalcy("audit", "verify")
    assert found.code == 1
    assert f"a checkpoint names the key {ESCAPED}, which is not trusted" in found.out
    assert is_clean(found)
    assert len(found.out.splitlines()) == len(before.splitlines()) + 1
    assert is_clean(normalcy("audit", "verify", "--json"))


def test_a_key_with_a_hostile_name(normalcy: Normalcy, settings: Settings) -> None:
    assert normalcy("keys", "create", "--name", "ward", "--scope", "score").code == 0
    tamper(settings, "UPDATE api_keys SET name = :name", name=f"[red]{HOSTILE}")
    listed = normalcy("keys", "list")
    assert listed.code == 0
    assert is_clean(listed)
    assert "[red]" in listed.out
    as_json = normalcy("keys", "list", "--json")
    assert is_clean(as_json)
    assert as_json.json[0]["name"] == f"[red]{HOSTILE}"


def test_a_record_with_a_hostile_principal(normalcy: Normalcy, settings: Settings) -> None:
    request_id = normalcy("score", "--site", "SoV", *READING, "--json").json["request_id"]
    tamper(settings, "UPDATE audit_records SET principal = :text, payload = :payload WHERE kind = 'score'",
           text=HOSTILE, payload=b"{")  # fmt: skip
    for arguments in ((), (request_id,), (request_id, "--json")):
        shown = normalcy("audit", "show", *arguments)
        assert shown.code == 1
        assert is_clean(shown)
        assert "999 records" in shown.out
