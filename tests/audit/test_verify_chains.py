"""Whatever is done to the rows behind the program's back is found, and named."""

from collections.abc import Awaitable, Callable
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Executable, delete, text, update

from app.audit.chain import DamageKind, link, new_chain, row_hash
from app.audit.records import encode
from app.audit.writer import AuditWriter
from app.clock import later_month, month_of, utc_now
from app.database.engine import Database
from app.database.records import AuditRow, ChainHead
from app.database.tables import audit_records
from tests.audit.recording import all_rows, inserting, score, tampered, verified

pytestmark = pytest.mark.anyio
OpenWriter = Callable[..., Awaitable[AuditWriter]]
NEXT_MONTH = later_month(month_of(utc_now()), 1)
seq = audit_records.c.seq

OTHER_VALUES: dict[str, object] = {
    "month": NEXT_MONTH,
    "chain_id": uuid4(),
    "seq": 99,
    "record_id": uuid4(),
    "request_id": "request-9",
    "item": 7,
    "kind": "refusal",
    "at": "2020-01-01T00:00:00.000Z",
    "principal": "nobody",
    "status": 500,
    "site": "AA",
    "version": "2.0.0",
    "payload": b"{}",
    "row_hash": bytes(32),
}
NULLABLE = [column.name for column in audit_records.c if column.nullable]


@pytest.fixture
async def chain(writer: AuditWriter, database: Database) -> list[AuditRow]:
    """Genesis, five scores, seal."""
    for number in range(5):
        await writer.write([score(f"request-{number}")])
    await writer.stop()
    return await all_rows(database)


async def damages(database: Database, *statements: Executable) -> list[DamageKind]:
    return [finding.damage for finding in (await tampered(database, *statements)).findings]


def test_the_tampering_below_covers_every_column() -> None:
    assert list(OTHER_VALUES) == [column.name for column in audit_records.c] == list(AuditRow._fields)


async def test_an_untouched_audit_is_intact(chain: list[AuditRow], database: Database) -> None:
    found = await verified(database)
    assert (found.intact, found.records, found.chains, found.open_chains) == (True, 7, 1, ())


@pytest.mark.parametrize("row", [1, 3, 7])
@pytest.mark.req("REQ-074")
async def test_a_changed_column_is_found(chain: list[AuditRow], database: Database, row: int) -> None:
    for column, value in OTHER_VALUES.items():
        found = await damages(database, update(audit_records).where(seq == row).values({column: value}))
        assert found, column
        if column not in ("month", "chain_id", "seq"):  # those move the row, which leaves a gap or a fork
            assert found == [DamageKind.MUTATED], column


async def test_a_removed_value_is_found(chain: list[AuditRow], database: Database) -> None:
    for column in NULLABLE:
        removal = update(audit_records).where(seq == 3).values({column: None})
        assert await damages(database, removal) == [DamageKind.MUTATED], column


async def test_a_changed_payload_with_a_recomputed_hash_breaks_the_next_row(
    chain: list[AuditRow], database: Database
) -> None:
    forged = chain[2].payload.replace(b":1.93", b":0.93")  # no timestamp has that
    assert forged != chain[2].payload
    digest = row_hash(chain[1].row_hash, chain[2].chain_id, 3, chain[2].record_id, forged)
    found = await tampered(database, update(audit_records).where(seq == 3).values(payload=forged, row_hash=digest))
    assert [(finding.damage, finding.seq) for finding in found.findings] == [(DamageKind.MUTATED, 4)]


@pytest.mark.req("REQ-074")
async def test_a_deleted_row_is_a_gap(chain: list[AuditRow], database: Database) -> None:
    for row in (1, 2, 4, 6):
        (finding,) = (await tampered(database, delete(audit_records).where(seq == row))).findings
        assert (finding.damage, finding.seq, finding.chain_id) == (DamageKind.GAP, row, chain[0].chain_id)


async def test_two_exchanged_rows_are_found(chain: list[AuditRow], database: Database) -> None:
    swap = [update(audit_records).where(seq == a).values(seq=b) for a, b in ((3, 100), (4, 3), (100, 4))]
    assert await damages(database, *swap) == [DamageKind.MUTATED]


