import hashlib
import re
from datetime import datetime, timedelta

import pytest

from app.database.engine import Database
from app.database.keys import KEY_PATTERN, list_keys
from app.database.sqlite import FILE_NAME
from app.settings import Settings
from tests.cli.running import Normalcy, tamper
from tests.postgres import PostgresServer
from tests.web.serving import on_database, records

CREATE = ("keys", "create", "--name", "ward 7", "--scope", "score", "--scope", "audit:read")


async def stored_hashes(database: Database) -> list[bytes]:
    async with database.reading() as connection:
        return [key.secret_sha256 for key in await list_keys(connection)]


@pytest.mark.req("REQ-094")
def test_a_key_is_the_only_line_on_standard_output_and_is_stored_as_a_hash(
    normalcy: Normalcy, settings: Settings
) -> None:
    done = normalcy(*CREATE)
    assert done.code == 0
    key = done.out.removesuffix("\n")
    assert KEY_PATTERN.fullmatch(key)
    assert on_database(settings, stored_hashes) == [hashlib.sha256(key.encode()).digest()]
    listed = normalcy("keys", "list", "--json")
    assert key.split("_", 2)[2] not in listed.out + done.err
    assert listed.json[0]["scopes"] == ["audit:read", "score"]


@pytest.mark.parametrize(("option", "days"), [((), 365), (("--days", 30), 30)])
def test_a_key_expires_after_its_days_or_a_year(normalcy: Normalcy, option: tuple[object, ...], days: int) -> None:
    made = normalcy(*CREATE, *option, "--json").json
    created, expires = (datetime.fromisoformat(made[name]) for name in ("created_at", "expires_at"))
    assert expires - created == timedelta(days=days)


def test_a_key_without_expiry_is_made_with_a_warning(normalcy: Normalcy) -> None:
    done = normalcy(*CREATE, "--days", 0, "--json")
    assert done.json["expires_at"] is None
    assert "Warning: this key never expires" in done.err
    assert "Warning" not in normalcy(*CREATE).err


def test_a_list_announces_what_expires_within_30_days(normalcy: Normalcy) -> None:
    soon = normalcy(*CREATE, "--days", 30, "--json").json
    later = normalcy(*CREATE, "--days", 31, "--json").json
    listed = {key["key_id"]: key["expires_soon"] for key in normalcy("keys", "list", "--json").json}
    assert listed == {soon["key_id"]: True, later["key_id"]: False}
    assert normalcy("keys", "list").out.count("soon") == 1


def test_a_list_without_keys_says_whether_there_were_any(normalcy: Normalcy, settings: Settings) -> None:
    normalcy(*CREATE)
    assert "deleted" not in normalcy("keys", "list").out
    tamper(settings, "DELETE FROM key_uses")
    tamper(settings, "DELETE FROM api_keys")
    done = normalcy("keys", "list")
    assert (done.code, "somebody deleted them" in done.out) == (0, True)


def test_making_and_revoking_a_key_is_recorded_once_each_and_verified(normalcy: Normalcy, settings: Settings) -> None:
    made = normalcy(*CREATE, "--json").json
    for _ in range(2):  # the second time changes nothing
        revoked = normalcy("keys", "revoke", made["key_id"], "--json").json
    changes = sorted((r for r in records(settings) if r.kind == "key"), key=lambda record: record.record_id)
    assert [(r.output["step"], r.output["key_id"], r.route) for r in changes] == [
        ("created", made["key_id"], "normalcy keys create"),
        ("revoked", made["key_id"], "normalcy keys revoke"),
    ]
    assert (changes[0].output["expires_at"], changes[0].output["scopes"]) == (
        made["expires_at"],
        ["audit:read", "score"],
    )
    assert changes[1].output["revoked_at"] == revoked["revoked_at"]
    assert {r.principal.partition(":")[0] for r in changes} == {"command-line"}
    assert normalcy("audit", "verify").code == 0


@pytest.mark.req("REQ-172")
@pytest.mark.parametrize(("option", "days"), [((), 7), (("--overlap-days", 0), 0), (("--overlap-days", 90), 30)])
def test_a_rotated_key_has_a_successor_with_its_rights_and_lives_for_the_overlap(
    normalcy: Normalcy, settings: Settings, option: tuple[object, ...], days: int
) -> None:
    """The old key is never prolonged: it would have expired after 30 days."""
    old = normalcy(*CREATE, "--days", 30, "--json").json
    done = normalcy("keys", "rotate", old["key_id"], *option)
    assert (done.code, bool(KEY_PATTERN.fullmatch(done.out.removesuffix("\n")))) == (0, True)
    listed = {key["key_id"]: key for key in normalcy("keys", "list", "--json").json}
    successor = listed[done.out.split("_")[1]]
    assert (successor["name"], successor["scopes"]) == (old["name"], old["scopes"])
    assert (successor["replaces"], successor["state"]) == (old["key_id"], "live")
    created, expires, ends = (
        datetime.fromisoformat(text)
        for text in (successor["created_at"], successor["expires_at"], listed[old["key_id"]]["expires_at"])
    )
    assert expires - created == timedelta(days=30)
    assert abs(ends - created - timedelta(days=days)) < timedelta(minutes=5)
    assert listed[old["key_id"]]["state"] == ("live" if days else "expired")
    changes = [r for r in records(settings) if r.kind == "key" and r.route == "normalcy keys rotate"]
    assert {(r.output["step"], r.output["key_id"]) for r in changes} == {
        ("rotated", old["key_id"]),
        ("created", successor["key_id"]),
    }
    assert {r.principal.partition(":")[0] for r in changes} == {"command-line"}
    assert normalcy("audit", "verify").code == 0
    assert normalcy("keys", "list").out.count("replaced") == 1


