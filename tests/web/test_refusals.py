"""What is refused, with which status, always as problem+json, and never repeating what was sent."""

import http.client
import json
from collections.abc import Iterator

import httpx
import pytest

from app.schemas.problem import Problem
from app.web.middleware import MAX_HEADER_BYTES
from tests.web.serving import READING, SCORE, Running

CANARY = "canary-7f3a"
VALID = json.dumps(READING).encode()
HOSTILE = {
    "empty": b"",
    "NaN": b'{"age_years": NaN}',
    "Infinity": b'{"age_years": Infinity}',
    "overflow": VALID.replace(b"41", b"1e400"),
    "4000 digits": VALID.replace(b"41", b"4" * 4000),
    "duplicate key": VALID[:-1] + b', "age_years": 5}',
    "lone surrogate": VALID[:-1] + b', "subject": "\\ud800"}',
    "BOM": b"\xef\xbb\xbf" + VALID,
    "UTF-16": VALID.decode().encode("utf-16"),
    "Latin-1": '{"subject": "é"}'.encode("latin-1"),
    "too deep": b"[" * 5000 + b"]" * 5000,
    "cut": VALID[:-1],
    "two values": VALID + b"{}",
    "canary": b'{"' + CANARY.encode() + b'": ' + CANARY.encode() + b"}",
}
UNACCEPTABLE = {
    "array": [],
    "text": CANARY,
    "nothing": {},
    "unknown field": {**READING, CANARY: 1},
    "number in quotes": {**READING, "age_years": CANARY},
    "true as number": {**READING, "age_years": True},
    "null": {**READING, "measurement_sd_mm": None},
    "other sex": {**READING, "sex": CANARY},
    "out of range": {**READING, "diameter_mm": 271828.1828},
    "in cm": {**READING, "diameter_mm": 4.1},
    "long subject": {**READING, "subject": CANARY * 100},
}


def assert_problem(answer: httpx.Response, status: int) -> Problem:
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.headers["Cache-Control"] == "no-store"
    assert CANARY not in answer.text
    assert "271828" not in answer.text
    problem = Problem.model_validate(answer.json(), strict=True)
    assert (problem.status, problem.request_id) == (status, answer.headers["X-Request-ID"])
    return problem


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.req("REQ-006")
def test_bytes_that_have_not_one_meaning_are_400(shared: Running, name: str) -> None:
    answer = shared.client.post(SCORE, content=HOSTILE[name], headers={"Content-Type": "application/json"})
    assert assert_problem(answer, 400).errors


@pytest.mark.parametrize("name", UNACCEPTABLE)
def test_json_that_cannot_be_answered_is_422_with_every_fault(shared: Running, name: str) -> None:
    assert assert_problem(shared.score(UNACCEPTABLE[name]), 422).errors


@pytest.mark.req("REQ-004")
def test_all_faults_come_at_once_by_their_path(shared: Running) -> None:
    study = {**READING, "age_years": 200, "measurements": [{"site": "SoV", "diameter_mm": 1}, {"site": "SoV"}]}
    problem = assert_problem(shared.score(study, "/v1/studies/score"), 422)
    fields = {fault.field for fault in problem.errors}
    assert {"age_years", "measurements[0].diameter_mm", "measurements[1].diameter_mm", "measurements[1].site"} <= fields


@pytest.mark.req("REQ-054")
def test_a_site_or_version_that_is_not_there(shared: Running) -> None:
    assert_problem(shared.score(path=f"/v1/sites/{CANARY}/score"), 404)
    assert_problem(shared.score(path="/v1/sites/sov/score"), 404)
    assert_problem(shared.score({**READING, "model_version": "9.9.9"}), 404)
    assert_problem(shared.score({**READING, "model_version": CANARY}), 404)
    assert_problem(shared.client.get(f"/v1/models/SoV/{CANARY}"), 404)
    assert_problem(shared.client.get(f"/v1/models/{CANARY}/history"), 404)
    measurements = [{"site": CANARY, "diameter_mm": 30}, {"site": "AA", "diameter_mm": 30, "model_version": "9.9.9"}]
    man = {name: READING[name] for name in ("age_years", "sex", "height_cm", "weight_kg")}
    problem = assert_problem(shared.score({**man, "measurements": measurements}, "/v1/studies/score"), 422)
    assert {fault.code for fault in problem.errors} == {"unknown_site", "unknown_version"}


