"""Refusals on record: one by one for a caller with a key, up to a bound; in sums for everybody else.

Anybody may be refused as often as they ask, so a record for each would let strangers fill the disk. What is summed is
one second of the same refusal: same caller, route, status and codes. How many rows that makes is bounded as well:
kinds beyond the first few of a second share one row. A sum of one is that one, request id and all.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime

from app.audit.records import NewRecord
from app.audit.writer import AuditWriter
from app.clock import timestamp
from app.observability import Metrics

SUM_SECONDS = 1.0
SINGLE_RECORDS = 20  # of one known caller in a second
KINDS_OF_STRANGERS = 4  # rows that one second of strangers leaves, and one more for all the rest
KINDS_OF_KNOWN = 16
SEVERAL = "several"


@dataclass(slots=True)
class Sum:
    """Refusals of one kind, or of several."""

    first: NewRecord
    last: datetime
    is_mixed: bool
    count: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    errors: set[str] = field(default_factory=set)

    def add(self, draft: NewRecord) -> None:
        self.last = draft.at
        self.count += 1
        self.statuses[str(draft.status)] += 1
        self.errors.update((draft.output or {}).get("errors", ()))

    def draft(self) -> NewRecord:
        if self.count == 1:
            return self.first
        told = {"count": self.count, "from": timestamp(self.first.at), "to": timestamp(self.last)}
        if not self.is_mixed:
            return replace(self.first, at=self.last, request_id=None, output={**(self.first.output or {}), **told})
        told |= {"problem": SEVERAL, "errors": sorted(self.errors), "statuses": dict(self.statuses)}
        return NewRecord("refusal", self.last, SEVERAL, output=told)


class Sums:
    def __init__(self, most_kinds: int) -> None:
        self._most_kinds = most_kinds
        self._sums: dict[object, Sum] = {}

    def add(self, draft: NewRecord) -> None:
        output = draft.output or {}
        kind: object = (draft.principal, draft.route, draft.status, output.get("problem"), *output.get("errors", ()))
        is_mixed = kind not in self._sums and len(self._sums) >= self._most_kinds
        self._sums.setdefault(SEVERAL if is_mixed else kind, Sum(draft, draft.at, is_mixed)).add(draft)

    def write(self, writer: AuditWriter) -> int:
        """How many refusals it could not take; they stay, and grow on."""
        self._sums = {
            kind: each for kind, each in self._sums.items() if not writer.offer(each.draft(), stands_for=each.count)
        }
        return sum(each.count for each in self._sums.values())


class RefusalRecorder:
    def __init__(self, writer: AuditWriter, metrics: Metrics) -> None:
        self._writer, self._metrics = writer, metrics
        self._strangers, self._known = Sums(KINDS_OF_STRANGERS), Sums(KINDS_OF_KNOWN)
        self._singles: Counter[str] = Counter()  # of this second, by caller
        self._timer: asyncio.TimerHandle | None = None

    def record(self, draft: NewRecord, is_known: bool) -> None:
        """Never waits. `is_known`: the caller showed a valid credential."""
        self._run_timer()
        if is_known and self._singles[draft.principal] < SINGLE_RECORDS:
            self._singles[draft.principal] += 1
            if self._writer.offer(draft):
                return
        (self._known if is_known else self._strangers).add(draft)
        self._metrics.refusals_summed.inc()

    def close(self) -> None:
        """Before the writer stops: hands over the last sums, and counts what it does not take."""
        if self._timer is not None:
            self._timer.cancel()
        self._metrics.audit_dropped.inc(self._write())

    def _end_second(self) -> None:
        self._timer = None
        self._singles.clear()
        if self._write():  # the queue is full of scores, which go first
            self._run_timer()

    def _run_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SUM_SECONDS, self._end_second)

    def _write(self) -> int:
        return self._strangers.write(self._writer) + self._known.write(self._writer)
