import asyncio
import csv
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from app.audit.author import FOLDER, signed_files
from app.database.engine import Database, open_database
from app.database.records import chain_heads
from app.database.sqlite import FILE_NAME
from app.settings import Settings
from tests.audit.recording import writes_blocked
from tests.cli.running import READING, Normalcy, tamper
from tests.web.serving import on_database, records

pytestmark = pytest.mark.slow

SCORE = ("score", "--site", "SoV", *READING, "--subject", "patient 4711", "--json")


@contextmanager
def audit_blocked(settings: Settings) -> Iterator[None]:
    """No record can be added inside this block."""
    with asyncio.Runner() as runner:
        database = open_database(settings)
        blocking = writes_blocked(database)
        runner.run(blocking.__aenter__())
        try:
            yield
        finally:
            runner.run(blocking.__aexit__(None, None, None))
            runner.run(database.close())


@pytest.fixture
def request_id(normalcy: Normalcy) -> str:
    """Of one score that is on record."""
    return str(normalcy(*SCORE).json["request_id"])


def unsign(settings: Settings) -> None:
    """As an audit was before checkpoints were signed."""
    tamper(settings, "DELETE FROM audit_checkpoints")
    for file in signed_files(settings.data_dir / FOLDER):
        file.unlink()


def checkpoint_in_folder(normalcy: Normalcy, settings: Settings) -> Path:
    """As a service leaves one."""
    folder = settings.data_dir / FOLDER
    folder.mkdir(exist_ok=True)
    unsign(settings)
    assert normalcy("audit", "checkpoint", "--out", folder / "2026-11-15.jsonl").code == 0
    return folder / "2026-11-15.jsonl"


def chains(settings: Settings) -> list[UUID]:
    async def read(database: Database) -> list[UUID]:
        async with database.reading() as connection:
            return [head.chain_id for head in await chain_heads(connection)]

    return on_database(settings, read)


