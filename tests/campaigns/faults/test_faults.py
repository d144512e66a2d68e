"""The fault campaign in small: a few cycles on each database, a broken build that it must notice, and its report."""

import asyncio
import json
import math
import random
import re
from collections.abc import Coroutine
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from sqlalchemy import text

from app.database.engine import Database
from app.settings import Settings
from tests.audit.both_verifiers import fill
from tests.audit.tampering import TAMPERS, delete_middle, edit_column, exchange_signatures
from tests.campaigns import servers
from tests.campaigns.faults import __main__ as faults_main
from tests.campaigns.faults import crowd, cycles, load, soak, tampering
from tests.campaigns.faults.__main__ import main, say
from tests.campaigns.faults.compare import Tally
from tests.campaigns.faults.cycles import as_finding, late, unmet
from tests.campaigns.faults.injection import kill_9
from tests.campaigns.faults.load import CLIENTS, NO_ANSWER, Outcome
from tests.campaigns.faults.load_held import judge
from tests.campaigns.faults.metamorphic import violations
from tests.campaigns.faults.mutants import MUTANTS
from tests.campaigns.faults.power_loss import read_trace
from tests.campaigns.faults.report import report
from tests.campaigns.faults.results import Result, as_result, read_all, read_reported, save
from tests.campaigns.faults.row import Context, Finding
from tests.campaigns.faults.rows import ROWS
from tests.campaigns.faults.soak import Sample
from tests.campaigns.service_process import Verdict
from tests.documents import ROOT

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


@dataclass(frozen=True)
class Listening:
    port: int


KILLS = next(row for row in ROWS if row.slug == "F1-kill-9")


def run(results: Path, *arguments: str) -> int:
    return main([*arguments, "--results", str(results), "--seed", "7"])


@pytest.mark.postgres
@pytest.mark.req("REQ-072")
def test_kill_9_under_load_loses_no_acknowledged_score(tmp_path: Path) -> None:
    run(tmp_path, "--only", "F1", "--cycles", "1")
    found = read_all(tmp_path)
    assert found.keys() == {("F1-kill-9", "SQLite"), ("F1-kill-9", "PostgreSQL")}
    for result in found.values():
        assert result.unmet == []
        assert (result.cycles, result.figures["chains"], result.figures["broken"]) == (1, 2, 0)
        assert int(result.figures["acknowledged"]) > 20


@pytest.mark.postgres
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the network drops its own connections
def test_a_silent_network_loses_no_acknowledged_score(tmp_path: Path) -> None:
    run(tmp_path, "--only", "F3-black-hole", "--cycles", "1")
    [found] = read_all(tmp_path).values()
    assert found.unmet == []
    assert int(found.figures["refused (503)"]) > 0


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("row", "cycles"),
    [
        ("F5", 20),
        ("F7", 200),
        ("F8-tampering-by-the-owner", len(TAMPERS)),
        ("F8-tampering-by-the-service", len(TAMPERS)),
        ("F8-clean-runs", 3),
        ("F13", 40),
    ],
)
def test_a_short_run_of_a_row_on_both_databases(tmp_path: Path, row: str, cycles: int) -> None:
    run(tmp_path, "--only", row, "--cycles", str(cycles))
    found = read_all(tmp_path)
    assert {database for _, database in found} == {"SQLite", "PostgreSQL"}
    for result in found.values():  # not `late`: the machine may be busy
        assert (result.unmet, result.cycles >= cycles) == ([], True)


