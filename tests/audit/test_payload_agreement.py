"""Of payloads with right hashes, both verifiers accept the same ones: those that docs/auditors.md describes."""

import json
import sys
import zlib
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from app.audit.blocks import block_fields
from app.audit.chain import check_row, genesis, link, new_chain, row_hash, seal
from app.audit.lookup import as_dicts
from app.audit.records import MAX_DEPTH, NewRecord, Record, encode
from app.clock import month_of, utc_now
from app.database import records
from app.database.engine import Database
from app.database.records import AuditRow, LinkedRow, add_records, stream_chains
from app.database.stored_payload import MOST_BYTES, inflate
from app.settings import Settings
from tests.audit.both_verifiers import TOOL, Auditor, open_writer
from tests.audit.recording import FACTS, refusal, score

HEAD = new_chain(month_of(utc_now()))
FIRST = link(HEAD, [genesis(HEAD, utc_now(), FACTS)])[1]
GOOD = encode(score("audited", route="/x", input={"a": 1}))
BASE: dict[str, Any] = json.loads(GOOD.payload)
ID = BASE["record_id"]
MODEL = BASE["model"]
LARGEST = int(sys.float_info.max)


def text(**changes: Any) -> str:
    return json.dumps({**BASE, **changes})


def nested(levels: int, inside: object = None) -> object:
    """So many objects in each other."""
    value = inside
    for _ in range(levels):
        value = {"a": value}
    return value


def number(digits: str) -> str:
    return text().replace('"input": {"a": 1}', f'"input": {{"a": {digits}}}')


def raw(name: str, value: str) -> str:
    """With a value that `json` would not write."""
    return text(**{name: "HERE"}).replace('"HERE"', value)


WRONG: dict[str, str | bytes] = {
    "v is true": text(v=True),
    "v is 1.0": text(v=1.0),
    "v is a text": text(v="1"),
    "v is 2": text(v=2),
    "route is a number": text(route=5),
    "route is a list": text(route=[]),
    "request_id is a number": text(request_id=5),
    "principal is null": text(principal=None),
    "status is 200.0": text(status=200.0),
    "status is 2e2": raw("status", "2e2"),
    "status is a text": text(status="200"),
    "item is true": text(item=True),
    "item is 0.0": text(item=0.0),
    "input is a list": text(input=[]),
    "output is a text": text(output="x"),
    "model is empty": text(model={}),
    "model without sha256": text(model={"site": "SoV", "version": "1.0.0"}),
    "model with a number": text(model={**MODEL, "sha256": 5}),
    "model with null": text(model={**MODEL, "site": None}),
    "model with more": text(model={**MODEL, "x": 1}),
    "model is a list": text(model=[]),
    "NaN": number("NaN"),
    "Infinity": number("-Infinity"),
    "1e999": number("1e999"),
    "an integer of 400 digits": number("1" + "0" * 399),
    "an integer of 400 digits without spaces": number("-1" + "0" * 399).replace(": ", ":").replace(", ", ","),
    "an integer of 5000 digits": number("1" * 5000),
    "an integer after the largest double": number(str(LARGEST + 1)),
    "a leading zero": number("01"),
    "half of a surrogate pair": text(route="\ud800"),
    "the other half": text(input={"a": "\udc00x"}),
    "half of a surrogate pair in a key": text(input={"\udbff": 1}),
    "a control character": raw("route", '"\x01"'),
    "no UTF-8": text(route="?").encode().replace(b'"?"', b'"\xff"'),
    "a byte order mark": "\ufeff" + text(),
    "record_id in braces": text(record_id=f"{{{ID}}}"),
    "record_id as a URN": text(record_id=f"urn:uuid:{ID}"),
    "record_id in capitals": text(record_id=ID.upper()),
    "record_id without hyphens": text(record_id=ID.replace("-", "")),
    "record_id with a hyphen elsewhere": text(record_id=ID.replace("-", "", 1) + "-"),
    "record_id with a line feed": text(record_id=f"{ID}\n"),
    "kind x": text(kind="x"),
    "kind in capitals": text(kind="SCORE"),
    "at yesterday": text(at="yesterday"),
    "at without milliseconds": text(at="2026-11-15T10:30:00Z"),
    "at with other digits": text(at="2026-11-15T10:30:00.12\u0663Z"),
    "at with a line feed": text(at=f"{BASE['at']}\n"),
    "a key again": text()[:-1] + ', "v": 1}',
    "a key again, first wrong": '{"v": 2, ' + text()[1:],
    "a key again, escaped": '{"\\u0076": 1, ' + text()[1:],
    "a key again inside": text(input={"a": {"b": 1}}).replace('{"b": 1}', '{"b": 1, "b": 1}'),
    "a key again in the model": text().replace('"site":', '"site": "SoV", "site":'),
    "a key too many": text(more=1),
    "a key too few": json.dumps({name: value for name, value in BASE.items() if name != "route"}),
    "65 levels": text(input=nested(MAX_DEPTH + 1)),
    "65 levels, the last one a list": text(output=nested(MAX_DEPTH, [])),
    "thousands of levels": raw("input", '{"a":' * 5000 + "1" + "}" * 5000),
    "a list": "[]",
    "nothing": "",
    "two objects": text() * 2,
}
RIGHT: dict[str, str | bytes] = {
    "as it was written": GOOD.payload,
    "with spaces and in another order": json.dumps(dict(reversed(BASE.items())), indent=1),
    "64 levels": text(input=nested(MAX_DEPTH), output=nested(MAX_DEPTH - 1, [])),
    "many brackets": text(input={"a": [[] for _ in range(200)]}),
    "brackets in a text": text(input={"a": "[" * 200 + '{"'}),
    "many colons": text(input={"a": '":":' * 50}),
    "long digits in a text": text(input={"a": "9" * 500}),
    "the largest double": number("1.7976931348623157e308"),
    "what is rounded to it": number("1.7976931348623158e308"),
    "the largest double as an integer": number(str(-LARGEST)),
    "too small for a double": number("1e-999"),
    "minus zero": number("-0"),
    "an integer of 70 bits": number(str(2**70)),
    "a surrogate pair": text(input={"a": "\U0001f600"}),
    "a zero character": text(input={"a": "\0"}),
    "no route": text(route=None),
}


