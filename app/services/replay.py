"""Replay: score a recorded request again with the recorded model version, and compare with what was recorded.

Numbers are compared by their relative difference. Of the text only what matters is compared (verdict, position,
codes), because a later release may word the rest differently. A damaged record is scored again as far as it can be
read, and is never reported as identical.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from app.audit.lookup import MAX_PAGE
from app.audit.recorded_request import request_from_record
from app.database.records import Filter
from app.domain.card import ModelRef
from app.errors import InvalidInput, NormalcyError, RecordErased, RecordUnreadable, UnknownRecord
from app.formats.response import BODY, body
from app.runtime.credentials import Caller
from app.runtime.runtime import Runtime
from app.schemas.lookups import DamagedRecord, Replay
from app.schemas.validation import field_error
from app.services.audit_records import find_page, record_read

Json = dict[str, Any]

IDENTICAL = 1e-8
TINY = 1e-12  # smaller numbers count as zero: probabilities far out in a tail are not compared digit by digit
WHOLE_RECORD = "(record)"
MAX_SCORES = 10_000  # of one replay, as many as a batch may have
TOO_MANY = f"More than {MAX_SCORES} scores have this request id, because many requests used it. Choose one item."
ENDS = frozenset({"low", "high"})
ALWAYS_RECORDED = "reliability"  # in every answer of every version of the service
HIDDEN = frozenset({"erased", "unreadable"})  # contents that cannot be scored again
WORDING = frozenset({"message"})


class Difference(NamedTuple):
    field: str  # dotted path into the recorded output
    relative: float  # 1 where text or structure differs


async def replay(runtime: Runtime, caller: Caller, request_id: str, item: int | None = None) -> Replay:
    """Every score of this request, or one item of it, except those that were erased.

    Raises UnknownRecord if there is none, RecordErased if all were erased, RecordUnreadable without their key.
    """
    found_scores = [record async for record in _scores(runtime, request_id, item)]
    if not found_scores:
        raise UnknownRecord
    await record_read(runtime, caller, {"request_id": request_id, "item": item}, len(found_scores))
    scores = [record for record in found_scores if record["damaged"] or record["content"] not in HIDDEN]
    erased = sum(record["content"] == "erased" and not record["damaged"] for record in found_scores)
    if len(scores) + erased < len(found_scores):
        raise RecordUnreadable
    if not scores:
        raise RecordErased
    found = [difference for record in scores for difference in await _replay_one(runtime, record)]
    damaged = [_damage(record) for record in scores if record["damaged"]]
    return summarise(caller.request_id, found, len(scores), damaged, erased)


async def _scores(runtime: Runtime, request_id: str, item: int | None) -> AsyncIterator[Json]:
    cursor, seen = None, 0
    while True:
        page = await find_page(runtime, Filter(request_id=request_id), cursor, MAX_PAGE, item)
        for record in filter(_may_be_score, page.records):
            seen += 1
            if seen > MAX_SCORES:
                raise InvalidInput([field_error("too_long", "request_id", TOO_MANY)])
            yield record
        if page.cursor is None:
            return
        cursor = page.cursor


def _may_be_score(record: Json) -> bool:
    """The record of a measurement, readable or not, or a damaged record that may have been one.

    The record of a scored file holds digests and counts only, nothing that could be scored again.
    """
    if record["damaged"]:  # it may lack anything
        return True
    is_measurement = record["content"] in HIDDEN or "diameter_mm" in (record["input"] or {})
    return record["kind"] == "score" and is_measurement


def _damage(record: Json) -> DamagedRecord:
    """Not validated: a damaged record may hold anything."""
    return DamagedRecord.model_construct(record_id=record["record_id"], item=record["item"], **record["damage"])


def summarise(
    request_id: str,
    differences: list[Difference],
    replayed: int,
    damaged: Sequence[DamagedRecord] = (),
    erased: int = 0,
) -> Replay:
    largest = max((difference.relative for difference in differences), default=0.0)
    beyond = [difference for difference in differences if difference.relative > IDENTICAL]
    return Replay(
        request_id=request_id,
        identical=not beyond and not damaged,
        max_relative_difference=largest,
        fields=sorted({difference.field for difference in beyond}),
        replayed=replayed,
        damaged=list(damaged),
        erased=erased,
    )


async def _replay_one(runtime: Runtime, record: Json) -> list[Difference]:
    path = "" if record["item"] is None else f"results[{record['item']}]"
    try:
        ref = ModelRef(**record["model"])
        request = request_from_record(ref.site, record["input"])
        recorded = record["output"]
        output = {name: recorded[name] for name in BODY if name in recorded or name == ALWAYS_RECORDED}
    except (InvalidInput, LookupError, TypeError, ValueError, AttributeError):
        return [Difference(path or WHOLE_RECORD, 1.0)]  # not written by this program; verification reports it
    try:
        model = await runtime.loaded_models.fetch(ref.site, ref.version, ref.sha256)
    except NormalcyError:
        if record["damaged"]:  # it may name a version that never existed
            return [Difference(path or WHOLE_RECORD, 1.0)]
        raise
    scored = await runtime.batcher.submit(model, request.query)
    return list(differences(output, body(scored.answer), path))


def differences(recorded: Any, now: Any, path: str = "", least: float = TINY) -> Iterator[Difference]:
    """Every number with its relative difference, and every text or structure that differs.

    Differences are relative to the number or to `least`, whichever is larger. For the ends of an interval that is its
    width: an end that happens to be near 0 is known no better than the other. Fields that answers gained after the
    record was written are not compared.
    """
    if isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() <= now.keys():
        width = _width(recorded)
        for name in recorded.keys() - WORDING:
            inner = f"{path}.{name}" if path else name
            yield from differences(recorded[name], now[name], inner, width if name in ENDS else TINY)
    elif isinstance(recorded, list | tuple) and isinstance(now, list | tuple) and len(recorded) == len(now):
        for index, (before, after) in enumerate(zip(recorded, now, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif _is_number(recorded) and _is_number(now):
        yield Difference(path, abs(recorded - now) / max(abs(recorded), abs(now), least))
    elif recorded != now:
        yield Difference(path, 1.0)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _width(recorded: Json) -> float:
    """Of an interval; TINY for anything else."""
    ends = [recorded[name] for name in ("low", "high") if _is_number(recorded.get(name))]
    return max(ends[1] - ends[0], TINY) if len(ends) == len(ENDS) else TINY
