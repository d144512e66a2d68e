"""The writer: durable before acknowledged, in groups, in order, whoever waits or goes away."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.audit import writer as writer_module
from app.audit.writer import BATCH, CAPACITY, SIZE_BYTES, AuditWriter
from app.clock import later_month, month_of, utc_now
from app.database.checkpoints import CheckpointRow
from app.database.engine import Database
from app.database.records import AuditRow
from app.errors import AuditQueueFull, AuditUnavailable, DatabaseUnavailable
from app.observability import Metrics, make_metrics
from tests.audit.faulty_appender import FaultyAppender
from tests.audit.recording import FACTS, all_rows, author, refusal, score, verified, writes_blocked

pytestmark = pytest.mark.anyio
OpenWriter = Callable[..., Awaitable[AuditWriter]]


async def test_a_chain_opens_with_a_genesis_and_closes_with_a_seal(writer: AuditWriter, database: Database) -> None:
    await writer.write([score()])
    await writer.stop()
    rows = await all_rows(database)
    assert [row.kind for row in rows] == ["genesis", "score", "seal"]
    facts = json.loads(rows[0].payload)["input"]
    assert facts == {**FACTS, "month": month_of(utc_now())}
    found = await verified(database)
    assert found.intact
    assert (found.records, found.chains, found.open_chains) == (3, 1, ())


async def test_a_record_is_in_the_database_when_write_returns(writer: AuditWriter, database: Database) -> None:
    ids = await writer.write([score("a"), score("b")])
    rows = {row.record_id: row for row in await all_rows(database)}
    assert [rows[record_id].request_id for record_id in ids] == ["a", "b"]


async def test_concurrent_requests_share_commits_and_keep_their_order(
    writer: AuditWriter, database: Database, metrics: Metrics
) -> None:
    await asyncio.gather(*(writer.write([score(str(number))]) for number in range(200)))
    rows = [row for row in await all_rows(database) if row.kind == "score"]
    assert [row.request_id for row in rows] == [str(number) for number in range(200)]
    commits = metrics.registry.get_sample_value("normalcy_audit_commit_seconds_count")
    assert commits is not None
    assert commits < 20
    assert (await verified(database)).intact


async def test_several_writers_have_a_chain_each(open_writer: OpenWriter, database: Database) -> None:
    writers = [await open_writer() for _ in range(4)]
    await asyncio.gather(*(writer.write([score()]) for writer in writers for _ in range(20)))
    found = await verified(database)
    assert (found.chains, found.records, found.intact) == (4, 84, True)


async def test_the_records_of_one_request_stand_together(writer: AuditWriter, database: Database) -> None:
    studies = [[score(f"study-{number}", item=item) for item in range(3)] for number in range(40)]
    await asyncio.gather(*(writer.write(study) for study in studies))
    rows = [row for row in await all_rows(database) if row.kind == "score"]
    assert [(row.request_id, row.item) for row in rows] == [(f"study-{n}", i) for n in range(40) for i in range(3)]


async def test_a_request_brings_neither_none_nor_too_many_records(writer: AuditWriter) -> None:
    for records in ([], [score()] * (BATCH + 1)):
        with pytest.raises(ValueError, match="records at a time"):
            await writer.write(records)


async def test_more_records_than_one_commit_takes_are_written_in_parts(writer: AuditWriter, database: Database) -> None:
    large = replace(score("large"), output={"text": "x" * (SIZE_BYTES * (BATCH + 10))})
    await writer.write_in_parts([*(score(f"before-{n}") for n in range(BATCH + 1)), large, score("after")])
    found = [row.request_id for row in await all_rows(database) if row.kind == "score"]
    assert found == [*(f"before-{n}" for n in range(BATCH + 1)), "large", "after"]
    await writer.write_in_parts([])


async def test_a_cancelled_request_leaves_its_record_and_stalls_nobody(writer: AuditWriter, database: Database) -> None:
    names = ["gone in flight", "in flight", "gone in the queue", "in the queue"]
    async with writes_blocked(database):
        tasks = [asyncio.create_task(writer.write([score(name)])) for name in names[:2]]
        await asyncio.sleep(0.05)
        tasks += [asyncio.create_task(writer.write([score(name)])) for name in names[2:]]
        await asyncio.sleep(0)
        assert writer.depth == 2
        for cancelled in (tasks[0], tasks[2]):
            cancelled.cancel()
    await asyncio.wait_for(asyncio.gather(tasks[1], tasks[3]), timeout=10)
    await writer.stop()
    assert [task.cancelled() for task in tasks] == [True, False, True, False]
    assert [row.request_id for row in await all_rows(database) if row.kind == "score"] == names
    assert (await verified(database)).intact


@pytest.mark.req("REQ-070")
async def test_nothing_is_acknowledged_while_the_commit_waits(writer: AuditWriter, database: Database) -> None:
    async with writes_blocked(database):
        task = asyncio.create_task(writer.write([score()]))
        await asyncio.sleep(0.2)
        assert not task.done()
    await asyncio.wait_for(task, timeout=10)


async def test_a_request_is_refused_at_its_deadline_and_the_next_one_is_served(
    writer: AuditWriter, database: Database
) -> None:
    async with writes_blocked(database):
        with pytest.raises(AuditUnavailable):
            async with asyncio.timeout(10):
                await writer.write([score()], deadline=asyncio.get_running_loop().time() + 0.1)
    async with asyncio.timeout(10):
        await writer.write([score("next")])
    assert (await verified(database)).intact


async def test_a_record_whose_request_was_refused_while_it_waited_is_not_written(
    writer: AuditWriter, database: Database
) -> None:
    async with writes_blocked(database):
        running = asyncio.create_task(writer.write([score("running")]))
        await asyncio.sleep(0.05)
        with pytest.raises(AuditUnavailable):
            await writer.write([score("late")], deadline=asyncio.get_running_loop().time() + 0.1)
    await asyncio.wait_for(running, timeout=10)
    await writer.stop()
    assert [row.request_id for row in await all_rows(database) if row.kind == "score"] == ["running"]


@pytest.mark.req("REQ-103")
async def test_a_full_queue_refuses_at_once(writer: AuditWriter, database: Database) -> None:
    async with writes_blocked(database):
        tasks = [asyncio.create_task(writer.write([score()])) for _ in range(CAPACITY + BATCH + 20)]
        await asyncio.sleep(0.2)
        refused = [task for task in tasks if task.done()]
        assert refused
        assert all(isinstance(task.exception(), AuditQueueFull) for task in refused)
        assert writer.depth <= CAPACITY
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (await verified(database)).intact


async def test_refusals_give_way_when_the_queue_is_half_full(writer: AuditWriter, database: Database) -> None:
    assert writer.offer(refusal())
    async with writes_blocked(database):
        in_flight = asyncio.create_task(writer.write([score()]))
        await asyncio.sleep(0.05)
        offered = [writer.offer(refusal()) for _ in range(CAPACITY)]
        assert offered == [True] * (CAPACITY // 2) + [False] * (CAPACITY // 2)
        scores = asyncio.create_task(writer.write([score()]))
        await asyncio.sleep(0)
        assert writer.depth == CAPACITY // 2 + 1
    await asyncio.wait_for(asyncio.gather(in_flight, scores), timeout=10)
    await writer.stop()
    kinds = [row.kind for row in await all_rows(database)]
    assert (kinds.count("refusal"), kinds.count("score")) == (CAPACITY // 2 + 1, 2)


async def test_a_new_month_seals_the_chain_and_opens_another(open_writer: OpenWriter, database: Database) -> None:
    now = [utc_now()]
    this_month = month_of(now[0])
    next_month = later_month(this_month, 1)
    writer = await open_writer(clock=lambda: now[0])
    await writer.write([score("old")])
    now[0] = datetime.fromisoformat(f"{next_month}-01T00:00:00Z")
    await writer.write([score("new")])
    now[0] = datetime(2020, 1, 1, tzinfo=UTC)  # a clock that steps back opens nothing
    await writer.write([score("newer")])
    await writer.stop()
    positions = [(row.month, row.seq, row.kind) for row in await all_rows(database)]
    assert positions == [
        *((this_month, seq, kind) for seq, kind in ((1, "genesis"), (2, "score"), (3, "seal"))),
        *((next_month, seq, kind) for seq, kind in ((1, "genesis"), (2, "score"), (3, "score"), (4, "seal"))),
    ]
    found = await verified(database)
    assert (found.intact, found.chains, found.open_chains) == (True, 2, ())


async def test_a_stopped_writer_has_written_what_waited_and_takes_no_more(
    writer: AuditWriter, database: Database
) -> None:
    tasks = [asyncio.create_task(writer.write([score()])) for _ in range(300)]
    await asyncio.sleep(0)
    await writer.stop()
    await asyncio.gather(*tasks)
    with pytest.raises(AuditUnavailable):
        await writer.write([score()])
    assert not writer.offer(refusal())
    rows = await all_rows(database)
    assert len(rows) == 302
    assert rows[-1].kind == "seal"


async def test_what_the_writer_does_is_measured(writer: AuditWriter, metrics: Metrics) -> None:
    await writer.write([score(), score()])
    value = metrics.registry.get_sample_value
    assert value("normalcy_audit_batch_size_sum") == 3
    assert value("normalcy_audit_queue_depth") == 0
    assert value("normalcy_audit_failures_total") == 0
    age = value("normalcy_audit_head_age_seconds")
    assert age is not None
    assert 0 <= age < 60
    assert writer.is_writable


async def test_a_writer_that_cannot_open_its_chain_says_so_and_closes(
    open_writer: OpenWriter, database: Database
) -> None:
    appender = FaultyAppender(database.appender())
    appender.fault = "in doubt"
    writer = AuditWriter(appender, author(), make_metrics())
    with pytest.raises(AuditUnavailable):
        await writer.start()
    await writer.stop()
    assert await all_rows(database) == []


class FullDisk(FaultyAppender):
    """Answers questions and takes nothing, while it is full."""

    is_full = False

    async def append(self, rows: list[AuditRow], signed: Sequence[CheckpointRow] = ()) -> None:
        if self.is_full:
            raise DatabaseUnavailable
        await super().append(rows, signed)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.05)


async def test_a_database_that_answers_and_takes_nothing_is_not_writable_until_it_does(
    open_writer: OpenWriter, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "SILENCE_SECONDS", 1.5)
    disk = FullDisk(database.appender())
    writer = await open_writer(appender=disk)
    await writer.write([score("before")])
    disk.is_full = True
    with pytest.raises(AuditUnavailable):
        await writer.write([score("lost")])
    await until(lambda: not writer.is_writable)
    disk.is_full = False
    await until(lambda: writer.is_writable)  # without a request: the idle writer tries for itself
    await writer.write([score("after")])
    await writer.stop()
    found = await verified(database)
    assert (found.intact, found.chains) == (True, 2)