def row_of(payload: bytes) -> AuditRow:
    """Its columns are what the payload says, as far as columns can hold it; its hash is right."""
    try:
        found = json.loads(payload.decode())
        said = {name: found[name] for name in ("kind", "at") if isinstance(found[name], str)}
    except (ValueError, TypeError, KeyError, RecursionError):
        said = {}
    columns = GOOD._replace(payload=payload, **said)
    digest = row_hash(FIRST.row_hash, HEAD.chain_id, 2, UUID(ID), payload)
    return AuditRow(HEAD.month, HEAD.chain_id, 2, *columns, digest)


def verdict_of_tool(row: AuditRow, previous: bytes) -> str | None:
    chain = TOOL.Chain(row.month, {}, 0)
    chain.rows, chain.previous = row.seq - 1, previous
    cells = {**row._asdict(), "chain_id": row.chain_id.hex, "record_id": row.record_id.hex}
    problem = chain.row_problem(cells)
    return problem[1] if problem else None


def encoded(payload: str | bytes) -> bytes:
    return payload if isinstance(payload, bytes) else payload.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("name", WRONG)
def test_both_refuse(name: str) -> None:
    row = row_of(encoded(WRONG[name]))
    damage = check_row(row, FIRST.row_hash)
    assert damage is not None
    assert (damage.kind, verdict_of_tool(row, FIRST.row_hash)) == ("MUTATED", "MUTATED")
    assert as_dicts(LinkedRow(row, FIRST.row_hash))[0]["damaged"] is True


@pytest.mark.parametrize("name", RIGHT)
def test_both_accept(name: str) -> None:
    row = row_of(encoded(RIGHT[name]))
    assert (check_row(row, FIRST.row_hash), verdict_of_tool(row, FIRST.row_hash)) == (None, None)
    assert as_dicts(LinkedRow(row, FIRST.row_hash))[0]["damaged"] is False


@pytest.mark.parametrize(("stated", "column"), [("2026-10", "2026-11"), (202611, "202611"), (None, "None")])
def test_both_compare_the_month_of_a_genesis(stated: object, column: str) -> None:
    record = encode(NewRecord("genesis", utc_now(), "service", input={"month": stated}))
    [row], _ = link(HEAD._replace(month=column), [record])
    damage = check_row(row, None)
    assert damage is not None
    assert (damage.kind, verdict_of_tool(row, bytes(32))) == ("MUTATED", "MUTATED")