MAN = {name: READING[name] for name in ("age_years", "sex", "height_cm", "weight_kg")}
UNKNOWN_MODELS = [
    {"site": "SoV", "diameter_mm": 41},
    {"site": "SoV", "diameter_mm": 41, "model_version": "7.7.7"},
    {"site": CANARY, "diameter_mm": 200, "model_version": ""},
    {"site": "AA", "diameter_mm": 30, "model_version": CANARY},
]
OF_MODELS = {
    ("unknown_version", "measurements[1].model_version"),
    ("unknown_site", "measurements[2].site"),
    ("unknown_version", "measurements[3].model_version"),
}


@pytest.mark.req("REQ-004")
def test_a_study_lists_unknown_sites_and_versions_with_every_other_error(shared: Running) -> None:
    study = {**MAN, "age_years": 200, CANARY: 1, "measurements": UNKNOWN_MODELS}
    problem = assert_problem(shared.score(study, "/v1/studies/score"), 422)
    assert sorted((fault.code, fault.field) for fault in problem.errors) == sorted(
        OF_MODELS
        | {
            ("out_of_range", "age_years"),
            ("unknown_field", "(unknown)"),
            ("duplicate_site", "measurements[1].site"),
            ("out_of_range", "measurements[2].diameter_mm"),
            ("too_short", "measurements[2].model_version"),
        }
    )


@pytest.mark.parametrize(
    "measurements", [None, CANARY, [None], [[]], [{"site": None}], [{"site": CANARY * 9}], [{}] * 9]
)
def test_what_is_no_measurement_names_no_model(shared: Running, measurements: object) -> None:
    problem = assert_problem(shared.score({**MAN, "measurements": measurements}, "/v1/studies/score"), 422)
    assert not {"unknown_site", "unknown_version"} & {fault.code for fault in problem.errors}


@pytest.mark.parametrize("path", [f"/{CANARY}", "/v1/sites/SoV/score/", "/docs/", f"/assets/{CANARY}", "/v1/../etc"])
def test_an_unknown_address_is_a_problem_and_never_a_redirect(shared: Running, path: str) -> None:
    assert_problem(shared.client.get(path, params={"q": CANARY}), 404)


def test_a_wrong_method_names_the_right_ones(shared: Running) -> None:
    answer = shared.client.get(SCORE)
    assert_problem(answer, 405)
    assert answer.headers["Allow"] == "POST"
    assert_problem(shared.client.request("DELETE", "/health/live"), 405)


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/json5"},
        {"Content-Type": ""},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
def test_another_media_type_is_415(shared: Running, headers: dict[str, str]) -> None:
    assert_problem(shared.client.post(SCORE, content=VALID, headers=headers), 415)


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"']
)
def test_json_may_say_that_it_is_utf_8(shared: Running, kind: str) -> None:
    assert shared.client.post(SCORE, content=VALID, headers={"Content-Type": kind}).status_code == 200


@pytest.mark.req("REQ-100")
def test_a_body_that_is_too_large_is_413_announced_or_not(shared: Running) -> None:
    json_type = {"Content-Type": "application/json"}
    padded = VALID[:-1] + b" " * (16 * 1024 - len(VALID)) + b"}"
    assert shared.client.post(SCORE, content=padded, headers=json_type).status_code == 200

    def streamed() -> Iterator[bytes]:
        yield padded
        yield b" " * 5_000_000

    assert_problem(shared.client.post(SCORE, content=padded + b" ", headers=json_type), 413)
    assert_problem(shared.client.post(SCORE, content=streamed(), headers=json_type), 413)
    assert_problem(shared.client.post(SCORE, content=b" " * 5_000_000, headers=json_type), 413)
    assert shared.score().status_code == 200


@pytest.mark.req("REQ-101")
def test_headers_that_are_too_large_or_too_many_are_431(shared: Running) -> None:
    assert_problem(shared.score(headers={"X-Large": CANARY * 2000}), 431)
    assert_problem(shared.score(headers={f"X-{k}": "1" for k in range(120)}), 431)
    assert shared.score(headers={"X-Large": "a" * 12_000}).status_code == 200


def test_the_connection_lives_on_after_a_refusal(shared: Running) -> None:
    host, port = shared.url.removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port))
    for body, status in ((b"{", 400), (VALID, 200), (b" " * 100_000, 413), (VALID, 200)):
        connection.request("POST", SCORE, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_an_address_that_is_too_long_is_431(shared: Running) -> None:
    answer = shared.client.get("/v1/sites", params={"x": "y" * MAX_HEADER_BYTES})
    assert answer.status_code == 431
