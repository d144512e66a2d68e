"""The fault campaign in small: a few cycles on each database, and a faulty build that it must detect."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.campaigns import fault_injection as faults
from tests.campaigns.faults_compare import Tally
from tests.campaigns.faults_load import NO_ANSWER, Outcome
from tests.campaigns.faults_report import holds, report, rule_of_three
from tests.campaigns.faults_run import Database, Part, Result, run_part
from tests.campaigns.service_process import MUTANT, Verdict
from tests.postgres import PostgresServer

SEED = 7
REQUEST = {"age_years": 55.0, "diameter_mm": 41.0}
MODEL = {"site": "SoV", "version": "1.0.0", "sha256": "ab"}
SERVICE = {"version": "0.1.0"}
AT = "2026-11-16T11:10:35.475Z"
COMPARED: dict[str, Any] = {
    "score": {"expected_ns": 1.9}, "score_with_measurement_error": None, "reference": {}, "comparators": {},
    "reliability": {"verdict": "ok"}, "advisories": [], "summary": {"clinician": "one sentence"},
}  # fmt: skip
OUTPUT = COMPARED | {"service": SERVICE}
RECORD: dict[str, Any] = {"request_id": "a", "at": AT, "input": REQUEST, "model": MODEL, "output": OUTPUT}
ANSWER = COMPARED | {"request_id": "a", "provenance": {"model": MODEL, "service": SERVICE, "computed_at": AT}}
SERVED = Outcome("a", REQUEST, 0.0, 0.25, 200, json.dumps(ANSWER).encode())
REFUSED = replace(SERVED, request_id="b", status=503, seconds=2.0)
CUT_OFF = replace(SERVED, request_id="c", status=NO_ANSWER)
PART = Part("kill -9", "SQLite", 1, faults.kill_9)


@pytest.mark.parametrize("database", ["SQLite", "PostgreSQL"])
def test_kill_9_under_load_loses_no_acknowledged_score(database: Database, server: PostgresServer) -> None:
    part = Part("kill -9", database, 2, faults.kill_9, drops_connections=True)
    found = asyncio.run(run_part(part, SEED, server))
    tally = found.tally
    assert (tally.missing, tally.duplicated, tally.different, tally.unexpected) == (0, 0, 0, 0)
    assert found.verdict == Verdict(code=0, chains=3, broken=0)
    assert tally.cycles == 2
    assert tally.acknowledged > 20


def test_a_build_that_acknowledges_before_the_commit_is_noticed(server: PostgresServer) -> None:
    part = Part("no room", "SQLite", 1, faults.disk_fills, program=MUTANT)
    found = asyncio.run(run_part(part, SEED, server))
    assert found.tally.missing > 0
    assert found.verdict.code == 0  # the chain alone does not show it
    assert not holds(found)


def tally_of(outcomes: list[Outcome], *records: dict[str, Any]) -> Tally:
    tally, by_id = Tally(), {record["request_id"]: [r for r in records if r == record] for record in records}
    tally.add(outcomes, by_id)
    return tally


def test_what_a_client_got_is_compared_with_the_record() -> None:
    good = tally_of([SERVED, REFUSED, CUT_OFF], RECORD, RECORD | {"request_id": "c"})
    assert (good.acknowledged, good.missing, good.duplicated, good.different) == (1, 0, 0, 0)
    assert (good.refused, good.unanswered, good.unacknowledged) == (1, 1, 1)
    assert (good.slowest_refusal, good.slowest_answer) == (2.0, 2.0)
    assert tally_of([SERVED]).missing == 1
    assert tally_of([SERVED], RECORD, RECORD).duplicated == 1
    assert tally_of([replace(SERVED, status=500)]).unexpected == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"input": REQUEST | {"diameter_mm": 42.0}},
        {"output": OUTPUT | {"score": {"expected_ns": 1.8}}},
        {"output": OUTPUT | {"service": {"version": "0.2.0"}}},
        {"model": MODEL | {"version": "1.1.0"}},
        {"at": "2026-11-16T11:10:36.475Z"},
    ],
)
def test_a_record_that_says_something_else_is_noticed(changed: dict[str, Any]) -> None:
    assert tally_of([SERVED], RECORD | changed).different == 1


GOOD = Tally(cycles=50, acknowledged=900)
INTACT = Verdict(0, 3, 0)


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (Result(PART, replace(GOOD, missing=1), INTACT), "missing 1"),
        (Result(PART, replace(GOOD, duplicated=2), INTACT), "duplicated 2"),
        (Result(PART, replace(GOOD, different=1), INTACT), "different 1"),
        (Result(PART, replace(GOOD, unexpected=1), INTACT), "other status 1"),
        (Result(PART, replace(GOOD, unanswered=1), INTACT), "unanswered 1"),
        (Result(PART, replace(GOOD, slowest_refusal=2.6), INTACT), "slowest refusal 2.60 s"),
        (Result(PART, replace(GOOD, slowest_answer=3.1), INTACT), "slowest answer 3.10 s"),
        (Result(PART, replace(GOOD, returns=[1.0, 5.1]), INTACT), "slowest return 5.10 s"),
        (Result(PART, replace(GOOD, acknowledged=0), INTACT), "nothing acknowledged"),
        (Result(PART, GOOD, Verdict(1, 3, 1)), "broken chains 1, exit of verify 1"),
    ],
)
def test_an_unmet_requirement_is_named(found: Result, named: str) -> None:
    text = "\n".join(report([Result(PART, GOOD, INTACT), found], [], ["header"]))
    assert f"Not held: kill -9 on SQLite: {named}." in " ".join(text.split())
    assert not holds(found)


def test_a_held_requirement_is_reported_with_its_bound() -> None:
    tally = replace(GOOD, unanswered=24, returns=[1.0, 2.0, 4.0])
    text = "\n".join(report([Result(replace(PART, drops_connections=True), tally, INTACT)], [], ["header"]))
    assert "All of it held." in text
    assert "| 2.00 s | 4.00 s | ≤ 6.0% |" in text
    assert rule_of_three(2) == 1.0
