"""Every operation keeps to the OpenAPI document, for requests that fit it and for requests that do not."""

import asyncio
from typing import Any

import pytest
from schemathesis.core.failures import FailureGroup

from app.schemas.lookups import RequestLimits
from app.services import manage_models
from tests.campaigns.service_process import MODELS
from tests.fuzz.schema_cases import explore
from tests.fuzz.target import Target
from tests.web.serving import serving

SEED = 2026
EXAMPLES, CAMPAIGN_EXAMPLES = 40, 400  # of each operation and kind, in CI and in `make fuzz`


def test_every_operation_answers_as_documented(target: Target, is_campaign: bool) -> None:
    examples = CAMPAIGN_EXAMPLES if is_campaign else EXAMPLES

    async def work(port: int, key: str) -> int:
        return await asyncio.to_thread(explore, f"http://127.0.0.1:{port}", key, SEED, examples)

    sent, _ = target.run(work)
    assert sent >= 20 * examples


def fail(*_: object) -> Any:
    raise ZeroDivisionError


def incomplete(*_: object) -> RequestLimits:
    return RequestLimits.model_construct()


@pytest.mark.parametrize(("spoiled", "seen"), [(fail, "Server error"), (incomplete, "Response violates schema")])
def test_a_service_that_errs_is_noticed(
    target: Target, monkeypatch: pytest.MonkeyPatch, spoiled: Any, seen: str
) -> None:
    monkeypatch.setattr(manage_models, "list_limits", spoiled)
    with serving(target.settings, MODELS) as running, pytest.raises(FailureGroup, match=seen):
        explore(running.url, target.key, SEED, 3, only="/v1/limits")


def test_an_operation_that_keeps_its_word_passes(target: Target) -> None:
    with serving(target.settings, MODELS) as running:
        assert explore(running.url, target.key, SEED, 3, only="/v1/limits") >= 1
