"""Many measurements in one request: each as it would be scored alone, recorded, addressable, replayable."""

import asyncio
import csv
import io
import json
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import pytest

from app.audit import writer
from app.audit.records import NewRecord
from app.audit.writer import AuditWriter
from app.database.keys import key_id_of
from app.errors import AuditUnavailable
from app.formats.score_table import COLUMNS
from app.services import score_batch
from app.services.manage_keys import revoke_key
from app.services.verify_audit import verify_audit
from app.web import server
from app.web.routes import batch as batch_routes
from tests.web.serving import MAN, READING, STATED, Running, bearer, create_key

BATCH = "/v1/batch/score"
ITEM: dict[str, Any] = {"site": "SoV", **MAN, "diameter_mm": 41, "convention": STATED}
BAD = ITEM | {"id": "bad", "diameter_mm": 4.1}
JSON, NDJSON, CSV = ({"Content-Type": name} for name in ("application/json", "application/x-ndjson", "text/csv"))
HEADER = "id,site,age_years,sex,height_cm,weight_kg,diameter_mm"
ROW = "a,SoV,55,male,176,84,41"


def post(running: Running, content: Any, headers: dict[str, str], **more: str) -> httpx.Response:
    return running.client.post(BATCH, content=content, headers={**headers, **more})