def every_kind() -> list[Record]:
    now = utc_now()
    numbers = {"x": [0.1, 1e300, -0.0, 5, 1e16, 5e-324]}
    block = block_fields([0, 1, 2, 3, 4, 7], numbers, numbers)
    return [
        encode(score("Zoë 😀 \x7f\u2028", input={"subject": {"hmac_sha256": "ab"}, "text": 'a"b\\c/d\t\0'})),
        encode(score("block", **block)),
        encode(score("encrypted", input={"encrypted": {"data_key": ID, "text": "QUJD" * 200}}, output=None)),
        encode(score("not a number", output={"a": float("nan"), "b": float("inf")})),
        encode(refusal()),
        encode(NewRecord("refusal", now, "several", output={"count": 3, "statuses": {"401": 3}})),
        encode(NewRecord("read", now, "command-line: root", input={"request_id": "x"}, output={"records": 0})),
        encode(NewRecord("key", now, "tests", route="normalcy audit erase", output={"step": "erased", "data_key": ID})),
        encode(NewRecord("activation", now, "tests", model=score().model, output={"step": "activated", "after": 0})),
        seal(now),
    ]


def test_both_accept_what_the_service_writes() -> None:
    rows, _ = link(FIRST, every_kind())
    previous = FIRST.row_hash
    for row in rows:
        assert (check_row(row, previous), verdict_of_tool(row, previous)) == (None, None), row
        previous = row.row_hash


@pytest.mark.anyio
async def test_both_judge_whole_databases_alike(settings: Settings, database: Database, tmp_path: Path) -> None:
    """Every wrong payload in a chain of its own."""
    await (await open_writer(settings, database)).stop()
    expected = set()
    for payload in WRONG.values():
        head = new_chain(HEAD.month)
        [first], head = link(head, [genesis(head, utc_now(), FACTS)])
        rows, _ = link(head, [Record(*row_of(encoded(payload))[3:-1])])
        async with database.writing() as connection:
            await add_records(connection, [first, *rows])
        expected.add(("MUTATED", f"{head.chain_id} 2"))
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert found.by_service == found.by_tool == expected


@pytest.mark.parametrize(("length", "is_payload"), [(MOST_BYTES, True), (MOST_BYTES + 1, False), (1 << 30, False)])
def test_both_inflate_as_much(length: int, is_payload: bool) -> None:
    """The service's login may add rows: one of a megabyte must not take a gigabyte to verify."""
    stream = zlib.compressobj()
    stored = b"".join(stream.compress(bytes(1 << 20)) for _ in range(length >> 20))
    stored += stream.compress(bytes(length % (1 << 20))) + stream.flush()
    for inflated in (inflate(stored), TOOL.inflated(stored)):
        assert (len(inflated), inflated != stored) == (length if is_payload else len(stored), is_payload)


@pytest.mark.anyio
async def test_a_page_of_large_payloads_is_read_in_parts(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is stored in little, so the service's login may add many. Here less is large."""
    monkeypatch.setattr(records, "MOST_BYTES", 2 * len(GOOD.payload))
    rows, _ = link(FIRST, [GOOD._replace(record_id=uuid4()) for _ in range(3)])
    async with database.writing() as connection:
        await add_records(connection, rows)
    async with database.reading() as connection:
        assert [len(part) async for part in stream_chains(connection)] == [2, 1]


def test_both_take_a_plain_payload_as_it_is() -> None:
    plain = b"{" + bytes(MOST_BYTES)
    assert (inflate(plain) is plain, TOOL.inflated(plain) is plain) == (True, True)


@pytest.mark.anyio
async def test_both_judge_payloads_of_any_size_alike(settings: Settings, database: Database, tmp_path: Path) -> None:
    await (await open_writer(settings, database)).stop()
    expected = set()
    for length in (MOST_BYTES, MOST_BYTES + 1):
        head = new_chain(HEAD.month)
        long = GOOD._replace(payload=GOOD.payload.ljust(length))
        rows, _ = link(head, [genesis(head, utc_now(), FACTS), long])
        async with database.writing() as connection:
            await add_records(connection, rows)
        is_right = length == MOST_BYTES
        expected.add(("UNKNOWN_CHAIN", f"{head.chain_id} 1") if is_right else ("MUTATED", f"{head.chain_id} 2"))
    found = await Auditor.of(settings, database, tmp_path / "auditor").verify()
    assert found.by_service == found.by_tool == expected
