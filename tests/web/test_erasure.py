"""Records encrypted at rest, and a patient erased by destroying a key, with a real service on both databases."""

import asyncio
import base64
import csv
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg  # type: ignore[import-untyped]
import httpx
import pytest

from app.audit.encryption import KEY_FILE, DataKeys
from app.audit.recorded_request import subject_hasher
from app.database.data_keys import keys_by_id
from app.database.engine import Database
from app.database.records import Filter
from app.database.sqlite import FILE_NAME
from app.errors import DatabaseUnavailable, InvalidSettings, NormalcyError, UnknownSubject
from app.formats.audit_export import csv_header, csv_line, fhir_line
from app.services.audit_records import Erasure, ExportFormat, erase_subject, export_records
from app.services.verify_audit import verify_audit
from app.settings import Settings
from tests.audit.both_verifiers import Auditor, Found
from tests.cli.running import tamper
from tests.web.serving import MAN, READING, Running, bearer, create_key, on_database, serving

PATIENT = "hospital-7/4711"
CANARY = 41.734251  # a diameter that appears nowhere else
BODY = {**READING, "diameter_mm": CANARY, "subject": PATIENT}
NAMELESS = {**READING, "diameter_mm": CANARY}
NOTICE_SECONDS = 2.0  # the contract's limit for a change made elsewhere
RECORDS = "/v1/audit/records"


def encrypting(settings: Settings) -> Settings:
    return replace(settings, audit_encryption="on", rate_per_second=0.0)


@pytest.fixture
def encrypted(settings: Settings, models_dir: Path) -> Iterator[Running]:
    key = create_key(settings, ["score", "audit:read"])
    with serving(encrypting(settings), models_dir) as running:
        running.client.headers.update(bearer(key))
        yield running


def score(running: Running, request_id: str, body: object = BODY, **headers: str) -> httpx.Response:
    answer = running.score(body, headers={"X-Request-ID": request_id, **headers})
    assert answer.status_code == 200, answer.text
    return answer


def item_of(who: str | None, **more: Any) -> dict[str, Any]:
    return {**READING, "site": "SoV", **({"subject": who} if who else {}), **more}