def batch(running: Running, items: list[Any], **headers: str) -> Any:
    answer = post(running, json.dumps({"items": items}), JSON, **headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def lines(items: list[Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def test_every_item_gets_the_single_answer_or_its_errors(shared: Running) -> None:
    answer = batch(shared, [ITEM | {"id": "a"}, BAD, ITEM | {"site": "AA"}, ITEM | {"site": "XX"}])
    assert (answer["succeeded"], answer["failed"], len(answer["provenance"])) == (2, 2, 2)
    first, bad, other, unknown = answer["results"]
    single = shared.score(READING).json()
    assert {**first, "request_id": 0} == {
        **{name: value for name, value in single.items() if name not in ("summary", "provenance")},
        "index": 0, "id": "a", "model": 0, "request_id": 0,
    }  # fmt: skip
    assert (bad["index"], bad["id"], bad["errors"][0]["code"], "score" in bad) == (1, "bad", "given_in_cm", False)
    assert answer["provenance"][other["model"]]["model"]["site"] == other["site"] == "AA"
    assert unknown["errors"][0]["code"] == "unknown_site"
    assert list(answer) == ["request_id", "succeeded", "failed", "provenance", "results"]


def test_the_three_media_types_agree(shared: Running) -> None:
    items = [ITEM | {"id": f"i{k}", "diameter_mm": 30.5 + k} for k in range(5)] + [BAD]
    of_json = batch(shared, items)["results"]
    *of_lines, end = [json.loads(line) for line in post(shared, lines(items), NDJSON).iter_lines()]
    assert of_lines == of_json
    assert (end["summary"]["succeeded"], end["summary"]["failed"]) == (5, 1)
    assert end["summary"]["request_id"]
    assert [one["model"]["site"] for one in end["summary"]["provenance"]] == ["SoV"]
    cells = [[one["id"], "SoV", *map(str, MAN.values()), str(one["diameter_mm"]), *STATED.values()] for one in items]
    names = ["id", "site", *MAN, "diameter_mm", *(f"convention.{part}" for part in STATED)]
    answer = post(shared, "\r\n".join(map(",".join, [names, *cells])), CSV)
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert list(rows[0]) == [column.name for column in COLUMNS]
    assert [float(row["expected_ns"]) for row in rows[:5]] == [one["score"]["expected_ns"] for one in of_json[:5]]
    assert [(row["id"], row["error_codes"]) for row in rows[4:]] == [("i4", ""), ("bad", "given_in_cm")]


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", JSON | {"Content-Encoding": "gzip"}, 415),
        (b"x" * (8 * 1024 * 1024 + 1), JSON, 413),
        (b'{"items": [1,]}', JSON, 400),
        (b'{"items": [], "items": []}', JSON, 400),
        (b"{}", JSON, 422),
        (b'{"items": [], "more": 1}', JSON, 422),
        (b'{"items": [' + b"1," * 10_000 + b"1]}", JSON, 422),
        (b'{"id": "' + b"x" * 70_000 + b'"}\n', NDJSON, 413),
        (b"age_years,sex\n", CSV, 422),
        (HEADER.encode() + b",Zebra\n", CSV, 422),
        (b"", CSV, 422),
    ],
)
def test_what_is_no_batch_is_refused_as_a_whole(shared: Running, content: bytes, headers: Any, status: int) -> None:
    answer = post(shared, content, headers)
    assert (answer.status_code, answer.json()["status"]) == (status, status)
    assert "Zebra" not in answer.text


def test_an_empty_batch_has_no_results(shared: Running) -> None:
    assert batch(shared, [])["results"] == []
    assert json.loads(post(shared, b"\n\n", NDJSON).text)["summary"]["succeeded"] == 0
    assert post(shared, HEADER, CSV).text.count("\n") == 1


def test_every_line_is_strict_json_by_itself(shared: Running) -> None:
    good = json.dumps(ITEM).encode()
    bad = [
        b'{"site":"SoV","site":"AA"}',
        b'{"age_years":NaN}',
        b"\xff",
        b'{"id":"\\ud800"}',
        b"[" * 40 + b"]" * 40,
        b"7",
    ]
    answer = post(shared, b"\n".join([good, *bad, good]), NDJSON)
    *found, _ = [json.loads(line) for line in answer.iter_lines()]
    codes = [one["errors"][0]["code"] if "errors" in one else "ok" for one in found]
    expected = ["duplicate_key", "not_finite", "wrong_encoding", "lone_surrogate", "too_deep", "wrong_type"]
    assert codes == ["ok", *expected, "ok"]


def test_rows_that_are_not_csv_are_errors_of_their_own(shared: Running) -> None:
    content = (
        "\n".join([HEADER, ROW, "b,SoV,55", '"c', 'd",SoV,55,male,176,84,41', ROW]).encode() + b'\n\xff,SoV\n"e,SoV'
    )
    rows = list(csv.DictReader(io.StringIO(post(shared, content, CSV).text)))
    assert [row["error_codes"] for row in rows] == [
        "", "ragged_row", "control_character", "", "wrong_encoding", "syntax",
    ]  # fmt: skip


def test_a_quotation_mark_within_a_cell_leaves_the_other_rows_alone(shared: Running) -> None:
    content = "\n".join([HEADER, ROW, f'{ROW}"', 'b"' + ROW[1:], ROW])
    found = csv.DictReader(io.StringIO(post(shared, content, CSV).text))
    assert [(row["id"], row["error_codes"]) for row in found] == [("a", ""), ("a", "wrong_type"), ('b"', ""), ("a", "")]


@pytest.mark.parametrize("text", ["  x  ", " \u2003p", '"', "00123456789012345678", "1e5", "a,b "])
def test_ids_and_subjects_are_those_of_the_cell(running: Running, text: str) -> None:
    row = io.StringIO()
    csv.writer(row).writerow([text, text, *ROW.split(",")[1:]])
    content = f"{HEADER.replace('id,', 'id,subject,')}\n{row.getvalue()}"
    [found] = csv.DictReader(io.StringIO(post(running, content.encode(), CSV, **{"X-Request-ID": "csv"}).text))
    [item] = batch(running, [ITEM | {"id": text, "subject": text}], **{"X-Request-ID": "json"})["results"]
    assert found["id"] == item["id"] == text
    key = create_key(running.settings, ["audit:read"])
    running.inside(running.runtime.poller.refresh())
    subjects = [
        running.client.get(f"/v1/audit/records/{name}", headers=bearer(key)).json()["records"][0]["input"]["subject"]
        for name in ("csv", "json")
    ]
    assert subjects[0] == subjects[1]


def test_an_id_with_a_line_break_is_refused_and_not_changed(shared: Running) -> None:
    rows = list(csv.DictReader(io.StringIO(post(shared, f'{HEADER}\n"a,""b\n"{ROW[1:]}', CSV).text)))
    assert [(row["id"], row["error_codes"]) for row in rows] == [("", "control_character")]


def test_results_leave_while_items_arrive(shared: Running) -> None:
    """The client sends an item only after it has read the result of the one before."""
    host, port = shared.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection, connection.makefile("rb") as reading:
        head = f"POST {BATCH} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/x-ndjson\r\n"
        connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for k in range(3):
            line = json.dumps(ITEM | {"id": str(k)}).encode() + b"\n"
            connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))
            while not (received := reading.readline()).startswith(b'{"index"'):
                assert received
            assert json.loads(received)["id"] == str(k)
        connection.sendall(b"0\r\n\r\n")
        assert any(b'"summary"' in line for line in iter(reading.readline, b"0\r\n"))


