"""Replay: answer a recorded request again, by the recorded version and the same code, and compare.

Numbers are compared by their relative difference; of the words only those that decide something (verdict, position,
codes), because a later version of the service may put the rest differently. A damaged record is answered again as far
as it can be read and is never identical: what it says is not what was recorded.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from app.audit.lookup import LARGEST_PAGE
from app.database.records import Filter
from app.domain.card import ModelRef
from app.errors import InvalidInput, NormalcyError, UnknownRecord
from app.formats.answer import BODY, body
from app.formats.faults import fault
from app.runtime.runtime import Runtime
from app.services.look_up import find_page, record_reading
from app.services.recorded import asked_again
from app.services.score_measurements import Caller

Json = dict[str, Any]

IDENTICAL = 1e-8
TINY = 1e-12  # below it a number is zero: probabilities far out in a tail are not compared digit by digit
RECORD = "(record)"  # the whole of it
MOST = 10_000  # scores of one replay, as many as a batch may have
TOO_MANY = f"More than {MOST} scores stand under this request id: it was used for many requests. Name one item."
WORDING = frozenset({"message"})


class Difference(NamedTuple):
    field: str  # dotted path into the recorded output
    relative: float  # 1 where words or shapes differ


async def replay(runtime: Runtime, caller: Caller, request_id: str, item: int | None = None) -> Json:
    """Of every score under this request id, or of one item."""
    scores = [record async for record in _readings(runtime, request_id) if item in (None, record["item"])]
    if not scores:
        raise UnknownRecord
    await record_reading(runtime, caller, {"request_id": request_id, "item": item}, len(scores))
    found = [difference for record in scores for difference in await _replay_one(runtime, record)]
    return summary(found, len(scores), [_damage(record) for record in scores if record["damaged"]])


async def _readings(runtime: Runtime, request_id: str) -> AsyncIterator[Json]:
    cursor, seen = None, 0
    while True:
        page = await find_page(runtime, Filter(request_id=request_id), cursor, LARGEST_PAGE)
        for record in filter(_concerns, page.records):
            seen += 1
            if seen > MOST:
                raise InvalidInput([fault("too_long", "request_id", TOO_MANY)])
            yield record
        if page.cursor is None:
            return
        cursor = page.cursor


def _concerns(record: Json) -> bool:
    """A reading, or what may have been one before it was damaged.

    The record of a whole file holds digests and counts, no reading that could be scored again.
    """
    return record["damaged"] or (record["kind"] == "score" and "diameter_mm" in (record["input"] or {}))


def _damage(record: Json) -> Json:
    return {"record_id": record["record_id"], "item": record["item"], **record["damage"]}


def summary(differences: list[Difference], replayed: int, damaged: Sequence[Json] = ()) -> Json:
    largest = max((difference.relative for difference in differences), default=0.0)
    beyond = [difference for difference in differences if difference.relative > IDENTICAL]
    return {
        "identical": not beyond and not damaged,
        "max_relative_difference": largest,
        "fields": sorted({difference.field for difference in beyond}),
        "replayed": replayed,
        "damaged": list(damaged),
    }


async def _replay_one(runtime: Runtime, record: Json) -> list[Difference]:
    place = "" if record["item"] is None else f"results[{record['item']}]"
    try:
        ref = ModelRef(**record["model"])
        request = asked_again(ref.site, record["input"])
        told = {name: record["output"][name] for name in BODY}
    except (InvalidInput, LookupError, TypeError, ValueError, AttributeError):
        return [Difference(place or RECORD, 1.0)]  # no answer of ours: the verification of its chain will tell
    try:
        model = await runtime.loaded_models.fetch(ref.site, ref.version, ref.sha256)
    except NormalcyError:
        if record["damaged"]:  # it may name a version that never was
            return [Difference(place or RECORD, 1.0)]
        raise
    scored = await runtime.batcher.submit(model.ready, request.query)
    return list(differences(told, body(scored.answer), place))


def differences(recorded: Any, now: Any, path: str = "") -> Iterator[Difference]:
    """Every number with its relative difference, and every word or shape that is not the same."""
    if isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() == now.keys():
        for name in recorded.keys() - WORDING:
            yield from differences(recorded[name], now[name], f"{path}.{name}" if path else name)
    elif isinstance(recorded, list | tuple) and isinstance(now, list | tuple) and len(recorded) == len(now):
        for place, (one, other) in enumerate(zip(recorded, now, strict=True)):
            yield from differences(one, other, f"{path}[{place}]")
    elif _is_number(recorded) and _is_number(now):
        yield Difference(path, _relative(recorded, now))
    elif recorded != now:
        yield Difference(path, 1.0)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _relative(recorded: float, now: float) -> float:
    return abs(recorded - now) / max(abs(recorded), abs(now), TINY)
