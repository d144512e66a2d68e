"""Whatever is done to a key or to an activation behind the program's back is found, and named."""

from datetime import timedelta
from typing import NamedTuple

import pytest
from sqlalchemy import Executable, Update, Uuid, bindparam, delete, insert, text, update

from app.audit.changes import activation_change, add_key, key_change, key_columns, revoke_key, rotate_key, short_chain
from app.audit.records import NewRecord
from app.audit.verify import RowDamageKind, RowFinding, verify_tables
from app.audit.writer import AuditWriter
from app.clock import timestamp, utc_now
from app.database.activations import Activation, all_activations
from app.database.engine import Database
from app.database.keys import ApiKey, list_keys, make_key
from app.database.records import add_records
from app.database.tables import activations, api_keys
from app.domain.card import ModelRef
from app.errors import ActivationFailed
from tests.audit.recording import FACTS, activate, all_rows, change, score, verified

pytestmark = pytest.mark.anyio
NOW = utc_now()
NEWER = ModelRef("SoV", "1.1.0", "cd" * 32)
REMOVE_TRIGGERS = {
    "postgresql": ["ALTER TABLE activations DISABLE TRIGGER ALL"],
    "sqlite": [f"DROP TRIGGER activations_{trigger}" for trigger in ("no_update", "no_delete", "no_replace")],
}


class Stored(NamedTuple):
    live: ApiKey
    revoked: ApiKey
    activations: list[Activation]


@pytest.fixture
async def stored(database: Database) -> Stored:
    """Two keys, one of them revoked, and three activations."""
    keys = [make_key(name, ["score"], NOW, NOW + timedelta(days=365)).key for name in ("ward", "lab")]
    async with database.writing() as connection:
        for key in keys:
            await add_key(change(connection), key, "admin", NOW)
        revoked = await revoke_key(change(connection), keys[1].key_id, "admin", NOW)
        await activate(connection)
        await activate(connection, NEWER)
        await activate(connection, ModelRef("AA", "1.0.0", "ef" * 32))
    async with database.reading() as connection:
        return Stored(keys[0], revoked, await all_activations(connection))


async def found(database: Database, *statements: Executable) -> list[RowFinding]:
    """What is found after these statements of someone with all rights; they are undone again."""
    async with database.engine.connect() as connection:
        if database.dialect == "sqlite":
            driver = (await connection.get_raw_connection()).driver_connection
            assert driver is not None
            await driver.execute("PRAGMA foreign_keys = OFF")
        await connection.execution_options(writes=True)
        for statement_text in REMOVE_TRIGGERS[database.dialect]:
            await connection.execute(text(statement_text))
        for statement in statements:
            await connection.execute(statement)
        findings = await verify_tables(connection)
        await connection.rollback()
    return list(findings)


async def damages(database: Database, *statements: Executable) -> list[tuple[RowDamageKind, str, str]]:
    return [(finding.damage, finding.table, finding.row) for finding in await found(database, *statements)]


def key_of(key: ApiKey) -> Update:
    return update(api_keys).where(api_keys.c.key_id == key.key_id)


async def test_what_the_program_did_matches_its_records(stored: Stored, database: Database) -> None:
    assert await found(database) == []
    assert (await verified(database)).intact


async def test_a_record_has_neither_the_secret_nor_its_hash(stored: Stored, database: Database) -> None:
    payloads = b"".join(row.payload for row in await all_rows(database))
    assert stored.live.key_id.encode() in payloads
    assert stored.live.secret_sha256.hex().encode() not in payloads


@pytest.mark.req("REQ-086")
async def test_every_changed_column_of_a_key_is_named(stored: Stored, database: Database) -> None:
    changes: dict[str, dict[str, object]] = {
        "name": {"name": "another"},
        "scopes": {"scopes": "admin score"},
        "created_at": {"created_at": timestamp(NOW - timedelta(days=1))},
        "expires_at": {"expires_at": timestamp(NOW + timedelta(days=3650))},
        "secret_check": {"secret_sha256": bytes(32)},
        "revoked_at": {"revoked_at": timestamp(NOW)},
        "replaces": {"replaces": stored.revoked.key_id},
    }
    assert set(changes) == set(key_columns(stored.live)) - {"key_id"}
    for name, values in changes.items():
        [finding] = await found(database, key_of(stored.live).values(values))
        assert (finding.damage, finding.row) == (RowDamageKind.ROW_CHANGED, stored.live.key_id)
        assert finding.detail == f"columns differ from the record: {name}"


