"""Record refused requests: one by one for an authenticated caller, up to a limit; aggregated for everybody else.

Anybody can be refused as often as they send requests, so one record for each would let anonymous callers fill the
disk. One second of the same refusal (same caller, route, status and codes) makes one record with a count. The number
of these records is limited as well: kinds beyond the first few of a second share one. A single refusal is recorded as
it is, with its request id.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.audit.records import NewRecord
from app.audit.writer import AuditWriter
from app.clock import timestamp
from app.observability import Metrics

AGGREGATION_SECONDS = 1.0
SINGLE_RECORDS = 20  # of one authenticated caller in a second
ANONYMOUS_KINDS = 4  # records that one second of anonymous callers makes, and one more for all the rest
AUTHENTICATED_KINDS = 16
SEVERAL = "several"


@dataclass(slots=True)
class AggregatedRefusal:
    """Refusals of one kind, or of several."""

    first: NewRecord
    last: datetime
    is_mixed: bool
    count: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    errors: set[str] = field(default_factory=set)

    def add(self, refusal: NewRecord) -> None:
        self.last = refusal.at
        self.count += 1
        self.statuses[str(refusal.status)] += 1
        self.errors.update((refusal.output or {}).get("errors", ()))

    def as_record(self) -> NewRecord:
        if self.count == 1:
            return self.first
        output = {"count": self.count, "from": timestamp(self.first.at), "to": timestamp(self.last)}
        if not self.is_mixed:
            return replace(self.first, at=self.last, request_id=None, output={**(self.first.output or {}), **output})
        output |= {"problem": SEVERAL, "errors": sorted(self.errors), "statuses": dict(self.statuses)}
        return NewRecord("refusal", self.last, SEVERAL, output=output)


class RefusalAggregator:
    def __init__(self, max_kinds: int) -> None:
        self._max_kinds = max_kinds
        self._by_kind: dict[object, AggregatedRefusal] = {}

    def add(self, refusal: NewRecord) -> None:
        output = refusal.output or {}
        codes = (output.get("problem"), *output.get("errors", ()))
        kind: object = (refusal.principal, refusal.route, refusal.status, *codes)
        is_mixed = kind not in self._by_kind and len(self._by_kind) >= self._max_kinds
        aggregated = AggregatedRefusal(refusal, refusal.at, is_mixed)
        self._by_kind.setdefault(SEVERAL if is_mixed else kind, aggregated).add(refusal)

    def write(self, writer: AuditWriter) -> int:
        """How many refusals the writer could not take; they stay here, and further ones are added."""
        self._by_kind = {
            kind: each
            for kind, each in self._by_kind.items()
            if not writer.offer(each.as_record(), refusals=each.count)
        }
        return sum(each.count for each in self._by_kind.values())


class RefusalRecorder:
    def __init__(self, writer: AuditWriter, metrics: Metrics) -> None:
        self._writer, self._metrics = writer, metrics
        self._anonymous, self._authenticated = (
            RefusalAggregator(ANONYMOUS_KINDS),
            RefusalAggregator(AUTHENTICATED_KINDS),
        )
        self._singles: Counter[str] = Counter()  # of this second, by caller
        self._timer: asyncio.TimerHandle | None = None

    def record(self, refusal: NewRecord, is_authenticated: bool) -> None:
        """Never waits."""
        self._run_timer()
        if is_authenticated and self._singles[refusal.principal] < SINGLE_RECORDS:
            self._singles[refusal.principal] += 1
            if self._writer.offer(refusal):
                return
        (self._authenticated if is_authenticated else self._anonymous).add(refusal)
        self._metrics.refusals_aggregated.inc()

    def close(self) -> None:
        """Before the writer stops: writes the last ones, and counts those that the queue does not take."""
        if self._timer is not None:
            self._timer.cancel()
        self._metrics.audit_dropped.inc(self._write())

    def _end_second(self) -> None:
        self._timer = None
        self._singles.clear()
        if self._write():  # the queue is full of scores, which have priority
            self._run_timer()

    def _run_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(AGGREGATION_SECONDS, self._end_second)

    def _write(self) -> int:
        return self._anonymous.write(self._writer) + self._authenticated.write(self._writer)
