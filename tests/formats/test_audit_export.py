"""Audit records as others read them: spreadsheets, and audit repositories that speak FHIR."""

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.formats.audit_export import HEADER, audit_event, csv_header, csv_line, fhir_line

CHAIN = {"month": "2026-11", "id": "0d7b2f6e-0000-4000-8000-000000000001", "seq": 7, "row_hash": "ab" * 32}
SUBJECT = {"key_id": "1a2b3c4d", "hmac_sha256": "cd" * 32}
SCORE: dict[str, Any] = {
    "v": 1,
    "kind": "score",
    "record_id": "0199b3a0-0000-7000-8000-000000000001",
    "request_id": "r-1",
    "item": 2,
    "at": "2026-11-15T10:30:00.123Z",
    "principal": "abcdefgh",
    "route": "/v1/studies/score",
    "status": 200,
    "model": {"site": "SoV", "version": "1.0.0", "sha256": "ef" * 32},
    "input": {"age_years": 55.25, "diameter_mm": 41.75, "subject": SUBJECT},
    "output": {"score": {"expected_ns": 1.93125}, "summary": {"clinician": 'He said "2",\nthen left; naïve'}},
    "damaged": False,
    "chain": CHAIN,
}
REFUSAL = {
    **SCORE,
    "kind": "refusal",
    "status": 422,
    "item": None,
    "model": None,
    "input": None,
    "output": {"problem": "input-refused", "errors": ["out_of_range", "missing"]},
}
GENESIS = {**REFUSAL, "kind": "genesis", "principal": "service", "status": None, "route": None, "request_id": None}
DAMAGED = {
    "kind": "score",
    "at": SCORE["at"],
    "principal": "abcdefgh",
    "item": None,
    "status": 200,
    "record_id": SCORE["record_id"],
    "request_id": "r-1",
    "damaged": True,
    "damage": {"kind": "MUTATED", "detail": "the row is not what was hashed"},
    "chain": CHAIN,
}
SPAN = {"count": 812, "from": "2026-11-15T10:29:59.130Z", "to": "2026-11-15T10:30:00.123Z"}
AGGREGATED = {**REFUSAL, "status": 401, "principal": "nobody", "request_id": None}
AGGREGATED["output"] = {"problem": "no-credential", "errors": ["no-credential"], **SPAN}
MIXED = {**AGGREGATED, "status": None, "route": None, "principal": "several"}
MIXED["output"] = {"problem": "several", "errors": ["no-credential"], "statuses": {"503": 1, "401": 811}, **SPAN}
RECORDS = [
    SCORE,
    REFUSAL,
    GENESIS,
    DAMAGED,
    {**GENESIS, "kind": "activation", "model": SCORE["model"]},
    AGGREGATED,
    MIXED,
]


def csv_rows(*records: dict[str, Any]) -> list[dict[str, str]]:
    content = csv_header() + b"".join(map(csv_line, records))
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


class TestCsv:
    def test_a_line_says_all_that_the_record_says(self) -> None:
        (row,) = csv_rows(SCORE)
        assert list(row) == list(HEADER)
        assert json.loads(row["input"]) == SCORE["input"]
        assert json.loads(row["output"]) == SCORE["output"]
        for name in ("record_id", "request_id", "kind", "at", "principal", "route"):
            assert row[name] == SCORE[name]
        assert (row["item"], row["status"]) == ("2", "200")
        assert (row["site"], row["version"], row["model_sha256"]) == ("SoV", "1.0.0", "ef" * 32)
        position = (row["chain_month"], row["chain_id"], int(row["chain_seq"]), row["row_hash"])
        assert position == tuple(CHAIN.values())
        assert (row["damaged"], row["damage"]) == ("", "")

    def test_what_is_not_there_is_an_empty_cell(self) -> None:
        row = csv_rows(GENESIS)[0]
        assert {row[name] for name in ("request_id", "item", "route", "status", "site", "version", "input")} == {""}

    def test_a_record_is_one_row_whatever_it_holds(self) -> None:
        rows = csv_rows(*RECORDS)
        assert [row["kind"] for row in rows] == [record["kind"] for record in RECORDS]
        assert [row["damaged"] for row in rows] == ["", "", "", "true", "", "", ""]
        assert rows[3]["damage"] == "MUTATED: the row is not what was hashed"


