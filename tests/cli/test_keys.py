import hashlib
from datetime import datetime, timedelta

import pytest

from app.cli.keys import Scope
from app.database.engine import Database
from app.database.keys import SCOPES, SHAPE, list_keys
from app.settings import Settings
from tests.cli.running import Normalcy
from tests.postgres import PostgresServer
from tests.web.serving import on_database

CREATE = ("keys", "create", "--name", "ward 7", "--scope", "score", "--scope", "audit:read")


async def kept(database: Database) -> list[bytes]:
    async with database.reading() as connection:
        return [key.secret_sha256 for key in await list_keys(connection)]


def test_the_scopes_of_the_command_are_those_of_the_database() -> None:
    assert tuple(Scope) == SCOPES


def test_a_key_stands_alone_on_standard_output_and_is_kept_as_a_hash_only(
    normalcy: Normalcy, settings: Settings
) -> None:
    done = normalcy(*CREATE)
    assert done.code == 0
    key = done.out.removesuffix("\n")
    assert SHAPE.fullmatch(key)
    assert on_database(settings, kept) == [hashlib.sha256(key.encode()).digest()]
    listed = normalcy("keys", "list", "--json")
    assert key.split("_", 2)[2] not in listed.out + done.err
    assert listed.json[0]["scopes"] == ["audit:read", "score"]


def test_a_key_expires_after_its_days_and_never_without(normalcy: Normalcy) -> None:
    made = normalcy(*CREATE, "--days", 30, "--json").json
    created, expires = (datetime.fromisoformat(made[name]) for name in ("created_at", "expires_at"))
    assert expires - created == timedelta(days=30)
    assert normalcy(*CREATE, "--json").json["expires_at"] is None


def test_a_revoked_key_stays_revoked_and_listed(normalcy: Normalcy) -> None:
    key_id = normalcy(*CREATE, "--json").json["key_id"]
    first = normalcy("keys", "revoke", key_id, "--json").json
    again = normalcy("keys", "revoke", key_id, "--json").json
    assert first["state"] == "revoked"
    assert again["revoked_at"] == first["revoked_at"]
    listed = normalcy("keys", "list").out
    assert key_id in listed
    assert "revoked" in listed


def test_an_unknown_key_is_one_sentence(normalcy: Normalcy) -> None:
    done = normalcy("keys", "revoke", "abcdefgh")
    assert (done.code, done.out, done.err) == (1, "", "normalcy: No API key has the id abcdefgh.\n")


@pytest.mark.parametrize("wrong", [["--scope", "everything"], [], ["--scope", "score", "--days", "0"]])
def test_a_scope_must_be_one_that_there_is(alone: Normalcy, wrong: list[str]) -> None:
    assert alone("keys", "create", "--name", "x", *wrong).code == 2


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 129])
def test_a_name_is_short_and_printable(alone: Normalcy, name: str) -> None:
    assert alone("keys", "create", "--name", name, "--scope", "score").code == 2


def test_the_first_key_of_a_fresh_machine_needs_no_other_command(alone: Normalcy, embedded: Settings) -> None:
    assert "No API key exists" in alone("keys", "list").out
    assert alone(*CREATE).code == 0
    assert len(on_database(embedded, kept)) == 1


def test_a_login_that_may_not_make_keys_is_told_so(
    server: PostgresServer, migrated_postgres: str, alone: Normalcy, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.run("CREATE ROLE normalcy_test_login LOGIN IN ROLE normalcy_writer, normalcy_auditor")
    try:
        url = server.url(migrated_postgres).replace("//postgres@", "//normalcy_test_login@")
        monkeypatch.setenv("NORMALCY_DATABASE_URL", url)
        done = alone(*CREATE)
        assert (done.code, done.out) == (1, "")
        assert "lacks the rights" in done.err
        assert len(done.err.splitlines()) == 1
    finally:
        server.run("DROP ROLE normalcy_test_login")