@pytest.mark.usefixtures("request_id")
class TestVerify:
    def test_an_untouched_audit_is_intact(self, normalcy: Normalcy) -> None:
        done = normalcy("audit", "verify", "--json")
        assert done.code == 0
        assert (done.json["intact"], done.json["records"], done.json["chains"]) == (True, 3, 1)
        assert normalcy("audit", "verify").out == "Intact: 3 records in 1 chain, compared with 3 signed checkpoints.\n"

    @pytest.mark.parametrize(
        ("statement", "damage", "seq"),
        [
            ("UPDATE audit_records SET payload = :junk WHERE kind = 'score'", "MUTATED", 2),
            ("UPDATE audit_records SET principal = 'somebody else' WHERE kind = 'score'", "MUTATED", 2),
            ("DELETE FROM audit_records WHERE kind = 'score'", "GAP", 2),
            ("DELETE FROM audit_records WHERE kind = 'genesis'", "GAP", 1),
        ],
    )
    def test_tampering_is_named_by_record_and_kind(
        self, normalcy: Normalcy, settings: Settings, statement: str, damage: str, seq: int
    ) -> None:
        record_id = next(record.record_id for record in records(settings) if record.kind == "score")
        tamper(settings, statement, **({"junk": b"{}"} if ":junk" in statement else {}))
        done = normalcy("audit", "verify", "--json")
        assert done.code == 1
        (found,) = done.json["tampering"]
        is_there = statement.startswith("UPDATE")
        assert (found["damage"], found["seq"], found["record_id"]) == (damage, seq, record_id if is_there else None)
        said = normalcy("audit", "verify")
        assert said.code == 1
        assert said.out.startswith(f"{damage}: {'record ' + record_id if is_there else 'a missing record'}")
        assert "TAMPERED WITH" in said.out

    def test_beside_what_is_missing_the_record_before_it_is_named(
        self, normalcy: Normalcy, settings: Settings, request_id: str
    ) -> None:
        checkpoint_in_folder(normalcy, settings)
        record_id = next(record.record_id for record in records(settings) if record.kind == "score")
        tamper(settings, "DELETE FROM audit_records WHERE kind = 'seal'")
        done = normalcy("audit", "verify")
        assert done.code == 1
        assert f"after record {record_id} of request {request_id}." in done.out

    def test_a_lost_end_is_found_against_a_checkpoint_alone(
        self, normalcy: Normalcy, settings: Settings, tmp_path: Path
    ) -> None:
        saved = tmp_path / "checkpoint.jsonl"
        unsign(settings)
        assert normalcy("audit", "checkpoint", "--out", saved).code == 0
        assert normalcy("audit", "verify", "--checkpoint", saved).code == 0
        tamper(settings, "DELETE FROM audit_records WHERE kind = 'seal'")
        assert normalcy("audit", "verify").code == 0
        done = normalcy("audit", "verify", "--checkpoint", saved, "--json")
        assert (done.code, done.json["tampering"][0]["damage"]) == (1, "TRUNCATED")
        assert normalcy("audit", "verify", "--checkpoint", saved, "--since", "2999-01").code == 0

    def test_the_checkpoints_of_the_data_folder_are_used_by_default(
        self, normalcy: Normalcy, settings: Settings, tmp_path: Path
    ) -> None:
        checkpoint_in_folder(normalcy, settings)
        assert "and 1 checkpoint of 20" in normalcy("audit", "verify").out
        tamper(settings, "DELETE FROM audit_records WHERE kind = 'seal'")
        later = tmp_path / "later.jsonl"
        assert normalcy("audit", "checkpoint", "--out", later).code == 0
        done = normalcy("audit", "verify", "--json")
        assert (done.code, [one["damage"] for one in done.json["tampering"]]) == (1, ["TRUNCATED"])
        assert normalcy("audit", "verify", "--no-checkpoint").code == 0
        assert normalcy("audit", "verify", "--checkpoint", later).code == 0
        assert normalcy("audit", "verify", "--checkpoint", later, "--no-checkpoint").code == 2

    def test_a_vanished_chain_and_an_emptied_table_are_findings(self, normalcy: Normalcy, settings: Settings) -> None:
        normalcy(*SCORE)
        checkpoint_in_folder(normalcy, settings)
        gone = chains(settings)[0]
        statement = "DELETE FROM audit_records WHERE chain_id = :chain"
        tamper(settings, statement, chain=gone if settings.database_url else gone.hex)
        done = normalcy("audit", "verify", "--json")
        assert (done.code, [one["damage"] for one in done.json["tampering"]]) == (1, ["VANISHED"])
        assert done.json["tampering"][0]["chain_id"] == str(gone)
        tamper(settings, "DELETE FROM audit_records")
        done = normalcy("audit", "verify", "--json")
        assert done.code == 1
        assert [one["damage"] for one in done.json["tampering"]] == ["VANISHED", "VANISHED", "EMPTIED"]
        assert "EMPTIED: there is no record at all" in normalcy("audit", "verify").out

    def test_a_checkpoint_of_another_database_is_skipped_with_a_warning(
        self, normalcy: Normalcy, settings: Settings
    ) -> None:
        file = checkpoint_in_folder(normalcy, settings)
        named = file.read_bytes()
        ours = re.search(rb'"database":"[^"]+"', named)
        assert ours
        tamper(settings, "DELETE FROM audit_records WHERE kind = 'seal'")
        file.write_bytes(named.replace(b"," + ours[0], b""))
        assert normalcy("audit", "verify").code == 1  # it names no database, and knows a chain of this one
        file.write_bytes(named.replace(ours[0], b'"database":"postgresql elsewhere"'))
        done = normalcy("audit", "verify")
        assert done.code == 0
        assert "1 of 1 checkpoints" in done.out
        assert "are of another database and were not compared" in done.out
        assert normalcy("audit", "verify", "--checkpoint", file).code == 1  # named by hand: compared all the same

    def test_a_checkpoint_that_names_no_database_counts_where_everything_is_gone(
        self, normalcy: Normalcy, settings: Settings
    ) -> None:
        """As the first release wrote them."""
        file = checkpoint_in_folder(normalcy, settings)
        file.write_bytes(re.sub(rb',"database":"[^"]+"', b"", file.read_bytes()))
        tamper(settings, "DELETE FROM audit_records")
        done = normalcy("audit", "verify", "--json")
        assert (done.code, [one["damage"] for one in done.json["tampering"]]) == (1, ["VANISHED", "EMPTIED"])
        assert normalcy("audit", "verify", "--no-checkpoint").code == 0

    def test_the_newest_checkpoint_is_the_one_that_was_taken_last(self, normalcy: Normalcy, settings: Settings) -> None:
        older = checkpoint_in_folder(normalcy, settings)  # named as the first release did: sorts behind the other
        newer = older.with_name("2026-11-15-sqlite.jsonl")
        newer.write_bytes(re.sub(rb'"taken_at":"[^"]+"', b'"taken_at":"2999-01-01T00:00:00.000Z"', older.read_bytes()))
        assert "and 2 checkpoints, the newest of 2999-01-01" in normalcy("audit", "verify").out

    def test_a_broken_checkpoint_in_the_folder_cannot_be_checked_against(
        self, normalcy: Normalcy, settings: Settings
    ) -> None:
        file = checkpoint_in_folder(normalcy, settings)
        file.write_bytes(file.read_bytes()[:-5])
        done = normalcy("audit", "verify")
        assert done.code == 2
        assert file.name in done.err

    def test_a_checkpoint_that_was_edited_cannot_be_checked_against(self, normalcy: Normalcy, tmp_path: Path) -> None:
        saved = tmp_path / "checkpoint.jsonl"
        normalcy("audit", "checkpoint", "--out", saved)
        saved.write_bytes(saved.read_bytes().replace(b'"seq":3', b'"seq":2'))
        done = normalcy("audit", "verify", "--checkpoint", saved)
        assert done.code == 2
        assert "truncated or edited" in done.err
        assert normalcy("audit", "verify", "--checkpoint", tmp_path / "none").code == 2

    def test_a_writer_that_still_runs_is_no_damage(self, normalcy: Normalcy, settings: Settings) -> None:
        unsign(settings)
        tamper(settings, "DELETE FROM audit_records WHERE kind = 'seal'")
        done = normalcy("audit", "verify")
        assert done.code == 0
        assert "its writer still runs, or crashed" in done.out


