# ruff: noqa: S608 - statements of our own
"""Signed checkpoints: what their writer signs and when, and what verification with a public key finds."""

import asyncio
import json
import os
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from app.audit.author import FOLDER, chains_to_adopt, open_author
from app.audit.chain import genesis, link, new_chain, seal
from app.audit.records import Record, encode
from app.audit.signed_checkpoint import INTERVAL, OwnEnd, Signer, read_body, read_line
from app.audit.signing_key import KEY_FILE, SigningKey, load_signing_key
from app.audit.writer import AuditWriter
from app.clock import month_of, utc_now
from app.database.checkpoints import CheckpointRow, add_checkpoints, stream_checkpoints
from app.database.engine import Database
from app.database.records import AuditRow, ChainHead, add_records
from app.errors import CouldNotCheck, InvalidPublicKey, InvalidSettings, NormalcyError
from app.observability import make_metrics
from app.runtime.command import upgrade_database
from app.services.signing_keys import rotate_signing_key
from app.services.verify_audit import AuditVerification, verify_audit, write_checkpoint
from app.settings import Settings, load_settings
from tests.audit.both_verifiers import TOOL, Auditor, crash
from tests.audit.recording import FACTS, add_unsigned_chain, all_rows, score
from tests.audit.tampering import apply, copy_checkpoints_and_forge_chain, read_stored
from tests.cli.running import tamper

pytestmark = pytest.mark.anyio

LATER = 2 * INTERVAL + timedelta(seconds=1)
SAME_CHAIN = "chain_id IN (SELECT chain_id FROM audit_records WHERE request_id = 'audited')"


class Clock:
    def __init__(self) -> None:
        self.now = utc_now()

    def __call__(self) -> object:
        return self.now


async def open_one(settings: Settings, database: Database, clock: Clock | None = None) -> AuditWriter:
    author = await open_author(settings, database, FACTS)
    writer = AuditWriter(database.appender(), author, make_metrics(), clock=clock or Clock())  # type: ignore[arg-type]
    await writer.start(await chains_to_adopt(database, author.log))
    return writer


async def write(settings: Settings, database: Database, count: int = 4) -> None:
    """As a service that starts, writes and stops."""
    writer = await open_one(settings, database)
    for number in range(count):
        await writer.write([score("audited" if number == 0 else f"request-{number}")])
    await writer.stop()


async def checkpoints(database: Database) -> list[CheckpointRow]:
    async with database.reading() as connection:
        return [row async for row in stream_checkpoints(connection)]


async def verified(settings: Settings, file: Path | None = None) -> AuditVerification:
    """With this installation's public key given, as an auditor does."""
    key = load_signing_key(settings).public
    return await verify_audit(settings, lambda *_: None, choice=file or "folder", public_keys=[key])


def kinds(found: AuditVerification) -> list[str]:
    return [each.damage for each in found.tampering]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.05)


def signed_file(settings: Settings) -> Path:
    [file] = (settings.data_dir / FOLDER).glob("signed-*.jsonl")
    return file


async def test_a_chain_is_signed_from_its_first_row_to_its_seal(settings: Settings, database: Database) -> None:
    await write(settings, database)
    adopted, first, last = (read_body(row.body) for row in await checkpoints(database))
    assert (adopted.kind, adopted.ends) == ("found", ())
    assert [(end.seq, end.closed) for end in first.ends] == [(1, False)]
    assert [(end.seq, end.closed) for end in last.ends] == [(6, True)]
    lines = signed_file(settings).read_bytes().splitlines()
    assert [read_line(line) for line in lines] == await checkpoints(database)
    found = await verified(settings)
    assert (found.intact, found.signed_checkpoints, found.unsigned) == (True, 3, ())


async def test_rows_are_signed_once_a_minute_also_when_nothing_follows(settings: Settings, database: Database) -> None:
    clock = Clock()
    writer = await open_one(settings, database, clock)
    await writer.write([score("audited")])
    assert len(await checkpoints(database)) == 2
    [tail] = (await verified(settings)).unsigned
    assert (tail.rows, tail.seq) == (1, 2)
    clock.now += INTERVAL
    async with asyncio.timeout(30):
        while len(await checkpoints(database)) == 2:  # the idle writer signs
            await asyncio.sleep(0.05)
    assert read_body((await checkpoints(database))[-1].body).ends[0].seq == 2
    clock.now += INTERVAL
    await writer.write([score("later")])
    assert read_body((await checkpoints(database))[-1].body).ends[0].seq == 3
    assert (await verified(settings)).unsigned == ()
    await writer.stop()


