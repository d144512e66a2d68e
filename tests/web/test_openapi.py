"""The OpenAPI document says what the service does, and its examples run as they are."""

from typing import Any

import pytest

from app.web.app import ROUTES
from tests.web.serving import READING, Running

CARD = "/models/{site}/{version}"
PAGES = {
    "/",
    "/guide",
    "/guide/{page}",
    "/guide/pictures/{picture}",
    CARD,
    f"{CARD}/content",
    "/docs",
    "/redoc",
    "/openapi.json",
    "/assets/{name}",
    "/metrics",
}
SCORE, STUDY = "/v1/sites/{site}/score", "/v1/studies/score"


@pytest.fixture(scope="module")
def document(shared: Running) -> Any:
    return shared.client.get("/openapi.json").json()


def test_every_route_for_programs_is_described(document: Any) -> None:
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(route.method, route.path) for route in ROUTES if route.path not in PAGES}


def test_every_operation_describes_its_refusals_and_its_required_scope(document: Any) -> None:
    for route in ROUTES:
        if route.path in PAGES:
            continue
        operation = document["paths"][route.path][route.method.lower()]
        assert operation["summary"]
        assert operation["description"]
        assert operation["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
        refusals = {status: r for status, r in operation["responses"].items() if status >= "400"}
        for refusal in refusals.values():
            assert list(refusal["content"]) == ["application/problem+json"]
        scopes = list(route.required_scopes)
        assert operation["security"] == ([{"ApiKey": scopes}] if scopes else [])
        assert {"400", "431"} <= refusals.keys()
        assert ({"401", "403"} <= refusals.keys()) == bool(scopes)
    assert document["components"]["securitySchemes"]["ApiKey"]["scheme"] == "bearer"


def test_an_idempotency_key_is_described_where_it_holds_and_nowhere_else(document: Any) -> None:
    operations = {path: methods["post"] for path, methods in document["paths"].items() if "post" in methods}
    described = {
        path: next((one for one in operation["parameters"] if one.get("name") == "Idempotency-Key"), None)
        for path, operation in operations.items()
    }
    assert {path for path, header in described.items() if header} == {SCORE, STUDY}
    assert {path for path, operation in operations.items() if "409" in operation["responses"]} == {SCORE, STUDY}
    for header in filter(None, described.values()):
        assert (header["in"], header["required"]) == ("header", False)
        assert {name: header["schema"][name] for name in ("type", "minLength", "maxLength")} == {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
        }


def test_references_lead_somewhere(document: Any) -> None:
    known = {f"#/components/{kind}/{name}" for kind, named in document["components"].items() for name in named}

    def references(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(references, value.values()))
        return set().union(*map(references, value)) if isinstance(value, list) else set()

    assert references(document) <= known


def test_every_number_of_a_request_has_a_meaning_and_a_range(document: Any) -> None:
    properties = document["components"]["schemas"]["ScoreRequest"]["properties"]
    numbers = {name: one for name, one in properties.items() if one.get("type") == "number"}
    assert len(numbers) == 6
    for name, described in numbers.items():
        assert {"description", "minimum", "maximum"} <= described.keys(), name
    assert document["components"]["schemas"]["ScoreRequest"]["required"] == [
        "age_years",
        "sex",
        "height_cm",
        "weight_kg",
        "diameter_mm",
    ]


@pytest.mark.parametrize(("template", "path"), [(SCORE, "/v1/sites/SoV/score"), (STUDY, STUDY)])
def test_the_examples_run_as_they_are(shared: Running, document: Any, template: str, path: str) -> None:
    content = document["paths"][template]["post"]["requestBody"]["content"]["application/json"]
    for name, example in content["examples"].items():
        assert shared.score(example["value"], path).status_code == 200, name


def test_the_documented_answers_are_those_that_are_given(shared: Running, document: Any) -> None:
    for template, path in ((SCORE, "/v1/sites/SoV/score"), (STUDY, STUDY)):
        operation = document["paths"][template]["post"]
        shown = operation["responses"]["200"]["content"]["application/json"]["example"]
        first = next(iter(operation["requestBody"]["content"]["application/json"]["examples"].values()))
        given = shared.score(first["value"], path).json()
        assert _without_moment(shown) == _without_moment(given)


def test_the_document_follows_an_activation(running: Running) -> None:
    def documented() -> str:
        schema = running.client.get("/openapi.json").json()
        answer = schema["paths"][SCORE]["post"]["responses"]["200"]["content"]["application/json"]["example"]
        version: str = answer["provenance"]["model"]["version"]
        return version

    assert documented() == "1.1.0"
    loaded_models = running.runtime.loaded_models
    running.inside(_swap(running))
    assert loaded_models.current["SoV"].ref.version == "1.0.0"
    assert documented() == "1.0.0"
    assert running.score(READING).json()["provenance"]["model"]["version"] == "1.0.0"


async def _swap(running: Running) -> None:
    running.runtime.loaded_models.make_current(await running.runtime.loaded_models.fetch("SoV", "1.0.0"))


def _without_moment(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {name: _without_moment(v) for name, v in answer.items() if name not in ("request_id", "computed_at")}
    return [_without_moment(one) for one in answer] if isinstance(answer, list) else answer
