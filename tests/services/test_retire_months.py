"""Months that were retired are missed by nobody; months that were removed by hand are."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from app.audit.author import CheckpointLog, open_author
from app.audit.changes import activate, add_key, erase, open_change
from app.audit.records import NewRecord
from app.audit.signed_checkpoint import Signer
from app.audit.signing_key import SigningKey
from app.clock import later_month, month_of, utc_now
from app.database.checkpoints import CheckpointRow, add_checkpoints
from app.database.data_keys import StoredKey, add_keys
from app.database.engine import Database
from app.database.keys import make_key
from app.database.migrate import upgrade
from app.database.records import chain_heads, database_name
from app.database.retirement import remove_months
from app.database.schema_checks import check_schema
from app.domain.card import ModelRef
from app.errors import AlreadyServing, DatabaseUnavailable, RetirementRefused
from app.observability import make_metrics
from app.runtime.checkpoints import Checkpoints
from app.services import retire_months as retire_months_module
from app.services import verify_audit as verify_audit_module
from app.services.retire_months import Retirement, check_month, retire_months
from app.services.signing_keys import rotate_signing_key
from app.services.verify_audit import Tampering, verify_database
from app.settings import Settings, load_settings
from tests.audit.both_verifiers import EXPORTS, TOOL, Auditor, crash, open_writer
from tests.audit.recording import FACTS, score
from tests.cli.running import tamper
from tests.conftest import migrate
from tests.postgres import PostgresServer

pytestmark = pytest.mark.anyio
OLD = datetime(2020, 1, 15, tzinfo=UTC)
MONTH, BEFORE = "2020-01", "2020-02"


@dataclass
class Audit:
    """With a month of old records: a sealed chain, one of a crashed writer, a key, an erasure and an
    activation; and newer ones."""

    settings: Settings
    database: Database
    auditor: Auditor
    checkpoints: Checkpoints

    async def retire(self, dry_run: bool = False) -> Retirement:
        return await retire_months(self.settings, "admin", BEFORE, lambda *_: None, dry_run=dry_run)

    async def kinds(self) -> set[str]:
        """Of the findings of both verifiers, which agree, and of those in the tables of keys and activations."""
        found = await self.auditor.verify()
        assert found.by_service == found.by_tool
        own = await verify_database(self.database.without_timeouts(), self.settings, lambda *_: None)
        return found.kinds | {str(row.damage) for row in own.rows} | {str(each.damage) for each in own.tampering}


@pytest.fixture(params=["postgresql", "sqlite"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Of a database of its own: what leaves it does not come back."""
    with ExitStack() as stack:
        url = ""
        if request.param == "postgresql":
            server: PostgresServer = request.getfixturevalue("server")
            url = server.url(stack.enter_context(server.new_database()))
        chosen = load_settings({"NORMALCY_DATA_DIR": str(tmp_path), "NORMALCY_DATABASE_URL": url})
        migrate(chosen)
        yield chosen


@pytest.fixture
async def audit(settings: Settings, database: Database, tmp_path: Path) -> Audit:
    await upgrade(database, OLD)  # for a partition of that month
    for is_sealed in (True, False):
        writer = await open_writer(settings, database, lambda: OLD)
        await writer.write([score("old", at=OLD)])
        await (writer.stop() if is_sealed else crash(writer))
    async with open_change(database, await open_author(settings, database, FACTS)) as change:
        await add_key(change, make_key("ward", ["score"], OLD).key, "admin", OLD)
        erased = StoredKey(uuid4(), "somebody", b"wrapped", None)
        await add_keys(change.connection, [erased])
        await erase(change, erased.key_id, {}, 1, "admin", OLD)
        await add_key(change, make_key("lab", ["score"], utc_now()).key, "admin", utc_now())
        for version, at in (("1.0.0", OLD), ("1.1.0", utc_now())):
            record = NewRecord("activation", at, "admin")
            await activate(change, ModelRef("SoV", version, "ab" * 32), record, lambda at=at: at)  # type: ignore[misc]
    key = (await open_author(settings, database, FACTS)).signer.key.public
    checkpoints = Checkpoints(database, settings.data_dir, utc_now, make_metrics(), [key])
    await checkpoints.take()
    auditor = Auditor.of(settings, database, tmp_path / "elsewhere")
    return Audit(settings, database, auditor, checkpoints)


async def archive_of(audit: Audit, done: Retirement) -> Path:
    """The file that SQLite's month was written to, or the export of the detached table."""
    if audit.database.dialect == "sqlite":
        return Path(done.months[0].stored_in)
    import asyncpg  # type: ignore[import-untyped]

    query = re.sub(r"FROM audit_records$", f"FROM {done.months[0].stored_in}", EXPORTS[0][0])
    connection = await asyncpg.connect(audit.settings.database_url)
    try:
        file = audit.auditor.folder / "month.csv"
        await connection.copy_from_query(query, output=file, format="csv", header=True)
        return file
    finally:
        await connection.close()