async def test_the_end_of_a_chain_whose_writer_crashed_is_a_remark(settings: Settings, database: Database) -> None:
    writer = await open_one(settings, database)
    await writer.write([score("audited")])
    await crash(writer)
    await write(settings, database)
    found = await verified(settings)
    assert found.intact
    assert [(tail.rows, tail.seq) for tail in found.unsigned] == [(1, 2)]


async def append_rows(database: Database, at_seconds: float, sealed: bool = False) -> None:
    """As somebody without the key would continue a chain, hashes and all."""
    rows = [row for row in await all_rows(database) if row.request_id != "other"]
    last = rows[-1]
    when = utc_now() + timedelta(seconds=at_seconds)
    records = [encode(score("forged", at=when)), *([seal(utc_now())] if sealed else [])]
    async with database.writing() as connection:
        await add_records(connection, link(last.head, records)[0])


@pytest.mark.parametrize(("at_seconds", "sealed"), [(0.0, True), (LATER.total_seconds(), False)])
async def test_rows_that_the_writer_cannot_have_left_unsigned_are_found(
    settings: Settings, database: Database, at_seconds: float, sealed: bool
) -> None:
    writer = await open_one(settings, database)
    await writer.write([score("audited")])
    await crash(writer)
    await append_rows(database, at_seconds, sealed)
    found = await verified(settings)
    assert kinds(found) == ["UNSIGNED"]
    assert found.tampering[0].seq == 2


@pytest.mark.req("REQ-087")
async def test_a_writer_does_not_sign_what_somebody_else_appended(settings: Settings, database: Database) -> None:
    writer = await open_one(settings, database)
    await writer.write([score("audited")])
    await append_rows(database, 0.0)
    await until(lambda: writer.found_foreign_rows)
    await writer.write([score("next")])
    await writer.stop()
    found = await verified(settings)
    assert (kinds(found), found.tampering[0].seq) == (["UNSIGNED"], 3)


@pytest.mark.req("REQ-087")
async def test_a_chain_that_no_writer_signed_is_found_whenever_it_says_it_was_opened(
    settings: Settings, database: Database
) -> None:
    await write(settings, database)
    for age in (timedelta(), timedelta(days=20)):
        await add_unsigned_chain(database, age)
    assert kinds(await verified(settings)) == ["UNKNOWN_CHAIN", "UNKNOWN_CHAIN"]


async def write_without_reading(settings: Settings, database: Database) -> None:
    """As a service whose login may not read records: it adopts nothing."""
    author = await open_author(settings, database, FACTS)
    writer = AuditWriter(database.appender(), author, make_metrics())
    await writer.start()
    await writer.write([score("audited")])
    await writer.stop()