async def test_a_renumbered_chain_after_a_deletion_is_found(chain: list[AuditRow], database: Database) -> None:
    moves = [update(audit_records).where(seq == n).values(seq=n - 1) for n in range(4, 8)]
    assert await damages(database, delete(audit_records).where(seq == 3), *moves) == [DamageKind.MUTATED]


async def test_a_row_after_the_seal_is_found(chain: list[AuditRow], database: Database) -> None:
    end = ChainHead(chain[-1].month, chain[-1].chain_id, chain[-1].seq, chain[-1].row_hash)
    rows, _ = link(end, [encode(score("smuggled"))])
    assert await damages(database, inserting(rows)) == [DamageKind.AFTER_SEAL]


async def test_a_chain_without_a_genesis_is_unknown(chain: list[AuditRow], database: Database) -> None:
    rows, _ = link(new_chain(chain[0].month), [encode(score("invented"))])
    assert await damages(database, inserting(rows)) == [DamageKind.UNKNOWN_CHAIN]


async def test_a_chain_copied_into_another_month_is_a_fork(chain: list[AuditRow], database: Database) -> None:
    copies = [row._replace(month=NEXT_MONTH) for row in chain]
    assert await damages(database, inserting(copies)) == [DamageKind.FORK]


async def test_a_chain_moved_as_a_whole_to_another_month_is_found(chain: list[AuditRow], database: Database) -> None:
    assert await damages(database, update(audit_records).values(month=NEXT_MONTH)) == [DamageKind.MUTATED]


@pytest.mark.req("REQ-074")
async def test_a_replayed_row_is_found(chain: list[AuditRow], database: Database) -> None:
    """The same record a second time, at the end of a chain that still has no seal."""
    cut = delete(audit_records).where(seq == 7)
    assert await damages(database, cut) == []
    assert await damages(database, cut, inserting([chain[2]._replace(seq=7)])) == [DamageKind.MUTATED]


async def test_one_damaged_chain_does_not_hide_another_or_blame_a_third(
    open_writer: OpenWriter, database: Database
) -> None:
    for _ in range(3):
        writer = await open_writer()
        await writer.write([score(), score()])
        await writer.stop()
    chains: list[UUID] = sorted({row.chain_id for row in await all_rows(database)})
    of_chain = audit_records.c.chain_id
    found = await tampered(
        database,
        update(audit_records).where(of_chain == chains[0], seq == 2).values(status=1),
        delete(audit_records).where(of_chain == chains[2], seq == 3),
    )
    assert {finding.chain_id: finding.damage for finding in found.findings} == {
        chains[0]: DamageKind.MUTATED,
        chains[2]: DamageKind.GAP,
    }


async def test_a_chain_without_a_seal_is_reported_and_is_no_damage(writer: AuditWriter, database: Database) -> None:
    await writer.write([score()])
    found = await verified(database)
    assert found.intact
    assert [(chain.seq, chain.month) for chain in found.open_chains] == [(2, month_of(utc_now()))]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("column", list(AuditRow._fields))
async def test_a_value_of_another_kind_is_damage_and_stops_nothing(
    chain: list[AuditRow], database: Database, column: str
) -> None:
    """SQLite takes a text or bytes into any column; PostgreSQL would refuse them."""
    for value in ("'no such value'", "x'ff00'", "x'ff00' || 'x'", "1.5"):
        statement = text(f"UPDATE audit_records SET {column} = {value} WHERE seq = 3")  # noqa: S608 - our own words
        assert await damages(database, statement), (column, value)


@pytest.mark.parametrize("payload", [b'{"v": "\xff"}', b"[" * 100_000], ids=["no UTF-8", "nested without end"])
async def test_a_payload_that_no_decoder_takes_is_damage_even_with_its_hash(
    chain: list[AuditRow], database: Database, payload: bytes
) -> None:
    digest = row_hash(chain[5].row_hash, chain[6].chain_id, 7, chain[6].record_id, payload)
    forged = update(audit_records).where(seq == 7).values(payload=payload, row_hash=digest)
    assert await damages(database, forged) == [DamageKind.MUTATED]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("change", ["payload = CAST(payload AS TEXT)", "record_id = upper(record_id)"])
async def test_another_spelling_of_the_same_value_is_damage(
    chain: list[AuditRow], database: Database, change: str
) -> None:
    statement = text(f"UPDATE audit_records SET {change} WHERE seq = 3")  # noqa: S608 - our own words
    assert await damages(database, statement) == [DamageKind.MUTATED]