def test_a_database_that_lets_the_service_change_rows_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill_and_unguard(settings: Settings, database: Database, pick: random.Random) -> None:
        await fill(settings, database, pick)
        async with database.writing() as connection:
            for table in ("audit_records", "audit_checkpoints"):
                await connection.execute(text(f"DROP TRIGGER {table}_no_update"))

    monkeypatch.setattr(tampering, "fill", fill_and_unguard)
    monkeypatch.setattr(tampering, "TAMPERS", (edit_column, delete_middle, exchange_signatures))
    assert run(tmp_path, "--only", "F8-tampering-by-the-service", "--cycles", "3", "--database", "SQLite") == 1
    [found] = read_all(tmp_path).values()
    assert found.figures["refused by the database"] == 1
    assert [words.partition(":")[0] for words in found.unmet] == [
        "edit_column, cycle 0",
        "exchange_signatures, cycle 2",
    ]


@pytest.mark.parametrize("row", ["F10-overload-without-the-scope", "F10-overload-of-unknown-addresses"])
def test_every_request_of_a_short_flood_is_refused(tmp_path: Path, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"QUIET_SECONDS": 1.0, "ATTACK_SECONDS": 2.0, "HEAD_START_SECONDS": 0.5}.items():
        monkeypatch.setattr(crowd, name, value)
    monkeypatch.setattr(crowd, "OVERLOAD_CONNECTIONS", 20)
    run(tmp_path, "--only", row, "--cycles", "1", "--database", "SQLite")
    [found] = read_all(tmp_path).values()
    assert (found.unmet, found.cycles) == ([], 1)
    assert found.figures["attack: errors"] == found.figures["attack: answers"] != "0"
    assert found.figures["attack: answers a second"] != "0"


def test_a_build_that_acknowledges_before_the_commit_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mutant = ("--only", "F4-file-size-limit", "--cycles", "1", "--mutant", "acknowledge_before_commit")
    assert run(tmp_path, *mutant) == 1
    printed = capsys.readouterr().out
    assert "NOT HELD: missing" in printed
    assert "broken 0" in printed  # the chain alone does not show it
    assert read_all(tmp_path) == {}


def test_no_sign_of_a_broken_build_is_printed_by_another_one(capsys: pytest.CaptureFixture[str]) -> None:
    for result in read_reported(ROOT / "docs").values():
        if result.held and not result.row.startswith("F18"):
            say(result)
    printed = capsys.readouterr().out + "1 failed, 2 passed"
    assert [name for name, mutant in MUTANTS.items() if re.search(mutant.sign, printed)] == []


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


GOOD = Tally(cycles=3, acknowledged=900, returns=[1.0, 1.0, 1.0])
INTACT = Verdict(0, 3, 0)


@pytest.mark.parametrize(
    ("tally", "verdict", "named"),
    [
        (replace(GOOD, missing=1), INTACT, "missing 1"),
        (replace(GOOD, duplicated=2), INTACT, "duplicated 2"),
        (replace(GOOD, different=1), INTACT, "different 1"),
        (replace(GOOD, unexpected=1), INTACT, "other status 1"),
        (replace(GOOD, unanswered=1), INTACT, "unanswered 1"),
        (replace(GOOD, slowest_refusal=2.6), INTACT, "slowest refusal 2.60 s"),
        (replace(GOOD, slowest_answer=3.1), INTACT, "slowest answer 3.10 s"),
        (replace(GOOD, returns=[1.0, 1.0, 5.1]), INTACT, "slowest return 5.10 s"),
        (replace(GOOD, returns=[1.0]), INTACT, "no score after the fault 2"),
        (replace(GOOD, acknowledged=0), INTACT, "nothing acknowledged"),
        (replace(GOOD, unanswered=1, hung=1), INTACT, "unanswered 1; nothing in 30 s 1"),
        (GOOD, Verdict(1, 3, 1), "broken chains 1; exit of verify 1"),
        (GOOD, Verdict(0, 0, 0), "verify saw no chain"),
    ],
)
def test_an_unmet_requirement_is_named(tally: Tally, verdict: Verdict, named: str) -> None:
    assert "; ".join(unmet(tally, verdict) + late(tally)) == named
    assert f"**no**: {named} |" in "\n".join(reported(as_finding(tally, verdict)))