class TestFhir:
    @pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["kind"])
    def test_an_event_has_what_r4_requires_and_no_null(self, record: dict[str, Any]) -> None:
        event = json.loads(fhir_line(record))
        assert event.keys() <= {
            "resourceType", "id", "type", "subtype", "action", "recorded", "outcome", "outcomeDesc", "agent",
            "source", "entity",
        }  # fmt: skip
        assert {"type", "recorded", "agent", "source"} <= event.keys()
        assert event["type"].keys() == {"system", "code", "display"}
        assert event["action"] in set("CRUDE")
        assert event["outcome"] in {"0", "4", "8", "12"}
        assert isinstance(event["agent"][0]["requestor"], bool)
        assert event["source"]["observer"]
        assert all(value is not None and value not in ([], {}, "") for value in values(event))

    @pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["kind"])
    def test_an_event_is_one_line(self, record: dict[str, Any]) -> None:
        line = fhir_line(record)
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")

    @pytest.mark.parametrize(
        "record",
        [
            {**REFUSAL, "output": {"errors": 7}},
            {**AGGREGATED, "output": {"count": 1}},
            {**MIXED, "output": {"statuses": {"many": 1}}},
            {**SCORE, "input": {"subject": "a name"}},
        ],
        ids=["errors", "span", "statuses", "subject"],
    )
    def test_a_record_that_no_program_of_ours_wrote_ends_no_export(self, record: dict[str, Any]) -> None:
        event = json.loads(fhir_line(record))
        assert event["outcome"] == "8"
        assert "UNREADABLE" in event["outcomeDesc"]
        assert "a name" not in str(event)

    def test_no_clinical_value_leaves(self) -> None:
        line = fhir_line(SCORE).decode()
        for value in ("55.25", "41.75", "1.93125", "He said"):
            assert value not in line

    def test_who_what_and_with_which_model(self) -> None:
        event = audit_event(SCORE)
        assert event["agent"][0]["who"]["identifier"]["value"] == "abcdefgh"
        entry, model, patient = event["entity"]
        assert {"type": "row_hash", "valueString": "ab" * 32} in entry["detail"]
        assert model["what"]["identifier"]["value"] == "SoV 1.0.0"
        assert patient["what"]["identifier"] == {"system": "urn:normalcy:subject:1a2b3c4d", "value": "cd" * 32}
        assert patient["role"]["display"] == "Patient"

    @pytest.mark.parametrize(("status", "outcome"), [(401, "4"), (422, "4"), (503, "8")])
    def test_a_refusal_fails_with_its_codes(self, status: int, outcome: str) -> None:
        event = audit_event({**REFUSAL, "status": status})
        assert event["outcome"] == outcome
        assert event["outcomeDesc"] == f"status {status}: input-refused, out_of_range, missing"

    def test_an_aggregated_refusal_says_how_many_and_when(self) -> None:
        span = "812 times from 2026-11-15T10:29:59.130Z to 2026-11-15T10:30:00.123Z"
        assert audit_event(AGGREGATED)["outcomeDesc"] == f"status 401: no-credential; {span}"
        mixed = audit_event(MIXED)
        assert mixed["outcomeDesc"] == f"status 401, 503: several, no-credential; {span}"
        assert (mixed["outcome"], mixed["agent"][0]["who"]["identifier"]["value"]) == ("8", "several")

    def test_kinds_have_their_codes(self) -> None:
        def codes(**changes: Any) -> tuple[str, str, bool]:
            event = audit_event({**GENESIS, **changes})
            return event["type"]["code"], event["action"], event["agent"][0]["requestor"]

        assert codes() == ("110100", "E", False)
        assert codes(kind="read", principal="x", route="/v1/audit/records") == ("110101", "R", True)
        assert codes(kind="activation", principal="x") == ("110100", "U", True)
        assert codes(kind="key", principal="x") == ("110100", "U", True)
        assert codes(kind="score", principal="x", route="/v1/sites/{site}/score") == ("rest", "E", True)
        assert codes(kind="score", principal="x", route="normalcy score") == ("110100", "E", True)


def values(tree: object) -> Iterator[object]:
    yield tree
    branches = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for branch in branches:
        yield from values(branch)