async def test_a_rotated_key_that_lives_longer_than_its_record_says_is_named(database: Database) -> None:
    made = make_key("ward", ["score"], NOW, NOW + timedelta(days=365)).key
    async with database.writing() as connection:
        await add_key(change(connection), made, "admin", NOW)
        old, new = await rotate_key(change(connection), made.key_id, timedelta(days=7), "admin", NOW)
    assert await found(database) == []
    for key, name, value in (
        (old, "expires_at", made.expires_at),
        (new.key, "replaces", None),
        (new.key, "expires_at", None),
    ):
        [finding] = await found(database, key_of(key).values({name: value}))
        assert (finding.damage, finding.row) == (RowDamageKind.ROW_CHANGED, key.key_id)
        assert finding.detail == f"columns differ from the record: {name}"


@pytest.mark.parametrize("when", [None, timestamp(NOW + timedelta(days=9))], ids=["undone", "moved"])
async def test_a_revocation_that_was_undone_or_moved_is_named(
    stored: Stored, database: Database, when: str | None
) -> None:
    [finding] = await found(database, key_of(stored.revoked).values(revoked_at=when))
    assert (finding.damage, finding.row) == (RowDamageKind.ROW_CHANGED, stored.revoked.key_id)
    assert "revoked_at" in finding.detail


async def test_a_key_that_nobody_recorded_and_one_that_is_gone_are_named(stored: Stored, database: Database) -> None:
    smuggled = make_key("smuggled", ["admin"], NOW).key
    columns = {
        "key_id": smuggled.key_id,
        "name": "smuggled",
        "secret_sha256": smuggled.secret_sha256,
        "scopes": "admin",
        "created_at": smuggled.created_at,
    }
    assert await damages(database, insert(api_keys).values(columns)) == [
        (RowDamageKind.NO_RECORD, "api_keys", smuggled.key_id)
    ]
    gone = delete(api_keys).where(api_keys.c.key_id == stored.revoked.key_id)
    assert await damages(database, gone) == [(RowDamageKind.ROW_GONE, "api_keys", stored.revoked.key_id)]


async def test_a_second_record_of_the_same_key_changes_nothing(stored: Stored, database: Database) -> None:
    """Whoever may add records, as the service's login may, cannot make a wider key genuine with one."""
    wider = make_key("ward", ["score", "admin"], NOW).key
    async with database.writing() as connection:
        output = key_change("created", wider) | {"key_id": stored.live.key_id}
        await add_records(connection, short_chain([NewRecord("key", NOW, "x", output=output)], FACTS, NOW))
    [finding] = await found(database)
    assert (finding.damage, finding.row) == (RowDamageKind.ROW_CHANGED, stored.live.key_id)
    assert "second record" in finding.detail


@pytest.mark.req("REQ-086")
async def test_every_changed_column_of_an_activation_is_named(stored: Stored, database: Database) -> None:
    row = stored.activations[0]
    for name in ("site", "version", "sha256", "activated_at", "activated_by"):
        change = update(activations).where(activations.c.id == row.id).values({name: "other"})
        [finding] = await found(database, change)
        assert (finding.damage, finding.row) == (RowDamageKind.ROW_CHANGED, str(row.id))
        assert finding.detail == f"columns differ from the record: {name}"


async def test_an_activation_that_is_gone_is_named(stored: Stored, database: Database) -> None:
    for row in stored.activations:
        [finding] = await found(database, delete(activations).where(activations.c.id == row.id))
        assert (finding.damage, finding.row) == (RowDamageKind.ROW_GONE, "")
        assert f"{row.site} {row.version}" in finding.detail