def test_a_kill_leaves_only_the_requests_in_flight_unanswered() -> None:
    in_flight = 3 * CLIENTS
    assert unmet(replace(GOOD, unanswered=in_flight), INTACT, drops_connections=True) == []
    more = replace(GOOD, unanswered=in_flight + 1)
    assert unmet(more, INTACT, drops_connections=True) == [f"unanswered {in_flight + 1}"]
    hung = replace(GOOD, unanswered=1, hung=1)
    assert unmet(hung, INTACT, drops_connections=True) == ["nothing in 30 s 1"]


@pytest.mark.anyio
async def test_a_request_that_hangs_is_not_one_whose_connection_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "TIMEOUT_SECONDS", 0.2)
    connections: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, writer: connections.append(writer), "127.0.0.1", 0) as silent:
        async with load.Load(Listening(silent.sockets[0].getsockname()[1]), "a", 1) as clients:
            await asyncio.sleep(0.1)
        for connection in connections:
            connection.close()
    [outcome] = clients.outcomes
    assert outcome.status == load.HANGS
    found = tally_of([outcome])
    assert (found.unanswered, found.hung) == (1, 1)


def test_a_fault_that_refuses_nothing_has_not_happened() -> None:
    assert unmet(GOOD, INTACT, must_refuse=True) == ["the fault had no effect"]
    assert unmet(replace(GOOD, refused=1), INTACT, must_refuse=True) == []


@pytest.mark.parametrize("slug", [row.slug for row in ROWS if row.number in ("F2", "F3")])
def test_the_rows_whose_fault_must_refuse_say_so(slug: str) -> None:
    row = next(row for row in ROWS if row.slug == slug)
    assert isinstance(row.run, partial)
    assert row.run.keywords["must_refuse"]


def a_result(finding: Finding) -> Result:
    return as_result(KILLS, "SQLite", 7, finding, AT)


def reported(finding: Finding) -> list[str]:
    return report({("F1-kill-9", "SQLite"): a_result(finding)}, ["header"])


def test_the_report_is_made_from_the_results_beside_it() -> None:
    """`python -m tests.campaigns.faults --render` writes it again, after a change of its texts too."""
    written = (ROOT / "docs" / "faults.md").read_text()
    header = takewhile(bool, written.splitlines()[2:])  # the date, the commit and the machine of that run
    assert "\n".join(report(read_reported(ROOT / "docs"), list(header))).rstrip() == written.rstrip()


def test_a_build_that_was_not_run_yet_has_no_commit() -> None:
    lines = report({}, ["header"])
    assert "| what is broken | command that must fail | seen | commit |" in lines
    assert sum(line.endswith("| not run yet | – |") for line in lines) == len(MUTANTS)


def test_a_held_row_says_how_many_cycles_it_ran() -> None:
    tally = replace(GOOD, unanswered=24, returns=[1.0, 2.0, 4.0])
    lines = reported(as_finding(tally, INTACT, drops_connections=True))
    assert "| F1-kill-9 | SQLite | 3 | 300 cycles | 7 | yes, in fewer than asked for |" in lines
    assert "| F1-kill-9 | PostgreSQL | not yet | 300 cycles | – | – |" in lines
    assert any("| 2.00 s | 4.00 s |" in line for line in lines)


def test_a_row_that_has_a_result_is_not_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = a_result(Finding(300, {"missing": 0}))
    save(tmp_path, result)
    assert run(tmp_path, "--only", "F1", "--database", "SQLite") == 0
    assert "has a result" in capsys.readouterr().err
    assert read_all(tmp_path) == {("F1-kill-9", "SQLite"): result}


def test_a_row_that_did_not_hold_is_no_success_the_next_time(tmp_path: Path) -> None:
    save(tmp_path, a_result(Finding(300, {"missing": 1}, ["missing 1"])))
    assert run(tmp_path, "--only", "F1", "--database", "SQLite") == 1