@pytest.mark.parametrize(
    "damage", ["chain_id = 'no chain'", "record_id = x'00'", "payload = 'text'", "seq = 'first'", "at = x'ff'"]
)
def test_a_row_with_a_value_of_another_kind_is_tampering(alone: Normalcy, embedded: Settings, damage: str) -> None:
    alone(*SCORE)
    tamper(embedded, f"UPDATE audit_records SET {damage} WHERE kind = 'score'")  # noqa: S608 - our own words
    done = alone("audit", "verify")
    assert done.code == 1, done.err


class TestCouldNotCheck:
    def test_a_folder_without_an_audit_is_not_intact(self, alone: Normalcy, embedded: Settings) -> None:
        done = alone("audit", "verify")
        assert (done.code, done.out) == (2, "")
        assert "There is no database at" in done.err
        assert not embedded.data_dir.exists()

    def test_a_file_that_is_no_database(self, alone: Normalcy, embedded: Settings) -> None:
        embedded.data_dir.mkdir()
        (embedded.data_dir / FILE_NAME).write_bytes(b"not a database" * 1000)
        assert alone("audit", "verify").code == 2

    def test_a_database_that_is_away(self, alone: Normalcy, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NORMALCY_DATABASE_URL", "postgresql://127.0.0.1:1/normalcy")
        assert alone("audit", "verify").code == 2

    @pytest.mark.parametrize("since", ["November", "2026-13", "2026", "2026-1"])
    def test_a_month_that_is_none(self, alone: Normalcy, since: str) -> None:
        alone("db", "upgrade")
        done = alone("audit", "verify", "--since", since)
        assert (done.code, "'--since': A month is needed here" in done.err) == (2, True), done.err

    def test_settings_that_cannot_be_used(self, alone: Normalcy, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NORMALCY_PORT", "tcp://10.0.0.1:80")
        assert alone("audit", "verify").code == 2

    def test_tables_that_were_altered(self, alone: Normalcy, embedded: Settings) -> None:
        alone("db", "upgrade")
        tamper(embedded, "ALTER TABLE audit_records RENAME COLUMN payload TO other")
        assert alone("audit", "verify").code == 2


def test_a_missing_guard_is_a_finding(normalcy: Normalcy, settings: Settings, request_id: str) -> None:
    if settings.database_url:
        removal, return_of = (
            f"ALTER TABLE activations {change} TRIGGER activations_no_change" for change in ("DISABLE", "ENABLE ALWAYS")
        )
    else:
        removal, return_of = "DROP TRIGGER activations_no_delete", "SELECT 1"
    tamper(settings, removal)
    try:
        done = normalcy("audit", "verify", "--json")
    finally:
        tamper(settings, return_of)
    assert done.code == 1
    (finding,) = done.json["tampering"]
    assert (finding["damage"], finding["record_id"]) == ("UNGUARDED", None)
    assert "activations.activations_no_" in finding["detail"]


class TestShow:
    @pytest.mark.req("REQ-080")
    def test_a_request_shows_its_record_and_reading_is_recorded(
        self, normalcy: Normalcy, settings: Settings, request_id: str
    ) -> None:
        done = normalcy("audit", "show", request_id, "--json")
        (record,) = done.json["records"]
        assert (record["request_id"], record["kind"]) == (request_id, "score")
        assert record["input"]["age_years"] == 55
        assert "patient 4711" not in done.out
        (read,) = [r for r in records(settings) if r.kind == "read"]
        assert read.principal.startswith("command-line:")
        assert read.input["request_id"] == request_id
        assert request_id in normalcy("audit", "show", request_id).out

    def test_a_list_is_filtered_and_paged(self, normalcy: Normalcy, request_id: str) -> None:
        assert request_id in normalcy("audit", "show", "--site", "SoV").out
        assert request_id not in normalcy("audit", "show", "--site", "AA").out
        assert request_id not in normalcy("audit", "show", "--to", "2020-01-01").out
        first = normalcy("audit", "show", "--limit", 1, "--json").json
        second = normalcy("audit", "show", "--limit", 1, "--cursor", first["cursor"], "--json").json
        assert [first["records"][0]["kind"], second["records"][0]["kind"]] == ["genesis", "score"]

    def test_an_edited_record_is_marked(self, normalcy: Normalcy, settings: Settings, request_id: str) -> None:
        record = edit_diameter(settings)
        done = normalcy("audit", "show", request_id, "--json")
        (shown,) = done.json["records"]
        assert (done.code, shown["damaged"], shown["damage"]["kind"]) == (1, True, "MUTATED")
        assert f"Damaged: record {record}: MUTATED, the row is not what was hashed." in done.err
        listed = normalcy("audit", "show")
        assert listed.code == 1
        assert [line.endswith("  DAMAGED") for line in listed.out.splitlines() if "  score  " in line] == [True]
        assert listed.out.count("DAMAGED") == 1
        assert normalcy("audit", "show", "--site", "AA").code == 0

    def test_an_unknown_request_is_one_sentence(self, normalcy: Normalcy) -> None:
        done = normalcy("audit", "show", "nobody")
        assert (done.code, done.out, done.err) == (1, "", "normalcy: The audit has no such record.\n")

    @pytest.mark.req("REQ-080")
    def test_nothing_is_shown_that_cannot_be_recorded(
        self, normalcy: Normalcy, settings: Settings, request_id: str
    ) -> None:
        with audit_blocked(settings):
            done = normalcy("audit", "show", request_id)
        assert (done.code, done.out) == (1, "")
        assert done.err == "normalcy: The audit could not be opened.\n"


class TestReplay:
    def test_a_score_is_found_again(self, normalcy: Normalcy, settings: Settings, request_id: str) -> None:
        done = normalcy("audit", "replay", request_id, "--json")
        assert done.code == 0
        assert (done.json["identical"], done.json["replayed"]) == (True, 1)
        assert normalcy("audit", "replay", request_id).out.startswith("Identical: 1 score,")
        assert {r.route for r in records(settings) if r.kind == "read"} == {"normalcy audit replay"}

    def test_a_number_that_was_changed_is_named(self, normalcy: Normalcy, settings: Settings, request_id: str) -> None:
        record = next(record for record in records(settings) if record.kind == "score")
        record.output["score"]["expected_ns"] += 0.001
        tamper(settings, "UPDATE audit_records SET payload = :new WHERE kind = 'score'", new=_encoded(vars(record)))
        done = normalcy("audit", "replay", request_id)
        assert done.code == 1
        assert done.out.startswith("Not identical")
        assert "  score.expected_ns\n" in done.out
        assert f"Damaged: record {record.record_id}: MUTATED, the row is not what was hashed.\n" in done.out

    def test_a_damaged_record_is_not_identical_even_if_every_number_is(
        self, normalcy: Normalcy, settings: Settings, request_id: str
    ) -> None:
        tamper(settings, "UPDATE audit_records SET principal = 'somebody else' WHERE kind = 'score'")
        done = normalcy("audit", "replay", request_id, "--json")
        assert (done.code, done.json["identical"], done.json["fields"]) == (1, False, [])
        assert [one["detail"] for one in done.json["damaged"]] == ["columns differ from the payload: principal"]

    @pytest.mark.parametrize("payload", [b"junk", b"{}"])
    def test_a_record_that_cannot_be_read_any_more_is_not_identical(
        self, normalcy: Normalcy, settings: Settings, request_id: str, payload: bytes
    ) -> None:
        tamper(settings, "UPDATE audit_records SET payload = :new WHERE kind = 'score'", new=payload)
        done = normalcy("audit", "replay", request_id, "--json")
        assert (done.code, done.json["identical"]) == (1, False)
        assert [one["kind"] for one in done.json["damaged"]] == ["MUTATED"]

    def test_what_cannot_be_replayed_is_not_called_different(self, normalcy: Normalcy) -> None:
        done = normalcy("audit", "replay", "nobody")
        assert (done.code, done.out) == (2, "")


class TestExport:
    def test_csv_holds_every_record_once(
        self, normalcy: Normalcy, settings: Settings, request_id: str, tmp_path: Path
    ) -> None:
        out = tmp_path / "audit.csv"
        expected = [record.record_id for record in records(settings)]
        done = normalcy("audit", "export", "--out", out, "--json")
        assert (done.code, done.json["records"]) == (0, 3)
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["record_id"] for row in rows] == expected
        assert rows[1]["request_id"] == request_id
        assert json.loads(rows[1]["input"])["diameter_mm"] == 41
        assert stat.S_IMODE(out.stat().st_mode) == 0o600

    def test_an_export_is_recorded_with_the_digest_of_the_file(
        self, normalcy: Normalcy, settings: Settings, tmp_path: Path
    ) -> None:
        normalcy(*SCORE)
        done = normalcy("audit", "export", "--out", tmp_path / "audit.csv", "--site", "SoV", "--json")
        (read,) = [record for record in records(settings) if record.kind == "read"]
        assert read.output == {"records": 1, "damaged": 0, "sha256": done.json["sha256"]}
        assert read.input["site"] == "SoV"

    def test_fhir_has_one_event_a_line(self, normalcy: Normalcy, request_id: str, tmp_path: Path) -> None:
        out = tmp_path / "audit.ndjson"
        assert normalcy("audit", "export", "--format", "fhir", "--out", out).code == 0
        events = [json.loads(line) for line in out.read_text().splitlines()]
        assert [event["resourceType"] for event in events] == ["AuditEvent"] * 3
        assert request_id in json.dumps(events[1])

    def test_times_cut_an_export(self, normalcy: Normalcy, request_id: str, tmp_path: Path) -> None:
        assert request_id
        for number, cut in enumerate((["--to", "2020-01-01"], ["--from", "2999-01-01T00:00:00+01:00"])):
            done = normalcy("audit", "export", "--out", tmp_path / f"{number}.csv", *cut, "--json")
            assert done.json["records"] == 0
        done = normalcy("audit", "export", "--out", tmp_path / "x.csv", "--from", "yesterday")
        assert (done.code, "'--from': A time in ISO 8601 is needed here" in done.err) == (2, True), done.err

    @pytest.mark.parametrize("payload", [b"junk", b"{}", b'{"kind": 7, "model": "x"}', None])
    def test_a_damaged_record_is_marked_and_does_not_stop_an_export(
        self, normalcy: Normalcy, settings: Settings, request_id: str, tmp_path: Path, payload: bytes | None
    ) -> None:
        if payload is None:
            edit_diameter(settings)
        else:
            tamper(settings, "UPDATE audit_records SET payload = :junk WHERE kind = 'score'", junk=payload)
        for kind in ("csv", "fhir"):
            done = normalcy(
                "audit", "export", "--format", kind, "--out", tmp_path / kind, "--to", "2999-01-01", "--json"
            )
            assert (done.code, done.json["damaged"]) == (1, 1)
            assert "1 damaged record, marked so in the file" in done.err
        with (tmp_path / "csv").open(newline="") as file:
            rows = {row["request_id"]: row for row in csv.DictReader(file)}
        assert [name for name, row in rows.items() if row["damaged"]] == [request_id]
        assert rows[request_id]["kind"] == "score"
        assert rows[request_id]["damage"].startswith("MUTATED: ")
        events = [json.loads(line) for line in (tmp_path / "fhir").read_text().splitlines()]
        assert [event["outcomeDesc"] for event in events if event["outcome"] == "8"] == [
            "The stored record is damaged. MUTATED: the row is not what was hashed."
        ]

    def test_a_file_is_never_overwritten(self, normalcy: Normalcy, tmp_path: Path) -> None:
        out = tmp_path / "audit.csv"
        out.write_text("mine")
        done = normalcy("audit", "export", "--out", out)
        assert done.code == 1
        assert "not overwritten" in done.err
        assert out.read_text() == "mine"

    def test_no_file_appears_whose_export_cannot_be_recorded(
        self, normalcy: Normalcy, settings: Settings, tmp_path: Path
    ) -> None:
        normalcy(*SCORE)
        folder = tmp_path / "out"
        folder.mkdir()
        with audit_blocked(settings):
            done = normalcy("audit", "export", "--out", folder / "audit.csv")
        assert done.code == 1
        assert list(folder.iterdir()) == []


def edit_diameter(settings: Settings) -> str:
    """Of the score on record; its record's id."""
    record = next(record for record in records(settings) if record.kind == "score")
    record.input["diameter_mm"] = 31
    tamper(settings, "UPDATE audit_records SET payload = :new WHERE kind = 'score'", new=_encoded(vars(record)))
    return str(record.record_id)


def _encoded(payload: dict[str, object]) -> bytes:
    return json.dumps(payload).encode()


def test_output_that_cannot_be_written_does_not_look_like_tampering(embedded: Settings, alone: Normalcy) -> None:
    alone("db", "upgrade")
    program = [sys.executable, "-c", "from app.cli.main import main; main()", "audit", "verify"]
    environment = {**os.environ, "NORMALCY_DATA_DIR": str(embedded.data_dir)}
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(program, env=environment, stdout=write_end, stderr=subprocess.PIPE, check=False)  # noqa: S603
    os.close(write_end)
    assert done.returncode == 2


def test_erasing_shows_first_and_erases_only_when_confirmed(
    normalcy: Normalcy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NORMALCY_AUDIT_ENCRYPTION", "on")
    monkeypatch.setenv("NORMALCY_AUDIT_KEY", "audit-key-of-the-tests-0123456789")
    without_key = normalcy("audit", "erase", "--subject", "patient 4711")
    assert (without_key.code, "NORMALCY_SUBJECT_KEY" in without_key.err) == (1, True)
    request_id = normalcy(*SCORE).json["request_id"]
    erase = ("audit", "erase", "--subject", "patient 4711")
    shown = normalcy(*erase)
    assert shown.code == 0
    assert "Would erase: 1 record of this patient" in shown.out
    assert "add --yes" in shown.out
    assert normalcy("audit", "replay", request_id).code == 0
    assert normalcy(*erase, "--yes", "--json").json["erased"] is True
    [record] = normalcy("audit", "show", request_id, "--json").json["records"]
    assert (record["content"], record["damaged"], record["input"]) == ("erased", False, None)
    replayed = normalcy("audit", "replay", request_id)
    assert (replayed.code, "erased" in replayed.err) == (2, True)
    assert "erased" in normalcy("audit", "show").out
    again = normalcy(*erase)
    assert (again.code, "No data key" in again.err) == (1, True)
    assert normalcy("audit", "verify").code == 0
