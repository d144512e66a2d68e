"""schemathesis over every operation of the OpenAPI document, with acceptable and with unacceptable requests."""

import time
from collections.abc import Iterator
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

# That what fits the schema is accepted is not asked: a body mass index, a known site or a cursor are no matter of it.
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
# In a batch an item that is not acceptable has errors of its own, in an answer of status 200.
CHECKS_OF_BATCHES = [check for check in CHECKS if check is not negative_data_rejection]
BATCH = "/v1/batch/score"
SITES = ("SoV", "AA")
TRIES = 5
REQUEST_ID = "X-Request-ID"  # any text is acceptable: one that is not valid is replaced


def explore(url: str, key: str, number: int, examples: int, only: str = "") -> int:
    """How many requests were sent; raises schemathesis' failure, with the request as a curl command, at the first."""
    schema: Any = schemathesis.openapi.from_url(f"{url}/openapi.json")
    sent = 0
    with requests.Session() as session:
        for operation in (found.ok() for found in schema.get_all_operations()):
            if only in operation.label:
                for mode in _modes(operation):
                    sent += _explore(operation, mode, session, key, number, examples)
    return sent


def _modes(operation: Any) -> Iterator[GenerationMode]:
    yield GenerationMode.POSITIVE
    parameters = [
        one.name for group in (operation.path_parameters, operation.query, operation.headers) for one in group
    ]
    if operation.body or any(name != REQUEST_ID for name in parameters):
        yield GenerationMode.NEGATIVE  # without any other input nothing can be unacceptable


def _explore(operation: Any, mode: GenerationMode, session: Any, key: str, number: int, examples: int) -> int:
    sent = 0

    @seed(number)
    @settings(
        max_examples=examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        nonlocal sent
        sent += 1
        if mode is GenerationMode.POSITIVE:
            _ask_for_known_sites(case)
        case.headers["Authorization"] = f"Bearer {key}"  # a request without a key tests only the 401
        checks = CHECKS_OF_BATCHES if operation.path == BATCH else CHECKS
        case.validate_response(_answered(case, session), checks=checks)

    run()
    return sent


def _answered(case: Any, session: requests.Session) -> Any:
    """On a busy machine a record may take too long: a response that says so is followed by another try."""
    for _ in range(TRIES):
        answer = case.call(session=session)
        if answer.status_code != 503:
            break
        time.sleep(1.0)
    return answer


def _ask_for_known_sites(case: Any) -> None:
    """Else nearly all would be answered by 404."""
    if "site" in case.path_parameters:
        case.path_parameters["site"] = SITES[0]
    if isinstance(case.body, dict) and "measurements" in case.body:
        case.body["measurements"] = case.body["measurements"][: len(SITES)]
        for measurement, site in zip(case.body["measurements"], SITES, strict=False):
            measurement["site"] = site