def test_a_row_without_this_database_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(tmp_path, "--only", "F2", "--database", "SQLite")
    assert "none of these rows runs on SQLite" in capsys.readouterr().err


@pytest.mark.parametrize("seed", [7, 8])
@pytest.mark.anyio
async def test_the_seed_decides_what_the_clients_send(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles, "started", lambda *_, **__: nullcontext(SimpleNamespace(service=None)))
    monkeypatch.setattr(cycles, "Load", Mock(side_effect=InterruptedError))
    with pytest.raises(InterruptedError):
        await cycles.run_cycles(Context("F1-kill-9", "SQLite", seed, 1, tmp_path), kill_9)
    assert cycles.Load.call_args.args[1] == f"{seed}-0"  # type: ignore[attr-defined]


def failing(context: Context) -> Coroutine[Any, Any, Finding]:
    raise OSError("the disk | is\ngone")


def test_a_row_that_fails_has_a_result_and_the_next_one_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [replace(KILLS, name=name, run=failing, databases=("SQLite",)) for name in ("kill -9", "kill -15")]
    monkeypatch.setattr(faults_main, "ROWS", rows)
    save(tmp_path, a_result(Finding(300, {"missing": 0})))
    assert run(tmp_path, "--again") == 1
    found = read_all(tmp_path)
    why = ["the row failed: OSError: the disk | is gone"]
    assert {row: result.unmet for (row, _), result in found.items()} == {"F1-kill-9": why, "F1-kill-15": why}
    assert why[0] in capsys.readouterr().out
    assert r"**no**: the row failed: OSError: the disk \| is gone |" in "\n".join(report(found, ["header"], rows))


def test_the_report_is_written_from_the_results_alone(tmp_path: Path) -> None:
    save(tmp_path, a_result(Finding(300, {"missing": 0, "slowest return": "2.00 s"})))
    assert main(["--render", "--results", str(tmp_path), "--docs", str(tmp_path / "..")]) == 0
    assert "| SQLite | 300 | 0 | 2.00 s |" in (tmp_path / "../faults.md").read_text()
    [found] = msgspec.json.decode((tmp_path / "../faults.json").read_bytes())
    assert found["cycles"] == 300


WAL, CLIENT = "/data/normalcy.sqlite3-wal", "socket:[1]"
WRITTEN, SYNCED = f'7 pwrite64(9<{WAL}>, "...p-1-1...", 4096, 0) = 4096', f"7 fdatasync(9<{WAL}>) = 0"
SENT = f'8 write(5<{CLIENT}>, "HTTP/1.1 200 OK\\r\\nx-request-id: p-1-1\\r\\n", 90) = 90'
FAILED, FAILED_LATER = (
    f"7 {call}) = -1 EIO (Input/output error)" for call in (f"fdatasync(9<{WAL}>", "<... fdatasync resumed>")
)
BEGUN, DONE = f"7 fdatasync(9<{WAL}> <unfinished ...>", "7 <... fdatasync resumed>) = 0"


@pytest.mark.parametrize(
    ("lines", "too_early"),
    [
        ([WRITTEN, SYNCED, SENT], []),
        ([WRITTEN, BEGUN, DONE, SENT], []),
        ([WRITTEN, BEGUN, SENT, DONE], ["p-1-1"]),
        ([WRITTEN, SENT, SYNCED], ["p-1-1"]),
        ([SYNCED, WRITTEN, SENT], ["p-1-1"]),
        ([BEGUN, WRITTEN.replace("7 ", "6 ", 1), DONE, SENT], ["p-1-1"]),  # it began before the row was written
        ([WRITTEN, SYNCED.replace("-wal", "-shm"), SENT], ["p-1-1"]),
        ([SENT], ["p-1-1"]),
        ([WRITTEN, FAILED, SENT], ["p-1-1"]),
        ([WRITTEN, FAILED, SYNCED, SENT], ["p-1-1"]),  # a failed one may have dropped what it should have written
        ([WRITTEN, BEGUN, FAILED_LATER, SENT], ["p-1-1"]),
    ],
)
def test_a_score_must_be_on_the_disk_before_it_leaves(lines: list[str], too_early: list[str]) -> None:
    found = read_trace(lines, re.compile(r"p-\d+-\d+"))
    assert (found.too_early, list(found.acknowledged)) == (too_early, ["p-1-1"])


