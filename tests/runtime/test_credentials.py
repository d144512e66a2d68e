import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.audit.records import NewRecord, encode
from app.clock import timestamp
from app.database.engine import Database
from app.database.keys import NewKey, last_uses, make_key
from app.errors import InvalidSettings
from app.runtime.credentials import KeyRefusal, Keyring, KeyUses, Principal, check_exposure
from app.settings import is_loopback

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def test_a_key_is_accepted_until_it_expires() -> None:
    made = make_key("echo lab", ["score"], NOW, NOW + timedelta(days=1))
    keyring = Keyring([made.key])
    principal = keyring.principal(made.text, NOW)
    assert isinstance(principal, Principal)
    assert (principal.name, principal.scopes) == (f"{made.key.key_id} echo lab", frozenset({"score"}))
    assert keyring.principal(made.text, NOW + timedelta(days=1)) is KeyRefusal.EXPIRED
    assert keyring.principal(made.text[:-1], NOW) is KeyRefusal.WRONG
    assert keyring.principal("", NOW) is KeyRefusal.WRONG


@pytest.mark.parametrize("name", ["a\0b\n", "x" * 10_000])
def test_a_name_that_was_edited_in_the_database_still_fits_into_a_record(name: str) -> None:
    made = make_key(name, ["score"], NOW)
    principal = Keyring([made.key]).principal(made.text, NOW)
    assert isinstance(principal, Principal)
    encode(NewRecord("read", NOW, principal.name))
    assert principal.name.isprintable()


def test_a_wrong_secret_is_refused_like_an_unknown_key_also_if_the_key_is_revoked() -> None:
    made, other = make_key("a", ["score"], NOW), make_key("b", ["score"], NOW)
    keyring = Keyring([replace(made.key, revoked_at="2026-11-14T00:00:00.000Z")])
    wrong = made.text[:-1] + ("A" if made.text[-1] != "A" else "B")
    assert keyring.principal(made.text, NOW) is KeyRefusal.REVOKED
    assert keyring.principal(wrong, NOW) is keyring.principal(other.text, NOW) is KeyRefusal.WRONG


def test_once_a_key_was_seen_a_credential_is_required_for_good() -> None:
    keyring = Keyring()
    assert not keyring.has_seen_keys
    keyring.replace([make_key("a", ["score"], NOW).key])
    keyring.replace([])
    assert keyring.has_seen_keys


def test_an_expired_or_revoked_key_does_not_allow_anonymous_callers_again() -> None:
    """Also after a restart: the keyring is read again from all keys, expired and revoked ones included."""
    expired = make_key("a", ["score"], NOW, NOW - timedelta(days=1)).key
    revoked = replace(make_key("b", ["score"], NOW).key, revoked_at="2026-11-14T00:00:00.000Z")
    for key in (expired, revoked):
        keyring = Keyring([key])
        assert keyring.live(NOW) == []
        assert keyring.has_seen_keys


def test_the_next_expiry_is_that_of_the_first_live_key_to_end() -> None:
    assert Keyring().next_expiry_seconds(NOW) == math.inf
    ends = [None, timedelta(days=-1), timedelta(days=40), timedelta(days=3)]
    keys = [make_key("a", ["score"], NOW, NOW + after if after else None).key for after in ends]
    assert Keyring(keys[:2]).next_expiry_seconds(NOW) == math.inf
    assert Keyring(keys).next_expiry_seconds(NOW) == timedelta(days=3).total_seconds()
    edited = replace(keys[0], expires_at="never")
    assert Keyring([edited]).next_expiry_seconds(NOW) == math.inf


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_a_loopback_address_needs_no_key(host: str) -> None:
    assert is_loopback(host)
    check_exposure(host, is_credential_required=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "localhost.example", "example.org", ""])  # noqa: S104
def test_another_address_needs_a_key(host: str) -> None:
    with pytest.raises(InvalidSettings, match="no API key exists"):
        check_exposure(host, is_credential_required=False)
    check_exposure(host, is_credential_required=True)


async def saved(database: Database) -> dict[str, str]:
    async with database.reading() as connection:
        return await last_uses(connection)


def uses_of(database: Database, used: list[tuple[NewKey, datetime]]) -> KeyUses:
    """After these keys were used at these times."""
    times = iter([at for _, at in used])
    uses = KeyUses(database, lambda: next(times))
    for key, _ in used:
        uses.note(key.text)
    return uses


@pytest.mark.anyio
@pytest.mark.req("REQ-172")
async def test_the_latest_use_of_a_key_is_saved_whichever_process_saw_it(database: Database) -> None:
    first, second = make_key("a", ["score"], NOW), make_key("b", ["score"], NOW)
    minutes = [NOW + timedelta(minutes=number) for number in range(4)]
    await uses_of(database, [(first, minutes[0]), (second, minutes[1]), (first, minutes[2])]).save()
    assert await saved(database) == {
        first.key.key_id: timestamp(minutes[2]),
        second.key.key_id: timestamp(minutes[1]),
    }
    await uses_of(database, [(first, minutes[1]), (second, minutes[3])]).save()  # of another process
    assert await saved(database) == {
        first.key.key_id: timestamp(minutes[2]),
        second.key.key_id: timestamp(minutes[3]),
    }


@pytest.mark.anyio
async def test_a_use_that_cannot_be_saved_stops_nothing_and_is_saved_the_next_time(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_key("a", ["score"], NOW)
    uses = uses_of(database, [(made, NOW)])
    with monkeypatch.context() as broken:
        broken.setattr("app.runtime.credentials.save_uses", None)
        await uses.save()
    assert await saved(database) == {}
    await uses.save()
    assert await saved(database) == {made.key.key_id: timestamp(NOW)}
