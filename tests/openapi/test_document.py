"""The OpenAPI document is valid, lint-clean and complete."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from openapi_spec_validator import validate
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from app.audit.chain import DamageKind
from app.domain.score import ReasonCode
from app.runtime import credentials
from app.schemas.answers import AdvisoryCode, NotApplicableCode
from app.schemas.lookups import DamageCode, WarningCode
from app.schemas.validation import CODES
from app.services import check_health
from tests.openapi.conftest import tool

OPERATION_IDS = {
    "scoreMeasurement",
    "scoreBatch",
    "scoreStudy",
    "drawChart",
    "drawReliabilityMap",
    "listSites",
    "getLimits",
    "listModels",
    "getModelCard",
    "getModelHistory",
    "activateModel",
    "findAuditRecords",
    "listAuditRecords",
    "replayAuditRecords",
    "runSelftest",
    "getLiveness",
    "getReadiness",
}


def operations(document: Any) -> Iterator[Any]:
    for methods in document["paths"].values():
        yield from methods.values()


def test_it_is_valid_openapi(document: Any) -> None:
    validate(document)


def test_an_invalid_document_is_noticed(document: Any) -> None:
    """A space in the name of a security scheme made an earlier version invalid."""
    broken = json.loads(json.dumps(document))
    schemes = broken["components"]["securitySchemes"]
    schemes["API key"] = schemes.pop("ApiKey")
    with pytest.raises(OpenAPIValidationError):
        validate(broken)


@pytest.mark.slow
def test_the_linter_finds_nothing(document_file: Path) -> None:
    redocly = tool("redocly")
    linted = subprocess.run(  # noqa: S603 - fixed arguments
        [redocly, "lint", "--extends=recommended", "--format=json", str(document_file)],
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(linted.stdout[linted.stdout.index("{") :])
    assert report["problems"] == []
    assert report["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}


def test_operations_have_short_stable_names(document: Any) -> None:
    assert {operation["operationId"] for operation in operations(document)} == OPERATION_IDS


def test_everything_is_described(document: Any) -> None:
    schemas = document["components"]["schemas"]

    def is_described(part: Any) -> bool:
        return bool(
            part.get("description") or schemas.get(part.get("$ref", "").rpartition("/")[2], {}).get("description")
        )

    for name, schema in schemas.items():
        assert schema.get("description"), name
        for field, part in schema["properties"].items():
            assert is_described(part), f"{name}.{field}"
    for operation in operations(document):
        for parameter in operation["parameters"]:
            assert "$ref" in parameter or parameter["description"], operation["operationId"]


def test_no_description_is_a_bare_unit(document: Any) -> None:
    for name, schema in document["components"]["schemas"].items():
        for field, part in schema["properties"].items():
            text = part.get("description", "As described elsewhere.")
            assert re.match(r"[A-Z`√0-9]|null\b|kg/m²|UTC", text), f"{name}.{field}: {text}"
            assert text.endswith((".", ")")), f"{name}.{field}: {text}"


def enum_of(document: Any, schema: str) -> set[str]:
    return set(document["components"]["schemas"][schema]["properties"]["code"]["enum"])


def test_every_code_is_an_enumeration(document: Any) -> None:
    assert enum_of(document, "InputError") == enum_of(document, "ItemError") == set(CODES)
    assert enum_of(document, "Reason") == set(get_args(ReasonCode))
    assert enum_of(document, "Advisory") == set(get_args(AdvisoryCode))
    assert enum_of(document, "NotApplicable") == set(get_args(NotApplicableCode))
    assert enum_of(document, "HealthWarning") == set(get_args(WarningCode))


def test_the_warnings_are_those_that_the_service_gives() -> None:
    source = "\n".join(Path(str(module.__file__)).read_text("utf-8") for module in (check_health, credentials))
    given = set(re.findall(r'(?:"code": |code=)"([a-z_]+)",', source))
    assert given == set(get_args(WarningCode))


def test_the_kinds_of_damage_are_those_that_the_audit_finds() -> None:
    assert set(get_args(DamageCode)) == set(DamageKind)


def test_the_request_id_is_documented_both_ways(document: Any) -> None:
    for operation in operations(document):
        assert {"$ref": "#/components/parameters/RequestId"} in operation["parameters"]
        for response in operation["responses"].values():
            assert response["headers"]["X-Request-ID"] == {"$ref": "#/components/headers/RequestId"}
    assert document["components"]["parameters"]["RequestId"]["name"] == "X-Request-ID"


def test_invalid_input_has_an_example_with_errors(document: Any) -> None:
    responses = document["paths"]["/v1/sites/{site}/score"]["post"]["responses"]
    example = responses["422"]["content"]["application/problem+json"]["examples"]["input-refused"]["value"]
    assert {error["code"] for error in example["errors"]} <= set(CODES)
    assert len(example["errors"]) == 2


def test_the_card_is_typed(document: Any) -> None:
    card = document["components"]["schemas"]["ModelCard"]
    assert card["additionalProperties"] is False
    for name in ("cohort", "ranges", "training", "calibration", "comparators", "reliability"):
        assert "$ref" in card["properties"][name], name


def test_no_schema_only_wraps_a_field_of_its_own_name(document: Any) -> None:
    for name, schema in document["components"]["schemas"].items():
        assert [field for field in schema["properties"] if field != "request_id"] != [name.lower()]