def test_a_stream_ends_when_its_key_is_revoked(running: Running) -> None:
    settings = running.settings
    key = create_key(settings, ["score"])
    running.inside(running.runtime.poller.refresh())
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection, connection.makefile("rb") as reading:
        head = f"POST {BATCH} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/x-ndjson\r\n"
        head += f"Authorization: Bearer {key}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        line = json.dumps(ITEM).encode() + b"\n"
        for wanted in (b'{"index"', b'{"problem"'):
            connection.sendall(b"%x\r\n%b\r\n" % (len(line), line))
            while not (received := reading.readline()).startswith(wanted):
                assert received
                assert not received.startswith(b'{"index"')
            if wanted == b'{"index"':
                asyncio.run(revoke_key(settings, "test", str(key_id_of(key))))
                running.inside(running.runtime.poller.refresh())
        assert json.loads(received)["problem"]["type"] == "/guide#problem-no-credential"
    assert len(running.records("score")) == 1


def test_pauses_of_a_stream_are_limited_and_its_length_is_not(shared: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.5)
    monkeypatch.setattr(server, "IDLE_SECONDS", 1.0)

    def slowly() -> Iterator[bytes]:
        for _ in range(4):
            yield lines([ITEM])
            time.sleep(0.3)

    assert post(shared, slowly(), NDJSON).text.count("\n") == 5

    def with_a_pause() -> Iterator[bytes]:
        yield lines([ITEM])
        time.sleep(3.0)
        yield lines([ITEM])

    with pytest.raises(httpx.TransportError):
        post(shared, with_a_pause(), NDJSON)


