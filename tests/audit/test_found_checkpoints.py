"""Chains of before the first signature: what the checkpoint of kind `found` makes genuine, and what it does not."""

import random
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.audit.author import FOLDER, CheckpointLog, chains_to_adopt, open_author
from app.audit.chain import link
from app.audit.records import encode
from app.audit.signed_checkpoint import NOTHING_BEFORE, Signer, read_body
from app.audit.signing_key import SigningKey, load_signing_key
from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database.engine import Database
from app.database.records import ChainHead, add_records
from app.observability import make_metrics
from app.runtime.command import upgrade_database
from app.services.verify_audit import verify_database
from app.settings import Settings, load_settings
from tests.audit.both_verifiers import TOOL, Auditor, Findings, open_writer
from tests.audit.recording import FACTS, add_unsigned_chain, score
from tests.audit.tampering import Stored, apply, forge_chain, read_stored
from tests.conftest import migrate
from tests.postgres import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.req("REQ-087")]
DAY = timedelta(days=1)


@pytest.fixture(params=["postgresql", "sqlite"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Of a database of its own: chains that nobody signed stay in it."""
    with ExitStack() as stack:
        url = ""
        if request.param == "postgresql":
            server: PostgresServer = request.getfixturevalue("server")
            url = server.url(stack.enter_context(server.new_database()))
        chosen = load_settings({"NORMALCY_DATA_DIR": str(tmp_path), "NORMALCY_DATABASE_URL": url})
        migrate(chosen)
        yield chosen


async def run_service(settings: Settings, database: Database, at: datetime | None = None) -> None:
    """As one that starts, scores and stops. `at`: its clock stands still there."""
    writer = await open_writer(settings, database, (lambda: at) if at else utc_now)
    await writer.write([score("honest", at=at or utc_now())])
    await writer.stop()


async def append(database: Database, end: ChainHead, at: datetime) -> ChainHead:
    rows, end = link(end, [encode(score("forged", at=at))])
    async with database.writing() as connection:
        await add_records(connection, rows)
    return end


async def judged(settings: Settings, database: Database, folder: Path) -> Findings:
    """What both verifiers find, which must be the same."""
    found = await Auditor.of(settings, database, folder).verify()
    assert found.by_service == found.by_tool
    return found.by_service


async def adopt_again(settings: Settings, database: Database, at: datetime | None = None) -> tuple[Stored, Stored]:
    """As the owner of the database: without the checkpoint, a process signs what is there. Before and after that."""
    base = await read_stored(database)
    left = base.with_checkpoints(*(row for row in base.checkpoints if row.kind != "found"))
    assert await apply(database, base, left, as_owner=True)
    await run_service(settings, database, at)
    return base, await read_stored(database)


def forget_files(settings: Settings) -> None:
    """The next process has an empty data folder, as in a new pod, with the same key."""
    shutil.rmtree(settings.data_dir / FOLDER)


@pytest.mark.parametrize("clock", [timedelta(), -DAY])
async def test_what_a_later_process_found_excuses_nothing(
    settings: Settings, database: Database, tmp_path: Path, clock: timedelta
) -> None:
    """Also if its clock says that it came first."""
    old = await add_unsigned_chain(database, DAY)
    await run_service(settings, database)
    forged = await add_unsigned_chain(database, 20 * DAY)
    await append(database, old, utc_now() - DAY)
    forget_files(settings)
    base, then = await adopt_again(settings, database, utc_now() + clock)
    assert [row.kind for row in then.checkpoints].count("found") == 1
    both = then.with_checkpoints(*then.checkpoints, *(row for row in base.checkpoints if row.kind == "found"))
    assert await apply(database, then, both, as_owner=True)
    expected = {("UNKNOWN_CHAIN", f"{forged.chain_id} 1"), ("UNSIGNED", f"{old.chain_id} 3")}
    key = load_signing_key(settings).public
    found = await verify_database(database.without_timeouts(), settings, lambda *_: None, public_keys=[key])
    assert {(str(each.damage), f"{each.chain_id} {each.seq}") for each in found.tampering} == expected
    (settings.data_dir / FOLDER / "signed-2026-01.jsonl").unlink(missing_ok=True)
    assert await judged(settings, database, tmp_path / "auditor") == expected


async def test_a_found_checkpoint_that_stays_away_is_missed_by_the_copy_and_by_the_next_one(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    await add_unsigned_chain(database, DAY)
    await run_service(settings, database)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    await add_unsigned_chain(database, 20 * DAY)
    forget_files(settings)
    await adopt_again(settings, database)
    found = await auditor.verify()
    assert found.by_service == found.by_tool
    assert found.kinds == {"CHECKPOINT_GONE", "UNKNOWN_CHAIN"}
    assert {kind for kind, _ in await judged(settings, database, tmp_path / "newer")} == {"CHECKPOINT_GONE"}


async def test_a_process_without_files_refers_to_what_was_found(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    """So its chains show without any copy that the checkpoint is gone, although the job that signed it is gone too."""
    await add_unsigned_chain(database, DAY)
    load_signing_key(settings)
    assert await upgrade_database(settings) == ((), ())
    forget_files(settings)
    await run_service(settings, database)
    await add_unsigned_chain(database, 20 * DAY)
    forget_files(settings)
    await adopt_again(settings, database)
    forget_files(settings)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    audit, signed = await auditor.tables()
    problems = TOOL.verify(audit, signed, [], TOOL.Keys([auditor.folder / "public.pem"]))[2]
    assert {kind for kind, _ in problems} == {"CHECKPOINT_GONE"}
    found = await verify_database(database.without_timeouts(), settings, lambda *_: None, public_keys=[auditor.key])
    assert {str(each.damage) for each in found.tampering} == {"CHECKPOINT_GONE"}


async def test_a_process_does_not_refer_to_what_another_key_found(settings: Settings, database: Database) -> None:
    """Anybody who may add rows can add it, and remove it again."""
    forged = Signer(SigningKey.generate(), "x").found([], utc_now())
    damaged = (await open_author(settings, database, FACTS)).signer.found([], utc_now())._replace(signature=bytes(64))
    for row in (forged, damaged):
        base = await read_stored(database)
        assert await apply(database, base, base.with_checkpoints(row), as_owner=True)
        author = await open_author(settings, database, FACTS)
        assert read_body(author.signer.written([], utc_now()).body).previous == NOTHING_BEFORE


async def test_a_process_whose_files_name_a_found_checkpoint_adopts_nothing(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    await add_unsigned_chain(database, DAY)
    await run_service(settings, database)
    forged = await add_unsigned_chain(database, 20 * DAY)
    base, then = await adopt_again(settings, database)
    assert "found" not in [row.kind for row in then.checkpoints]
    found = await judged(settings, database, tmp_path / "auditor")
    assert found == {("CHECKPOINT_GONE", ""), ("UNKNOWN_CHAIN", f"{forged.chain_id} 1")}
    restored = then.with_checkpoints(
        *base.checkpoints, *(row for row in then.checkpoints if row not in base.checkpoints)
    )
    assert await apply(database, then, restored, as_owner=True)
    assert await judged(settings, database, tmp_path / "auditor") == {("UNKNOWN_CHAIN", f"{forged.chain_id} 1")}


async def test_files_of_another_database_do_not_stop_the_first_process(settings: Settings, database: Database) -> None:
    log = CheckpointLog(settings.data_dir)
    author = await open_author(settings, database, FACTS)
    log.append(author.signer.found([], utc_now())._replace())
    assert await chains_to_adopt(database, log) is None
    author.signer.database = "another"
    forget_files(settings)
    log.append(author.signer.found([], utc_now()))
    assert await chains_to_adopt(database, log) == []


async def test_two_first_processes_at_the_same_time_are_no_finding(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    old = await add_unsigned_chain(database, DAY)
    authors = [await open_author(settings, database, FACTS) for _ in range(2)]
    adopted = [await chains_to_adopt(database, author.log) for author in authors]
    writers = [AuditWriter(database.appender(), author, make_metrics()) for author in authors]
    for writer, ends in zip(writers, adopted, strict=True):
        await writer.start(ends)
        await writer.stop()
    assert [row.kind for row in (await read_stored(database)).checkpoints].count("found") == 2
    assert await judged(settings, database, tmp_path / "auditor") == frozenset()
    await append(database, old, utc_now())
    assert await judged(settings, database, tmp_path / "auditor") == {("UNSIGNED", f"{old.chain_id} 3")}


@pytest.mark.parametrize("later", [timedelta(), timedelta(seconds=1), 100 * DAY])
async def test_rows_added_to_a_chain_after_it_was_found_are_a_finding(
    settings: Settings, database: Database, tmp_path: Path, later: timedelta
) -> None:
    """Whatever time they give: the processes that wrote such chains were stopped before."""
    at = utc_now() - 100 * DAY
    old = await add_unsigned_chain(database, 100 * DAY)
    await run_service(settings, database)
    assert await judged(settings, database, tmp_path / "auditor") == frozenset()
    await append(database, old, at + later)
    assert await judged(settings, database, tmp_path / "auditor") == {("UNSIGNED", f"{old.chain_id} 3")}


async def test_the_rows_that_were_found_do_not_count_as_unsigned(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    await add_unsigned_chain(database, DAY)
    await run_service(settings, database)
    found = await verify_database(database.without_timeouts(), settings, lambda *_: None)
    assert (found.intact, found.unsigned) == (True, ())
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    assert await auditor.remarks() == []


async def test_a_forged_chain_is_unknown_where_chains_were_found(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    await add_unsigned_chain(database, DAY)
    await run_service(settings, database)
    base = await read_stored(database)
    tampered, expected = forge_chain(base, random.Random(3))  # noqa: S311 - repeatable
    assert await apply(database, base, tampered, as_owner=False)
    assert {kind for kind, _ in await judged(settings, database, tmp_path / "auditor")} == expected