def test_a_successor_of_a_key_without_expiry_never_expires_either(normalcy: Normalcy) -> None:
    old = normalcy(*CREATE, "--days", 0, "--json").json
    done = normalcy("keys", "rotate", old["key_id"], "--json")
    assert (done.json["expires_at"], done.json["old_key"]["state"]) == (None, "live")
    assert done.json["old_key"]["expires_at"] is not None
    assert "never expires" in done.err


def test_a_key_that_is_not_live_or_already_replaced_is_not_rotated(normalcy: Normalcy, settings: Settings) -> None:
    assert normalcy("keys", "rotate", "abcdefgh").err == "normalcy: No API key has the id abcdefgh.\n"
    revoked, replaced, edited = (normalcy(*CREATE, "--json").json["key_id"] for _ in range(3))
    normalcy("keys", "revoke", revoked)
    successor = normalcy("keys", "rotate", replaced, "--json").json["key_id"]
    tamper(settings, "UPDATE api_keys SET expires_at = 'x' WHERE key_id = :id", id=edited)
    before = len(records(settings))
    for key_id, reason in (
        (revoked, "it is revoked"),
        (replaced, f"{successor} already"),
        (edited, "its times were edited"),
    ):
        done = normalcy("keys", "rotate", key_id)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith(f"normalcy: Key {key_id} was not rotated: {reason}")
    assert len(records(settings)) == before
    assert normalcy("keys", "rotate", successor).code == 0
    assert normalcy("keys", "rotate", successor, "--overlap-days", 366).code == 2


def test_a_key_that_was_prolonged_is_tampering(normalcy: Normalcy, settings: Settings) -> None:
    key_id = normalcy(*CREATE, "--json").json["key_id"]
    tamper(settings, "UPDATE api_keys SET expires_at = '2999-01-01T00:00:00.000Z'")
    done = normalcy("audit", "verify")
    assert done.code == 1
    assert done.out.startswith(f"ROW_CHANGED: row {key_id} of api_keys (record ")
    assert "columns differ from the record: expires_at.\n" in done.out
    assert "TAMPERED WITH" in done.out
    assert [row["damage"] for row in normalcy("audit", "verify", "--json").json["rows"]] == ["ROW_CHANGED"]
    assert normalcy("audit", "verify", "--since", "2999-01").code == 1  # keys are compared whatever the month


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


@pytest.mark.parametrize("wrong", [["--scope", "everything"], [], ["--scope", "score", "--days", "-1"]])
def test_a_scope_must_be_one_that_there_is(alone: Normalcy, wrong: list[str]) -> None:
    assert alone("keys", "create", "--name", "x", *wrong).code == 2


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 129])
def test_a_name_is_short_and_printable(alone: Normalcy, name: str) -> None:
    assert alone("keys", "create", "--name", name, "--scope", "score").code == 2


def test_a_command_says_which_database_it_writes_to(normalcy: Normalcy, settings: Settings) -> None:
    said = normalcy(*CREATE).err.splitlines()[0]
    if settings.database_url:
        assert re.fullmatch(r"Database: normalcy_test_\w+ of PostgreSQL at \S+", said)
    else:
        assert said == f"Database: {settings.data_dir.resolve() / FILE_NAME}"


def test_no_database_is_created_by_accident(alone: Normalcy, embedded: Settings) -> None:
    for command in (CREATE, ("keys", "list"), ("keys", "revoke", "abcdefgh")):
        done = alone(*command)
        assert (done.code, done.out) == (1, "")
        assert "There is no database at" in done.err
        assert not embedded.data_dir.exists()
    assert "--new-database" in alone(*CREATE).err
    assert alone(*CREATE, "--new-database").code == 0
    assert len(on_database(embedded, stored_hashes)) == 1
    assert alone(*CREATE).code == 0


def test_a_login_without_the_rights_to_make_keys_gets_a_sentence(
    server: PostgresServer, migrated_postgres: str, alone: Normalcy, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.run("CREATE ROLE normalcy_test_login LOGIN IN ROLE normalcy_writer, normalcy_auditor")
    try:
        url = server.url(migrated_postgres).replace("//postgres@", "//normalcy_test_login@")
        monkeypatch.setenv("NORMALCY_DATABASE_URL", url)
        done = alone(*CREATE)
        assert (done.code, done.out) == (1, "")
        assert "does not have the rights" in done.err
        assert len(done.err.splitlines()) == 2  # and which database
    finally:
        server.run("DROP ROLE normalcy_test_login")
