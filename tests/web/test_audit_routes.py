import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.audit.chain import genesis, link, new_chain
from app.audit.records import NewRecord, encode
from app.clock import month_of
from app.database.records import add_records
from app.schemas.lookups import AuditPage, Replay
from app.settings import Settings
from tests.cli.running import tamper
from tests.web.serving import MAN, READING, Running, bearer, create_key, serving

STUDY = {**MAN, "measurements": [{"site": "SoV", "diameter_mm": 41}, {"site": "AA", "diameter_mm": 38}]}


@pytest.fixture
def audited(settings: Settings, models_dir: Path) -> Any:
    key = create_key(settings, ["score", "model:read", "audit:read", "admin"])
    with serving(replace(settings, rate_per_second=0.0), models_dir) as running:
        running.client.headers.update(bearer(key))
        yield running


def test_a_record_is_found_by_its_request_id(audited: Running) -> None:
    answer = audited.score(STUDY, "/v1/studies/score").json()
    found = audited.client.get(f"/v1/audit/records/{answer['request_id']}").json()
    AuditPage.model_validate(found)
    assert [record["item"] for record in found["records"]] == [0, 1]
    assert found["records"][0]["output"]["score"] == answer["results"][0]["score"]
    assert found["records"][0]["chain"]["seq"] > 1
    [read] = audited.records("read")
    assert read.input == {"request_id": answer["request_id"], "item": None, "cursor": None}


def test_pages_run_through_time_without_gap_or_repeat(audited: Running) -> None:
    for number in range(230):
        audited.score(headers={"X-Request-ID": f"scored-{number:03d}"})
    audited.score(path="/v1/sites/AA/score", headers={"X-Request-ID": "scored"})
    seen: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = audited.client.get("/v1/audit/records", params={"cursor": cursor} if cursor else {}).json()
        AuditPage.model_validate(page)
        seen += page["records"]
        cursor = page["cursor"]
    scored = [record["request_id"] for record in seen if record["kind"] == "score"][:-1]
    assert scored == sorted(scored)
    assert len(set(scored)) == len(scored) == 230
    of_site = audited.client.get("/v1/audit/records", params={"site": "AA"}).json()["records"]
    assert [record["request_id"] for record in of_site] == ["scored"]
    at = of_site[0]["at"]
    assert audited.client.get("/v1/audit/records", params={"site": "AA", "to": at}).json()["records"] == []
    since = audited.client.get("/v1/audit/records", params={"site": "AA", "from": at}).json()["records"]
    assert [record["request_id"] for record in since] == ["scored"]


@pytest.mark.parametrize(
    ("query", "errors"),
    [
        ({"from": "soon"}, [("wrong_type", "from")]),
        ({"to": "9999-12-31T23:59:59-12:00"}, [("wrong_type", "to")]),
        ({"from": "soon", "to": "late"}, [("wrong_type", "from"), ("wrong_type", "to")]),
        ({"cursor": ""}, [("wrong_type", "cursor")]),
        ({"form": "2026-01-01"}, [("unknown_field", "(query)")]),
        ([("from", "2026"), ("from", "2026")], [("unknown_field", "(query)")]),
    ],
)
def test_an_invalid_query_is_refused_by_the_name_of_each_parameter(
    audited: Running, query: Any, errors: list[tuple[str, str]]
) -> None:
    answer = audited.client.get("/v1/audit/records", params=query)
    assert answer.status_code == 422
    assert [(error["code"], error["field"]) for error in answer.json()["errors"]] == errors
    assert all(error["message"].startswith(error["field"]) for error in answer.json()["errors"][:-1])


def test_strange_ids_and_sites_are_unknown_and_no_defect(audited: Running) -> None:
    for path in (
        "/v1/audit/records/%00",
        "/v1/audit/records/a%20b",
        "/v1/audit/records/%ff",
        "/v1/audit/records?site=%00",
    ):
        assert audited.client.get(path).status_code == 404, path


@pytest.mark.parametrize(
    "body",
    [
        READING,
        {**READING, "thresholds": [3, -1], "hdi_probability": 0.5, "measurement_sd_mm": 2, "subject": "x"},
        {"age_years": 0.1, "sex": "male", "height_cm": 55, "weight_kg": 4, "diameter_mm": 9},
        {**READING, "model_version": "1.0.0"},
    ],
)
@pytest.mark.req("REQ-081")
def test_a_replay_is_identical(audited: Running, body: dict[str, Any]) -> None:
    request_id = audited.score(body).json()["request_id"]
    audited.client.post("/v1/models/SoV/activate", json={"version": "1.0.0"})
    answer = audited.client.post(f"/v1/audit/records/{request_id}/replay").json()
    Replay.model_validate(answer, strict=True)
    assert answer["identical"] is True
    assert answer["max_relative_difference"] <= 1e-8
    assert answer["fields"] == []


