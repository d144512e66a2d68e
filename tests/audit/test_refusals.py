"""However often callers are refused, the audit stays small, and every refusal is counted somewhere."""

import asyncio
import json
from typing import Any

import pytest

from app.audit import refusals
from app.audit.records import NewRecord
from app.audit.refusals import ANONYMOUS_KINDS, SINGLE_RECORDS, RefusalRecorder
from app.audit.writer import AuditWriter
from app.clock import utc_now
from app.database.engine import Database
from app.observability import Metrics
from tests.audit.recording import ROUTE, all_rows, score, verified, writes_blocked

pytestmark = pytest.mark.anyio


def refusal(principal: str, request_id: str = "r", route: str = ROUTE, status: int = 401) -> NewRecord:
    output = {"problem": "no-credential", "errors": ["no-credential"]}
    return NewRecord("refusal", utc_now(), principal, route, status, request_id, output=output)


async def recorded(writer: AuditWriter, database: Database) -> list[dict[str, Any]]:
    await writer.stop()
    rows = await all_rows(database)
    assert (await verified(database)).intact
    return [json.loads(row.payload) for row in rows if row.kind == "refusal"]


@pytest.fixture
def recorder(writer: AuditWriter, metrics: Metrics) -> RefusalRecorder:
    return RefusalRecorder(writer, metrics)


async def test_a_second_of_the_same_refusal_is_one_row_that_says_how_many(
    recorder: RefusalRecorder, writer: AuditWriter, database: Database, metrics: Metrics
) -> None:
    for number in range(5000):
        recorder.record(refusal("nobody", f"r-{number}"), is_authenticated=False)
    recorder.close()
    [row] = await recorded(writer, database)
    assert (row["principal"], row["route"], row["status"], row["request_id"]) == ("nobody", ROUTE, 401, None)
    assert row["output"].keys() == {"problem", "errors", "count", "from", "to"}
    assert row["output"]["count"] == 5000
    assert row["output"]["from"] <= row["output"]["to"] == row["at"]
    assert metrics.registry.get_sample_value("normalcy_refusals_summed_total") == 5000
    assert metrics.registry.get_sample_value("normalcy_audit_dropped_total") == 0


async def test_one_refusal_in_its_second_keeps_its_request_id(
    recorder: RefusalRecorder, writer: AuditWriter, database: Database
) -> None:
    recorder.record(refusal("nobody", "alone"), is_authenticated=False)
    recorder.close()
    [row] = await recorded(writer, database)
    assert (row["request_id"], "count" in row["output"]) == ("alone", False)


@pytest.mark.req("REQ-105")
async def test_anonymous_callers_cannot_make_many_rows_by_being_refused_in_many_ways(
    recorder: RefusalRecorder, writer: AuditWriter, database: Database
) -> None:
    for number in range(300):
        recorder.record(refusal("nobody", route=f"/v1/{number % 30}", status=400 + number % 2), is_authenticated=False)
    recorder.close()
    rows = await recorded(writer, database)
    assert len(rows) == ANONYMOUS_KINDS + 1
    assert sum(row["output"]["count"] for row in rows) == 300
    mixed = rows[-1]
    assert (mixed["principal"], mixed["route"], mixed["status"]) == ("several", None, None)
    assert sum(mixed["output"]["statuses"].values()) == mixed["output"]["count"]
    assert mixed["output"]["statuses"].keys() == {"400", "401"}


async def test_authenticated_callers_are_recorded_one_by_one_up_to_a_limit_each(
    recorder: RefusalRecorder, writer: AuditWriter, database: Database
) -> None:
    for number in range(500):
        recorder.record(refusal("careless", f"c-{number}", status=422), is_authenticated=True)
    recorder.record(refusal("careful", "c", status=422), is_authenticated=True)
    recorder.close()
    rows = await recorded(writer, database)
    alone = [row["request_id"] for row in rows if row["request_id"]]
    assert alone == [*(f"c-{number}" for number in range(SINGLE_RECORDS)), "c"]
    [aggregated] = [row for row in rows if not row["request_id"]]
    assert (aggregated["principal"], aggregated["output"]["count"]) == ("careless", 500 - SINGLE_RECORDS)


async def test_counts_are_written_while_the_flood_goes_on(
    recorder: RefusalRecorder, writer: AuditWriter, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "AGGREGATION_SECONDS", 0.01)
    recorder.record(refusal("nobody", "first"), is_authenticated=False)
    async with asyncio.timeout(30):
        while not [row for row in await all_rows(database) if row.kind == "refusal"]:
            await asyncio.sleep(0.01)
    recorder.record(refusal("nobody", "second"), is_authenticated=False)
    recorder.close()
    assert [row["request_id"] for row in await recorded(writer, database)] == ["first", "second"]


async def test_a_count_that_the_queue_cannot_take_waits_and_is_not_lost(
    recorder: RefusalRecorder, writer: AuditWriter, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "AGGREGATION_SECONDS", 0.01)
    async with writes_blocked(database):
        scores = [asyncio.create_task(writer.write([score()])) for _ in range(400)]
        await asyncio.sleep(0.05)
        for _ in range(3):
            recorder.record(refusal("nobody"), is_authenticated=False)
        await asyncio.sleep(0.1)  # several ends of a second, all in vain
    await asyncio.gather(*scores, return_exceptions=True)
    recorder.close()
    rows = await recorded(writer, database)
    assert [row["output"]["count"] for row in rows] == [3]


async def test_what_cannot_be_written_at_the_end_is_counted(
    recorder: RefusalRecorder, writer: AuditWriter, metrics: Metrics
) -> None:
    for _ in range(7):
        recorder.record(refusal("nobody"), is_authenticated=False)
    await writer.stop()
    recorder.close()
    assert metrics.registry.get_sample_value("normalcy_audit_dropped_total") == 7
