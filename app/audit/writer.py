"""One writer per process: take all that waits, chain it, one INSERT, one COMMIT, then release the answers.

There is no timer: while one commit runs, the next group gathers. Nothing is acknowledged before its commit returned.
After any fault the connection is dropped and the head of the chain is read again from the database, because the
statement in doubt may have been committed, or may yet be: the primary key stops it if another came first.

Every new connection, and once a minute the one in use, is asked whether its commits are durable. While they are not,
nothing is acknowledged; each attempt asks again, so the writer comes back by itself.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from app.audit.chain import genesis, link, new_chain, seal
from app.audit.queue import BATCH, CAPACITY, Group, WaitingRecords
from app.audit.records import NewRecord, Record, encode
from app.clock import month_of, utc_now
from app.database.appender import Appender, AuditRow, Head
from app.errors import AuditUnavailable, DatabaseUnavailable, NotDurable
from app.observability import Metrics, describe_failure

BUDGET_SECONDS = 2.0  # from the arrival of a request to its durable record
# Several tries of an idle connection must fail, so that one slow answer does not take every replica out at once.
SILENCE_SECONDS = 5.0
DURABILITY_SECONDS = 60.0  # at most so long a setting that loses records goes unnoticed
IDLE_SECONDS = 1.0  # without work the connection is tried so often: a dead one is replaced before it is needed


@dataclass(frozen=True, slots=True)
class Plan:
    """What one commit adds, and where the chain ends if it succeeds."""

    rows: list[AuditRow]
    head: Head
    opens_chain: bool


class AuditWriter:
    def __init__(
        self,
        appender: Appender,
        facts: dict[str, Any],
        metrics: Metrics,
        clock: Callable[[], datetime] = utc_now,
        budget_seconds: float = BUDGET_SECONDS,
        durability_seconds: float = DURABILITY_SECONDS,
    ) -> None:
        """`facts` go into the genesis of every chain: host, process, version, models with digests, settings."""
        self._appender, self._facts, self._metrics, self._clock = appender, facts, metrics, clock
        self.budget_seconds, self.durability_seconds = budget_seconds, durability_seconds
        self.not_durable: str | None = None  # why nothing is acknowledged although the database answers
        self._waiting = WaitingRecords()
        self._head: Head | None = None
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._last_answer = self._last_commit = self._last_look = time.monotonic()
        self._refused = False  # the last commit failed: an answer of the database alone proves nothing any more
        self._log = structlog.get_logger("audit")
        metrics.audit_durable.set_function(lambda: self.not_durable is None)
        metrics.audit_queue_depth.set_function(lambda: self._waiting.depth)
        metrics.audit_head_age_seconds.set_function(lambda: time.monotonic() - self._last_commit)

    async def start(self) -> None:
        """Opens a chain. Raises AuditUnavailable if the genesis cannot be committed; `stop` closes then too."""
        if not await self._commit([]):
            raise AuditUnavailable(" ".join(filter(None, ["The audit could not be opened.", self.not_durable])))
        self._task = asyncio.create_task(self._run(), name="audit-writer")

    async def write(self, drafts: Sequence[NewRecord], deadline: float | None = None) -> tuple[UUID, ...]:
        """Returns the records' ids when all are durable. `deadline` is in the time of the running loop.

        Raises AuditUnavailable otherwise, never later than the deadline. If the caller is cancelled, the records are
        written all the same.
        """
        loop = asyncio.get_running_loop()
        committed = loop.create_future()
        group = Group([encode(draft) for draft in drafts], committed)
        self._admit(group)
        timer = loop.call_at(loop.time() + self.budget_seconds if deadline is None else deadline, group.expire)
        try:
            await committed
        finally:
            timer.cancel()
        return tuple(record.record_id for record in group.records)

    def offer(self, draft: NewRecord, stands_for: int = 1) -> bool:
        """Best effort, for refusals: never waits, and gives way when the queue is half full. False: not taken."""
        try:
            self._admit(Group([encode(draft)], None, stands_for=stands_for), CAPACITY // 2)
        except AuditUnavailable:
            return False
        return True

    async def stop(self) -> None:
        """Writes what waits, seals the chain, closes. Without a database it gives up after one attempt."""
        if self._stopping:
            return
        self._stopping = True
        self._waiting.wake()
        if self._task is not None:
            await self._task
        if self._head is not None and self._appender.connected:
            await self._seal(self._head)
        await self._appender.close()

    @property
    def facts(self) -> dict[str, Any]:
        """Who writes here, for chains beside this one."""
        return self._facts

    @property
    def depth(self) -> int:
        """Records that wait."""
        return self._waiting.depth

    @property
    def is_writable(self) -> bool:
        """It wrote, or after a good write found the database there, a few seconds ago at most; and durably."""
        return self.not_durable is None and time.monotonic() - self._last_answer < SILENCE_SECONDS

    def _admit(self, group: Group, capacity: int = CAPACITY) -> None:
        if self._stopping or self._task is None or self._task.done():
            raise AuditUnavailable("The audit is closed.")
        if not 0 < len(group.records) <= BATCH:
            raise ValueError(f"a request brings 1 to {BATCH} records at a time")
        self._waiting.put(group, capacity)

    async def _run(self) -> None:
        while self._waiting.depth or not self._stopping:
            await self._waiting.arrival(IDLE_SECONDS)
            groups = self._waiting.take()
            if groups:
                await self._commit(groups)
            elif not self._stopping:
                await self._keep_alive()

    async def _commit(self, groups: list[Group]) -> bool:
        try:
            await self._reconnect()
            records = [record for group in groups for record in group.records]
            await self._append(_plan(self._head, records, self._clock(), self._facts))
        except Exception as error:  # noqa: BLE001 - whatever fails, those who wait are refused and the task lives on
            self._refused = True
            self._give_up(groups, error)
            return False
        for group in groups:
            group.succeed()
        return True

    async def _append(self, plan: Plan) -> None:
        began = time.monotonic()
        if plan.opens_chain:
            self._head = None  # should this fail, whether the new chain exists is unknown: leave it, open another
        await self._appender.append(plan.rows)
        self._head, self._refused = plan.head, False
        self._last_commit = self._last_answer = time.monotonic()
        self._metrics.audit_batch_size.observe(len(plan.rows))
        self._metrics.audit_commit_seconds.observe(self._last_commit - began)

    async def _seal(self, head: Head) -> None:
        rows, after = link(head, [seal(self._clock())])
        try:
            await self._append(Plan(rows, after, opens_chain=False))
        except DatabaseUnavailable as error:
            self._give_up([], error)

    async def _reconnect(self) -> None:
        """A connection, and the chain's head as the database knows it. None: a new chain is needed."""
        if self._appender.connected:
            if time.monotonic() - self._last_look >= self.durability_seconds:
                await self._check_durability()
            return
        await self._appender.connect()
        await self._check_durability()
        if self._head is not None:
            self._head = await self._appender.head(self._head.month, self._head.chain_id)

    async def _check_durability(self) -> None:
        """Raises NotDurable: the connection is dropped, and the next one is asked before anything is written."""
        weakness = await self._appender.weakness()
        self._last_look = time.monotonic()
        if weakness and self.not_durable is None:
            self._log.error("audit not durable", reason=weakness)
        elif self.not_durable and not weakness:
            self._log.info("audit durable again")
        self.not_durable = weakness
        if weakness:
            raise NotDurable(weakness)

    async def _keep_alive(self) -> None:
        """Reads the head; after a refused commit it must write, and a new chain is something worth writing."""
        try:
            await self._reconnect()
            if self._refused or self._head is None:
                await self._append(_next_chain(self._head, [], self._clock(), self._facts))
            else:
                await self._appender.head(self._head.month, self._head.chain_id)
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up([], error)
        else:
            self._last_answer = time.monotonic()

    def _give_up(self, groups: list[Group], error: Exception) -> None:
        self._appender.drop()
        self._metrics.audit_failures.inc()
        self._log.warning("audit write failed", groups=len(groups), **describe_failure(error.__cause__ or error))
        for group in groups:
            if group.committed is None:
                self._metrics.audit_dropped.inc(group.stands_for)
            group.fail()


def _plan(head: Head | None, records: list[Record], now: datetime, facts: dict[str, Any]) -> Plan:
    """The next rows. A new month ends the chain and opens the next one; a clock that steps back does not."""
    month = month_of(now)
    if head is not None and month <= head.month:
        rows, after = link(head, records)
        return Plan(rows, after, opens_chain=False)
    return _next_chain(head, records, now, facts)


def _next_chain(head: Head | None, records: list[Record], now: datetime, facts: dict[str, Any]) -> Plan:
    closing = link(head, [seal(now)])[0] if head is not None else []
    fresh = new_chain(max(month_of(now), head.month) if head is not None else month_of(now))
    rows, after = link(fresh, [genesis(fresh, now, facts), *records])
    return Plan(closing + rows, after, opens_chain=True)