def test_one_item_of_a_study_can_be_replayed(audited: Running) -> None:
    request_id = audited.score(STUDY, "/v1/studies/score").json()["request_id"]
    path = f"/v1/audit/records/{request_id}/replay"
    assert audited.client.post(path).json()["replayed"] == 2
    assert audited.client.post(path, params={"item": 1}).json()["replayed"] == 1
    assert audited.client.post(path, params={"item": 2}).status_code == 404


@pytest.mark.parametrize(
    ("stored_input", "stored_output"),
    [
        ({"diameter_mm": 41}, {}),
        ({**READING, "age_years": 500}, {}),
        ({**READING, "age_years": None}, {"score": None}),
        (READING, {"score": None}),
    ],
)
def test_a_record_that_is_no_answer_of_ours_is_not_identical_and_no_defect(
    audited: Running, stored_input: dict[str, Any], stored_output: dict[str, Any]
) -> None:
    ref = audited.runtime.loaded_models.current["SoV"].ref
    now = audited.runtime.clock()
    record = NewRecord("score", now, "nobody", request_id="odd", model=ref, input=stored_input, output=stored_output)
    audited.inside(audited.runtime.writer.write([record]))
    answer = audited.client.post("/v1/audit/records/odd/replay")
    assert (answer.status_code, answer.json()["identical"]) == (200, False)


def test_an_edited_record_is_marked_and_its_replay_is_not_identical(audited: Running) -> None:
    request_id = audited.score().json()["request_id"]
    [record] = audited.records("score")
    record.input["diameter_mm"] = 31
    payload = json.dumps(vars(record)).encode()
    tamper(audited.settings, "UPDATE audit_records SET payload = :new WHERE kind = 'score'", new=payload)
    found = audited.client.get(f"/v1/audit/records/{request_id}").json()
    AuditPage.model_validate(found)
    listed = audited.client.get("/v1/audit/records").json()
    for page in (found, listed):
        [shown] = [one for one in page["records"] if one["damaged"]]
        assert (shown["request_id"], shown["damage"]["kind"]) == (request_id, "MUTATED")
    assert {one["damaged"] for one in listed["records"]} == {True, False}
    answer = audited.client.post(f"/v1/audit/records/{request_id}/replay").json()
    Replay.model_validate(answer, strict=True)
    assert answer["identical"] is False
    assert "score.expected_ns" in answer["fields"]
    assert [(one["record_id"], one["kind"]) for one in answer["damaged"]] == [(record.record_id, "MUTATED")]


def test_a_damaged_record_that_names_a_version_that_never_was_is_no_defect(audited: Running) -> None:
    request_id = audited.score().json()["request_id"]
    [record] = audited.records("score")
    record.model["version"] = "9.9.9"
    payload = json.dumps(vars(record)).encode()
    tamper(audited.settings, "UPDATE audit_records SET payload = :new WHERE kind = 'score'", new=payload)
    answer = audited.client.post(f"/v1/audit/records/{request_id}/replay")
    assert (answer.status_code, answer.json()["identical"]) == (200, False)


@pytest.mark.parametrize("odd", [b"1e999", b"[" * 900 + b"]" * 900])
def test_a_record_that_nobody_can_read_stops_neither_lists_nor_replays(audited: Running, odd: bytes) -> None:
    """Added with hashes that fit, as whoever may add records could."""
    now = audited.runtime.clock()
    head = new_chain(month_of(now))
    ref = audited.runtime.loaded_models.current["SoV"].ref
    drafts = [
        NewRecord("score", now, "nobody", request_id="odd", model=ref, input={**READING, "mark": "here"}, output={})
    ]
    first = genesis(head, now, {"mark": "here"})
    both = [record._replace(payload=record.payload.replace(b'"here"', odd)) for record in (first, *map(encode, drafts))]

    async def add() -> None:
        async with audited.runtime.database.writing() as connection:
            await add_records(connection, link(head, both)[0])

    audited.inside(add())
    listed = audited.client.get("/v1/audit/records").json()
    AuditPage.model_validate(listed)
    assert [one["kind"] for one in listed["records"] if one["damaged"]] == ["genesis", "score"]
    assert audited.client.get("/v1/audit/records/odd").json()["records"][0]["damaged"] is True
    answer = audited.client.post("/v1/audit/records/odd/replay").json()
    assert (answer["identical"], [one["kind"] for one in answer["damaged"]]) == (False, ["MUTATED"])