@pytest.mark.req("REQ-155")
async def test_a_retired_month_is_missed_by_nobody_and_its_archive_verifies(audit: Audit) -> None:
    assert await audit.kinds() == set()
    done = await audit.retire()
    [month] = done.months
    assert (month.month, month.chains, done.keys, done.activations) == (MONTH, 5, 1, 1)
    assert await audit.kinds() == set()
    audit.auditor.copy_checkpoints()
    assert await audit.kinds() == set()
    async with audit.database.reading() as connection:
        assert {head.month for head in await chain_heads(connection)} == {month_of(utc_now())}
        await check_schema(connection)
    found = await verify_database(audit.database.without_timeouts(), audit.settings, lambda *_: None)
    assert (found.intact, found.retired) == (True, {MONTH: 5})
    await audit.checkpoints.take()
    assert (audit.checkpoints.has_failed, audit.checkpoints.lost_chains) == (False, 0)
    assert (await audit.retire()).months == ()

    archive, tables = await archive_of(audit, done), await audit.auditor.tables()
    keys = TOOL.Keys([audit.auditor.folder / "public.pem"])
    records, _, problems, _ = TOOL.verify(*tables, [audit.auditor.copy], keys, [archive])
    assert (records > month.records, problems) == (True, [])
    whole = archive.read_text()
    for chain_id in {line.split(",")[1] for line in whole.splitlines()[1:]}:
        archive.write_text("".join(line for line in whole.splitlines(keepends=True) if f",{chain_id}," not in line))
        [(kind, words)] = TOOL.verify(*tables, [audit.auditor.copy], keys, [archive])[2]
        assert (kind, words) == ("VANISHED", f"chain {UUID(chain_id)}, row 1: the whole chain is missing")
    archive.write_text(whole.splitlines(keepends=True)[0])
    _, _, [(kind, words)], remarks = TOOL.verify(*tables, [audit.auditor.copy], keys, [archive])
    assert (kind, words) == ("VANISHED", f"archive {archive}: there is no record in it")
    assert sum("was retired with" in remark for remark in remarks) == month.chains
    archive.write_text(whole)
    assert f"archive {archive} has records of {MONTH}" in TOOL.verify(*tables, [audit.auditor.copy], keys, [archive])[3]
    archive.write_text(re.sub(r"(?m)^((?:[^,]*,){4}),", r'\1"",', whole, count=1))
    [(kind, words)] = TOOL.verify(*tables, [audit.auditor.copy], keys, [archive])[2]
    assert (kind, words.partition(": ")[2]) == ("MUTATED", "columns differ from the payload: request_id")
    archive.write_text(whole)
    archive.write_text(archive.read_text().replace(",loopback,", ",somebody,", 1).replace(",tests,", ",somebody,", 1))
    archive.write_text(re.sub(r"(?m)^(2020-01,[^,]*,2,.*)\n", "", archive.read_text(), count=1))
    assert {kind for kind, _ in TOOL.verify(*tables, [audit.auditor.copy], keys, [archive])[2]} & {"GAP", "TRUNCATED"}


