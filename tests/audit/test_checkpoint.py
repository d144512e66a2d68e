"""What a chain cannot prove of itself is proved against a checkpoint."""

import hashlib

import pytest
from sqlalchemy import delete, text

from app.audit.chain import DamageKind, link
from app.audit.checkpoint import Checkpoint, merkle_root, parse, render, take_checkpoint
from app.audit.records import encode
from app.audit.verify import Coverage, verify_chains
from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database.engine import Database
from app.database.records import ChainHead, stream_chains
from app.database.tables import audit_records
from app.errors import InvalidCheckpoint
from tests.audit.recording import all_rows, inserting, score, tampered, unguarded, verified

anyio = pytest.mark.anyio


async def checkpoint_of(database: Database) -> Checkpoint:
    async with database.reading() as connection:
        return await take_checkpoint(connection, utc_now())


@anyio
async def test_a_checkpoint_holds_while_chains_grow(writer: AuditWriter, database: Database) -> None:
    await writer.write([score(), score()])
    checkpoint = await checkpoint_of(database)
    assert [end.seq for end in checkpoint.ends.values()] == [3]
    await writer.write([score()])
    assert (await verified(database, checkpoint)).intact


@anyio
@pytest.mark.req("REQ-075")
async def test_a_cut_tail_and_a_missing_chain_are_found(writer: AuditWriter, database: Database) -> None:
    await writer.write([score(), score()])
    await writer.stop()
    checkpoint = await checkpoint_of(database)
    for length in (0, 1, 3):
        cut = delete(audit_records).where(audit_records.c.seq > length)
        assert (await tampered(database, cut)).intact
        (finding,) = (await tampered(database, cut, checkpoint=checkpoint)).findings
        assert (finding.damage, finding.seq) == (DamageKind.TRUNCATED if length else DamageKind.VANISHED, length + 1)


@anyio
@pytest.mark.req("REQ-075")
async def test_a_chain_that_was_rewritten_is_found(writer: AuditWriter, database: Database) -> None:
    """Someone with all rights replaces a score and hashes the whole chain again: consistent, and not the same."""
    await writer.write([score("honest"), score("honest")])
    await writer.stop()
    checkpoint = await checkpoint_of(database)
    first, *_, last = await all_rows(database)
    start = ChainHead(first.month, first.chain_id, 1, first.row_hash)
    forged, _ = link(start, [encode(score("forged")) for _ in range(last.seq - 1)])
    rewriting = delete(audit_records).where(audit_records.c.seq > 1), inserting(forged)
    assert (await tampered(database, *rewriting)).intact
    (finding,) = (await tampered(database, *rewriting, checkpoint=checkpoint)).findings
    assert (finding.damage, finding.seq) == (DamageKind.REWRITTEN, last.seq)


@anyio
async def test_a_checkpoint_survives_its_file_and_says_whose_it_is(writer: AuditWriter, database: Database) -> None:
    await writer.write([score()])
    checkpoint = await checkpoint_of(database)
    assert checkpoint.database.split()[0] == database.dialect
    read = parse(render(checkpoint))
    assert read == checkpoint
    assert read.root == checkpoint.root


def test_a_checkpoint_from_before_databases_were_named_is_read() -> None:
    root = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    old = f'{{"v":1,"taken_at":"2026-01-01T00:00:00.000Z","chains":0,"root":"{root}"}}\n'
    assert parse(old.encode()) == Checkpoint("2026-01-01T00:00:00.000Z", {})


@anyio
async def test_several_checkpoints_are_all_compared_with_the_chains(writer: AuditWriter, database: Database) -> None:
    """A newer one, taken after the damage, does not excuse it."""
    await writer.write([score(), score()])
    honest = await checkpoint_of(database)
    async with unguarded(database) as connection:
        await connection.execute(delete(audit_records).where(audit_records.c.seq > 2))
        after = await take_checkpoint(connection, utc_now())
        for checkpoints in ([honest, after], [after, honest]):
            (finding,) = (await verify_chains(stream_chains(connection), Coverage(*checkpoints))).findings
            assert (finding.damage, finding.seq) == (DamageKind.TRUNCATED, 3)
        assert (await verify_chains(stream_chains(connection), Coverage(after))).intact


@anyio
async def test_an_edited_or_cut_file_is_refused(writer: AuditWriter, database: Database) -> None:
    content = render(await checkpoint_of(database))
    for broken in (
        content.replace(b'"seq":1', b'"seq":2'),
        content.splitlines()[0],
        content + content.splitlines()[1] + b"\n",
        b"",
        b"no checkpoint",
        content.replace(b'"head":"', b'"head":"zz'),
    ):
        assert broken != content
        with pytest.raises(InvalidCheckpoint):
            parse(broken)


def test_the_root_is_that_of_rfc_6962() -> None:
    def sha(data: bytes) -> bytes:
        return hashlib.sha256(data).digest()

    leaves = [b"a", b"b", b"c"]
    a, b, c = (sha(b"\0" + leaf) for leaf in leaves)
    assert merkle_root([]) == sha(b"")
    assert merkle_root(leaves[:1]) == a
    assert merkle_root(leaves) == sha(b"\1" + sha(b"\1" + a + b) + c)
    # Published test vector: the eight leaves of the reference tests of certificate transparency.
    vector = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    expected = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    assert merkle_root([bytes.fromhex(leaf) for leaf in vector]).hex() == expected


@anyio
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_a_damaged_seq_does_not_stop_a_checkpoint(writer: AuditWriter, database: Database) -> None:
    await writer.write([score()])
    async with unguarded(database) as connection:
        await connection.execute(text("UPDATE audit_records SET seq = 'third' WHERE seq = 2"))
        taken = await take_checkpoint(connection, utc_now())
    assert len(taken.ends) == 1