@pytest.mark.req("REQ-087")
async def test_a_chain_dated_before_the_first_signature_is_found_also_if_nothing_was_adopted(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    await write_without_reading(settings, database)
    end = await add_unsigned_chain(database, timedelta(days=20))
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert found.by_service == found.by_tool == {("UNKNOWN_CHAIN", f"{end.chain_id} 1")}
    assert "db upgrade" in (await verified(settings)).tampering[0].detail


async def test_an_upgrade_signs_the_chains_that_it_finds_once(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    await add_unsigned_chain(database)
    (_, notes) = await upgrade_database(settings)
    assert ["signing key" in note for note in notes] == [True]  # it creates none
    load_signing_key(settings)
    for _ in range(2):
        assert await upgrade_database(settings) == ((), ())
    [signed] = await checkpoints(database)
    assert (signed.kind, len(read_body(signed.body).ends)) == ("found", 1)
    await write_without_reading(settings, database)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    assert (await auditor.verify()).by_tool == (await auditor.verify()).by_service == frozenset()
    end = await add_unsigned_chain(database)
    assert (await auditor.verify()).by_tool == {("UNKNOWN_CHAIN", f"{end.chain_id} 1")}


async def test_chains_from_before_the_first_signature_are_adopted(settings: Settings, database: Database) -> None:
    await add_unsigned_chain(database)
    await write(settings, database)
    found = await verified(settings)
    assert found.intact
    await asyncio.to_thread(tamper, settings, "DELETE FROM audit_records WHERE request_id = 'old'")
    assert kinds(await verified(settings)) == ["TRUNCATED"]


@pytest.mark.req("REQ-087")
async def test_a_checkpoint_of_an_unknown_key_excuses_no_chain(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    """Neither with the key that an auditor has, nor with those that the installation trusts."""
    await write(settings, database)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    head = new_chain(month_of(utc_now()))
    rows, end = link(head, [genesis(head, utc_now(), FACTS), encode(score("forged"))])
    unknown = Signer(SigningKey.generate(), "x").written([OwnEnd(end, closed=True)], utc_now())
    async with database.writing() as connection:
        await add_records(connection, rows)
        await add_checkpoints(connection, [unknown._replace(signature=bytes(64))])
    found = await verify_audit(settings, lambda *_: None)
    assert kinds(found) == ["BAD_SIGNATURE", "UNKNOWN_CHAIN"]
    assert "which is not trusted" in found.tampering[0].detail
    both = await auditor.verify()
    assert both.by_service == both.by_tool == {("BAD_SIGNATURE", ""), ("UNKNOWN_CHAIN", f"{end.chain_id} 1")}


@pytest.mark.req("REQ-087")
async def test_copies_of_checkpoints_hide_no_forged_chain(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    """Whoever verifies without a file reads the copies first, under other writers than they name."""
    await write(settings, database)
    base = await read_stored(database)
    tampered, expected = copy_checkpoints_and_forge_chain(base, random.Random(1))  # noqa: S311 - any chain
    assert await apply(database, base, tampered, as_owner=False)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    signed_file(settings).unlink()
    found = await verified(settings)
    assert (expected <= set(kinds(found)), found.signed_checkpoints) == (True, len(base.checkpoints))
    audit, signed = await auditor.tables()
    _, _, by_tool, _ = TOOL.verify(audit, signed, [], TOOL.Keys([auditor.folder / "public.pem"]))
    assert sorted(kind for kind, _ in by_tool) == sorted(kinds(found))


async def test_replicas_with_keys_of_their_own_trust_those_that_the_setting_names(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    replicas = [replace(settings, signing_key=SigningKey.generate().pem.decode()) for _ in range(3)]
    for replica in replicas:
        await write(replica, database)
    keys = tmp_path / "keys.pem"
    keys.write_bytes(b"# all of them\n".join(load_signing_key(replica).public.pem for replica in replicas[:2]))
    trusting = [replace(replica, audit_public_keys_file=str(keys)) for replica in replicas]
    assert not (await verify_audit(trusting[0], lambda *_: None)).intact
    assert (await verify_audit(trusting[2], lambda *_: None)).intact
    everybody = Auditor.of(replicas[2], database, tmp_path / "auditor")
    (everybody.folder / "public.pem").write_bytes(everybody.key.pem + keys.read_bytes())
    assert await everybody.run_tool() == frozenset()


async def test_without_any_key_signatures_cannot_be_checked(settings: Settings, database: Database) -> None:
    await write(settings, database)
    (settings.data_dir / KEY_FILE).unlink()
    with pytest.raises(CouldNotCheck, match="--public-key"):
        await verify_audit(settings, lambda *_: None)
    assert (await verify_audit(settings, lambda *_: None, choice="none")).intact


@pytest.mark.parametrize("content", ["", "no key", "-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----"])
async def test_a_file_of_trusted_keys_that_holds_none_is_an_error(
    settings: Settings, database: Database, tmp_path: Path, content: str
) -> None:
    file = tmp_path / "keys.pem"
    file.write_text(content)
    with pytest.raises(InvalidPublicKey):
        await verify_audit(replace(settings, audit_public_keys_file=str(file)), lambda *_: None)


DAMAGE: dict[str, tuple[str, str]] = {
    "signature": ("UPDATE audit_checkpoints SET signature = {blob} WHERE number = 2", "BAD_SIGNATURE"),
    "body": ("UPDATE audit_checkpoints SET body = {blob} WHERE number = 2", "BAD_SIGNATURE"),
    "column": ("UPDATE audit_checkpoints SET number = 7 WHERE number = 3", "BAD_SIGNATURE"),
    "kind": ("UPDATE audit_checkpoints SET kind = 'found' WHERE number = 2", "BAD_SIGNATURE"),
    "in the middle": ("DELETE FROM audit_checkpoints WHERE number = 2", "CHECKPOINT_GONE"),
}


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_damaged_or_missing_checkpoint_is_found_without_its_file(
    settings: Settings, database: Database, name: str
) -> None:
    statement, kind = DAMAGE[name]
    await write(settings, database)
    signed_file(settings).unlink()
    blob = "decode('00', 'hex')" if settings.database_url else "x'00'"
    await asyncio.to_thread(tamper, settings, statement.format(blob=blob))
    assert kind in kinds(await verified(settings))


@pytest.mark.parametrize("cut", [1, 30, 200])
async def test_an_unfinished_last_line_of_a_file_is_a_warning(
    settings: Settings, database: Database, tmp_path: Path, cut: int
) -> None:
    await write(settings, database)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    for file in (auditor.copy, signed_file(settings)):
        file.write_bytes(file.read_bytes()[:-cut])
    found = await auditor.verify()
    assert found.by_service == found.by_tool == frozenset()
    warnings = (await verify_audit(settings, lambda *_: None)).warnings
    assert [("unfinished" in warning) for warning in warnings] == ([True] if cut > 1 else [])
    await write(settings, database)  # which removes what is left of it
    assert (await verify_audit(settings, lambda *_: None)).warnings == ()
    with auditor.copy.open("ab") as copy:
        copy.write(b"\n")
    found = await auditor.verify()
    assert found.by_service == found.by_tool == (frozenset() if cut == 1 else {("BAD_SIGNATURE", "")})


@pytest.mark.parametrize("ending", [b"", b"\n"])
@pytest.mark.parametrize("edited", ["root", "signature", "body", "more"])
async def test_an_edited_last_line_of_a_file_is_found_however_it_ends(
    settings: Settings, database: Database, tmp_path: Path, edited: str, ending: bytes
) -> None:
    """A line that has a body and a signature was not cut off."""
    await write(settings, database)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    *lines, last = auditor.copy.read_bytes().splitlines(keepends=True)
    line = json.loads(last)
    if edited == "root":
        body = json.loads(line["body"])
        body["ends"][0]["seq"] += 1
        line["body"] = json.dumps(body)
    elif edited == "signature":
        line["signature"] = "00" * 64
    elif edited == "body":
        line["body"] = "{}"
    else:
        line["more"] = 1
    auditor.copy.write_bytes(b"".join([*lines, json.dumps(line).encode() + ending]))
    found = await auditor.verify()
    is_unfinished = edited == "more" and not ending  # it is not the object that the format describes
    assert found.by_service == found.by_tool == (frozenset() if is_unfinished else {("BAD_SIGNATURE", "")})


async def test_everything_that_is_gone_is_found_with_the_file(settings: Settings, database: Database) -> None:
    await write(settings, database)
    for statement, expected in (
        ("DELETE FROM audit_checkpoints WHERE number = 3", {"CHECKPOINT_GONE"}),
        (f"DELETE FROM audit_records WHERE {SAME_CHAIN} AND seq > 3", {"CHECKPOINT_GONE", "TRUNCATED"}),
        ("DELETE FROM audit_records", {"CHECKPOINT_GONE", "VANISHED", "EMPTIED"}),
        ("DELETE FROM audit_checkpoints", {"CHECKPOINT_GONE", "VANISHED", "EMPTIED"}),
    ):
        await asyncio.to_thread(tamper, settings, statement)
        assert set(kinds(await verified(settings, signed_file(settings)))) == expected


async def test_only_what_a_trusted_key_signed_shows_that_an_audit_was_emptied(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    await write(settings, database)
    auditor = Auditor.of(settings, database, tmp_path / "auditor")
    for table in ("audit_records", "audit_checkpoints"):
        await asyncio.to_thread(tamper, settings, f"DELETE FROM {table}")
    found = await auditor.verify()
    assert ("EMPTIED" in found.kinds, found.by_service) == (True, found.by_tool)
    later = await verify_audit(settings, lambda *_: None, "2999-01", auditor.copy, [auditor.key])
    assert "EMPTIED" in kinds(later)  # of whichever month
    auditor.key = SigningKey.generate().public
    (auditor.folder / "public.pem").write_bytes(auditor.key.pem)
    found = await auditor.verify()
    assert (
        found.by_service == found.by_tool == {(kind, "") for kind in ("BAD_SIGNATURE", "CHECKPOINT_GONE", "UNSIGNED")}
    )


@pytest.mark.req("REQ-087")
async def test_a_chain_rewritten_as_a_whole_differs_from_what_was_signed(
    settings: Settings, database: Database
) -> None:
    await write(settings, database)
    rows = await all_rows(database)
    start = ChainHead(rows[0].month, rows[0].chain_id, 0, bytes(32))
    changed = [encode(score("audited", status=201)) if row.request_id == "audited" else _record(row) for row in rows]
    rewritten = link(start, changed)[0]
    await asyncio.to_thread(tamper, settings, "DELETE FROM audit_records")
    async with database.writing() as connection:
        await add_records(connection, rewritten)
    assert kinds(await verified(settings)) == ["REWRITTEN"]


def _record(row: AuditRow) -> Record:
    return Record(*row[3:-1])


async def test_an_unsigned_file_is_not_accepted_with_a_public_key(settings: Settings, database: Database) -> None:
    await write(settings, database)
    file = settings.data_dir / "own.jsonl"
    await write_checkpoint(settings, file)
    assert (await verify_audit(settings, lambda *_: None, choice=file)).intact
    assert kinds(await verified(settings, file)) == ["BAD_SIGNATURE"]


async def test_without_any_signature_a_public_key_finds_nothing_signed(settings: Settings, database: Database) -> None:
    head = new_chain(month_of(utc_now()))
    async with database.writing() as connection:
        await add_records(connection, link(head, [genesis(head, utc_now(), FACTS)])[0])
    assert kinds(await verified(settings)) == ["UNSIGNED"]
    assert (await verify_audit(settings, lambda *_: None)).intact


async def test_the_keys_before_and_after_a_rotation_vouch_for_each_other(
    settings: Settings, database: Database, tmp_path: Path
) -> None:
    old = load_signing_key(settings).public
    await write(settings, database)
    new = await rotate_signing_key(settings)
    assert load_signing_key(settings).public.raw == new.raw != old.raw
    await write(settings, database)
    newest = await rotate_signing_key(settings)
    for keys in ([old], [new], [newest], []):
        found = await verify_audit(settings, lambda *_: None, public_keys=keys)
        assert (found.intact, found.signed_checkpoints) == (True, 9)
    found_by_both = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert found_by_both.by_service == found_by_both.by_tool == frozenset()


async def test_a_configured_key_is_replaced_in_a_file(settings: Settings, database: Database, tmp_path: Path) -> None:
    configured = replace(settings, signing_key=SigningKey.generate().pem.decode())
    with pytest.raises(InvalidSettings):
        await rotate_signing_key(configured)
    new = await rotate_signing_key(configured, tmp_path / "new.pem")
    assert SigningKey.from_pem((tmp_path / "new.pem").read_bytes()).public.raw == new.raw
    assert not (settings.data_dir / KEY_FILE).exists()


async def test_every_checkpoint_goes_to_a_second_file_too(settings: Settings, database: Database) -> None:
    second = settings.data_dir / "elsewhere.jsonl"
    await write(replace(settings, checkpoint_file=str(second)), database)
    assert second.read_bytes() == signed_file(settings).read_bytes()


async def test_a_file_that_cannot_be_written_is_tried_again(settings: Settings, database: Database) -> None:
    in_the_way = settings.data_dir / FOLDER
    in_the_way.write_text("no folder")
    writer = await open_one(settings, database)
    await until(lambda: writer.publishing_failed)
    in_the_way.unlink()
    await until(lambda: not writer.publishing_failed)
    await writer.stop()
    assert len(signed_file(settings).read_bytes().splitlines()) == 3


@pytest.mark.req("REQ-088")
def test_a_key_of_the_data_folder_that_others_can_read_is_refused(tmp_path: Path) -> None:
    settings = load_settings({"NORMALCY_DATA_DIR": str(tmp_path)})
    key = load_signing_key(settings)
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert load_signing_key(settings).public.raw == key.public.raw
    os.chmod(tmp_path / KEY_FILE, 0o640)
    with pytest.raises(NormalcyError, match="chmod 600"):
        load_signing_key(settings)
    configured = load_settings(
        {"NORMALCY_DATA_DIR": str(tmp_path), "NORMALCY_SIGNING_KEY_FILE": str(tmp_path / KEY_FILE)}
    )
    assert load_signing_key(configured).public.raw == key.public.raw