@pytest.mark.req("REQ-102")
def test_a_json_batch_has_a_deadline_as_a_whole(shared: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds a slot while it arrives, and there are few of them."""
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    monkeypatch.setattr(batch_routes, "JSON_SECONDS", 2.0)
    content = json.dumps({"items": [ITEM]}).encode()

    def slowly(seconds: float) -> Iterator[bytes]:
        for k in range(4):
            yield content[k * 40 : (k + 1) * 40] if k < 3 else content[120:]
            time.sleep(seconds / 4)

    assert post(shared, slowly(0.8), JSON).status_code == 200  # longer than other requests may take
    with pytest.raises(httpx.TransportError):
        post(shared, slowly(8.0), JSON)


def test_a_client_that_does_not_read_is_cut_off(shared: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "READING_SECONDS", 0.5)
    host, port = shared.url.removeprefix("http://").split(":")
    body = lines([ITEM] * 20_000)
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        head = f"POST {BATCH} HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/x-ndjson\r\n"
        connection.sendall(f"{head}Content-Length: {100 * len(body)}\r\n\r\n".encode())
        with pytest.raises(ConnectionError):  # a TimeoutError would not be one
            connection.sendall(100 * body)
    assert shared.score().status_code == 200


def test_items_are_recorded_as_records_of_their_own(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_batch, "BLOCK_ITEMS", 4)
    items = [
        ITEM | {"id": str(k), "site": ("SoV", "AA")[k % 2], "diameter_mm": 30 + k, "subject": f"p-{k}"}
        for k in range(9)
    ]
    items[5] = BAD
    items[7] |= {"thresholds": [2, 3], "measurement_sd_mm": 1.5}
    found = batch(running, items, **{"X-Request-ID": "many"})["results"]
    assert len(running.records("score")) < len(items)  # one row for several items
    key = create_key(running.settings, ["audit:read"])
    running.inside(running.runtime.poller.refresh())
    url = "/v1/audit/records/many"
    records = running.client.get(url, headers=bearer(key)).json()["records"]
    by_item = {record["item"]: record for record in records}
    assert sorted(by_item) == list(range(9))
    assert len({record["record_id"] for record in records}) == 9
    assert (by_item[5]["kind"], by_item[5]["status"], by_item[5]["output"]["errors"]) == (
        "refusal",
        422,
        ["given_in_cm"],
    )
    for k in (0, 1, 7, 8):
        record = by_item[k]
        assert (record["kind"], record["model"]["site"], record["damaged"]) == ("score", items[k]["site"], False)
        assert {name: record["output"][name] for name in ("score", "reference", "reliability", "advisories")} == {
            name: found[k][name] for name in ("score", "reference", "reliability", "advisories")
        }
        assert record["output"]["service"]["backend"] == "numpy"
        assert (record["input"]["diameter_mm"], record["input"]["convention"]) == (items[k]["diameter_mm"], STATED)
        assert record["input"]["subject"].keys() == {"key_id", "hmac_sha256"}
        [alone] = running.client.get(url, params={"item": k}, headers=bearer(key)).json()["records"]
        assert alone == record
    assert running.client.get(url, params={"item": 9}, headers=bearer(key)).status_code == 404
    every = running.client.post(f"{url}/replay", headers=bearer(key)).json()
    assert (every["identical"], every["replayed"]) == (True, 8)
    one = running.client.post(f"{url}/replay", params={"item": 7}, headers=bearer(key)).json()
    assert (one["identical"], one["replayed"], one["max_relative_difference"]) == (True, 1, 0.0)


LONG = {  # as long as the record of an item can be
    "thresholds": [2.123456789 + 0.1 * k for k in range(8)],
    "measurement_sd_mm": 1.23456789,
    "subject": "p" * 128,
    "include_unreliable": True,
}


@pytest.mark.parametrize(
    "items",
    [
        [ITEM | {"hdi_probability": 0.6 + 0.001 * k} for k in range(300)],
        [ITEM | LONG | {"hdi_probability": 0.9 + 0.001 * (k % 3)} for k in range(1000)],
        [ITEM | LONG | {"weight_kg": 131.23456789, "age_years": 81.123456789} for _ in range(1000)],
    ],
    ids=["many records", "long records", "one record that fills more than a commit"],
)
def test_items_are_recorded_whatever_size_their_records_have(
    running: Running, items: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "BATCH", 100)  # the longest records are a few hundred ordinary ones
    answer = batch(running, items)
    assert (answer["succeeded"], answer["failed"]) == (len(items), 0)
    found = post(running, lines(items), NDJSON).text.splitlines()
    assert json.loads(found[-1])["summary"]["succeeded"] == len(items)
    recorded = [item for record in running.records("score") for item in record.output["items"]]
    assert sorted(recorded) == sorted([*range(len(items))] * 2)


def test_pages_end_and_go_on_within_a_block(running: Running) -> None:
    batch(running, [ITEM | {"diameter_mm": 30 + 0.01 * k} for k in range(250)], **{"X-Request-ID": "pages"})
    key = create_key(running.settings, ["audit:read"])
    running.inside(running.runtime.poller.refresh())
    items: list[int] = []
    cursor: dict[str, str] = {"site": "SoV"}
    while cursor:
        page = running.client.get("/v1/audit/records", params=cursor, headers=bearer(key)).json()
        items += [record["item"] for record in page["records"] if record["request_id"] == "pages"]
        cursor = {"site": "SoV", "cursor": page["cursor"]} if page["cursor"] else {}
    assert items == list(range(250))


def test_the_audit_of_batches_verifies(running: Running) -> None:
    batch(running, [ITEM, BAD] * 600)
    done = running.inside(verify_audit(running.settings, lambda words, share: None))
    assert done.intact, done


@pytest.mark.parametrize("headers", [NDJSON, CSV])
@pytest.mark.parametrize(("error", "problem_type"), [(AuditUnavailable, "not-audited"), (RuntimeError, "defect")])
def test_a_stream_that_fails_ends_with_the_problem(
    shared: Running,
    headers: dict[str, str],
    error: type[Exception],
    problem_type: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(score_batch, "BLOCK_ITEMS", 2)
    written, write = list[Sequence[NewRecord]](), AuditWriter.write_in_parts

    async def fail_later(self: AuditWriter, records: Sequence[NewRecord]) -> None:
        if records[0].request_id == "fails":  # not what is left of a batch of another test
            written.append(records)
        if len(written) > 2:
            raise error
        await write(self, records)

    monkeypatch.setattr(AuditWriter, "write_in_parts", fail_later)
    content = lines([ITEM] * 9) if headers is NDJSON else "\n".join([HEADER, *[ROW] * 9])
    answer = post(shared, content, {**headers, "X-Request-ID": "fails"})
    assert answer.status_code == 200
    found = answer.text.splitlines()
    if headers is NDJSON:
        assert (len(found), json.loads(found[-1])["problem"]["type"]) == (5, f"/guide#problem-{problem_type}")
    else:
        last = list(csv.DictReader(io.StringIO(answer.text)))[-1]
        assert (len(found), last["index"], last["error_codes"]) == (6, "", problem_type)


def test_verdicts_and_scores_are_counted(shared: Running) -> None:
    def counted() -> float:
        text = shared.client.get("/metrics").text
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith("normalcy_scores_total{"))

    before = counted()
    batch(shared, [ITEM] * 7 + [BAD])
    assert counted() == before + 7