async def test_an_older_activation_that_was_made_the_newest_is_named(stored: Stored, database: Database) -> None:
    first, last = stored.activations[0], stored.activations[-1]
    moved: Executable = update(activations).where(activations.c.id == first.id).values(id=last.id + 7)
    if database.dialect == "postgresql":  # the number is the database's own: only a new row may bring one
        moved = text(
            f"WITH gone AS (DELETE FROM activations WHERE id = {first.id} RETURNING *) "  # noqa: S608 - our own numbers
            f"INSERT INTO activations OVERRIDING SYSTEM VALUE SELECT {last.id + 7}, site, version, sha256, "
            "activated_at, activated_by, month, chain_id, seq FROM gone"
        )
    damage = await damages(database, moved)
    assert {one[0] for one in damage} == {RowDamageKind.ROW_MOVED}
    assert str(last.id + 7) in {one[2] for one in damage}


async def test_an_activation_that_points_to_another_record_is_named(
    stored: Stored, database: Database, writer: AuditWriter
) -> None:
    await writer.write([score()])
    [other] = [row for row in await all_rows(database) if row.kind == "score"]
    values = {
        "site": "SoV",
        "version": "1.0.0",
        "sha256": "ab" * 32,
        "activated_at": timestamp(NOW),
        "activated_by": "nobody",
        "month": other.month,
        "chain_id": other.chain_id,
        "seq": other.seq,
    }
    [finding] = await found(database, insert(activations).values(values))
    assert (finding.damage, finding.table) == (RowDamageKind.NO_RECORD, "activations")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("column", ["name", "secret_sha256", "scopes", "created_at", "expires_at", "revoked_at"])
async def test_a_value_of_another_kind_is_named_and_stops_nothing(
    stored: Stored, database: Database, column: str
) -> None:
    """SQLite takes a text or bytes into any column; PostgreSQL would refuse them."""
    for value in ("'no such value'", "x'ff00'", "1.5"):
        statement = text(f"UPDATE api_keys SET {column} = {value}")  # noqa: S608 - our own words
        assert {one[0] for one in await damages(database, statement)} == {RowDamageKind.ROW_CHANGED}, value


async def test_a_change_that_is_not_committed_leaves_no_record(database: Database) -> None:
    key = make_key("ward", ["score"], NOW).key
    async with database.engine.connect() as connection:
        await connection.execution_options(writes=True)
        await add_key(change(connection), key, "admin", NOW)
        await activate(connection)
        await connection.rollback()
    assert await all_rows(database) == []
    async with database.reading() as connection:
        assert await list_keys(connection) == []


async def test_a_number_that_the_database_did_not_give_is_named_and_no_later_activation_claims_to_hold(
    stored: Stored, database: Database
) -> None:
    """With a record of its own it agrees with everything else."""
    last = stored.activations[-1].id
    output = activation_change("activated", timestamp(NOW), "admin", last)
    rows = short_chain([NewRecord("activation", NOW, "admin", model=NEWER, output=output)], FACTS, NOW)
    values = "SELECT 9223372036854775807, 'SoV', '1.1.0', :sha256, :at, 'admin', month, chain_id, seq"
    overriding = "OVERRIDING SYSTEM VALUE " if database.dialect == "postgresql" else ""
    chosen = text(f"INSERT INTO activations {overriding}{values} FROM audit_records WHERE record_id = :record")
    chosen = chosen.bindparams(bindparam("record", rows[1].record_id, Uuid()), sha256="cd" * 32, at=timestamp(NOW))
    async with database.engine.connect() as connection:
        await connection.execution_options(writes=True)
        await add_records(connection, rows)
        await connection.execute(chosen)
        if database.dialect == "postgresql":
            [finding] = await verify_tables(connection)
            assert (finding.damage, finding.row) == (RowDamageKind.ROW_MOVED, str(2**63 - 1))
        with pytest.raises(ActivationFailed, match="normalcy audit verify"):
            await activate(connection)
        await connection.rollback()