@pytest.mark.req("REQ-155")
async def test_a_month_that_is_retired_during_a_verification_is_not_missed_by_it(
    audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL detaches a partition for transactions that began before, too."""
    read = verify_audit_module._read_signatures

    async def read_slowly(*arguments: Any) -> list[Tampering]:
        monkeypatch.undo()
        found = await read(*arguments)
        with suppress(DatabaseUnavailable):
            await audit.retire()
        return found

    monkeypatch.setattr(verify_audit_module, "_read_signatures", read_slowly)
    found = await verify_database(audit.database.without_timeouts(), audit.settings, lambda *_: None)
    assert (found.tampering, found.rows) == ((), ())
    await audit.retire()
    assert await audit.kinds() == set()


@pytest.mark.req("REQ-155")
async def test_a_month_that_was_removed_by_hand_is_missed(audit: Audit) -> None:
    async with audit.database.reading() as connection:
        heads = [head for head in await chain_heads(connection) if head.month == MONTH]
        name = await database_name(connection)
    if audit.database.dialect == "postgresql":
        async with audit.database.writing() as connection:
            await connection.execute(text("ALTER TABLE activations DROP CONSTRAINT activations_record"))
            await remove_months(connection, [MONTH], {})
    else:
        async with audit.database.engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            await driver.execute("PRAGMA foreign_keys = OFF")  # type: ignore[union-attr]
            await connection.execution_options(writes=True)
            await remove_months(connection, [MONTH], {})
            await connection.commit()
    assert {"VANISHED", "NO_RECORD"} <= await audit.kinds()
    signer = Signer(SigningKey.generate(), name)  # of somebody who does not have the key
    ends = signer.written([], utc_now())
    async with audit.database.writing() as connection:
        await add_checkpoints(connection, [ends, signer.retired(heads, utc_now(), ends)])
    assert {"VANISHED", "BAD_SIGNATURE"} <= await audit.kinds()
    await audit.checkpoints.take()
    assert audit.checkpoints.lost_chains == len(heads)


async def test_a_new_signing_key_vouches_for_months_that_the_old_one_retired(audit: Audit) -> None:
    await audit.retire()
    await rotate_signing_key(audit.settings)
    found = await verify_database(audit.database.without_timeouts(), audit.settings, lambda *_: None)
    assert (found.tampering, found.rows, found.retired) == ((), (), {MONTH: 5})


async def test_a_dry_run_changes_nothing_and_a_damaged_audit_stays(audit: Audit) -> None:
    done = await audit.retire(dry_run=True)
    assert (done.retired, len(done.months), await audit.kinds()) == (False, 1, set())
    async with audit.database.reading() as connection:
        assert MONTH in {head.month for head in await chain_heads(connection)}
    edit = "UPDATE audit_records SET principal = 'x' WHERE month = :month AND seq = 2"
    await asyncio.to_thread(tamper, audit.settings, edit, month=MONTH)
    with pytest.raises(RetirementRefused, match="not intact"):
        await audit.retire()


def test_months_that_are_young_or_still_written_stay() -> None:
    this, minimum = "2026-11", 72
    check_month("2020-11", this, minimum, below_minimum=False)
    with pytest.raises(RetirementRefused, match="NORMALCY_AUDIT_RETENTION_MONTHS"):
        check_month("2020-12", this, minimum, below_minimum=False)
    check_month(later_month(this, -1), this, minimum, below_minimum=True)
    with pytest.raises(RetirementRefused, match="2026-10 or earlier"):
        check_month(this, this, 0, below_minimum=True)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_sqlite_retires_only_while_no_service_runs(audit: Audit) -> None:
    from app.database.sqlite import serve_lock

    with serve_lock(audit.database.file), pytest.raises(AlreadyServing):
        await audit.retire()


def exported_files(audit: Audit) -> set[Path]:
    return set((audit.settings.data_dir / "retired").rglob("*"))


@pytest.mark.req("REQ-155")
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_what_failed_before_the_commit_leaves_no_file_and_can_be_tried_again(
    audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = retire_months_module._export

    async def export_slowly(*arguments: Any) -> None:
        await export(*arguments)
        async with open_change(audit.database, await open_author(audit.settings, audit.database, FACTS)) as change:
            await add_key(change, make_key("meanwhile", ["score"], OLD).key, "admin", OLD)

    with monkeypatch.context() as patched:
        patched.setattr(retire_months_module, "_export", export_slowly)
        with pytest.raises(RetirementRefused, match="try again"):
            await audit.retire()
    assert exported_files(audit) == set()
    [month] = (await audit.retire()).months
    assert (month.chains, exported_files(audit)) == (6, {Path(month.stored_in)})


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_what_failed_after_the_commit_leaves_the_archive(audit: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(log: CheckpointLog, row: CheckpointRow) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(CheckpointLog, "append", fail)
        with pytest.raises(RuntimeError):
            await audit.retire()
    assert [file.name for file in exported_files(audit)] == [f"audit-{MONTH}.csv"]
    assert (await audit.retire()).months == ()


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_the_same_archive_of_a_run_that_was_killed_is_used_and_another_one_stays(
    audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise RetirementRefused("killed before the commit")

    archive = Path((await audit.retire(dry_run=True)).months[0].stored_in)
    archive.parent.mkdir()
    archive.write_bytes(b"of another run")
    with pytest.raises(RetirementRefused, match="another archive of the same month"):
        await audit.retire()
    assert [(file, file.read_bytes()) for file in exported_files(audit)] == [(archive, b"of another run")]
    archive.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(retire_months_module, "_retire", killed)
        patched.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(RetirementRefused, match="killed"):
            await audit.retire()
    whole = archive.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(retire_months_module, "_retire", killed)
        with pytest.raises(RetirementRefused, match="killed"):
            await audit.retire()
    assert archive.read_bytes() == whole  # it was there before this run
    [month] = (await audit.retire()).months
    assert (Path(month.stored_in), archive.read_bytes()) == (archive, whole)