def a_sample(minute: int, tasks: int | None) -> Sample:
    return Sample(minute / 60, 150.0, 40, 7, tasks, 4)


def test_tasks_that_were_not_counted_hide_no_leak() -> None:
    steady = {"served": 100.0, "refused": 0.0, "failed": 0.0, "p99": 0.1}

    def found(*tasks: int | None) -> list[str]:
        return soak.judge([a_sample(minute, count) for minute, count in enumerate(tasks)], steady, INTACT, 5).unmet

    assert found(7, 8, 7, 8) == []
    assert found(7, 8, 50, None) == ["tasks grew from 7 to 50"]
    assert found(None, None, None) == ["tasks never counted"]


def a_score(expected: float, percentile: float, **hdi: float) -> dict[str, Any]:
    exceedance = [{"probability": percentile / 100, "probability_below": 1 - percentile / 100}]
    at = {"low": 40.0, "median": 41.0, "high": 42.0}
    return {
        "score": {"expected_ns": expected, "hdi": {"low": 0.0, "high": 1.0} | hdi, "exceedance": exceedance},
        "score_with_measurement_error": None,
        "reference": {"percentile": percentile, "interval_mm": hdi | at, "diameter_at_threshold_mm": [at]},
        "reliability": {"context_hdi_width_percentile": 50.0},
    }


def test_scores_without_a_property_are_noticed() -> None:
    assert violations([a_score(1.0, 80.0), a_score(1.5, 90.0)]) == {}
    assert violations([a_score(1.5, 80.0), a_score(1.0, 90.0)]) == {"not monotone": 1}
    assert violations([a_score(1.0, 90.0), a_score(1.5, 80.0)]) == {"not monotone": 1}
    assert violations([a_score(1.0, 80.0, low=2.0)]) == {"not in order": 1}
    assert violations([a_score(math.nan, 80.0)]) == {"not finite": 1}
    assert violations([a_score(1.0, 101.0)]) == {"not a probability": 1}


def a_round(rate: float, p99_ms: float) -> dict[str, servers.Load]:
    measured = {"audit": (rate, p99_ms), "audit off": (1000.0, 10.0), "one insert": (400.0, 90.0)}
    return {name: servers.Load(each, 1.0, 1.0, p99) for name, (each, p99) in measured.items()}


def test_the_load_with_the_audit_is_compared_within_the_rounds() -> None:
    assert judge([a_round(800.0, 30.0)]).late == []
    assert judge([a_round(650.0, 30.0)]).late == ["65% of audit off"]
    assert judge([a_round(500.0, 36.0)]).late == ["50% of audit off", "125% of one insert", "added p99 26.0 ms"]
    assert judge([a_round(800.0, 30.0), a_round(100.0, 30.0), a_round(900.0, 30.0)]).late == []


@pytest.mark.parametrize(
    ("words", "slugs"),
    [
        (["F1"], ["F1-kill-9"]),
        (["F10-overload"], ["F10-overload"]),
        (["F4", "F5-power-loss"], ["F4-file-size-limit", "F4-full-disk", "F5-power-loss"]),
        (["F10-over"], []),
    ],
)
def test_a_full_name_chooses_one_row_and_a_number_all_of_its_rows(words: list[str], slugs: list[str]) -> None:
    assert [row.slug for row in ROWS if row.is_chosen_by(words)] == slugs


def test_the_names_of_the_rows_are_different() -> None:
    assert len({row.slug for row in ROWS}) == len(ROWS)
