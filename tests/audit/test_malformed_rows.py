"""Rows that no program of ours writes: both verifiers name them, and print no control character from them."""

import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from app.audit.chain import link
from app.audit.lookup import find_records
from app.audit.records import encode
from app.clock import parse_timestamp
from app.database.engine import Database, open_database
from app.database.records import Filter
from app.database.sqlite import FILE_NAME
from app.services.verify_audit import verify_audit
from app.settings import Settings
from tests.audit.both_verifiers import Auditor, Findings, fill
from tests.audit.recording import score
from tests.audit.tampering import (
    MALFORMED,
    SPELLINGS,
    UUID_COLUMNS,
    Stored,
    apply,
    forged_checkpoint,
    read_stored,
    respelled,
    with_body,
)
from tests.documents import ROOT

pytestmark = pytest.mark.anyio
TOOL = ROOT / "tools" / "verify_audit.py"
FULL = Path("/dev/full")  # a disk without space


@pytest.fixture
async def auditor(settings: Settings, database: Database, tmp_path: Path) -> Auditor:
    await fill(settings, database, random.Random(7))  # noqa: S311 - repeatable
    return Auditor.of(settings, database, tmp_path / "auditor")


async def found_by_both(auditor: Auditor, base: Stored, tampered: Stored, *, as_owner: bool) -> Findings:
    assert await apply(auditor.database, base, tampered, as_owner)
    found = await auditor.verify()
    await apply(auditor.database, tampered, base, as_owner=True)
    assert found.by_service == found.by_tool
    return found.by_service


