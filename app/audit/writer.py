"""One writer per process: take all waiting records, chain them, one INSERT, one COMMIT, then release the responses.

A request waits with all its records together, until its deadline at most. There is no timer: while one commit runs,
the next group gathers. Nothing is acknowledged before its commit has returned. A request that is cancelled leaves its
records in the queue: they were computed, so they are recorded.

After any failure the connection is dropped and the head of the chain is read again from the database, because the
statement whose outcome is unknown may have been committed, or may yet be: the primary key stops it if another row came
first. Rows at the end of its chain that this writer did not write stay where they are, and unsigned; the writer goes on
with another chain.

With the first rows of a chain, with its seal, and with rows a minute after the last checkpoint, a signed checkpoint of
this writer's chains is committed (`signed_checkpoint.py`), then written to the files outside the database.

Every new connection, and once a minute the one in use, is checked for durable commits. While they are not durable,
nothing is acknowledged; each attempt checks again, so the writer recovers by itself.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import structlog

from app.audit.author import Author
from app.audit.chain import genesis, link, new_chain, seal
from app.audit.records import NewRecord, Record, encode
from app.audit.signed_checkpoint import OwnEnd
from app.clock import month_of, utc_now
from app.database.appender import Appender
from app.database.checkpoints import CheckpointRow
from app.database.records import AuditRow, ChainHead
from app.errors import AuditQueueFull, AuditUnavailable, DatabaseUnavailable, NotDurable
from app.observability import Metrics, describe_failure

SIZE_BYTES = 4096  # a larger record, such as a block of items, counts as several
CAPACITY = 512  # records that may wait; at 4,000 a second the last one waits an eighth of a second
BATCH = 256  # records of one commit
BUDGET_SECONDS = 2.0  # from the arrival of a request to its durable record
# Several tests of an idle connection must fail, so that one slow reply does not make every replica unready at once.
SILENCE_SECONDS = 5.0
DURABILITY_SECONDS = 60.0  # interval of the durability check
PUBLISHING_SECONDS = 5.0  # that a stop waits for the files of signed checkpoints
IDLE_SECONDS = 1.0  # interval of the connection test without work: a dead one is replaced before it is needed


@dataclass(eq=False)
class Group:
    """The records of one request, committed together or not at all."""

    records: Sequence[Record]
    committed: asyncio.Future[None] | None  # None: no request waits
    expired: bool = False
    refusals: int = 1  # how many refusals, if it is an aggregated one
    size: int = field(init=False)  # in ordinary records

    def __post_init__(self) -> None:
        """One record fills a commit at most, however large it is, so that none waits for ever."""
        self.size = _size(self.records) if len(self.records) != 1 else min(_size(self.records), BATCH)

    def succeed(self) -> None:
        if self.committed is not None and not self.committed.done():
            self.committed.set_result(None)

    def fail(self) -> None:
        if self.committed is not None and not self.committed.done():
            self.committed.set_exception(AuditUnavailable())

    def expire(self) -> None:
        """Its request fails now; if it is still in the queue, it is not written."""
        self.expired = True
        self.fail()


class RecordQueue:
    def __init__(self) -> None:
        self._groups: deque[Group] = deque()
        self._arrived = asyncio.Event()
        self.depth = 0  # records

    def put(self, group: Group, capacity: int = CAPACITY) -> None:
        if self.depth + group.size > capacity:
            raise AuditQueueFull
        self._groups.append(group)
        self.depth += group.size
        self._arrived.set()

    async def arrival(self, seconds: float) -> None:
        """Wait until a group is queued or `wake` is called, at most this long."""
        if not self._groups:
            timer = asyncio.get_running_loop().call_later(seconds, self.wake)
            await self._arrived.wait()
            timer.cancel()

    def wake(self) -> None:
        self._arrived.set()

    def take(self) -> list[Group]:
        """The next groups in order of arrival, as many as fit into one commit, at least one if any waits."""
        taken: list[Group] = []
        size = 0
        while self._groups and (not taken or size + self._groups[0].size <= BATCH):
            group = self._groups.popleft()
            self.depth -= group.size
            if not group.expired:
                taken.append(group)
                size += group.size
        if not self._groups:
            self._arrived.clear()
        return taken


@dataclass(frozen=True, slots=True)
class Plan:
    """The rows that one commit adds, and the head of the chain if it succeeds."""

    rows: list[AuditRow]
    head: ChainHead
    closed: ChainHead | None = None  # the end of the chain that it seals
    opens_chain: bool = False

    @property
    def end_of_present_chain(self) -> ChainHead:
        """Where it leaves the chain that the writer has now. Whether that is stored shows whether it was committed."""
        return self.closed or self.head

    @property
    def ends(self) -> list[OwnEnd]:
        closed = [OwnEnd(self.closed, closed=True)] if self.closed else []
        return closed if self.closed == self.head else [*closed, OwnEnd(self.head)]


class Attempt(NamedTuple):
    """A commit of rows whose outcome may be unknown, and what was signed with it."""

    end_of_present_chain: ChainHead
    head: ChainHead
    signed: list[CheckpointRow]


class AuditWriter:
    def __init__(
        self,
        appender: Appender,
        author: Author,
        metrics: Metrics,
        clock: Callable[[], datetime] = utc_now,
        budget_seconds: float = BUDGET_SECONDS,
        durability_seconds: float = DURABILITY_SECONDS,
    ) -> None:
        """The facts about the author are recorded in the genesis of every chain."""
        self.author = author
        self._appender, self._signer, self._metrics, self._clock = appender, author.signer, metrics, clock
        self.budget_seconds, self.durability_seconds = budget_seconds, durability_seconds
        self.not_durable: str | None = None  # why nothing is acknowledged although the database responds
        self._queue = RecordQueue()
        self._head: ChainHead | None = None
        self._attempts: deque[Attempt] = deque(maxlen=100)  # since the last success
        self._to_adopt: Sequence[ChainHead] | None = None
        self._abandoned: list[OwnEnd] = []  # ends of chains that somebody else has continued, not signed yet
        self._has_unsigned_rows = False
        self._unpublished: deque[CheckpointRow] = deque()
        self._publishing: asyncio.Task[None] | None = None
        self.publishing_failed = False  # the last time
        self.found_foreign_rows = False
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._last_response = self._last_commit = self._last_durability_check = time.monotonic()
        self._commit_failed = False  # the last one: that the database responds then proves nothing
        self._log = structlog.get_logger("audit")
        metrics.audit_durable.set_function(lambda: self.not_durable is None)
        metrics.audit_queue_depth.set_function(lambda: self._queue.depth)
        metrics.audit_head_age_seconds.set_function(lambda: time.monotonic() - self._last_commit)

    async def start(self, adopted: Sequence[ChainHead] | None = None) -> None:
        """Opens a chain. `adopted`: the ends of chains from before anything was signed, to be signed as found.

        Raises AuditUnavailable if the genesis cannot be committed; call `stop` then as well.
        """
        self._to_adopt = adopted
        if not await self._commit([]):
            raise AuditUnavailable(" ".join(filter(None, ["The audit could not be opened.", self.not_durable])))
        self._task = asyncio.create_task(self._run(), name="audit-writer")

    async def write(self, records: Sequence[NewRecord], deadline: float | None = None) -> tuple[UUID, ...]:
        """Returns the records' ids when all are durable. `deadline` is in the time of the running event loop.

        Raises AuditUnavailable otherwise, never later than the deadline. If the caller is cancelled, the records are
        still written.
        """
        encoded = [encode(record) for record in records]
        await self._write(encoded, deadline)
        return tuple(record.record_id for record in encoded)

    async def write_in_parts(self, records: Sequence[NewRecord]) -> None:
        """As `write`, of any number of records: as many in one commit as fit, one commit after the other."""
        part: list[Record] = []
        for record in map(encode, records):
            if part and _size([*part, record]) > BATCH:
                await self._write(part, None)
                part = []
            part.append(record)
        if part:
            await self._write(part, None)

    async def _write(self, records: Sequence[Record], deadline: float | None) -> None:
        loop = asyncio.get_running_loop()
        committed = loop.create_future()
        group = Group(records, committed)
        self._admit(group)
        timer = loop.call_at(loop.time() + self.budget_seconds if deadline is None else deadline, group.expire)
        try:
            await committed
        finally:
            timer.cancel()

    def offer(self, record: NewRecord, refusals: int = 1) -> bool:
        """Best effort, for refusals: never waits; returns False, without queueing it, if the queue is half full."""
        try:
            self._admit(Group([encode(record)], None, refusals=refusals), CAPACITY // 2)
        except AuditUnavailable:
            return False
        return True

    async def stop(self) -> None:
        """Writes what is queued, seals the chain, closes. Gives up after one attempt if the database is unreachable."""
        if self._stopping:
            return
        self._stopping = True
        self._queue.wake()
        if self._task is not None:
            await self._task
        if self._head is not None and self._appender.connected:
            await self._seal(self._head)
        self._publish()
        if self._publishing is not None:
            await asyncio.wait([self._publishing], timeout=PUBLISHING_SECONDS)
        await self._appender.close()

    @property
    def depth(self) -> int:
        """Records that are queued."""
        return self._queue.depth

    @property
    def is_writable(self) -> bool:
        """It wrote, or got a response after a successful write, a few seconds ago at most; and commits are durable."""
        return self.not_durable is None and time.monotonic() - self._last_response < SILENCE_SECONDS

    def _admit(self, group: Group, capacity: int = CAPACITY) -> None:
        if self._stopping or self._task is None or self._task.done():
            raise AuditUnavailable("The audit is closed.")
        if not 0 < group.size <= BATCH:
            raise ValueError(f"a request writes 1 to {BATCH} records at a time")
        self._queue.put(group, capacity)

    async def _run(self) -> None:
        while self._queue.depth or not self._stopping:
            await self._queue.arrival(IDLE_SECONDS)
            groups = self._queue.take()
            if groups:
                await self._commit(groups)
            elif not self._stopping:
                await self._keep_alive()
            self._publish()

    async def _commit(self, groups: list[Group]) -> bool:
        try:
            await self._reconnect()
            records = [record for group in groups for record in group.records]
            await self._append(_plan(self._head, records, self._clock(), self.author.facts))
        except Exception as error:  # noqa: BLE001 - whatever fails, waiting requests fail and the task goes on
            self._commit_failed = True
            self._give_up(groups, error)
            return False
        for group in groups:
            group.succeed()
        return True

    async def _append(self, plan: Plan) -> None:
        began = time.monotonic()
        attempt = Attempt(plan.end_of_present_chain, plan.head, self._sign(plan))
        if plan.rows:  # without rows, the head of the chain would not show whether it was committed
            self._attempts.append(attempt)
        await self._appender.append(plan.rows, attempt.signed)
        self._succeeded(attempt)
        self._commit_failed = False
        self._last_commit = self._last_response = time.monotonic()
        self._metrics.audit_batch_size.observe(len(plan.rows))
        self._metrics.audit_commit_seconds.observe(self._last_commit - began)

    def _sign(self, plan: Plan) -> list[CheckpointRow]:
        """A checkpoint of this writer's chains as they are after the plan, if it is time for one."""
        now, times = self._clock(), [row.at for row in plan.rows]
        if not plan.opens_chain and plan.closed is None and not self._signer.is_due(now, times):
            return []
        found = [] if self._to_adopt is None else [self._signer.found(self._to_adopt, now)]
        return [*found, self._signer.written([*self._abandoned, *plan.ends], now, *found)]

    def _succeeded(self, attempt: Attempt) -> None:
        self._head = attempt.head
        self._attempts.clear()
        self._has_unsigned_rows = not attempt.signed
        if attempt.signed:
            self._abandoned, self._to_adopt = [], None
            self._signer.confirm(attempt.signed[-1])
            self._unpublished += attempt.signed

    def _publish(self) -> None:
        """Write what was signed and committed to the files, in the background: no response depends on it."""
        if self._unpublished and (self._publishing is None or self._publishing.done()):
            self._publishing = asyncio.create_task(self._write_files(), name="signed-checkpoints")

    async def _write_files(self) -> None:
        try:
            while self._unpublished:
                await asyncio.to_thread(self.author.log.append, self._unpublished[0])
                self._unpublished.popleft()
        except OSError as error:
            self._metrics.checkpoint_failures.inc()
            if not self.publishing_failed:
                self._log.warning("signed checkpoint not in a file", **describe_failure(error))
            self.publishing_failed = True
        else:
            self.publishing_failed = False

    async def _seal(self, head: ChainHead) -> None:
        rows, after = link(head, [seal(self._clock())])
        try:
            await self._append(Plan(rows, after, closed=after))
        except DatabaseUnavailable as error:
            self._give_up([], error)

    async def _reconnect(self) -> None:
        """A connection, and the head of the chain as stored. None: a new chain is needed."""
        if self._appender.connected:
            if time.monotonic() - self._last_durability_check >= self.durability_seconds:
                await self._check_durability()
            return
        await self._appender.connect()
        await self._check_durability()
        await self._compare_head()

    async def _compare_head(self) -> None:
        """The chain must end where this writer left it, or where an attempt would have left it that seemed to fail."""
        head = self._head
        if head is None:
            return
        stored = await self._appender.head(head.month, head.chain_id)
        done = next((each for each in self._attempts if each.end_of_present_chain == stored), None)
        if done is not None:
            self._succeeded(done)
        elif stored != head:
            self._log.error("audit rows of another writer", month=head.month, chain_id=str(head.chain_id), seq=head.seq)
            self.found_foreign_rows = True
            self._abandoned.append(OwnEnd(head, closed=True))
            self._head = None
            self._attempts.clear()

    async def _check_durability(self) -> None:
        """Raises NotDurable: the connection is dropped, and the next one is checked before anything is written."""
        problem = await self._appender.durability_problem()
        self._last_durability_check = time.monotonic()
        if problem and self.not_durable is None:
            self._log.error("audit not durable", reason=problem)
        elif self.not_durable and not problem:
            self._log.info("audit durable again")
        self.not_durable = problem
        if problem:
            raise NotDurable(problem)

    async def _keep_alive(self) -> None:
        """Reads the head of the chain; after a failed commit it has to write, and so opens a new chain."""
        try:
            await self._reconnect()
            await self._compare_head()
            if self._commit_failed or self._head is None:
                await self._append(_next_chain(self._head, [], self._clock(), self.author.facts))
            elif self._has_unsigned_rows and self._signer.is_due(self._clock()):
                await self._append(Plan([], self._head))
        except Exception as error:  # noqa: BLE001 - as above
            self._give_up([], error)
        else:
            self._last_response = time.monotonic()

    def _give_up(self, groups: list[Group], error: Exception) -> None:
        self._appender.drop()
        self._metrics.audit_failures.inc()
        self._log.warning("audit write failed", groups=len(groups), **describe_failure(error.__cause__ or error))
        for group in groups:
            if group.committed is None:
                self._metrics.audit_dropped.inc(group.refusals)
            group.fail()


def _size(records: Sequence[Record]) -> int:
    return sum([1 + len(record.payload) // SIZE_BYTES for record in records])


def _plan(head: ChainHead | None, records: list[Record], now: datetime, facts: dict[str, Any]) -> Plan:
    """The next rows. A new month seals the chain and opens another; a clock that was set back does not."""
    month = month_of(now)
    if head is not None and month <= head.month:
        rows, after = link(head, records)
        return Plan(rows, after)
    return _next_chain(head, records, now, facts)


def _next_chain(head: ChainHead | None, records: list[Record], now: datetime, facts: dict[str, Any]) -> Plan:
    closing = link(head, [seal(now)])[0] if head is not None else []
    fresh = new_chain(max(month_of(now), head.month) if head is not None else month_of(now))
    rows, after = link(fresh, [genesis(fresh, now, facts), *records])
    return Plan(closing + rows, after, closing[-1].head if closing else None, opens_chain=True)