def shown(running: Running, request_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = running.client.get(f"{RECORDS}/{request_id}").json()["records"]
    return [record for record in found if record["kind"] == "score"]


def erase(running: Running, reference: str = PATIENT, really: bool = True) -> Erasure:
    return asyncio.run(erase_subject(running.settings, "tests", reference, lambda *_: None, really))


def stored_bytes(settings: Settings) -> bytes:
    """Everything that the database holds: the files of SQLite, or every row of every table of PostgreSQL."""
    if not settings.database_url:
        return b"".join(file.read_bytes() for file in settings.data_dir.glob(FILE_NAME + "*"))

    async def dump() -> bytes:
        connection = await asyncpg.connect(settings.database_url)
        try:
            tables = [
                row[0] for row in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
            ]
            rows = [row for table in tables for row in await connection.fetch(f'SELECT * FROM "{table}"')]  # noqa: S608
        finally:
            await connection.close()
        return b"\n".join(cell if isinstance(cell, bytes) else str(cell).encode() for row in rows for cell in row)

    return asyncio.run(dump())


def payloads(running: Running) -> bytes:
    """As the verifiers see them: inflated."""
    return json.dumps([vars(record) for record in running.records()]).encode()


def test_an_encrypted_record_is_shown_and_replayed_as_one_in_clear(encrypted: Running) -> None:
    answer = score(encrypted, "one").json()
    [record] = shown(encrypted, "one")
    assert record["content"] == "decrypted"
    assert (record["damaged"], record["input"]["diameter_mm"]) == (False, CANARY)
    assert record["output"]["score"] == answer["score"]
    replayed = encrypted.client.post(f"{RECORDS}/one/replay").json()
    assert (replayed["identical"], replayed["replayed"], replayed["erased"]) == (True, 1, 0)
    [stored] = encrypted.records("score")
    assert stored.input.keys() == {"encrypted"}
    assert stored.output is None


@pytest.mark.req("REQ-089")
def test_no_value_of_a_patient_is_in_the_database(encrypted: Running) -> None:
    items = [item_of(who, diameter_mm=CANARY) for who in (PATIENT, "other", None)]
    score(encrypted, "one", **{"Idempotency-Key": "once"})
    score(encrypted, "without", NAMELESS, **{"Idempotency-Key": "twice"})
    assert encrypted.client.post("/v1/batch/score", json={"items": items}).json()["succeeded"] == 3
    assert encrypted.score(
        {**MAN, "measurements": [{"site": "SoV", "diameter_mm": CANARY}]}, "/v1/studies/score"
    ).is_success
    assert encrypted.score(BODY, "/v1/sites/SoV/chart").is_success
    held = stored_bytes(encrypted.settings) + payloads(encrypted)
    assert b"encrypted" in held
    for canary in (b"41.734251", PATIENT.encode(), b"expected_ns", b"diameter_mm"):
        assert canary not in held


def test_the_same_values_are_there_without_the_option(settings: Settings, models_dir: Path) -> None:
    """So that the test above would notice them."""
    with serving(settings, models_dir) as running:
        score(running, "one", **{"Idempotency-Key": "once"})
        held = stored_bytes(settings)
        assert b"41.734251" in held
        assert b"41.734251" in payloads(running)
        assert not (settings.data_dir / KEY_FILE).exists()


@pytest.mark.req("REQ-080")
def test_counting_the_records_of_a_patient_is_recorded(encrypted: Running) -> None:
    score(encrypted, "one")
    erase(encrypted, really=False)
    with pytest.raises(UnknownSubject):
        erase(encrypted, "somebody else", really=False)
    found = sorted(encrypted.records("read"), key=lambda record: record.at)
    readings = [record for record in found if record.route == "normalcy audit erase"]
    assert [record.output for record in readings] == [{"records": 1, "in_clear": 0}, {"records": 0, "in_clear": 0}]
    hashed = subject_hasher(encrypted.settings).hash
    assert [record.input for record in readings] == [{"subject": hashed(who)} for who in (PATIENT, "somebody else")]


@pytest.mark.req("REQ-089")
def test_an_erased_patient_is_erased_everywhere_and_the_chain_stays_intact(encrypted: Running, tmp_path: Path) -> None:
    score(encrypted, "one", **{"Idempotency-Key": "once"})
    score(encrypted, "other", {**BODY, "subject": "somebody else"})
    score(encrypted, "nameless", NAMELESS)
    assert erase(encrypted, really=False) == Erasure(shown_key(encrypted, "one"), 1, 0, erased=False)
    assert shown(encrypted, "one")[0]["content"] == "decrypted"
    done = erase(encrypted)
    assert (done.records, done.in_clear, done.erased) == (1, 0, True)

    [record] = shown(encrypted, "one")
    assert (record["content"], record["damaged"]) == ("erased", False)
    assert (record["input"], record["output"]) == (None, None)
    refused = encrypted.client.post(f"{RECORDS}/one/replay")
    assert (refused.status_code, refused.json()["type"]) == (410, "/guide#problem-erased")
    assert "erased" in refused.json()["detail"]
    repeated = encrypted.score(BODY, headers={"Idempotency-Key": "once"})
    assert (repeated.status_code, repeated.json()["type"]) == (410, "/guide#problem-erased")
    for request_id in ("other", "nameless"):
        assert shown(encrypted, request_id)[0]["content"] == "decrypted"
        assert encrypted.client.post(f"{RECORDS}/{request_id}/replay").json()["identical"] is True
    with pytest.raises(UnknownSubject):
        erase(encrypted)

    [change] = [record for record in encrypted.records("key") if record.output["step"] == "erased"]
    subject = encrypted.runtime.hasher.hash(PATIENT)
    assert change.output == {"step": "erased", "data_key": str(done.data_key), "subject": subject, "records": 1}
    assert (change.route, change.principal) == ("normalcy audit erase", "tests")
    found = asyncio.run(verify_audit(encrypted.settings, lambda *_: None))
    assert (found.intact, found.rows) == (True, ())

    async def verify(database: Database) -> Found:
        return await Auditor.of(encrypted.settings, database, tmp_path / "auditor").verify()

    both = on_database(encrypted.settings, verify)
    assert (both.by_service, both.by_tool) == (frozenset(), frozenset())


def test_the_key_of_a_stored_answer_is_not_waited_for_beyond_the_deadline(
    encrypted: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(seconds: float) -> bytes:
        deadline = asyncio.get_running_loop().time() + seconds
        return (await encrypted.runtime.answers.answer("me", b"key", b"request", work, deadline)).body

    async def work() -> bytes:
        return b"{}"

    async def hang(*_: object) -> None:
        await asyncio.sleep(60)

    assert encrypted.inside(answer(20)) == encrypted.inside(answer(20)) == b"{}"
    monkeypatch.setattr(DataKeys, "find", hang)
    with pytest.raises(DatabaseUnavailable):
        encrypted.inside(asyncio.wait_for(answer(0.2), 5))


def shown_key(running: Running, request_id: str) -> UUID:
    [record] = [each for each in running.records("score") if each.request_id == request_id]
    return UUID(record.input["encrypted"]["data_key"])


def test_nothing_of_a_destroyed_key_is_left_in_the_files(encrypted: Running) -> None:
    score(encrypted, "one")
    key_id = shown_key(encrypted, "one")

    async def wrapped(database: Database) -> bytes:
        async with database.reading() as connection:
            return (await keys_by_id(connection, [key_id]))[0].wrapped

    held = on_database(encrypted.settings, wrapped)
    assert held in stored_bytes(encrypted.settings)
    done = erase(encrypted)
    assert done.log_emptied
    assert held not in stored_bytes(encrypted.settings)


def test_a_running_service_gives_an_erased_patient_a_new_key(encrypted: Running) -> None:
    score(encrypted, "before")
    old = erase(encrypted).data_key
    time.sleep(NOTICE_SECONDS)
    score(encrypted, "after")
    assert shown_key(encrypted, "after") != old
    assert [shown(encrypted, which)[0]["content"] for which in ("before", "after")] == ["erased", "decrypted"]


def test_replicas_share_the_keys_and_notice_an_erasure(settings: Settings, models_dir: Path, tmp_path: Path) -> None:
    if not settings.database_url:
        pytest.skip("an embedded database has one process")
    key = create_key(settings, ["score", "audit:read"])
    with ExitStack() as stack:
        replicas = []
        for name in ("a", "b"):
            secrets = replace(
                encrypting(settings), subject_key="subject-key-0123" * 4, audit_key="audit-key-012345" * 4
            )
            chosen = replace(secrets, data_dir=tmp_path / name)
            replicas.append(stack.enter_context(serving(chosen, models_dir)))
            replicas[-1].client.headers.update(bearer(key))
        for number, replica in enumerate(replicas):
            score(replica, f"by-{number}")
        assert shown_key(replicas[0], "by-0") == shown_key(replicas[0], "by-1")
        assert shown(replicas[0], "by-1")[0]["content"] == shown(replicas[1], "by-0")[0]["content"] == "decrypted"
        old = erase(replicas[0]).data_key
        time.sleep(NOTICE_SECONDS)
        for number, replica in enumerate(replicas):
            score(replica, f"again-{number}")
        fresh = {shown_key(replicas[0], f"again-{number}") for number in range(2)}
        assert len(fresh) == 1
        assert old not in fresh


def test_another_master_key_is_refused_at_the_start(settings: Settings, models_dir: Path) -> None:
    with serving(encrypting(settings), models_dir) as running:
        score(running, "one")
    for option in ("on", "off"):
        other = replace(settings, audit_encryption=option, audit_key="another-key-0123456789-0123456789")
        with pytest.raises(InvalidSettings, match="NORMALCY_AUDIT_KEY"), serving(other, models_dir):
            pass


@pytest.mark.req("REQ-118")
def test_a_master_key_that_others_can_read_is_refused(settings: Settings, models_dir: Path) -> None:
    with serving(encrypting(settings), models_dir):
        assert (settings.data_dir / KEY_FILE).stat().st_mode & 0o777 == 0o600
    (settings.data_dir / KEY_FILE).chmod(0o640)
    with pytest.raises(NormalcyError, match="chmod 600"), serving(encrypting(settings), models_dir):
        pass


def test_the_option_affects_new_records_only(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score", "audit:read"])
    for number, chosen in enumerate((settings, replace(settings, audit_encryption="on"), settings)):
        with serving(chosen, models_dir) as running:
            running.client.headers.update(bearer(key))
            score(running, f"number-{number}", **{"Idempotency-Key": f"once-{number}"})
            for earlier in range(number):  # an answer from before is given again
                repeated = running.score(BODY, headers={"Idempotency-Key": f"once-{earlier}"})
                assert repeated.json()["request_id"] == f"number-{earlier}"
            if number < 2:
                continue
            for each, content in enumerate(("clear", "decrypted", "clear")):
                assert shown(running, f"number-{each}")[0]["content"] == content
                assert running.client.post(f"{RECORDS}/number-{each}/replay").json()["identical"] is True
            key_id = shown_key(running, "number-1")
            assert replace(erase(running), log_emptied=True) == Erasure(key_id, records=1, in_clear=2, erased=True)


def test_without_the_master_key_a_record_is_unreadable_and_not_erased(settings: Settings, models_dir: Path) -> None:
    key = create_key(settings, ["score", "audit:read"])
    with serving(encrypting(settings), models_dir) as running:
        running.client.headers.update(bearer(key))
        score(running, "one")
    (settings.data_dir / KEY_FILE).unlink()
    with serving(settings, models_dir) as running:
        running.client.headers.update(bearer(key))
        [record] = shown(running, "one")
        assert (record["content"], record["damaged"], record["input"]) == ("unreadable", False, None)
        refused = running.client.post(f"{RECORDS}/one/replay")
        assert refused.status_code == 503
        assert "key" in refused.json()["detail"]


def test_an_item_of_a_batch_is_erased_and_the_others_are_not(encrypted: Running) -> None:
    people = [PATIENT, "b", None, "c", PATIENT] * 60
    items = [item_of(who) for who in people]
    lines = b"".join(json.dumps(item).encode() + b"\n" for item in [*items, {**MAN, "site": "SoV"}])
    headers = {"Content-Type": "application/x-ndjson", "X-Request-ID": "batch"}
    answer = encrypted.client.post("/v1/batch/score", content=lines, headers=headers)
    assert json.loads(answer.text.splitlines()[-1])["summary"]["succeeded"] == 300
    before = encrypted.client.get(f"{RECORDS}/batch").json()["records"]
    assert [record["item"] for record in before] == list(range(301))
    assert len({record["record_id"] for record in before}) == 301
    assert {record["content"] for record in before[:-1]} == {"decrypted"}
    assert encrypted.client.post(f"{RECORDS}/batch/replay").json()["identical"] is True
    assert erase(encrypted).records == 120
    after = encrypted.client.get(f"{RECORDS}/batch").json()["records"]
    assert [record["content"] == "erased" for record in after] == [who == PATIENT for who in people] + [False]
    assert [record["record_id"] for record in after] == [record["record_id"] for record in before]
    replayed = encrypted.client.post(f"{RECORDS}/batch/replay").json()
    assert (replayed["identical"], replayed["replayed"], replayed["erased"]) == (True, 180, 120)
    assert encrypted.client.post(f"{RECORDS}/batch/replay", params={"item": 0}).status_code == 410
    assert encrypted.client.post(f"{RECORDS}/batch/replay", params={"item": 1}).status_code == 200


def test_a_batch_of_one_patient_or_of_none_is_one_block(encrypted: Running) -> None:
    for request_id, who in (("of-one", PATIENT), ("of-none", None)):
        items = [item_of(who, diameter_mm=30 + k / 10) for k in range(150)]
        headers = {"X-Request-ID": request_id}
        assert encrypted.client.post("/v1/batch/score", json={"items": items}, headers=headers).is_success
        assert len([each for each in encrypted.records("score") if each.request_id == request_id]) == 1
        assert [record["input"]["diameter_mm"] for record in shown(encrypted, request_id)] == [
            item["diameter_mm"] for item in items
        ]
    erase(encrypted)
    assert {record["content"] for record in shown(encrypted, "of-one")} == {"erased"}
    assert [record["item"] for record in shown(encrypted, "of-one")] == list(range(150))
    assert {record["content"] for record in shown(encrypted, "of-none")} == {"decrypted"}


def test_a_thousand_patients_with_the_largest_answers_are_recorded(encrypted: Running) -> None:
    thresholds = [round(k / 3 - 1.5, 9) for k in range(8)]
    items = [
        {**READING, "site": "SoV", "subject": f"p{k}", "thresholds": thresholds, "measurement_sd_mm": 1.5}
        for k in range(1000)
    ]
    answer = encrypted.client.post("/v1/batch/score", json={"items": items}, headers={"X-Request-ID": "many"})
    assert answer.json()["succeeded"] == 1000, answer.text[:500]
    assert encrypted.client.post(f"{RECORDS}/many/replay").json()["replayed"] == 1000


def test_exports_decrypt_and_name_what_was_erased(encrypted: Running, tmp_path: Path) -> None:
    score(encrypted, "gone")
    score(encrypted, "there", {**BODY, "subject": "somebody else"})
    erase(encrypted)
    out = tmp_path / "audit.csv"
    layout = ExportFormat(csv_header(), csv_line)
    asyncio.run(export_records(encrypted.settings, "tests", Filter(), out, layout, lambda *_: None))
    rows = {row["request_id"]: row for row in csv.DictReader(out.read_text().splitlines()) if row["kind"] == "score"}
    assert (rows["gone"]["content"], rows["gone"]["input"], rows["gone"]["damaged"]) == ("erased", "", "")
    assert rows["there"]["content"] == "decrypted"
    assert json.loads(rows["there"]["input"])["diameter_mm"] == CANARY
    events = tmp_path / "audit.ndjson"
    asyncio.run(
        export_records(encrypted.settings, "tests", Filter(), events, ExportFormat(b"", fhir_line), lambda *_: None)
    )
    assert all(json.loads(line)["outcome"] == "0" for line in events.read_text().splitlines())


def test_verification_finds_a_key_destroyed_without_a_record_and_one_that_came_back(encrypted: Running) -> None:
    score(encrypted, "one")
    key_id = erase(encrypted).data_key
    sqlite = not encrypted.settings.database_url
    named = key_id.hex if sqlite else key_id

    def findings() -> set[tuple[str, str]]:
        found = asyncio.run(verify_audit(encrypted.settings, lambda *_: None))
        return {(row.damage, row.table) for row in found.rows}

    assert findings() == set()
    tamper(encrypted.settings, "UPDATE data_keys SET erased_at = NULL, owner = 'x' WHERE key_id = :key", key=named)
    assert findings() == {("ROW_CHANGED", "data_keys")}
    again = "UPDATE data_keys SET owner = :owner, wrapped = :wrapped, erased_at = '2026' WHERE key_id = :key"
    for owner, wrapped in (("x", None), (None, b"x")):  # with the time at which it was destroyed
        tamper(encrypted.settings, again, key=named, owner=owner, wrapped=wrapped)
        assert findings() == {("ROW_CHANGED", "data_keys")}
    tamper(encrypted.settings, "DELETE FROM data_keys WHERE key_id = :key", key=named)
    assert findings() == {("ROW_GONE", "data_keys")}
    tamper(encrypted.settings, "INSERT INTO data_keys (key_id, erased_at) VALUES (:key, '2026')", key=named)
    assert findings() == set()
    tamper(encrypted.settings, "UPDATE data_keys SET owner = NULL, wrapped = NULL, erased_at = '2026'")
    assert findings() == {("NO_RECORD", "data_keys")}


def test_a_changed_text_is_damage_and_is_not_shown(encrypted: Running) -> None:
    score(encrypted, "one")
    [stored] = encrypted.records("score")
    text = stored.input["encrypted"]["text"]
    changed = base64.b64encode(bytes(len(base64.b64decode(text)))).decode()
    content = json.dumps({**vars(stored), "input": {"encrypted": {**stored.input["encrypted"], "text": changed}}})
    tamper(
        encrypted.settings,
        "UPDATE audit_records SET payload = :payload WHERE kind = 'score'",
        payload=content.encode(),
    )
    [record] = shown(encrypted, "one")
    assert (record["damaged"], record["content"], record["input"]) == (True, "unreadable", None)
    assert encrypted.client.post(f"{RECORDS}/one/replay").json()["identical"] is False
