from pathlib import Path

import pytest

from tests.fuzz.target import Target, make_target

CI_REQUESTS = 6_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-requests", type=int, help=f"How many hostile requests to send ({CI_REQUESTS}).")


@pytest.fixture
def hostile_requests(request: pytest.FixtureRequest) -> int:
    # pytest reads this file too late for the option if it was not asked for this folder alone.
    return request.config.getoption("--fuzz-requests", None) or CI_REQUESTS


@pytest.fixture
def is_campaign(hostile_requests: int) -> bool:
    return hostile_requests > CI_REQUESTS


@pytest.fixture
def target(tmp_path: Path, migrated_sqlite: Path) -> Target:
    return make_target(tmp_path, migrated_sqlite)
