import asyncio
import math
import uuid
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from app.formats.response import body, encode
from app.inference.scoring import score
from app.schemas.answers import ScoreResponse, StudyResponse
from app.schemas.requests import ScoreRequest
from tests.web.serving import MAN, READING, SCORE, STATED, Running

NEWBORN = {"age_years": 0.02, "sex": "female", "height_cm": 51, "weight_kg": 3.5, "diameter_mm": 9.5}
STUDY = {
    **MAN,
    "measurements": [{"site": "AA", "diameter_mm": 38.5}, {"site": "SoV", "diameter_mm": 41, "convention": STATED}],
}


SCORE_RESPONSE = TypeAdapter(ScoreResponse)
STUDY_RESPONSE = TypeAdapter(StudyResponse)


def close(one: Any, other: Any) -> bool:
    """Equal, numbers to 1e-8."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-8, abs_tol=1e-12)
    return bool(one == other)


def test_an_answer_has_exactly_the_fields_of_the_contract(shared: Running) -> None:
    response = shared.score()
    SCORE_RESPONSE.validate_json(response.content, strict=True)
    answer = response.json()
    fields = ["request_id", "site", "input", "score", "score_with_measurement_error", "reference", "comparators"]
    assert list(answer) == [*fields, "reliability", "advisories", "summary", "provenance"]
    assert answer["provenance"]["model"]["sha256"] == shared.runtime.loaded_models.current["SoV"].ref.sha256
    assert answer["provenance"]["service"] == {
        "version": "0.1.0",
        "commit": shared.runtime.service_info.commit,
        "backend": "numpy",
        "device": "CPU",
    }


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"diameter_mm": 22.5},
        {"thresholds": [2, -1.5, 3], "hdi_probability": 0.8},
        {"measurement_sd_mm": 1.5},
        {"include_unreliable": True, "age_years": 2, "height_cm": 85, "weight_kg": 12, "diameter_mm": 15},
    ],
)
def test_the_numbers_are_those_of_the_score_service(shared: Running, more: dict[str, Any]) -> None:
    asked = READING | more
    answer = shared.score(asked).json()
    [alone] = score(shared.runtime.loaded_models.current["SoV"], [ScoreRequest.model_validate(asked).to_query()])
    assert close({name: answer[name] for name in body(alone)}, body(alone))
    assert (answer["score_with_measurement_error"] is not None) == ("measurement_sd_mm" in more)


@pytest.mark.req("REQ-031")
def test_a_score_is_withheld_outside_the_training_range_unless_asked_for(shared: Running) -> None:
    withheld = shared.score(NEWBORN).json()
    SCORE_RESPONSE.validate_json(encode(withheld), strict=True)
    assert [withheld[name] for name in ("score", "reference", "comparators")] == [None, None, None]
    assert withheld["reliability"]["verdict"] == "not_reliable"
    assert "no score is given" in withheld["summary"]["clinician"]
    given = shared.score({**NEWBORN, "include_unreliable": True}).json()
    SCORE_RESPONSE.validate_json(encode(given), strict=True)
    assert given["score"] is not None
    assert "not reliable" in given["summary"]["clinician"].split(":")[0]


@pytest.mark.req("REQ-023")
def test_a_study_answers_as_its_single_readings_do(shared: Running) -> None:
    answer = shared.score(STUDY, "/v1/studies/score").json()
    STUDY_RESPONSE.validate_json(encode(answer), strict=True)
    assert list(answer) == ["request_id", "input", "results"]
    assert [result["site"] for result in answer["results"]] == ["AA", "SoV"]
    for result, measurement in zip(answer["results"], STUDY["measurements"], strict=True):
        asked = MAN | {name: value for name, value in measurement.items() if name != "site"}
        alone = shared.score(asked, f"/v1/sites/{measurement['site']}/score").json()
        for name in set(result) - {"provenance"}:
            assert close(result[name], alone[name])
        assert result["provenance"]["model"] == alone["provenance"]["model"]


@pytest.mark.req("REQ-029")
def test_readings_scored_together_are_those_scored_alone(shared: Running) -> None:
    bodies = [READING | {"diameter_mm": 25 + k / 3, "age_years": 20 + k / 2, "hdi_probability": 0.9} for k in range(60)]
    alone = [shared.score(body).json() for body in bodies]

    async def at_once() -> list[Any]:
        async with httpx.AsyncClient(base_url=shared.url, timeout=30) as client:
            answers = await asyncio.gather(*(client.post(SCORE, json=body) for body in bodies))
        return [answer.json() for answer in answers]

    for together, single in zip(asyncio.run(at_once()), alone, strict=True):
        for name in ("score", "reference", "comparators", "reliability", "input"):
            assert close(together[name], single[name])


@pytest.mark.req("REQ-029")
def test_concurrent_patients_each_get_their_own_answer(shared: Running) -> None:
    """By request id, on both sites: response and record are about the patient of the request."""
    sent = {f"patient-{k}": ("SoV" if k % 2 else "AA", READING | {"age_years": 20 + k / 2}) for k in range(60)}

    async def at_once() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=shared.url, timeout=30) as client:
            requests = [
                client.post(f"/v1/sites/{site}/score", json=patient, headers={"X-Request-ID": name})
                for name, (site, patient) in sent.items()
            ]
            return await asyncio.gather(*requests)

    answers = [response.json() for response in asyncio.run(at_once())]
    assert [answer["request_id"] for answer in answers] == list(sent)
    recorded = {record.request_id: record for record in shared.records("score")}
    for answer, (name, (site, patient)) in zip(answers, sent.items(), strict=True):
        record = recorded[name]
        assert (answer["site"], answer["input"]["age_years"]) == (site, patient["age_years"])
        assert (record.model["site"], record.input["age_years"]) == (site, patient["age_years"])
        assert record.output["score"] == answer["score"]


@pytest.mark.req("REQ-054")
def test_an_exact_version_answers_with_that_version(shared: Running) -> None:
    older = shared.score(READING | {"model_version": "1.0.0"}).json()
    current = shared.score(READING | {"model_version": "current"}).json()
    assert older["provenance"]["model"]["version"] == "1.0.0"
    assert current["provenance"]["model"]["version"] == "1.1.0"
    assert older["score"]["expected_ns"] != current["score"]["expected_ns"]


@pytest.mark.parametrize(("given", "kept"), [("echo-7.a_B", True), ("a" * 64, True), ("a" * 65, False), ("a b", False)])
@pytest.mark.req("REQ-115")
def test_a_valid_request_id_comes_back_and_another_is_replaced(shared: Running, given: str, kept: bool) -> None:
    answer = shared.score(headers={"X-Request-ID": given})
    assert answer.headers["X-Request-ID"] == answer.json()["request_id"]
    assert (answer.headers["X-Request-ID"] == given) == kept
    if not kept:
        assert uuid.UUID(answer.headers["X-Request-ID"]).version == 7
