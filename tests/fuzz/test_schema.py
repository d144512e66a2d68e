"""Every operation keeps to the OpenAPI document, for requests that fit it and for requests that do not."""

import asyncio
from typing import Any

import pytest
from schemathesis.core.failures import FailureGroup

from app.services import describe_models
from tests.campaigns.service_process import MODELS
from tests.fuzz.schema_cases import explore
from tests.fuzz.target import Target
from tests.web.serving import serving

SEED = 2026
EXAMPLES = 90  # of each operation and kind
REQUESTS = 2_000  # at least


def test_every_operation_answers_as_documented(target: Target) -> None:
    async def work(port: int, key: str) -> int:
        return await asyncio.to_thread(explore, f"http://127.0.0.1:{port}", key, SEED, EXAMPLES)

    sent, _ = target.run(work)
    assert sent >= REQUESTS


def fail(*_: object) -> Any:
    raise ZeroDivisionError


@pytest.mark.parametrize(("spoiled", "seen"), [(fail, "Server error"), (lambda: {}, "Response violates schema")])
def test_a_service_that_errs_is_noticed(
    target: Target, monkeypatch: pytest.MonkeyPatch, spoiled: Any, seen: str
) -> None:
    monkeypatch.setattr(describe_models, "list_limits", spoiled)
    with serving(target.settings, MODELS) as running, pytest.raises(FailureGroup, match=seen):
        explore(running.url, target.key, SEED, 3, only="/v1/limits")


def test_an_operation_that_keeps_its_word_passes(target: Target) -> None:
    with serving(target.settings, MODELS) as running:
        assert explore(running.url, target.key, SEED, 3, only="/v1/limits") >= 1