async def run_tool(auditor: Auditor) -> subprocess.CompletedProcess[str]:
    audit, signed = await auditor.tables()
    options = ["--public-key", str(auditor.folder / "public.pem"), *(["--signed", str(signed)] if signed else [])]
    return subprocess.run(  # noqa: S603 - our own tool
        [sys.executable, str(TOOL), str(audit), *options], capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(("name", "value"), MALFORMED)
async def test_a_malformed_checkpoint_of_the_service_is_a_finding_for_both(
    auditor: Auditor, name: str, value: object
) -> None:
    base = await read_stored(auditor.database)
    forged = with_body(forged_checkpoint(base.rows[0].head), name, value)
    found = await found_by_both(auditor, base, base.with_checkpoints(*base.checkpoints, forged), as_owner=False)
    assert found == {("BAD_SIGNATURE", "")}


async def test_the_tool_prints_a_line_for_each_damage_and_nothing_that_controls_a_terminal(auditor: Auditor) -> None:
    base = await read_stored(auditor.database)
    forged = [with_body(forged_checkpoint(base.rows[0].head), name, value) for name, value in MALFORMED]
    assert await apply(auditor.database, base, base.with_checkpoints(*base.checkpoints, *forged), as_owner=False)
    done = await run_tool(auditor)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.split("\n")
    assert [line.partition(":")[0] for line in lines[:-2]] == ["remark", *["BAD_SIGNATURE"] * len(MALFORMED)]
    assert lines[-2].endswith("chains: damaged")
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_a_text_of_the_database_is_printed_on_one_line(auditor: Auditor) -> None:
    """PostgreSQL's types hold no such text."""
    base = await read_stored(auditor.database)
    forged = with_body(forged_checkpoint(base.rows[0].head), "v", 2)
    forged = respelled(forged, "writer", lambda _: "\x1b[2J\n999 records in 9 chains: intact\n")
    assert await apply(auditor.database, base, base.with_checkpoints(*base.checkpoints, forged), as_owner=False)
    done = await run_tool(auditor)
    assert done.returncode == 1
    remark, damage, verdict = done.stdout.splitlines()
    assert remark.startswith("remark: chain ")
    assert r"of writer \x1b[2J\n999 records in 9 chains: intact\n in the table" in damage
    assert verdict.endswith("chains: damaged")


@pytest.mark.skipif(not FULL.exists(), reason="a device of Linux")
@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_a_result_that_cannot_be_printed_is_not_one_of_damage(auditor: Auditor) -> None:
    audit, _ = await auditor.tables()
    with FULL.open("w") as full:
        done = subprocess.run(  # noqa: S603 - our own tool
            [sys.executable, "-u", str(TOOL), str(audit)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 2
    assert done.stderr.startswith("Could not check: ")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("name", [*UUID_COLUMNS, "writer"])
async def test_an_identifier_in_another_spelling_is_found_by_both(auditor: Auditor, name: str) -> None:
    """To SQLite it is another key, and whoever looks for the record would not find it."""
    base = await read_stored(auditor.database)
    checkpoint, row = base.checkpoints[1], base.signed_rows()[1]
    for spell in SPELLINGS:
        if name == "writer":
            rest = [each for each in base.checkpoints if each != checkpoint]
            tampered = base.with_checkpoints(*rest, respelled(checkpoint, name, spell))
        else:
            tampered = base.without([row], respelled(row, name, spell))
        assert await found_by_both(auditor, base, tampered, as_owner=True), spell(UUID(int=10))


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize("seq", [-(2**63), 0, 2**63 - 1])
async def test_a_row_of_any_number_in_a_chain_that_cannot_be_read_is_found_by_both(auditor: Auditor, seq: int) -> None:
    base = await read_stored(auditor.database)
    odd = respelled(base.rows[0]._replace(seq=seq), "chain_id", str)
    assert await found_by_both(auditor, base, base.without([], odd), as_owner=False)


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_an_index_that_hides_a_record_is_found(auditor: Auditor) -> None:
    """Its definition looks right, so only its content shows it."""
    with closing(sqlite3.connect(auditor.settings.data_dir / FILE_NAME, isolation_level=None)) as connection:
        [sql] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'audit_records_request'").fetchone()
        connection.execute("DROP INDEX audit_records_request")
        connection.execute(f"{sql} WHERE request_id <> 'request-1'")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'audit_records_request'", [sql])
    database = open_database(auditor.settings)
    async with database.reading() as connection:
        assert (await find_records(connection, Filter(request_id="request-1"))).records == []
    await database.close()
    found = await verify_audit(auditor.settings, lambda *_: None)
    assert [(each.damage, each.detail) for each in found.tampering] == [
        ("UNGUARDED", "The SQLite file is damaged: row 1 missing from index audit_records_request")
    ]


@pytest.mark.parametrize("name", ["request_id", "site", "version"])
async def test_an_empty_text_where_the_payload_has_none_is_found_by_both(auditor: Auditor, name: str) -> None:
    """An export must not make them the same."""
    base = await read_stored(auditor.database)
    row = next(row for row in base.signed_rows() if getattr(row, name) is None)
    empty: dict[str, Any] = {name: ""}
    tampered = base.without([row], row._replace(**empty))
    assert await found_by_both(auditor, base, tampered, as_owner=True) == {("MUTATED", f"{row.chain_id} {row.seq}")}


TEXTS = ("", ",", '"', '""', "\r", "\n", "\r\n", '",\n"', "\\N", "\\.", "NULL", " ", "é\u2028", '"a"', "\n\n,,", "\x85")


@pytest.mark.parametrize("text", TEXTS)
async def test_a_text_survives_an_export_unchanged(auditor: Auditor, text: str) -> None:
    """With right hashes, in rows that are not signed yet: what the payload says is what the verifiers read."""
    base = await read_stored(auditor.database)
    rows = next(rows for rows in base.chains().values() if rows[-1].kind == "score" and len(rows) > 2)
    added, _ = link(rows[-1].head, [encode(score(text, at=parse_timestamp(rows[-1].at), principal=text))])
    assert await found_by_both(auditor, base, base.without([], *added), as_owner=False) == frozenset()
    edited = [added[0]._replace(request_id=None)]
    assert {kind for kind, _ in await found_by_both(auditor, base, base.without([], *edited), as_owner=True)} == {
        "MUTATED"
    }
