"""API keys."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from app.clock import timestamp, utc_now
from app.database.engine import Database
from app.database.keys import find_key, key_id_of, list_keys, make_key, revoke_key, save_key
from app.domain.scopes import Scope
from app.errors import UnknownKey

anyio = pytest.mark.anyio
NOW = utc_now()


def test_a_key_has_the_shape_of_the_contract_and_no_two_are_alike() -> None:
    keys = [make_key("ward", ["score"], NOW) for _ in range(200)]
    assert len({new.text for new in keys}) == len({new.key.key_id for new in keys}) == 200
    for new in keys:
        assert len(new.text) == 4 + 8 + 1 + 43
        assert key_id_of(new.text) == new.key.key_id


@pytest.mark.parametrize(
    "text", ["", "nsk_", "x" * 56, "nsk_abcdefgh_" + "a" * 42, "nsk_ABCDEFGH_" + "a" * 43, "\ud800"]
)
def test_other_text_is_no_key(text: str) -> None:
    assert key_id_of(text) is None


def test_the_scopes_are_those_of_the_contract() -> None:
    assert tuple(Scope) == ("score", "model:read", "audit:read", "admin")


@pytest.mark.parametrize("scopes", [[], ["everything"], ["score", "Admin"]])
def test_only_the_scopes_of_the_contract_are_granted(scopes: list[str]) -> None:
    with pytest.raises(ValueError, match="scopes"):
        make_key("ward", scopes, NOW)


def test_a_key_opens_with_its_own_text_alone() -> None:
    new, other = make_key("ward", ["score"], NOW), make_key("ward", ["score"], NOW)
    assert new.key.has_secret(new.text)
    for wrong in (other.text, new.text[:-1] + ("a" if new.text[-1] != "a" else "b"), "", "\ud800"):
        assert not new.key.has_secret(wrong)


@anyio
async def test_a_saved_key_is_found_as_it_was_and_without_its_secret(database: Database) -> None:
    new = make_key("ward 7", Scope, NOW, expires=NOW + timedelta(days=90))
    async with database.writing() as connection:
        await save_key(connection, new.key)
    async with database.reading() as connection:
        assert await find_key(connection, new.key.key_id) == new.key
        assert await find_key(connection, "nobodys1") is None
        row = (await connection.execute(text("SELECT * FROM api_keys"))).one()
    secret = new.text.rsplit("_", 1)[-1]
    assert secret not in str(row)
    assert secret not in str(new.key)


@anyio
async def test_an_expired_key_opens_nothing(database: Database) -> None:
    new = make_key("ward", ["score"], NOW, expires=NOW + timedelta(seconds=5))
    async with database.writing() as connection:
        await save_key(connection, new.key)
        key = await find_key(connection, new.key.key_id)
    assert key is not None
    assert key.has_secret(new.text)
    assert key.is_live(NOW + timedelta(seconds=4))
    assert not key.is_live(NOW + timedelta(seconds=5))


@anyio
async def test_a_revoked_key_opens_nothing_and_stays_on_the_list(database: Database) -> None:
    first, second = (make_key(name, ["score"], NOW + timedelta(seconds=n)) for n, name in enumerate(("old", "new")))
    async with database.writing() as connection:
        await save_key(connection, second.key)
        await save_key(connection, first.key)
        revoked = await revoke_key(connection, first.key.key_id, NOW)
        again = await revoke_key(connection, first.key.key_id, NOW + timedelta(days=1))
    assert not revoked.is_live(NOW)
    assert again.revoked_at == revoked.revoked_at == timestamp(NOW)
    async with database.reading() as connection:
        assert [(key.name, key.is_live(NOW)) for key in await list_keys(connection)] == [("old", False), ("new", True)]


@anyio
async def test_revoking_an_unknown_key_says_so(database: Database) -> None:
    async with database.writing() as connection:
        with pytest.raises(UnknownKey, match="nobodys1"):
            await revoke_key(connection, "nobodys1", NOW)
